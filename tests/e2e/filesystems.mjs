// File systems: one that is really made is found, told with its cost and deleted in the browser. Strays: shown with kind and cost, and ended.
import { URL_, api, axe, equal, get, ok, shot, until } from './kit.mjs';
import { MARKUP, intruders, poison } from './hostile.mjs';

const FILE = `version: 1
name: volumes
stages:
  - name: volume
    kind: lustre
    size_gb: 1200
    import: "s3://drover-test/meta/"
    ttl: 6h
    delete: after_ttl
    vpc: {subnets: [subnet-0123456789abcdef0], security_groups: [sg-0123456789abcdef0]}
`;

async function hostile(page) {
  await page.route('**/v1/filesystems', async (route) => {
    const r = await route.fetch({ maxRetries: 2 });
    return route.fulfill({ response: r, json: poison(await r.json(), '', MARKUP) });
  });
  await page.goto(`${URL_}/filesystems`);
  await page.waitForSelector('#filesystems');
  equal([(await page.textContent('#filesystems')).includes(MARKUP), await intruders(page)], [true, { ran: null, csp: [], found: [] }], 'hostile strings are text on /filesystems');
  await page.unrouteAll({ behavior: 'wait' });
}

// As tests/integration/controller/resource_strays.py makes them; here the answers are given.
async function strays(page) {
  const row = { job_name: MARKUP, kind: 'file_system', campaign: null, why: 'lost', status: 'AVAILABLE', running: true, instance_type: 'SCRATCH_2', market: 'storage', instances: 0,
    reserved_micro_usd: 0, seconds: 0, cost_micro_usd: 230137, estimated: true, stop_asked: false, found_at: new Date().toISOString(), created_at: null, started_at: null, ended_at: null };
  const list = [row, { ...row, job_name: 'drover-1-serve-0-a1-0a1b2c3d', kind: 'endpoint', cost_micro_usd: null }, { ...row, job_name: 'ended', running: false }];
  const posted = [];
  await page.route('**/v1/strays?*', (route) => route.fulfill({ json: { sum: { running: 2, seconds: 0, micro_usd: 0 }, strays: list } }));
  await page.route('**/v1/strays/*', (route) => {
    posted.push(`${route.request().method()} ${new URL(route.request().url()).pathname}`);
    list[1].stop_asked = true;
    return route.fulfill({ status: 202, json: { job_name: list[1].job_name, stop_asked: true } });
  });
  await page.goto(URL_);
  await page.waitForSelector('#strays');
  const cells = await page.$$eval('#strays tbody tr', (l) => l.map((tr) => [0, 1, 2, 4].map((i) => tr.children[i].textContent.trim())));
  equal(cells, [[MARKUP, 'file system', 'AVAILABLE', '≈ 0.23 USD'], [list[1].job_name, 'endpoint', 'AVAILABLE', 'unknown']], 'strays that are there are shown with kind, state and cost');
  equal(await intruders(page), { ran: null, csp: [], found: [] }, 'a hostile name of a stray is text');
  await axe(page, 'strays');
  await page.locator('#strays button').nth(1).click();
  await page.waitForSelector('dialog');
  ok((await page.textContent('dialog')).includes('endpoint, config and model is deleted'), 'before one is ended the page says what becomes of it');
  await page.click('#confirm');
  ok(await until(20, async () => (await page.textContent('#strays')).includes('being ended')), 'and then that it is being ended');
  equal(posted, [`POST /v1/strays/${list[1].job_name}:stop`], 'that one alone is ended');
  await page.unrouteAll({ behavior: 'wait' });
}

export async function filesystems(page) {
  await strays(page);
  await page.goto(URL_);
  await page.click('nav >> text=File systems');
  await page.waitForSelector('#nothing');
  equal(await page.$$eval('#nothing code', (l) => l.map((x) => x.textContent)), ['drover init laion-campaign campaign.yaml', 'drover submit campaign.yaml'], 'without a file system the page says how to make one');
  await axe(page, 'no file system');
  const made = await api('POST', '/campaigns', FILE, 'application/yaml');
  if (!ok(made.status === 201, 'a campaign with a file system', made.text)) return;
  const f = await until(60, async () => (await get('/filesystems')).filesystems.find((x) => x.state === 'available' && x.ready));
  if (!ok(f, 'is made and filled', await get('/filesystems'))) return;
  await page.waitForSelector('#filesystems .st-running');
  const cells = await page.$$eval('#filesystems tbody td', (l) => l.map((x) => x.textContent.trim()));
  equal([cells[0], cells[2], /^in 5 h 5\d m$/.test(cells[3]), cells[4]],
    [`${f.name}stage volume of ${made.json.id}, from s3://drover-test/meta/`, '1,200 GiB SCRATCH_2', true, '0.23 USD'], 'the page shows it with size, end and price, without a reload');
  await axe(page, 'the file systems');
  await shot(page, 'filesystems');
  await hostile(page);
  await page.goto(`${URL_}/c/${made.json.id.slice(2)}`);
  await page.click('#to-filesystems');
  await page.click('#filesystems button');
  await page.waitForSelector('dialog');
  ok((await page.textContent('dialog')).includes('exported to s3://drover-test/meta/ first'), 'a campaign leads to its file systems; before one is deleted the page says what becomes of it');
  await axe(page, 'a file system that is to go');
  await page.click('#confirm');
  ok(await until(60, async () => (await page.textContent('#filesystems .state')) === 'deleted' && (await page.locator('#filesystems button').count()) === 0), 'it is deleted by a person, and the page follows it to its end');
}
