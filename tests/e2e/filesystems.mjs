// File systems: one that is really made is found, told with its cost and deleted in the browser.
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

export async function filesystems(page) {
  await page.goto(URL_);
  await page.click('nav >> text=File systems');
  await page.waitForSelector('#nothing');
  equal(await page.$$eval('#nothing code', (l) => l.map((x) => x.textContent)), ['drover init laion-campaign > campaign.yaml', 'drover submit campaign.yaml'], 'without a file system the page says how to make one');
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
