// One campaign's page and its table of parts, opened again and again: when the browser has painted something, when the tiles are there
// and a button can be pressed, and how long another filter takes until its rows stand there. Milliseconds, as JSON.
// usage: paint.mjs C TIMES    DROVER_URL, DROVER_TOKEN, PACKAGES as for dashboard.mjs
import { URL_, hangUp, logIn, openBrowser } from './kit.mjs';

const [id, times] = [process.argv[2].slice(2), Number(process.argv[3])];

// In the page, before its own script: when the tiles have come and an enabled button is beside them.
function watch() {
  const look = () => {
    if (!window.__usable && document.querySelector('#tiles[data-tiles]') && document.querySelector('.head button:enabled')) {
      window.__usable = performance.now();
    }
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
}

// From the choice of another state until its first row stands there and the browser has drawn it.
async function choose(page, state) {
  const word = { waiting: 'waiting', done: 'done', failed: 'failed' }[state];
  return page.evaluate(async ([to, text]) => {
    const select = document.querySelector('[name=state]');
    const began = performance.now();
    const there = () => new RegExp(text).test(document.querySelector('#parts-table tbody tr')?.textContent ?? '');
    select.value = to;
    select.dispatchEvent(new Event('change', { bubbles: true }));
    while (!there()) await new Promise(requestAnimationFrame);
    return performance.now() - began;
  }, [state, word]);
}

async function all() {
  const { browser, notes, context } = await openBrowser();
  const c = await context();
  const first = await c.newPage();
  await logIn(first);
  await first.close();
  await c.addInitScript(watch);
  const told = { paint: [], usable: [], filter: [], errors: notes.errors };
  for (let i = 0; i < times; i++) {
    const page = await c.newPage();
    await page.goto(`${URL_}/c/${id}`);
    await page.waitForFunction(() => window.__usable && performance.getEntriesByName('first-contentful-paint').length);
    told.paint.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime));
    told.usable.push(await page.evaluate(() => window.__usable));
    await page.goto(`${URL_}/c/${id}/parts?stage=work&state=failed`);
    await page.waitForSelector('#parts-table');
    for (const state of ['done', 'waiting', 'failed']) told.filter.push(await choose(page, state));
    await page.close();
  }
  await browser.close();
  return told;
}

console.log(JSON.stringify(await all()));
hangUp();
