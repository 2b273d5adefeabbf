// Money and time of a campaign: burn-up, tables and their CSV against the API, then a large campaign whose answers are given here.
import { readFile } from 'node:fs/promises';
import { URL_, api, axe, equal, get, ok, please, shot, until } from './kit.mjs';
import { MARKUP, intruders, poison } from './hostile.mjs';

const SPEC = process.env.SPEC;
const HOUR = 3600e3;
const usd = (micro) => `${(micro / 1e6).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: micro < 1e5 ? 4 : 2 })} USD`;

// What a CSV button saves, as rows of cells.
async function saved(page, file) {
  const waiting = page.waitForEvent('download');
  await page.click(`[data-csv="${file}"]`);
  const download = await waiting;
  equal(download.suggestedFilename(), `${file}.csv`, `${file} is saved as CSV`);
  return (await readFile(await download.path(), 'utf8')).trimEnd().split('\n').map((l) => l.split(','));
}

async function ended() {
  await please('break'); // one part fails for good
  const spec = SPEC.replace(/^name: .*$/m, 'name: spent').replace('instance_type:', 'canary: off\n    breaker: off\n    instance_type:').replace(/^version: 1$/m, 'version: 1\ntags: {cost-center: "4711"}\nbudget: {total: 900 USD}');
  const made = await api('POST', '/campaigns', spec, 'application/yaml');
  if (!ok(made.status === 201, 'a campaign that spends', made.text)) return null;
  const { id } = made.json;
  const c = await until(90, async () => { const x = await get(`/campaigns/${id}`); return ['failed', 'succeeded'].includes(x.state) && x; });
  return ok(c, 'comes to its end', await get(`/campaigns/${id}`)) ? id : null;
}

async function cost(page, id) {
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.click('nav.tabs >> text=Cost');
  await page.waitForSelector('#burn svg');
  equal([new URL(page.url()).pathname, await page.getAttribute('nav.tabs [aria-current]', 'href')], [`/c/${id.slice(2)}/cost`, `/c/${id.slice(2)}/cost`], 'a click leads from the campaign to its cost');
  const [spent, types, burn] = await Promise.all([get(`/campaigns/${id}/cost`), get(`/campaigns/${id}/cost?by=type`), get(`/campaigns/${id}/burn`)]);
  ok(spent.metered.micro_usd > 0 && burn.points.length > 3, 'money was spent', [spent, burn]);
  equal([await page.textContent('#spent'), await page.textContent('#budget'), await page.textContent('#reserved')], [usd(spent.metered.micro_usd), usd(900e6), usd(0)], 'the page says what was spent, reserved and allowed');
  equal((await saved(page, `${id}-burn`)).slice(1), burn.points.map((p) => [p.at, String(p.spent_micro_usd / 1e6), String(p.reserved_micro_usd / 1e6)]), 'the curve is what the API says');
  equal(await saved(page, `${id}-stages`), [['stage', 'seconds', 'usd', 'reserved_usd', 'limit_usd'], ...spent.by_stage.map((s) => [s.stage, String(s.seconds), String(s.micro_usd / 1e6), '0', ''])], 'so are the stages');
  equal((await saved(page, `${id}-causes`)).slice(1).map((r) => [r[0], r[3]]), spent.by_cause.map((c) => [c.cause, String(c.micro_usd / 1e6)]), 'the causes');
  equal((await saved(page, `${id}-types`)).slice(1).map((r) => [r[0], Number(r[4])]), types.by_type.map((x) => [x.instance_type, x.micro_usd / 1e6]), 'and the instance types');
  await axe(page, 'the cost of a campaign that has ended');
  await shot(page, 'cost-ended');
}

async function timeline(page, id) {
  await page.click('nav.tabs >> text=Timeline');
  await page.waitForSelector('#gantt');
  const [t, parts] = await Promise.all([get(`/campaigns/${id}/timeline`), get(`/campaigns/${id}/parts`)]);
  equal([Number(await page.getAttribute('#gantt', 'data-attempts')), Number(await page.getAttribute('#gantt', 'data-rows'))], [t.attempts.length, 2], 'every try is on one of the two slots');
  equal((await saved(page, `${id}-attempts`)).slice(1).map((r) => `${r[1]} ${r[3]}`).sort(), t.attempts.map((a) => `${a[1]} ${t.states[a[3]]}`).sort(), 'and in the CSV');
  await page.focus('#gantt');
  await page.keyboard.press('ArrowRight');
  const said = () => page.textContent('#gantt-note');
  const first = await said();
  ok(/^part \d+, try 1: [✓✗] (succeeded|failed)/.test(first), 'an arrow key goes to the first try and says what became of it', first);
  await page.keyboard.press('ArrowRight');
  ok((await said()) !== first, 'the next one to what followed on its slot', await said());
  await page.keyboard.press('+');
  ok(await until(5, async () => /[?&]span=\d+-\d+/.test(page.url())), 'plus looks closer, and the address says at what', page.url());
  const seq = Number(/^part (\d+)/.exec(await said())[1]);
  await axe(page, 'the timeline of a campaign that has ended');
  await shot(page, 'timeline-ended');
  await page.focus('#gantt');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#part .tries');
  ok(new URL(page.url()).searchParams.has('part') && parts.parts.length > seq, 'Enter opens the part', page.url());
  await page.goBack();
  await page.waitForSelector('#gantt');
  const low = await page.textContent('#kept');
  const kept = await get(`/campaigns/${id}/yield`);
  ok(low.includes(`part ${kept.lowest[0].part}`) && low.includes(`${kept.lowest[0].successes} of ${kept.lowest[0].rows}`), 'the parts that kept the least are named', low);
  equal(await page.$$eval('#pareto .bars li a', (l) => l.map((x) => new URL(x.href).search)), ['?stage=download&state=failed&cause=bad_input'], 'what failed leads to its parts');
}

// A campaign of 10,000 tries on 200 slots that is on its way, from answers that are made here.
function large(now) {
  const began = now - 9 * HOUR;
  const iso = (ms) => new Date(ms).toISOString();
  const attempts = [];
  for (let slot = 0, part = 0; slot < 200; slot++) {
    for (let k = 0, at = (slot * 977) % 300000; k < 50; k++, part++) {
      const failed = part % 23 === 0;
      const warm = k > 0 && part % 3 > 0;
      const end = k < 49 ? at + 500000 + ((part * 7919) % 260000) : -1;
      attempts.push([slot, part, 1, end < 0 ? 4 : failed ? 9 : 8, failed && end >= 0 ? 7 : 0, at, at + (warm ? 4000 : 90000), end, warm ? 1 : 0]);
      at = end + 2000;
    }
  }
  const spans = Array.from({ length: 90 }, (_, i) => ({ at: iso(began + i * 360e3), seconds: 360, done: 100 + ((i * 31) % 40), failed: i % 9 === 4 ? 12 : 3, parts_per_hour: (100 + ((i * 31) % 40)) * 10 }));
  const points = Array.from({ length: 400 }, (_, i) => ({ at: iso(began + (i + 1) * 81e3), spent_micro_usd: i * 1.05e6, reserved_micro_usd: i < 4 ? i * 20e6 : 80e6 + ((i * 37) % 11) * 1e6 }));
  const bands = { end: { p10_seconds: 4.1 * 3600, p50_seconds: 4.6 * 3600, p90_seconds: 5.4 * 3600 }, cost: { p10_micro_usd: 668e6, p50_micro_usd: 696e6, p90_micro_usd: 742e6 } };
  const causes = ['none', 'quota', 'throttled', 'capacity', 'spot_interrupted', 'internal', 'network', 'disk_full', 'oom'];
  const states = ['intended', 'unknown', 'submitted', 'starting', 'running', 'uploading', 'stopping', 'verifying', 'succeeded', 'failed', 'stopped', 'conflict', 'void'];
  const ranges = Array.from({ length: 200 }, (_, i) => ({ first: i * 64, last: i * 64 + 63, parts: 64, rows: 640000, successes: 560000 - i * 300, ratio: (560000 - i * 300) / 640000 }));
  const group = (cause, parts, lost, message) => ({ cause, signature: message, parts, final: parts, retrying: 0, first_at: iso(began), last_at: iso(now), lost_micro_usd: lost, message, sample: [1], remedy: 'more' });
  return {
    timeline: { stage: 'download', from_at: iso(began), more: true, slots: [{ instance_type: 'ml.c5.18xlarge', market: 'on_demand', slots: 150 }, { instance_type: 'ml.c5n.18xlarge', market: 'spot', slots: 50 }], states, causes, attempts },
    throughput: { stage: 'download', spans }, burn: { first_at: iso(began), points },
    yield: { stage: 'download', every: 4, points: ranges, lowest: ranges.slice(-5).map((p) => ({ part: p.first, rows: 10000, successes: 6200, ratio: 0.62 })) },
    failures: { parts: 391, final: 391, groups: [group('disk_full', 4, 312e6, 'tar: write error: No space left on device'), group('oom', 320, 59e6, 'exit 137'), group('access_denied', 67, 2.5e6, 'GetObject 403')] },
    forecast: { stage: 'download', finished: 9800, remaining: 3000, ends_in_seconds: 4.6 * 3600, low_seconds: 4.1 * 3600, high_seconds: 5.4 * 3600, ends_at: iso(now + 4.6 * HOUR), parts_per_hour: 1180,
      campaign: { known: true, runs: 61, binding: 'slots', binding_instance_type: 'ml.c5.18xlarge', ...bands, fits_budget: 0.98, stages: [{ name: 'download', start: bands.end, ...bands, parts_per_hour: 1180 }], advice: [] } },
    cost: { reserved_micro_usd: 82e6, metered: { seconds: 512345, micro_usd: 419e6 }, limit_micro_usd: 900e6, at_limit: 'drain',
      by_stage: [{ stage: 'metadata', seconds: 4000, micro_usd: 3e6, reserved_micro_usd: 0, limit_micro_usd: null },
      { stage: 'download', seconds: 508345, micro_usd: 416e6, reserved_micro_usd: 82e6, limit_micro_usd: 900e6 }],
    by_cause: [{ cause: 'none', attempts: 9400, seconds: 480000, micro_usd: 384.8e6, estimated: false },
      { cause: 'disk_full', attempts: 4, seconds: 20000, micro_usd: 19.6e6, estimated: false }, { cause: 'oom', attempts: 320, seconds: 12345, micro_usd: 14.6e6, estimated: true }],
    by_type: [{ instance_type: 'ml.c5.18xlarge', market: 'on_demand', attempts: 7500, seconds: 400000, micro_usd: 340e6, idle_micro_usd: 7.78e6, estimated: false },
      { instance_type: 'ml.c5n.18xlarge', market: 'spot', attempts: 2500, seconds: 108345, micro_usd: 71.22e6, idle_micro_usd: 0, estimated: false }],
    by_phase: [['capacity_wait', 0], ['image', 11.4e6], ['data', 6.8e6], ['training', 379.3e6], ['upload', 6.9e6], ['warm_idle', 7.78e6]]
      .map(([phase, micro_usd], i) => ({ phase, elapsed_seconds: 11400 * (i + 1), seconds: micro_usd / 850, micro_usd })),
    trained_nothing: { elapsed_seconds: 5, seconds: 5, micro_usd: 32.88e6 } },
  };
}

async function given(page, id, change = (v) => v) {
  const answers = large(Date.now());
  for (const [name, json] of Object.entries(answers)) await page.route(`**/v1/campaigns/${id}/${name}*`, (route) => route.fulfill({ json: change(json) }));
  await page.route(`**/v1/campaigns/${id}`, async (route) => {
    const r = await route.fetch({ maxRetries: 2 });
    const c = await r.json();
    return route.fulfill({ response: r, json: change({ ...c, state: 'running', ended_at: null, stages: c.stages.map((s) => ({ ...s, state: 'running' })) }) });
  });
  return answers;
}

async function full(page, id) {
  const a = await given(page, id);
  await page.goto(`${URL_}/c/${id.slice(2)}/cost`);
  await page.waitForSelector('#burn .spread.b');
  equal([await page.textContent('#at-end'), await page.getAttribute('#burn svg', 'aria-label')],
    ['696.00 USD', 'spent 419.00 USD of 900.00 USD, at the end likely 668.00 USD to 742.00 USD'], 'the burn-up goes on to the end as the forecast has it');
  equal(await page.$$eval('#by-failure td.name a', (l) => l.map((x) => x.textContent)), ['disk full', 'oom', 'access denied'], 'failures are in order of their money');
  await axe(page, 'the cost of a large campaign');
  await shot(page, 'cost-full');
  const began = Date.now();
  await page.goto(`${URL_}/c/${id.slice(2)}/timeline`);
  await page.waitForSelector('#gantt');
  equal([Number(await page.getAttribute('#gantt', 'data-attempts')), Number(await page.getAttribute('#gantt', 'data-rows'))], [10000, 200], '10,000 tries on 200 slots are one picture');
  const drawing = await page.evaluate(async () => {
    const canvas = document.getElementById('gantt');
    const times = [];
    for (let i = 0; i < 5; i++) {
      const t = performance.now();
      document.getElementById(i % 2 ? 'wider' : 'closer').click();
      await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));
      times.push(Math.round(performance.now() - t));
    }
    return { times, height: canvas.height };
  });
  console.log(`# 10,000 tries: page after ${Date.now() - began} ms, drawn again in ${drawing.times.join(', ')} ms`);
  ok(drawing.height > 700, 'it is as high as its slots', drawing);
  equal(await page.$$eval('#pareto .bars li a', (l) => l.map((x) => x.textContent)), ['oom', 'access denied', 'disk full'], 'what failed is in order of its parts');
  await page.click('#pareto >> text=by money');
  equal([await page.$$eval('#pareto .bars li a', (l) => l.map((x) => x.textContent)), new URL(page.url()).searchParams.get('by')], [['disk full', 'oom', 'access denied'], 'money'], 'or of its money');
  ok(await page.locator('#pace rect.zone').count() === 1 && (await page.textContent('#pace')).includes('likely end, in 4 h 6 m to 5 h 24 m'), 'the throughput goes on to the likely end', a.forecast);
  await page.goto(`${URL_}/c/${id.slice(2)}/timeline`);
  await page.waitForSelector('#gantt');
  await axe(page, 'the timeline of a large campaign');
  await shot(page, 'timeline-full');
  await page.unrouteAll({ behavior: 'wait' });
}

async function hostileText(page, id) {
  await given(page, id, (v) => poison(v, '', MARKUP));
  for (const [path, where] of [['cost', '#by-failure'], ['timeline', '#pareto']]) {
    await page.goto(`${URL_}/c/${id.slice(2)}/${path}`);
    await page.waitForSelector(where);
    equal([(await page.textContent('main')).includes(MARKUP), await intruders(page)], [true, { ran: null, csp: [], found: [] }], `hostile strings are text on its page ${path}`);
  }
  await page.unrouteAll({ behavior: 'wait' });
  const made = await api('POST', '/campaigns', SPEC.replace(/^name: .*$/m, 'name: waits').replace('ml.c5.xlarge', 'ml.m5.large'), 'application/yaml');
  for (const [path, where, says] of [['cost', '#burn', 'Nothing is reserved or spent yet'], ['timeline', '#slots', 'No job was sent yet']]) {
    await page.goto(`${URL_}/c/${made.json.id.slice(2)}/${path}`);
    await page.waitForSelector(where);
    ok((await page.textContent(where)).includes(says), `before anything has started its page ${path} says so`);
    await axe(page, `its empty page ${path}`);
  }
  await shot(page, 'timeline-empty');
  await api('POST', `/campaigns/${made.json.id}:cancel`, {});
}

// The month's bill: what the API says, by project; other months by their buttons and in the address.
async function bill(page, id) {
  await page.goto(`${URL_}/c/${id.slice(2)}/cost`);
  await page.waitForSelector('#to-bill');
  await page.click('#to-bill');
  await page.waitForSelector('#bill');
  const b = await get('/bill');
  const mine = b.groups.flatMap((p) => p.campaigns).find((c) => c.campaign === id);
  equal(mine?.micro_usd, (await get(`/campaigns/${id}/cost`)).metered.micro_usd, 'what a campaign of this month was metered is in the bill');
  ok(await until(10, async () => (await page.textContent('#bill')) === usd(b.micro_usd)), 'the page shows its sum', await page.textContent('#bill'));
  ok((await saved(page, `bill-${b.month}`)).some((r) => r[2] === id && Number(r[5]) === mine.micro_usd / 1e6), 'and so does its CSV');
  await page.selectOption('[name=tag]', 'cost-center');
  ok(await until(10, async () => (await page.$$eval('.group h2', (l) => l.map((x) => x.textContent))).some((x) => x.startsWith('4711'))), 'it is by project, or by the value of a tag');
  ok(new URL(page.url()).searchParams.get('tag') === 'cost-center', 'which is in the address', page.url());
  await axe(page, 'the bill');
  await shot(page, 'bill');
  await page.click('#before');
  ok(await until(10, async () => (await page.getAttribute('#bill', 'data-month')) < b.month), 'a button leads to the month before');
  ok(/[?&]month=20\d\d-\d\d/.test(page.url()) && (await page.textContent('#total')).includes('Nothing was booked in this month'), 'the address says which', page.url());
  await page.click('#after');
  ok(await until(10, async () => (await page.getAttribute('#bill', 'data-month')) === b.month && await page.isDisabled('#after')), 'and back; there is none after the present one');
}

const pool = (now, i, state, more) => ({ id: i, campaign: 'c-7', stage: 'train', state, job_name: `d-7-${i}-a1`, instance_type: i % 2 ? 'ml.p4d.24xlarge' : 'ml.c5.18xlarge', instances: i % 2 ? 4 : 1, keep_alive_seconds: 900,
  available_at: new Date(now - i * 700e3).toISOString(), expires_at: new Date(now + 300e3).toISOString(), ended_at: null, end_asked: false, end_reason: null, reused_by: null, idle_seconds: 0, idle_micro_usd: 0, ...more });

async function pools(page) {
  await page.click('nav >> text=Pools');
  await page.waitForSelector('#idle-cost');
  await page.goto(`${URL_}/pools?campaign=c-999999`);
  await page.waitForSelector('#idle-cost');
  ok((await page.textContent('main')).includes('No job has kept its instances'), 'without a warm pool the page says how a stage comes to one');
  await axe(page, 'no warm pool');
  const now = Date.now();
  const over = (i, minutes) => ({ ended_at: new Date(now - i * 700e3 + minutes * 60e3).toISOString(), idle_seconds: minutes * 60 * (i % 2 ? 4 : 1), idle_micro_usd: minutes * (i % 2 ? 2512666 : 51000) });
  const rows = [pool(now, 1, 'available'), pool(now, 2, 'reused', { ...over(2, 3), reused_by: 'd-7-97-a1' }), pool(now, 3, 'reused', { ...over(3, 9), reused_by: 'd-7-98-a1' }),
    pool(now, 5, 'terminated', { ...over(5, 14), end_reason: 'nothing in the queue fits it' })];
  const answer = { sum: { pools: 9, reused: 2, open: 1, idle_seconds: 5780, idle_micro_usd: 58.3e6 }, pools: rows };
  const asked = [];
  await page.route('**/v1/pools*', (route) => { asked.push(new URL(route.request().url()).search); return route.fulfill({ json: answer }); });
  await page.goto(`${URL_}/pools?campaign=c-7`);
  await page.waitForSelector('#pools');
  equal([asked[0], await page.textContent('#idle-cost'), await page.locator('#pools svg').count()], ['?campaign=c-7', '58.30 USD', 4], 'the pools of one campaign, each with its idle time');
  equal((await saved(page, 'pools')).slice(1).map((r) => [r[0], r[3], r[15]]), rows.map((p) => [String(p.id), p.state, String(p.idle_micro_usd / 1e6)]), 'in the CSV as well');
  await axe(page, 'warm pools');
  await shot(page, 'pools');
  const toEnd = [];
  await page.route('**/v1/pools/*', (route) => { toEnd.push(new URL(route.request().url()).pathname); rows[0].end_asked = true; return route.fulfill({ status: 202, json: { job_name: 'd-7-1-a1', end_asked: true } }); });
  equal(await page.locator('#pools button').count(), 1, 'only an idle pool can be ended');
  await page.click('#pools button');
  await page.waitForSelector('dialog #confirm');
  ok((await page.textContent('dialog')).includes('starts cold'), 'before it is, the page says what that means');
  await page.click('dialog #confirm');
  ok(await until(10, async () => (await page.textContent('#pools')).includes('being ended')), 'then it says that it is being ended');
  equal(toEnd, ['/v1/pools/d-7-1-a1:end'], 'by the job that left it');
  await page.unrouteAll({ behavior: 'wait' });
}

async function quotas(page) {
  await page.click('nav >> text=Quotas');
  await page.waitForSelector('#quotas table');
  const rows = (await get('/quotas')).quotas;
  equal((await saved(page, 'quotas')).slice(1).map((r) => `${r[0]} ${r[1]} ${r[2]}`).sort(), rows.map((q) => `${q.instance_type} ${q.market} ${q.limit ?? ''}`).sort(), 'quotas are those of the API');
  ok((await page.textContent('#quotas')).includes('drover quotas request ml.m5.large --value N'), 'where nothing is free, the page says how more is asked for', await page.textContent('#quotas'));
  await axe(page, 'the quotas');
  const formulas = ['=1+1', ' =1+1', '\u3000-1', '\uff1d1+1', '\uff201'];
  await page.route('**/v1/quotas', (route) => route.fulfill({ json: { quotas: formulas.map((instance_type) => ({ ...rows[0], instance_type })) } }));
  await page.goto(`${URL_}/quotas`);
  await page.waitForSelector('#quotas table');
  equal((await saved(page, 'quotas')).slice(1).map((r) => r[0]).sort(), formulas.map((f) => `'${f}`).sort(), 'what a spreadsheet would calculate is a text, also behind blanks and in wide signs');
  await page.unrouteAll({ behavior: 'wait' });
  const told = async (...list) => {
    await page.route('**/v1/quotas', (route) => route.fulfill({ json: { quotas: list.map(([instance_type, market, limit, held, foreign]) => ({ instance_type, market, limit, held, foreign, free: limit - held - foreign,
      price_micro_usd_per_hour: 3060000, source: 'service_quotas', read_at: new Date().toISOString() })) } }));
    await page.goto(`${URL_}/quotas`);
    await page.waitForSelector('#quotas table');
    const said = [await page.textContent('#quotas > p.muted:last-of-type').catch(() => ''), ...await page.$$eval('#quotas code', (l) => l.map((x) => x.textContent))];
    await page.unrouteAll({ behavior: 'wait' });
    return said;
  };
  const [free, warm, spot] = [['ml.c5.18xlarge', 'on_demand', 20, 16, 0], ['ml.c5.18xlarge', 'warm', 0, 0, 0], ['ml.c5.18xlarge', 'spot', 0, 0, 0]];
  ok(!/Nothing is free|quota is 0/.test((await told(free, warm, spot)).join()), 'a quota of 0 for warm pools and for spot, of which nobody uses any, is nothing that lacks');
  equal(await told(free, warm, ['ml.c5.18xlarge', 'spot', 4, 3, 1]), ['Nothing is free of ml.c5.18xlarge (spot). To ask AWS for N:', 'drover quotas request ml.c5.18xlarge --value N --market spot'], 'used-up spot is asked for as spot');
  equal(await told(free, warm, ['ml.g5.xlarge', 'on_demand', 0, 0, 0]), ['The quota is 0 for ml.g5.xlarge. To ask AWS for N:', 'drover quotas request ml.g5.xlarge --value N'], 'so is a type without any');
  await page.route('**/v1/quotas', (route) => route.fulfill({ json: { quotas: [['ml.c5.18xlarge', 20, 16, 2], ['ml.p4d.24xlarge', 8, 8, 0], ['ml.m5.large', null, 0, 0]].map(([instance_type, limit, held, foreign]) => ({ instance_type,
    market: 'on_demand', limit, held, foreign, free: limit == null ? null : limit - held - foreign, price_micro_usd_per_hour: 3060000, source: 'service_quotas', read_at: new Date().toISOString() })) } }));
  await page.goto(`${URL_}/quotas`);
  await page.waitForSelector('#quotas rect.foreign');
  await shot(page, 'quotas');
  await page.unrouteAll({ behavior: 'wait' });
}

const BURNING = { micro_usd_per_hour: 24.5e6, total: 3, billable: [
  { kind: 'job', campaign: 'c-7', stage: 'download', name: null, instance_type: 'ml.c5.18xlarge', market: 'on_demand', count: 18, instances: 18, since: new Date().toISOString(), until: null, micro_usd_per_hour: 24e6 },
  { kind: 'endpoint', campaign: 'c-7', stage: 'deploy', name: 'd-7-deploy', instance_type: 'ml.m5.xlarge', market: 'hosting', count: 1, instances: 1, since: null, until: null, micro_usd_per_hour: 5e5 }] };

// Its CSV is all of it: what the page leaves out and jobs of no known campaign are rows, too.
async function whole(page) {
  const b = await get('/bill');
  const [c] = b.groups.flatMap((g) => g.campaigns);
  const one = { ...b.groups[0], name: 'vision', micro_usd: c.micro_usd + 5e6, seconds: c.seconds + 7, campaigns_total: 51, campaigns: [c] };
  const json = { ...b, micro_usd: one.micro_usd + 3e6, groups: [one, { ...one, name: null, micro_usd: 3e6, seconds: 2, campaigns_total: 0, campaigns: [] }] };
  await page.route(/\/v1\/bill(\?|$)/, (route) => route.fulfill({ json }));
  await page.goto(`${URL_}/bill`);
  await page.waitForSelector('#bill');
  const rows = (await saved(page, `bill-${b.month}`)).slice(1);
  equal(rows.map((r) => r.join(',')).slice(1), ['vision,,,others,7,5', ',,,others,2,3'], 'the CSV has what the page leaves out');
  ok(Math.abs(rows.reduce((n, r) => n + Number(r[5]), 0) - json.micro_usd / 1e6) < 1e-6, 'and its column is the bill', rows);
  await page.unrouteAll({ behavior: 'wait' });
}

// The bill begins with what costs money now.
async function burning(page) {
  await page.route('**/v1/billable', (route) => route.fulfill({ json: BURNING }));
  await page.goto(`${URL_}/bill`);
  await page.waitForSelector('#now td');
  equal(await page.$$eval('#now h2, #now td.name', (l) => l.map((x) => x.textContent.trim())),
    ['At this moment 24.50 USD an hour', '18 jobs 18 × ml.c5.18xlarge', 'endpoint 1 × ml.m5.xlarge · d-7-deploy'], 'the bill begins with what costs money now, by the hour');
  equal(await page.textContent('#now p'), 'and 1 more, each cheaper', 'and says what it leaves out');
  await axe(page, 'what costs money now');
  await shot(page, 'bill-now');
  await page.unrouteAll({ behavior: 'wait' });
}

// Every string of the answers of these pages as markup.
async function hostileRest(page) {
  for (const [path, where, json] of [['pools', '#pools', { sum: { pools: 1, reused: 0, open: 1, idle_seconds: 1, idle_micro_usd: 1 }, pools: [pool(Date.now(), 1, 'available', { reused_by: 'x' })] }],
    ['quotas', '#quotas table', await get('/quotas')], ['bill', '#bill', await get('/bill')]]) {
    await page.route(new RegExp(`/v1/${path}(\\?|$)`), (route) => route.fulfill({ json: poison(json, '', MARKUP) }));
    await page.route('**/v1/billable', (route) => route.fulfill({ json: poison(BURNING, '', MARKUP) }));
    await page.goto(`${URL_}/${path}`);
    await page.waitForSelector(where);
    equal([(await page.textContent('main')).includes(MARKUP), await intruders(page)], [true, { ran: null, csp: [], found: [] }], `hostile strings are text on /${path}`);
    await page.unrouteAll({ behavior: 'wait' });
  }
}

export async function money(page) {
  const id = await ended();
  if (!id) return;
  await cost(page, id);
  await timeline(page, id);
  await please('mend');
  await full(page, id);
  await hostileText(page, id);
  await bill(page, id);
  await whole(page);
  await burning(page);
  await pools(page);
  await quotas(page);
  await hostileRest(page);
}
