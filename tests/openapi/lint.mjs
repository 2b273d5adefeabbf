// What Redocly and Spectral say of an OpenAPI document, and the types that openapi-typescript makes of it, compiled with
// a client that uses them. `node lint.mjs FILE FOLDER`; findings as JSON.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(process.env.PACKAGES);
const redocly = require('@redocly/openapi-core');
const { Spectral, Document } = require('@stoplight/spectral-core');
const parsers = require('@stoplight/spectral-parsers');
const { oas } = require('@stoplight/spectral-rulesets');
const ts = require('typescript');
const [file, folder] = process.argv.slice(2);
const text = readFileSync(file, 'utf8');

const config = await redocly.createConfig({ extends: ['recommended'] });
const redoclySays = (await redocly.lint({ ref: file, config })).map((p) => `${p.ruleId}: ${p.message} ${p.location[0]?.pointer}`);

const spectral = new Spectral();
spectral.setRuleset({ extends: [[oas, 'recommended']] });
const spectralSays = (await spectral.run(new Document(text, parsers.Json, file))).map((p) => `${p.code}: ${p.message} ${p.path.join('.')}`);

const { default: openapiTS, astToString } = await import(require.resolve('openapi-typescript').replace('.cjs', '.mjs'));
writeFileSync(join(folder, 'api.d.ts'), astToString(await openapiTS(JSON.parse(text))));
const compiled = (name, client) => {
  const path = join(folder, name);
  writeFileSync(path, client);
  const program = ts.createProgram([path], { strict: true, noEmit: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, skipLibCheck: false, types: [] });
  return ts.getPreEmitDiagnostics(program).map((d) => ts.flattenDiagnosticMessageText(d.messageText, ' '));
};
const client = `import type { components, operations } from './api';
type Campaign = components['schemas']['Campaign'];
type Query = NonNullable<operations['parts_list']['parameters']['query']>;
export const cost = (c: Campaign): number => c.budget.spent_micro_usd + c.budget.reserved_micro_usd;
export const failed: Query = { state: 'failed', page_size: 10 };
export const change: operations['campaign_patch']['requestBody'] = { content: { 'application/json': { limits: { parts: null } } } };
export const refused = (p: operations['campaign_get']['responses'][404]['content']['application/problem+json']): string => p.detail;
`;
const typescript = compiled('client.ts', client);
const planted = compiled('planted.ts', client.replace("'failed'", "'no-such-state'"));
console.log(JSON.stringify({ redocly: redoclySays, spectral: spectralSays, typescript, planted }));
process.exit(0);
