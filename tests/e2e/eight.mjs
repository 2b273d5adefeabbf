// Eight pages of one browser share one event stream; a change reaches each of them, and when the page that holds the
// stream is closed, another one takes it over. Polls are switched off in these pages: only an event brings news.
import { URL_, api, equal, get, ok, until } from './kit.mjs';

const SPEC = process.env.SPEC;
const PAGES = 8;

function spy() {
  const Real = window.EventSource;
  const every = window.setInterval;
  window.setInterval = (f, ms, ...args) => (ms >= 10000 ? 0 : every(f, ms, ...args));
  window.__streams = [];
  window.EventSource = class extends Real {
    constructor(url) {
      super(url);
      window.__streams.push(this);
    }
  };
}

const streams = (pages) => Promise.all(pages.map((p) => p.evaluate(() => window.__streams.filter((s) => s.readyState === EventSource.OPEN).length)));
const sum = (l) => l.reduce((a, b) => a + b, 0);
const shows = (pages, name) => until(20, async () => (await Promise.all(pages.map((p) => p.textContent('main')))).every((t) => t.includes(name)));
const submit = async (name) => {
  const made = await api('POST', '/campaigns', SPEC.replace(/^name: .*$/m, `name: ${name}`).replace(/fan_out: .*/, 'fan_out: {from: api}'), 'application/yaml');
  equal(made.status, 201, `${name} is submitted`);
  return made.json.id;
};

export async function eight(page) {
  const context = page.context();
  const pages = [];
  for (let i = 0; i < PAGES; i++) {
    const p = await context.newPage();
    await p.addInitScript(spy);
    await p.goto(URL_);
    pages.push(p);
  }
  for (const p of pages) await p.waitForSelector('#live.live');
  ok(await until(20, async () => sum(await streams(pages)) <= 1), `${PAGES} visible pages have one stream at most`, await streams(pages));
  const made = [await submit('eight-one')];
  ok(await shows(pages, 'eight-one'), 'each of them shows it');
  const holder = (await streams(pages)).findIndex((n) => n > 0);
  if (holder >= 0) await pages.splice(holder, 1)[0].close();
  else await page.goto('about:blank'); // the first page of all has it
  ok(await until(20, async () => sum(await streams(pages)) === 1), 'another page takes the stream over', await streams(pages));
  made.push(await submit('eight-two'));
  ok(await shows(pages, 'eight-two'), 'and passes events on to the others');
  for (const p of pages) await p.close();
  for (const c of made) await api('POST', `/campaigns/${c}:cancel`, {});
  ok(await until(20, async () => (await Promise.all(made.map((c) => get(`/campaigns/${c}`)))).every((c) => c.state === 'cancelled')), 'they are cancelled');
  await page.goto(URL_);
}
