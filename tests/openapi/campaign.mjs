// Checks values against a JSON Schema. `node campaign.mjs FILE` with {schema, files: [[name, value], ...]}; faults by name.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(process.env.PACKAGES);
const Ajv = require('ajv/dist/2020').default;
const { schema, files } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const fits = new Ajv({ strict: false, allErrors: true }).compile(schema);
console.log(JSON.stringify(Object.fromEntries(files.map(([name, value]) =>
  [name, fits(value) ? [] : fits.errors.slice(0, 3).map((e) => `${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`)]))));
