// Runs client.ts against a real droverd, with its types taken off. `node follow.mjs FOLDER URL TOKEN URI...`: FOLDER has the campaign
// in file.json and gets the script; what the client saw as JSON.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.PACKAGES);
const ts = require('typescript');
const [folder, url, token, ...uris] = process.argv.slice(2);
const { outputText } = ts.transpileModule(readFileSync(new URL('./client.ts', import.meta.url), 'utf8'), { compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext } });
const fetcher = pathToFileURL(require.resolve('openapi-fetch').replace('.cjs', '.mjs')).href;
writeFileSync(`${folder}/client.mjs`, outputText.replace("'openapi-fetch'", `'${fetcher}'`));
const { follow } = await import(pathToFileURL(`${folder}/client.mjs`).href);
console.log(JSON.stringify(await follow(url, token, JSON.parse(readFileSync(`${folder}/file.json`, 'utf8')), uris, pause)));
