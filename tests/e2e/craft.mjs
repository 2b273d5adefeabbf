// What a page says when there is nothing to show: an address that leads nowhere, the first run, a droverd that is silent.
import { URL_, axe, equal, goOn, ok, shot, until } from './kit.mjs';

async function lost(page) {
  const r = await page.goto(`${URL_}/nothing/here`);
  await page.waitForSelector('#lost');
  equal(r.status(), 404, 'an address that leads nowhere is answered with 404');
  ok((await page.textContent('#lost')).includes('/nothing/here'), 'the page says which one');
  await axe(page, 'the page that is not there');
  await shot(page, 'lost');
  await page.click('#lost a');
  await page.waitForSelector('#new');
  equal(new URL(page.url()).pathname, '/', 'and leads back');
}

async function first(page) {
  await page.route('**/v1/campaigns?*', (route) => route.fulfill({ json: { campaigns: [], next_page_token: null } }));
  await page.goto(URL_);
  await page.waitForSelector('#first');
  const commands = await page.$$eval('#first code', (l) => l.map((x) => x.textContent));
  equal(commands, ['drover validate campaign.yaml', 'drover submit campaign.yaml', 'drover watch'], 'the first run shows the next commands');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.click('#first button >> nth=1');
  equal(await page.evaluate(() => navigator.clipboard.readText()), commands[1], 'each with a button that copies it');
  await shot(page, 'first');
  await page.unrouteAll({ behavior: 'wait' });
}

// droverd's connections stay open, but nothing comes. The page's clock is moved on, nobody waits 20 s.
async function silent(page) {
  await page.addInitScript(() => {
    const now = Date.now;
    window.__later = 0;
    Date.now = () => now() + window.__later;
  });
  await page.goto(URL_);
  await page.waitForSelector('#live.live');
  const held = [];
  await page.route('**/v1/**', (route) => held.push(route));
  const said = await until(15, async () => {
    await page.evaluate(() => { window.__later += 6000; });
    const text = await page.textContent('#live');
    return /stale/.test(text) && text;
  });
  ok(/stale · as of \d\d:\d\d:\d\d/.test(said), 'after 20 s the page says since when it is stale', said);
  await shot(page, 'silent');
  await page.unrouteAll({ behavior: 'wait' });
  for (const route of held) await goOn(route);
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))); // the stream is opened again, the poll not waited for
  ok(await until(20, async () => (await page.textContent('#live')) === '● live'), 'and is live again with the next byte');
}

// One read is never answered. It is given up, and the next one brings the page; the 30 s are one second here.
async function unanswered(page) {
  const mine = await page.context().newPage();
  await mine.addInitScript(() => {
    const { timeout } = AbortSignal;
    AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 30);
  });
  let held = 0;
  await mine.route('**/v1/campaigns?*', (route) => (held++ === 0 ? null : goOn(route)));
  await mine.goto(URL_);
  ok(await until(30, async () => held > 1 && (await mine.$('#new')) && !(await mine.$('[role=alert]'))), 'a read that nothing answers does not keep the page from the next', held);
  await mine.close();
}

export async function craft(page) {
  await lost(page);
  await first(page);
  await silent(page);
  await unanswered(page);
}
