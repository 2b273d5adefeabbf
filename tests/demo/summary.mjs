// The end of `make run`: parts, images by outcome, pairs, what the endpoint said, and the ledger by stage against the invoice.
// usage: node summary.mjs CAMPAIGN_ID BEGAN_EPOCH_SECONDS RUN_FOLDER ANSWER; exits 1 when the ledger and the invoice differ, or
// when something that costs is left.
import { readFileSync } from 'node:fs';

const [id, began, run, answer] = process.argv.slice(2);
const token = readFileSync(`${run}/token`, 'utf8').trim();
const get = async (base, path, headers) => {
  const r = await fetch(base + path, { headers });
  if (!r.ok) throw new Error(`${path}: ${r.status} ${await r.text()}`);
  return r.json();
};
const api = (path) => get(process.env.DROVER_URL, `/v1${path}`, { authorization: `Bearer ${token}` });
const aws = (path) => get(process.env.AWS_ENDPOINT_URL, `/_local${path}`, {});

const [campaign, cost, invoice, jobs, wire] = await Promise.all([
  api(`/campaigns/${id}`), api(`/campaigns/${id}/cost?by=stage`), aws('/invoice'), aws('/jobs'), aws('/wire-log')]);
const usd = (micro) => (micro / 1e6).toFixed(6);
const download = campaign.stages.find((s) => s.name === 'download');
const creates = wire.requests.filter((r) => r.operation === 'CreateTrainingJob');
const row = (k, v) => console.log(`  ${k.padEnd(14)} ${v}`);
const wall = Date.now() / 1000 - Number(began);
const manifest = JSON.parse(readFileSync(`${run}/aws/s3/drover-demo/index/_manifest.json`, 'utf8'));

console.log(`\n${campaign.name} ${id}: ${campaign.state} in ${wall.toFixed(1)} s`);
const p = download.parts;
row('parts', `${p.total}: ${p.done} done, ${p.skipped} skipped (done before), ${p.failed} failed`);
row('images', `${download.successes} written, ${download.failed_to_download} not downloaded, ${download.failed_to_resize} not images`);
row('pairs', `${manifest.successes} in the index`);
const failed = jobs.jobs.filter((j) => j.status === 'Failed').length;
const lost = creates.filter((r) => r.accepted && !r.replied).length;
row('jobs', `${jobs.jobs.length} made, each once, by ${creates.length} CreateTrainingJob calls`);
row('', `${failed} failed and were tried again; ${lost} reply lost, its job found and kept`);
row('endpoint', `asked for the bytes of "a red fox in the snow": ${answer}`);

// What AWS bills, by the stage in its names: PREFIX-CAMPAIGN-STAGE-PART-aN-SUFFIX; a file system is of the one that has one.
const billed = new Map(campaign.stages.map((s) => [s.name, { micro_usd: 0, seconds: 0 }]));
for (const line of invoice.lines) {
  const of = billed.get(line.kind === 'storage' ? 'volume' : line.name.replace(/^demo-\d+-/, '').replace(/-\d+-a\d+-[0-9a-f]+$/, ''));
  of.micro_usd += line.micro_usd;
  of.seconds += line.kind === 'storage' ? 0 : line.seconds;
}
console.log(`\n  ${'stage'.padEnd(14)} ${'state'.padEnd(10)} ${'instance-s'.padStart(10)} ${'ledger USD'.padStart(12)} ${'invoice USD'.padStart(12)}`);
let same = cost.metered.seconds === invoice.total.seconds && cost.metered.micro_usd === invoice.total.micro_usd;
const line = (name, state, seconds, ledger, bill) =>
  console.log(`  ${name.padEnd(14)} ${state.padEnd(10)} ${String(seconds).padStart(10)} ${usd(ledger).padStart(12)} ${usd(bill).padStart(12)}`);
for (const s of campaign.stages) {
  const ours = cost.by_stage.find((c) => c.stage === s.name) ?? { seconds: 0, micro_usd: 0 };
  const bill = billed.get(s.name);
  same &&= ours.micro_usd === bill.micro_usd && ours.seconds === bill.seconds;
  line(s.name, s.state, ours.seconds, ours.micro_usd, bill.micro_usd);
}
line('in all', '', cost.metered.seconds, cost.metered.micro_usd, invoice.total.micro_usd);
console.log(`  ledger and invoice are ${same ? 'equal' : 'DIFFERENT'}`);

// Nothing that is billed by the hour may outlive the campaign.
const done = (operation) => wire.requests.filter((r) => r.operation === operation && (r.accepted || r.status === 200)).length;
const left = ['FileSystem', 'Endpoint', 'EndpointConfig', 'Model'].filter((x) => done(`Create${x}`) === 0 || done(`Create${x}`) !== done(`Delete${x}`));
left.push(...jobs.jobs.filter((j) => !j.ended || j.pool?.status === 'Available').map((j) => j.name));
console.log(`  left at AWS: ${left.length === 0 ? 'no job, warm pool, file system, endpoint or model' : left.join(', ')}`);
console.log();
row('results', `${run.replace(process.cwd() + '/', '')}/aws/s3/drover-demo/: images/ index/ models/`);
row('dashboard', `${process.env.DROVER_URL}${campaign.links.dashboard}`);
process.exit(same && left.length === 0 ? 0 : 1);
