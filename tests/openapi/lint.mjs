// What Redocly and Spectral say of an OpenAPI document and of one with planted faults, and the types that openapi-typescript
// makes of the first, compiled with client.ts as it is and with a mistake. `node lint.mjs FILE FOLDER BROKEN`; findings as JSON.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(process.env.PACKAGES);
const redocly = require('@redocly/openapi-core');
const { Spectral, Document } = require('@stoplight/spectral-core');
const parsers = require('@stoplight/spectral-parsers');
const { oas } = require('@stoplight/spectral-rulesets');
const ts = require('typescript');
const [file, folder, broken] = process.argv.slice(2);
const text = readFileSync(file, 'utf8');

const config = await redocly.createConfig({ extends: ['recommended'] });
const spectral = new Spectral();
spectral.setRuleset({ extends: [[oas, 'recommended']] });
const say = async (path) => ({
  redocly: (await redocly.lint({ ref: path, config })).map((p) => `${p.ruleId}: ${p.message} ${p.location[0]?.pointer}`),
  spectral: (await spectral.run(new Document(readFileSync(path, 'utf8'), parsers.Json, path))).map((p) => `${p.code}: ${p.message} ${p.path.join('.')}`),
});

const { default: openapiTS, astToString } = await import(require.resolve('openapi-typescript').replace('.cjs', '.mjs'));
writeFileSync(join(folder, 'api.d.ts'), astToString(await openapiTS(JSON.parse(text))));
const client = readFileSync(new URL('./client.ts', import.meta.url), 'utf8');
// Both clients in one program: the types are read and checked once. TypeScript's own library is not ours to check.
const clients = { 'client.ts': client, 'planted.ts': client.replace("state: 'failed'", "state: 'no-such-state'") };
for (const [name, source] of Object.entries(clients)) writeFileSync(join(folder, name), source);
const program = ts.createProgram(Object.keys(clients).map((name) => join(folder, name)), {
  strict: true, noEmit: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, skipLibCheck: false, skipDefaultLibCheck: true, types: [],
  moduleResolution: ts.ModuleResolutionKind.Bundler, paths: { 'openapi-fetch': [require.resolve('openapi-fetch').replace('index.cjs', 'index.d.mts')] },
});
const compiled = { typescript: [], planted: [] };
for (const d of ts.getPreEmitDiagnostics(program)) {
  compiled[d.file?.fileName.endsWith('planted.ts') ? 'planted' : 'typescript'].push(ts.flattenDiagnosticMessageText(d.messageText, ' '));
}
console.log(JSON.stringify({ ...await say(file), ...compiled, broken: await say(broken) }));
process.exit(0);
