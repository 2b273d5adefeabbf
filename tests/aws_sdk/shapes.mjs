// What the pinned AWS SDK knows of requests, as one JSON object on standard output: {service: {"operations": {name: shape},
// "shapes": {name: {"members": {name: type}, "required": [...]}}}}. A type is "string", "number", "boolean", "timestamp", "blob",
// {"list": type}, {"map": type}, {"enum": [...]} or {"structure": name}. Enums are in the SDK's declarations only. Of a member that
// goes into a header or the query, "header" or "query" of its shape has the name there, in small letters: the member.
// usage: shapes.mjs PACKAGES OPERATION...
import fs from 'node:fs';
import { createRequire } from 'node:module';

const [packages, ...operations] = process.argv.slice(2);
const require = createRequire(packages);
const SERVICES = {
  sagemaker: 'sagemaker', 'sagemaker-runtime': 'sagemaker-runtime', fsx: 'fsx', servicequotas: 'service-quotas', pricing: 'pricing', logs: 'cloudwatch-logs', ecr: 'ecr', sqs: 'sqs',
  monitoring: 'cloudwatch', s3: 's3', sts: 'sts',
};
const SIMPLE = { 0: 'string', 1: 'number', 2: 'boolean', 4: 'timestamp', 5: 'timestamp', 6: 'timestamp', 7: 'timestamp', 17: 'number', 19: 'number', 21: 'blob', 42: 'blob' };

function named(folder) {
  const of = {};
  for (const file of fs.readdirSync(folder).filter((f) => /^models_\d+\.d\.ts$/.test(f))) {
    let inside = null;
    for (const line of fs.readFileSync(`${folder}/${file}`, 'utf8').split('\n')) {
      const open = /^export interface (\w+)/.exec(line);
      const member = /^ {4}(\w+)\??: (\w+)(\[\])?(?: \| undefined)?;/.exec(line);
      if (open) {
        inside = of[open[1]] = {};
      } else if (member && inside) {
        inside[member[1]] = member[2];
      }
    }
  }
  return of;
}

function service(client) {
  const sdk = require(`@aws-sdk/client-${client}`);
  const declared = named(`${packages}node_modules/@aws-sdk/client-${client}/dist-types/models`);
  const out = { operations: {}, shapes: {} };
  const enumOf = (word) => (/^[A-Z]/.test(word ?? '') && sdk[word] !== null && typeof sdk[word] === 'object' ? { enum: Object.values(sdk[word]) } : 'string');
  function type(schema, word) {
    let s = typeof schema === 'function' ? schema() : schema;
    if (Array.isArray(s) && Array.isArray(s[0])) {
      s = s[0]; // with traits of the member
    } else if (Array.isArray(s) && typeof s[0] === 'function') {
      s = s[0]();
    } else if (Array.isArray(s) && s.length === 2) {
      s = s[0];
    }
    if (typeof s === 'number') {
      return s >= 128 ? { map: type(s - 128) } : s >= 64 ? { list: type(s - 64, word) } : s === 0 ? enumOf(word) : SIMPLE[s] ?? 'string';
    }
    switch (s[0]) {
      case 0: return type(s[4]);
      case 1: return { list: type(s[4], word) };
      case 2: return { map: type(s[5]) };
      default: return { structure: structure(s) };
    }
  }
  function structure([, , id, , members, types, required]) {
    if (!out.shapes[id]) {
      const shape = out.shapes[id] = { members: {}, required: members.slice(0, required ?? 0), header: {}, query: {} };
      members.forEach((m, i) => {
        shape.members[m] = type(types[i], declared[id]?.[m]);
        const traits = Array.isArray(types[i]) ? types[i][1] : {};
        for (const [place, name] of [['header', traits?.httpHeader], ['query', traits?.httpQuery]]) {
          if (name) {
            shape[place][name.toLowerCase()] = m;
          }
        }
      });
    }
    return id;
  }
  for (const operation of operations) {
    if (sdk[`${operation}$`]) {
      out.operations[operation] = structure(sdk[`${operation}$`][4]());
    }
  }
  return out;
}

process.stdout.write(`${JSON.stringify(Object.fromEntries(Object.entries(SERVICES).map(([ours, theirs]) => [ours, service(theirs)])))}\n`);
