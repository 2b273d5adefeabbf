// Text from outside stays text: hostile part names and failure reasons through the real system, then every string of every
// answer replaced by one that would run if it were ever taken for markup.
import { URL_, api, axe, equal, get, goOn, ok, please, shot, timed, until } from './kit.mjs';

const SPEC = process.env.SPEC;
export const MARKUP = '<img src=x onerror="window.__xss=1"><script>window.__xss=1</script><a href="javascript:window.__xss=1">x</a>';
const CORPUS = [MARKUP, '"><svg onload=window.__xss=1>', "' onmouseover='window.__xss=1", '{{constructor.constructor("window.__xss=1")()}}', '\u202egnp.exe', '</code></table><iframe srcdoc="<script>parent.__xss=1</script>">'];
// The page's own pictures are the only ones, and it has no frames, objects or inline handlers.
export const intruders = (page) => page.evaluate(() => ({ ran: window.__xss ?? null, csp: window.__csp,
  found: [...document.querySelectorAll('main img, main svg[onload], iframe, object, embed, main script, main a[href^="javascript"], [onerror], [onload], [onmouseover]')].map((e) => e.outerHTML.slice(0, 100)) }));

async function real(page) {
  const spec = SPEC.replace(/^name: .*$/m, 'name: hostile').replace(/fan_out: .*/, 'fan_out: {from: api}\n    canary: off\n    breaker: off');
  await please('faults', JSON.stringify([{ kind: 'job_failure', operation: 'CreateTrainingJob', name_contains: 'download', times: 1000, reason: `AlgorithmError: ValueError: ${MARKUP}, exit code: 1`.slice(0, 240) }]));
  const id = (await api('POST', '/campaigns', spec, 'application/yaml')).json.id;
  const lines = CORPUS.map((x) => JSON.stringify({ uri: `s3://drover-test/${x}/part.parquet`, size: 1 })).join('\n');
  const control = await api('POST', `/campaigns/${id}/parts?stage=download`, '{"uri":"s3://drover-test/\\u001b[31m","size":1}', 'application/x-ndjson');
  equal(control.status, 422, 'a part name with control characters is refused');
  const posted = await api('POST', `/campaigns/${id}/parts?stage=download&last=true`, lines, 'application/x-ndjson');
  if (!ok(posted.status === 201, 'parts with hostile names are taken as they are', posted.text)) return id;
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.waitForSelector('[data-retry=user_code]');
  await until(30, async () => (await get(`/campaigns/${id}`)).state === 'failed');
  await page.click('#failures button.link >> nth=0');
  await page.waitForSelector('#part .tries');
  const part = await get(`/parts/${id}/0`);
  equal([await page.textContent('#part p code'), await page.locator('#part .tries .reason').first().textContent()], [part.uri, part.attempt_list[0].reason], 'a hostile name and a hostile reason are shown letter for letter');
  ok(part.attempt_list[0].reason.includes('<img') && part.uri.includes('<img'), 'and they are hostile', part);
  equal(await intruders(page), { ran: null, csp: [], found: [] }, 'nothing of them became markup');
  await shot(page, 'hostile');
  await axe(page, 'hostile names');
  return id;
}

// Numbers, times, ids and the words that decide what is drawn stay; every other string turns hostile.
const KEEP = /^(id|state|phase|kind|wanted|next_page_token|csrf|.*_at|time|market)$/;
export const poison = (v, key, text) => {
  if (Array.isArray(v)) return v.map((x) => poison(x, key === 'states' ? 'state' : key, text));
  if (v && typeof v === 'object') return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, poison(x, k, text)]));
  return typeof v === 'string' && !KEEP.test(key) ? text : v;
};

const underWay = new Map(); // answers of spoil that the browser has not got yet: what is waited for

// Ends the spoiling; an answer that the browser neither takes nor refuses within two minutes is said and left.
async function unspoil(page) {
  const late = new Promise((done) => { setTimeout(done, 120000, 'late').unref(); });
  if (await Promise.race([page.unrouteAll({ behavior: 'wait' }), late]) !== 'late') return;
  console.log(`# under way for two minutes: ${JSON.stringify([...underWay.values()])}`);
  console.log(`# sockets: ${JSON.stringify(await please('connections'))}`);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
}

// Every answer but the events turns hostile. One that is lost on its way is said, with what the kernel knows of droverd's
// connections, and asked for again by the browser itself: its text comes with the page's next look.
async function spoil(page, text) {
  await page.route('**/v1/**', async (route) => {
    const path = new URL(route.request().url()).pathname;
    if (/\/events$/.test(path)) return goOn(route);
    const began = Date.now();
    const waits = (what) => underWay.set(route, `${path} ${what}`);
    try {
      waits('fetch');
      const r = await route.fetch({ maxRetries: 2 });
      const json = poison(await r.json(), '', text);
      waits('fulfill');
      await route.fulfill({ response: r, json });
    } catch (e) {
      waits('continue');
      await goOn(route);
      if (/already handled|closed|disposed/i.test(e.message)) return; // the page that asked may be gone
      console.log(`# lost: ${path} after ${Date.now() - began} ms: ${e.message.split('\n')[0]}`);
      console.log(`# sockets: ${JSON.stringify(await please('connections'))}`);
    } finally {
      underWay.delete(route);
    }
  });
}

// One string on a part's page, the parts' and the list: what a page shows first may be from before its answers came. `left` ends it when nobody waits for it any more.
async function one(page, id, text, left) {
  const texts = (where) => until(60, async () => left.now || (await page.locator(where).first().textContent()).includes(text));
  await spoil(page, text);
  await page.goto(`${URL_}/c/${id.slice(2)}?stage=download&part=0`);
  await page.waitForSelector('#part .tries');
  const titled = await texts('h1');
  const at = [await intruders(page)];
  if (left.now) return null;
  await page.click('#all-parts');
  await page.waitForSelector('#parts-table');
  at.push(await intruders(page));
  await page.click('a.brand');
  await page.waitForSelector('#new');
  const listed = await texts('main table');
  at.push(await intruders(page));
  await unspoil(page); // an answer may be on its way
  return { titled, listed, at };
}

// A page that a lost answer has stopped is said, left, and the string shown to another page: once.
async function every(page, id) {
  for (const [i, text] of CORPUS.entries()) {
    let [seen, on] = [undefined, page];
    for (let tries = 0; seen === undefined && tries < 2; tries++) {
      const left = { now: false };
      const late = new Promise((done) => { setTimeout(done, 60000).unref(); });
      seen = await Promise.race([one(on, id, text, left).catch((e) => ({ error: e.message })), late]);
      if (seen !== undefined) break;
      left.now = true;
      console.log(`# a page stands still at ${on.url()}: ${JSON.stringify([...underWay.values()])}`);
      on = await page.context().newPage();
    }
    if (on !== page) {
      await on.close();
      await page.unrouteAll({ behavior: 'ignoreErrors' });
    }
    ok(seen?.titled && seen.listed && seen.at.every((x) => !x.found.length && !x.ran && !x.csp.length),
      `every string of every answer may be hostile (${i + 1} of ${CORPUS.length})`, seen);
  }
}

// Given figures come out as they should, and tiles that are older than the counts are asked for again.
async function figures(page, id) {
  let asked = 0;
  let seen;
  const looked = new Promise((done) => { seen = done; });
  await page.route('**/cost', async (route) => route.fulfill({ json: { reserved_micro_usd: 1000000, metered: { seconds: 12345, micro_usd: 2500000 }, limit_micro_usd: 10000000, at_limit: 'drain' } }));
  await page.route('**/forecast*', async (route) => route.fulfill({ json: { stage: 'download', finished: 7, ends_in_seconds: 16500, low_seconds: 14700, high_seconds: 90061, parts_per_hour: 9.44 } }));
  await page.route('**/tiles*', async (route) => {
    const r = await route.fetch({ maxRetries: 2 });
    const tiles = await r.json();
    if (asked++ === 0) tiles.tiles = tiles.tiles.map(() => 0);
    else await looked; // the first are shown for a moment only
    return route.fulfill({ response: r, json: tiles });
  });
  await page.route(`**/campaigns/${id}`, async (route) => {
    const r = await route.fetch({ maxRetries: 2 });
    return route.fulfill({ response: r, json: { ...(await r.json()), state: 'running' } });
  });
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.waitForSelector('#tiles');
  const first = await page.getAttribute('#tiles', 'data-states');
  seen();
  const cost = await page.textContent('.card:has(#cost)');
  ok(/2\.50 USD/.test(cost) && /25 % of 10\.00 USD/.test(cost) && /1\.00 USD reserved/.test(cost) && /12,345 instance-seconds/.test(cost), 'money: spent, share of the budget, reserved', cost);
  const eta = await page.textContent('.card:has(#eta)');
  ok(/4 h 35 m/.test(eta) && /4 h 5 m to 1 d 1 h/.test(eta) && /9\.4 parts\/h/.test(eta), 'the ETA with its range and the rate', eta);
  ok(/^0+$/.test(first) && (await until(10, async () => /^4+$/.test(await page.getAttribute('#tiles', 'data-states')))), 'tiles older than the counts are asked for again at once', first);
  await page.unrouteAll({ behavior: 'wait' });
}

// The metrics of a run: a line with its band for each, the same as a table, by step or by time; without points nothing.
async function curves(page, id) {
  const chart = [0, 1, 2, 3].map((i) => ({ step: i * 50, seconds: i * 3600, mean: 4 - i, min: 3.5 - i, max: 4.5 - i }));
  const loss = { name: 'loss', points: 123456, last: 1, min: 0.5, max: 4.5, mean: 2.5, final: null, chart };
  await page.route('**/parts/0/metrics?*', async (route) => route.fulfill({ json: { attempt: 1, complete: false, note: 'cut <b>short</b>', series: [loss, { ...loss, name: 'flat', points: 0, chart: [] }] } }));
  await page.goto(`${URL_}/c/${id.slice(2)}?stage=download&part=0`);
  await page.waitForSelector('#metrics svg');
  const line = async () => [await page.getAttribute('#metrics polyline', 'points'), await page.getAttribute('#metrics svg', 'aria-label'), await page.textContent('#metrics .axis')];
  equal(await line(), ['0,17.5 200,52.5 400,87.5 600,122.5', 'loss by step: 4 at first, 1 at last', 'step 0step 150'], 'a metric is a line by step');
  equal([await page.locator('#metrics figure').count(), await page.textContent('#metrics figcaption')], [1, 'loss 1 0.5 to 4.5, 123,456 points'], 'with its range, and none for a metric without points');
  ok((await page.textContent('#metrics')).includes('Not whole: cut <b>short</b>'), 'what is missing is said');
  await page.selectOption('#metrics select', 'seconds');
  equal((await line()).slice(1), ['loss by time: 4 at first, 1 at last', '0 s3 h 0 m'], 'or by time');
  await page.click('#metrics summary');
  equal(await page.$$eval('#metrics tbody tr', (l) => l.map((x) => x.textContent)), ['00 s43.54.5', '501 h 0 m32.53.5', '1002 h 0 m21.52.5', '1503 h 0 m10.51.5'], 'and as a table');
  await axe(page, 'the metrics of a run');
  await shot(page, 'metrics');
  await page.unrouteAll({ behavior: 'wait' });
}

export async function hostile(page) {
  const id = await timed(real, page);
  await timed(every, page, id);
  await timed(figures, page, id);
  await timed(curves, page, id);
  const size = async (path) => Number((await fetch(URL_ + path, { headers: { 'accept-encoding': 'gzip' } })).headers.get('content-length'));
  const page_ = await (await fetch(URL_)).text();
  const [js, css] = [/\/(assets\/app-[^"]+\.js)/.exec(page_)[0], /\/(assets\/style-[^"]+\.css)/.exec(page_)[0]];
  ok((await size(js)) <= 60000, `the script is small: ${await size(js)} bytes on the wire (60,000 at most)`);
  ok((await size(css)) <= 12000, `so is the style: ${await size(css)} bytes (12,000 at most)`);
}
