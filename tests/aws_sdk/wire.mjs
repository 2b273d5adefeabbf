// What the AWS SDK's clients make of an answer, against the answer itself. `Recorder` is the clients' request handler: it keeps
// each answer's status, headers and body. `losses` names what is in the answer and not in the client's output, and the reverse.
import { Readable } from 'node:stream';

// Headers that belong to the connection or to every answer; clients give them no member.
const CARRIER = new Set(['date', 'connection', 'server', 'keep-alive', 'transfer-encoding', 'x-amz-request-id', 'x-amz-id-2', 'x-amzn-requestid', 'content-type', 'content-length']);

export class Recorder {
  constructor(inner) {
    this.inner = inner;
    this.last = null;
  }

  async handle(request, options) {
    const { response } = await this.inner.handle(request, options);
    const chunks = [];
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk);
    }
    const body = Buffer.concat(chunks);
    response.body = Readable.from(body.length > 0 ? [body] : [], { objectMode: false });
    this.last = { status: response.statusCode, headers: { ...response.headers }, body };
    return { response };
  }

  updateHttpClientConfig(key, value) {
    this.inner.updateHttpClientConfig?.(key, value);
  }

  httpHandlerConfigs() {
    return this.inner.httpHandlerConfigs?.() ?? {};
  }

  destroy() {
    this.inner.destroy?.();
  }
}

// One leaf as text, so that 5, "5", "5.0" and a date are the same on both sides.
function scalar(v) {
  if (v instanceof Date) {
    return `time ${Math.round(v.getTime() / 1000)}`;
  }
  if (v instanceof Uint8Array) {
    return Buffer.from(v).toString('base64');
  }
  return String(v);
}

// Both values have the same members and leaves: JSON as it was sent, and what the client read. Texts of what differs.
export function differences(raw, parsed, path = '') {
  if (raw === null && parsed === undefined) {
    return [`${path} is null`];
  }
  if (parsed instanceof Date) {
    return typeof raw === 'number' && Math.abs(parsed.getTime() - raw * 1000) <= 1 ? [] : [`${path}: ${raw} is not the time ${parsed.toISOString()}`];
  }
  if (raw !== null && typeof raw === 'object' && parsed !== null && typeof parsed === 'object' && Array.isArray(raw) === Array.isArray(parsed)) {
    const keys = new Set([...Object.keys(raw), ...Object.keys(parsed)].filter((k) => path !== '' || k !== '$metadata'));
    return [...keys].flatMap((k) => (k in raw && parsed[k] !== undefined ? differences(raw[k], parsed[k], `${path}.${k}`)
      : [`${path}.${k} is in the ${k in raw ? 'answer' : 'output'} only`]));
  }
  return typeof raw !== 'object' && typeof raw === typeof (parsed?.valueOf?.() ?? parsed) && String(raw) === String(parsed) ? [] : [`${path}: ${raw} is not ${parsed}`];
}

function unescape(text) {
  return text.replace(/&#(x?)([0-9a-f]+);/gi, (_, x, n) => String.fromCodePoint(parseInt(n, x ? 16 : 10)))
    .replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&apos;', "'").replaceAll('&amp;', '&');
}

// "name=text" of every element without children, in order. The answers have neither comments nor CDATA.
export function xmlLeaves(text) {
  const leaves = [];
  let open = null;
  for (const [, close, name, empty, , body] of text.matchAll(/<(\/?)([A-Za-z][\w:.-]*)[^>]*?(\/?)>(([^<]*))/g)) {
    if (close === '' && empty === '') {
      open = { name, body };
    } else {
      if (close === '' || open !== null) {
        leaves.push([name, close === '' ? '' : unescape(open.body)]);
      }
      open = null;
    }
  }
  return leaves;
}

function leaf(text) {
  if (/^-?\d+\.\d+$/.test(text)) {
    return String(Number(text));
  }
  return /^\d{4}-\d\d-\d\dT[\d:.]+Z$|^\w{3}, \d\d \w{3} \d{4} /.test(text) ? scalar(new Date(text)) : text;
}

function outputLeaves(value, name = '', path = '') {
  if (value === undefined || value === null || (path === '' && name === '$metadata')) {
    return [];
  }
  if (typeof value === 'object' && !(value instanceof Date) && !(value instanceof Uint8Array)) {
    return Object.entries(value).flatMap(([k, v]) => (path === '' && k === '$metadata' ? [] : outputLeaves(v, Array.isArray(value) ? name : k, `${path}.${k}`)));
  }
  return [[name, scalar(value)]];
}

// What two multisets do not share.
function odd(a, b, what) {
  const left = new Map();
  for (const x of b) {
    left.set(x, (left.get(x) ?? 0) + 1);
  }
  return a.filter((x) => {
    const n = left.get(x) ?? 0;
    left.set(x, n - 1);
    return n <= 0;
  }).map((x) => `${x} is in the ${what} only`);
}

// Of an answer in XML, or in headers alone. A client drops quotes of no ETag, gives an empty element as "" or not at all, and
// names some headers otherwise, so headers are compared by their values.
function xmlDifferences(answer, output) {
  const { Body, ...rest } = output;
  const isXml = Body === undefined && answer.body.length > 0;
  const sent = isXml ? xmlLeaves(answer.body.toString()).filter(([k, v]) => v !== '' && k !== 'RequestId' && k !== 'HostId').map(([k, v]) => `${k}=${leaf(v)}`) : [];
  const headers = Object.entries(answer.headers).filter(([k]) => !CARRIER.has(k) || (k === 'content-type' && rest.ContentType !== undefined) || (k === 'content-length' && rest.ContentLength !== undefined));
  const read = outputLeaves(rest).filter(([, v]) => v !== '');
  const inHeaders = headers.map(([, v]) => leaf(v));
  const fromBody = odd(read.map((x) => x.join('=')), sent, 'output').map((t) => t.slice(0, -' is in the output only'.length));
  const fromHeaders = fromBody.map((t) => t.slice(t.indexOf('=') + 1));
  return [...odd(sent, read.map((x) => x.join('=')), 'answer'), ...odd(inHeaders, fromHeaders, 'headers'), ...odd(fromHeaders, inHeaders, 'output')];
}

export function losses(answer, output) {
  const type = answer.headers['content-type'] ?? '';
  if (type.startsWith('application/x-amz-json')) {
    return differences(answer.body.length > 0 ? JSON.parse(answer.body) : {}, { ...output });
  }
  return xmlDifferences(answer, output);
}

// Of an error: its code and its text.
// STS' model gives its errors codes without the last word of their names.
export function errorLosses(answer, error) {
  if (answer.body.length === 0) {
    return error.$metadata?.httpStatusCode === answer.status ? [] : ['the status'];
  }
  const isJson = (answer.headers['content-type'] ?? '').startsWith('application/x-amz-json');
  const raw = isJson ? JSON.parse(answer.body) : Object.fromEntries(xmlLeaves(answer.body.toString()));
  const code = isJson ? raw.__type.replace(/^.*#/, '') : raw.Code;
  const text = raw.message ?? raw.Message;
  return [...(error.name.replace(/(?<=Token)Exception$/, '') === code ? [] : [`the code ${code} became ${error.name}`]), ...(error.message === text ? [] : [`"${text}" became "${error.message}"`])];
}
