// What was set aside, for real: the database refuses the intent of a part and droverd the selection of an operation. Both are shown
// on the campaign's page and among all, with the reason, since when and what to do; Try again asks first, and says what is refused again.
import { URL_, api, axe, equal, get, ok, please, shot, until } from './kit.mjs';

const SPEC = process.env.SPEC;
const MARKUP = '<img src=x onerror=alert(1)>';

const rows = (page) => page.$$eval('#parked tbody tr', (l) => l.map((tr) => [...tr.children].map((td) => td.textContent.trim().replace(/\s+/g, ' '))));
const gone = async (page, id) => (await get(`/parked?campaign=${id}`)).parked.length === 0 && (await page.locator('#parked').count()) === 0;

// Each row says what it is, why, since when with the zone, and what to do.
async function told(page, list, where, of = '') {
  const seen = await rows(page);
  const what = (p) => (p.kind === 'part' ? 'part 0 of download' : p.id) + of;
  equal(seen.map((r) => [r[0], r[1], r[2], r[4]]), list.map((p) => [what(p), p.kind, p.reason, p.what_to_do]), `${where}: what, kind, reason and what to do`);
  ok(list.every((p, i) => seen[i][3].endsWith(`${new Date(p.since).toISOString().slice(0, 16).replace('T', ' ')} UTC`) && / ago /.test(seen[i][3])), `${where}: since when, with the zone`, seen.map((r) => r[3]));
}

async function tryAgain(page, button) {
  await page.click(button);
  await page.waitForSelector('dialog[open]');
  ok(/cost money\. What is refused again is set aside again/.test(await page.textContent('dialog')), 'before it is tried again the page says what may follow', await page.textContent('dialog'));
}

// What is set aside and its button, the money and the timeline are shown of a campaign that has no forecast, with the reason.
async function unforecast(page, id) {
  const detail = 'no forecast, <b>says the test</b>';
  await page.route('**/forecast*', (route) => route.fulfill({ status: 409, contentType: 'application/problem+json', body: JSON.stringify({ status: 409, detail }) }));
  for (const [path, what, where] of [['', '[data-step=unpark]', null], ['/cost', '#at-end', '#at-end + .muted'], ['/timeline', '#slots', null]]) {
    await page.goto(`${URL_}/c/${id.slice(2)}${path}`);
    ok(await until(15, async () => (await page.locator(what).count()) === 1), `without a forecast the page${path} is drawn`, await page.textContent('main'));
    if (where) ok(await until(5, async () => (await page.textContent(where)).includes(detail)), 'and says why there is none', await page.textContent('main'));
  }
  await page.unrouteAll({ behavior: 'wait' });
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.waitForSelector('[data-step=unpark]');
}

export async function parked(page) {
  await please('refuse', MARKUP);
  const spec = SPEC.replace(/^name: .*$/m, 'name: aside').replace(/fan_out: .*/, 'fan_out: {from: api}');
  const { id } = (await api('POST', '/campaigns', spec, 'application/yaml')).json;
  await api('POST', `/campaigns/${id}/parts?stage=download&last=true`, '{"uri":"s3://drover-test/1","size":1}', 'application/x-ndjson');
  const op = `op-${await please('misunderstood', id.slice(2))}`;
  const both = async () => { const p = (await get(`/parked?campaign=${id}`)).parked; return p.length === 2 && p; };
  const list = await until(30, both);
  ok(list?.some((p) => p.reason.includes(MARKUP)) && list.some((p) => p.id === op), 'a part and an operation are set aside', list);
  if (!list) return;
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.waitForSelector('.banner[data-kind=parked] #parked');
  await told(page, list, 'on its page');
  equal([await page.locator('#parked img').count(), await page.locator('[data-step=unpark]').count()], [0, 1], 'a reason is text, and one button is for all of a campaign');
  await axe(page, 'what is set aside of a campaign');
  await shot(page, 'parked');
  await unforecast(page, id);
  let sent = 0;
  page.on('request', (r) => { if (r.url().endsWith(':unpark')) sent++; });
  await tryAgain(page, '[data-step=unpark]');
  await page.click('text=Back');
  equal(sent, 0, 'nothing is sent without a yes');
  await tryAgain(page, '[data-step=unpark]');
  await page.click('#confirm');
  const later = (p) => p && list.every((was) => p.some((now) => now.kind === was.kind && now.since > was.since)) && p;
  const anew = await until(30, async () => later(await both()));
  ok(anew, 'what is refused again is set aside again, since now', anew);
  ok(await until(20, async () => (await page.$$eval('#parked time', (l) => l.map((x) => x.getAttribute('datetime')))).join() === (await both()).map((p) => p.since).join()), 'and the page says so');
  await page.click('a.brand');
  await page.waitForSelector('#parked');
  await told(page, await both(), 'among all campaigns', ` ${id}`);
  await axe(page, 'what is set aside of all campaigns');
  await shot(page, 'parked-list');
  await please('accept', op.slice(3));
  await tryAgain(page, '#parked button');
  await page.click('#confirm');
  ok(await until(30, () => gone(page, id)), 'mended and tried again, nothing is set aside, and the page shows none', sent);
  ok(await until(30, async () => (await get(`/operations?campaign=${id}`)).operations[0].state === 'done'), 'the operation is carried out');
  equal(sent, 2, 'each yes was sent once');
  await api('POST', `/campaigns/${id}:cancel`, '{}');
}
