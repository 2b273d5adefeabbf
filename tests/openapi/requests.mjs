// Requests made of /openapi.json, good and broken ones, against a running server. Every answer must be one that the
// document describes, member by member; a request that the document does not allow must be refused; no answer is a 5xx;
// every refusal is problem+json. `node requests.mjs WORLD` with a JSON of port, seed, count, tokens and what is there.
import http from 'node:http';
import { createRequire } from 'node:module';
import { broken, fitting, random, resolve } from './generate.mjs';

const require = createRequire(process.env.PACKAGES);
const Ajv = require('ajv/dist/2020').default;
const formats = require('ajv-formats').default;
const world = JSON.parse(process.argv[2]);
const r = random(world.seed);
const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });

const ask = (method, path, headers, body) => new Promise((done, failed) => {
  const req = http.request({ host: '127.0.0.1', port: world.port, method, path, headers, agent }, (res) => {
    const parts = [];
    res.on('data', (d) => parts.push(d));
    res.on('end', () => done({ status: res.statusCode, headers: res.headers, text: Buffer.concat(parts).toString() }));
  });
  req.on('error', failed);
  req.end(body);
});

const document = JSON.parse((await ask('GET', '/openapi.json', {})).text);

// Objects that say nothing of further members have none: what is answered is described.
const strict = (v) => {
  if (Array.isArray(v)) return v.map(strict);
  if (v === null || typeof v !== 'object') return v;
  const o = Object.fromEntries(Object.entries(v).map(([k, x]) => [k, k === 'examples' ? x : strict(x)]));
  return o.properties && o.additionalProperties === undefined ? { ...o, additionalProperties: false } : o;
};
const ajv = new Ajv({ strict: false, validateFormats: true });
formats(ajv);
ajv.addSchema({ $id: 'doc', ...strict({ components: document.components }) });
const checks = new Map();
const check = (ref) => {
  if (!checks.has(ref)) checks.set(ref, ajv.compile({ $ref: `doc${ref}` }));
  return checks.get(ref);
};

const operations = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, op]) => ({
  ...op, path, method: method.toUpperCase(),
  parameters: op.parameters.map((p) => resolve(document, p)),
}))).filter((op) => !op.responses['200']?.content?.['text/event-stream']);
// Answers of the computing ones take a hundred times as long: they are asked less often.
const DEAR = new Set(['forecast_get', 'why_get', 'compare_get', 'scaling_get', 'campaign_retry', 'campaign_post']);
const ENDS = new Set(['campaign_cancel', 'campaign_archive', 'auth_logout']);
const weight = (op) => (DEAR.has(op.operationId) ? 0.3 : ENDS.has(op.operationId) ? 0.15 : 1);

const valueOf = (op, p) => {
  const there = world.of[op.operationId]?.[p.name] ?? world.known[p.name];
  return String(there && r.chance(0.85) ? r.pick(there) : fitting(document, p.schema, r));
};
const wrongOf = (p) => {
  const s = p.schema;
  if (s.type === 'integer') return r.pick(['x', '1.5', String(s.minimum - 1), s.maximum ? String(s.maximum + 1) : '9'.repeat(20)]);
  if (s.type === 'boolean') return r.pick(['yes', '', '1']);
  const texts = Array.from({ length: 40 }, () => broken(document, s, r)).filter((v) => typeof v === 'string');
  return texts[0] ?? 'x'.repeat(5000);
};

// Every way in which a request to op can be wrong, with the statuses that say so.
const faultsOf = (op) => {
  const kinds = [['query', [400]]];
  if (op.parameters.some((p) => p.in === 'path')) kinds.push(['path', [400, 404]]);
  if (op.parameters.some((p) => p.in === 'query')) kinds.push(['value', [400]], ['value', [400]]);
  if (op.parameters.some((p) => p.in === 'query' && p.required)) kinds.push(['missing', [400]]);
  if (op.requestBody) kinds.push(['encoding', [415]]);
  if (op.requestBody && !op.requestBody.content['*/*']) kinds.push(['type', [415]]);
  if (op.requestBody && !world.texts[op.operationId]) {
    kinds.push(['json', [400]], ['body', [400, 422]], ['body', [400, 422]], ['body', [400, 422]]);
  }
  if (op.parameters.some((p) => p.name === 'If-Match')) kinds.push(['match', [428]]);
  return kinds;
};

const query = (pairs) => (pairs.length === 0 ? '' : `?${pairs.map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join('&')}`);

const pathOf = (op, fault) => op.path.replace(/\{(\w+)\}/g, (_, name) => {
  const p = op.parameters.find((x) => x.in === 'path' && x.name === name);
  const bad = ['%', ' ', 'x.y', '..%2f', 'ä', 'c-', '-1', 'c--1'].filter((s) => !new RegExp(p.schema.pattern ?? '^[0-9]+$').test(s));
  return encodeURIComponent(fault === 'path' ? r.pick(bad) : valueOf(op, p));
});

const queryOf = (op, fault) => {
  const all = op.parameters.filter((p) => p.in === 'query');
  const needed = all.filter((p) => p.required);
  const pairs = all.filter((p) => p.required || r.chance(0.35)).map((p) => [p.name, valueOf(op, p)]);
  if (fault === 'query') pairs.push(r.pick([['no_such', '1'], ['page_size', '1'], ['page_size', '2']]), ['no_such_either', '']);
  if (fault === 'missing') return query(pairs.filter(([k]) => k !== needed[0].name));
  if (fault !== 'value') return query(pairs);
  const p = r.pick(all);
  return query([...pairs.filter(([k]) => k !== p.name), [p.name, wrongOf(p)]]);
};

const bodyOf = (op, fault, headers) => {
  const types = Object.keys(op.requestBody?.content ?? {});
  if (types.length === 0) return undefined;
  const schema = op.requestBody.content['application/json']?.schema;
  const text = world.texts[op.operationId] && r.pick(world.texts[op.operationId]);
  headers['Content-Type'] = fault === 'type' ? 'text/csv' : text ? text.type : r.pick(types);
  if (fault === 'encoding') headers['Content-Encoding'] = 'gzip';
  if (text?.base64) return Buffer.from(text.base64, 'base64');
  if (text) return text.body || ' ';
  if (fault === 'json') return r.pick(['{', '[]', '"x"', '{"a":1,"a":2}', '\u0000', '{}{}', '7']);
  const known = { ...world.known, token: world.secrets };
  return JSON.stringify(fault === 'body' ? broken(document, schema, r) : fitting(document, schema, r, known));
};

const requestOf = (op, fault) => {
  const headers = { Authorization: `Bearer ${world.token}` };
  for (const p of op.parameters.filter((x) => x.in === 'header')) {
    if (p.name === 'If-Match' && fault !== 'match') headers['If-Match'] = r.pick(['*', '*', '"1"']);
    if (p.name === 'Idempotency-Key' && (p.required || r.chance(0.5))) headers['Idempotency-Key'] = `k${r.int(1, 1e9)}`;
  }
  const body = bodyOf(op, fault, headers);
  return { method: op.method, path: pathOf(op, fault) + queryOf(op, fault), headers, body };
};

const wrong = []; // at most 50
const seen = new Map();
const problems = new Set();
const note = (what, request, answer) => wrong.push({ what, method: request.method, path: request.path, body: request.body?.slice(0, 300).toString(),
  status: answer.status, answer: answer.text.slice(0, 400) });

const checkAnswer = (op, request, fault, answer) => {
  const described = op.responses[answer.status];
  if (answer.status >= 500) note('a 5xx', request, answer);
  if (!described) {
    note('a status that is not described', request, answer);
    return;
  }
  if (!answer.headers['x-request-id']) note('no X-Request-Id', request, answer);
  // A choice of rows that is empty is understood, and refused as an empty selector is: it never means all.
  const due = fault && (fault[0] === 'value' && /[?&](state|cause|filter)=(&|$)/.test(request.path) ? [400, 422] : fault[1]);
  if (fault && !due.includes(answer.status)) note(`a broken request (${fault[0]}) is not refused with ${due}`, request, answer);
  if (answer.status === 304) return;
  const type = answer.headers['content-type']?.split(';')[0];
  if (answer.status >= 400 && type !== 'application/problem+json') note('no problem+json', request, answer);
  const content = resolve(document, described).content[type];
  if (!content) {
    note(`a media type that is not described: ${type}`, request, answer);
    return;
  }
  if (!content.schema.$ref) return;
  const value = JSON.parse(answer.text);
  const fits = check(content.schema.$ref);
  if (!fits(value)) note(`outside its schema: ${JSON.stringify(fits.errors[0])}`, request, answer);
  if (answer.status >= 400) problems.add(value.type);
};

const total = operations.reduce((sum, op) => sum + weight(op), 0);
const draw = () => {
  let at = r.next() * total;
  return operations.find((op) => (at -= weight(op)) < 0) ?? operations[0];
};
const one = async (op, fault) => {
  const request = requestOf(op, fault?.[0]);
  const answer = await ask(request.method, request.path, request.headers, request.body);
  checkAnswer(op, request, fault, answer);
  const key = op.operationId;
  seen.set(key, [...(seen.get(key) ?? []), fault ? 0 : answer.status]);
};
const lanes = Array.from({ length: 4 }, async (_, lane) => {
  for (let i = lane; i < world.count && wrong.length < 50; i += 4) {
    const op = draw();
    await one(op, r.chance(0.4) ? r.pick(faultsOf(op)) : undefined);
  }
});
await Promise.all(lanes);
// What chance asked too seldom is asked on, so that the next check does not hang on the seed.
const answered = (op) => (seen.get(op.operationId) ?? []).some((s) => s >= 200 && s < 300);
for (const op of operations.filter((x) => !answered(x))) {
  for (let i = 0; i < 100 && !answered(op) && wrong.length < 50; i++) await one(op);
}

const pages = await Promise.all([...problems].map(async (p) => [p, (await ask('GET', p, {})).status]));
const never = operations.filter((op) => !answered(op)).map((op) => op.operationId);
agent.destroy();
const examples = Object.entries(document.components.schemas).flatMap(([name, schema]) => (schema.examples ?? []).map((value) => [name, value]));
const unfit = examples.filter(([name, value]) => !check(`#/components/schemas/${name}`)(value)).map(([name]) => name);
console.log(JSON.stringify({ examples: examples.length, unfit, wrong, pages, never, operations: operations.length, asked: [...seen.values()].flat().length,
  good: [...seen.values()].flat().filter((s) => s >= 200 && s < 300).length }));
