// The end of `make run`: parts, images by outcome, wall time, paid seconds, cost against the invoice.
// usage: node summary.mjs CAMPAIGN_ID BEGAN_EPOCH_SECONDS RUN_FOLDER; exits 1 when the ledger and the invoice differ.
import { readFileSync } from 'node:fs';

const [id, began, run] = process.argv.slice(2);
const token = readFileSync(`${run}/token`, 'utf8').trim();
const get = async (base, path, headers) => {
  const r = await fetch(base + path, { headers });
  if (!r.ok) throw new Error(`${path}: ${r.status} ${await r.text()}`);
  return r.json();
};
const api = (path) => get(process.env.DROVER_URL, `/v1${path}`, { authorization: `Bearer ${token}` });
const aws = (path) => get(process.env.AWS_ENDPOINT_URL, `/_local${path}`, {});

const [campaign, cost, invoice, jobs, wire] = await Promise.all([
  api(`/campaigns/${id}`), api(`/campaigns/${id}/cost`), aws('/invoice'), aws('/jobs'), aws('/wire-log')]);
const usd = (micro) => (micro / 1e6).toFixed(6);
const p = campaign.parts;
const sum = (key) => campaign.stages.reduce((n, s) => n + s[key], 0);
const creates = wire.requests.filter((r) => r.operation === 'CreateTrainingJob');
const row = (k, v) => console.log(`  ${k.padEnd(14)} ${v}`);
const wall = Date.now() / 1000 - Number(began);
const same = cost.metered.seconds === invoice.total.seconds && cost.metered.micro_usd === invoice.total.micro_usd;

console.log(`\n${campaign.name} ${id}: ${campaign.state}`);
row('parts', `${p.total}: ${p.done} done, ${p.skipped} skipped (done before), ${p.failed} failed`);
row('images', `${sum('successes')} written, ${sum('failed_to_download')} not downloaded, ${sum('failed_to_resize')} not images`);
row('rows', `${sum('rows_in')} in the parts that ran`);
const failed = jobs.jobs.filter((j) => j.status === 'Failed').length;
const lost = creates.filter((r) => r.accepted && !r.replied).length;
row('jobs', `${jobs.jobs.length} made, each once, by ${creates.length} CreateTrainingJob calls`);
row('', `${failed} failed and were tried again; ${lost} reply lost, its job found and kept`);
row('wall time', `${wall.toFixed(1)} s`);
row('paid seconds', `${cost.metered.seconds} instance-seconds`);
row('cost', `${usd(cost.metered.micro_usd)} USD by drover's ledger`);
row('invoice', `${usd(invoice.total.micro_usd)} USD for ${invoice.total.seconds} instance-seconds: ${same ? 'equal' : 'DIFFERENT'}`);
row('shards', `${run.replace(process.cwd() + '/', '')}/aws/s3/drover-demo/images/`);
row('dashboard', `${process.env.DROVER_URL}${campaign.links.dashboard}`);
process.exit(same ? 0 : 1);
