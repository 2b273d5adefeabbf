// droverd stands still (SIGSTOP): no byte comes, no connection ends. Every page of the dashboard says within 20 s since when what it
// shows is stale, and is live again when droverd goes on. The 20 s are passed by the pages' clocks.
import { URL_, equal, get, ok, please, until } from './kit.mjs';

const PAGES = ['/', '/endpoints', '/filesystems', '/pools', '/quotas', '/bill', '/audit', '/tokens', '/projects', '/webhooks'];
const OF_A_CAMPAIGN = ['', '/parts', '/timeline', '/cost', '/scaling', '/compare'];
const LATE_MS = 20000;

function clock() {
  const now = Date.now;
  window.__later = 0;
  Date.now = () => now() + window.__later;
}

const said = (pages) => Promise.all(pages.map((p) => p.textContent('#live')));

export async function frozen(page) {
  const context = page.context();
  const pages = [];
  const [{ id }] = (await get('/campaigns')).campaigns;
  const paths = [...PAGES, ...OF_A_CAMPAIGN.map((p) => `/c/${id.slice(2)}${p}`)];
  for (const path of paths) {
    const p = await context.newPage();
    await p.addInitScript(clock);
    await p.goto(URL_ + path);
    pages.push(p);
  }
  ok(await until(30, async () => (await said(pages)).every((t) => t === '● live')), `${paths.length} pages are live`, await said(pages));
  await please('freeze');
  try {
    for (const p of pages) await p.evaluate((ms) => { window.__later += ms; }, LATE_MS);
    ok(await until(10, async () => (await said(pages)).every((t) => /stale · as of \d\d:\d\d:\d\d/.test(t))), 'droverd stands still: within 20 s each says since when it is stale',
      (await said(pages)).map((t, i) => [paths[i], t]).filter(([, t]) => !/stale/.test(t)));
  } finally {
    await please('thaw');
  }
  for (const p of pages) await p.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))); // the poll is not waited for
  ok(await until(30, async () => (await said(pages)).every((t) => t === '● live')), 'and all are live again when it goes on', await said(pages));
  for (const p of pages) await p.close();
  equal(context.pages().length, 1, 'they are closed');
}
