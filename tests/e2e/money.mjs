// Money and time of a campaign: burn-up, tables and their CSV against the API, then a large campaign whose answers are given here.
import { readFile } from 'node:fs/promises';
import { URL_, api, axe, equal, get, ok, shot, until } from './kit.mjs';
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
  const spec = SPEC.replace(/^name: .*$/m, 'name: spent').replace('instance_type:', 'canary: off\n    breaker: off\n    instance_type:').replace(/^version: 1$/m, 'version: 1\nbudget: {total: 900 USD}');
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
  const [money, types, burn] = await Promise.all([get(`/campaigns/${id}/cost`), get(`/campaigns/${id}/cost?by=type`), get(`/campaigns/${id}/burn`)]);
  ok(money.metered.micro_usd > 0 && burn.points.length > 3, 'money was spent', [money, burn]);
  equal([await page.textContent('#spent'), await page.textContent('#budget'), await page.textContent('#reserved')], [usd(money.metered.micro_usd), usd(900e6), usd(0)], 'the page says what was spent, reserved and allowed');
  equal((await saved(page, `${id}-burn`)).slice(1), burn.points.map((p) => [p.at, String(p.spent_micro_usd / 1e6), String(p.reserved_micro_usd / 1e6)]), 'the curve is what the API says');
  equal(await saved(page, `${id}-stages`), [['stage', 'seconds', 'usd', 'reserved_usd', 'limit_usd'], ...money.by_stage.map((s) => [s.stage, String(s.seconds), String(s.micro_usd / 1e6), '0', ''])], 'so are the stages');
  equal((await saved(page, `${id}-causes`)).slice(1).map((r) => [r[0], r[3]]), money.by_cause.map((c) => [c.cause, String(c.micro_usd / 1e6)]), 'the causes');
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
    cost: { reserved_micro_usd: 82e6, metered: { seconds: 512345, micro_usd: 419e6 }, limit_micro_usd: 900e6, at_limit: 'drain', by_stage: [{ stage: 'metadata', seconds: 4000, micro_usd: 3e6, reserved_micro_usd: 0, limit_micro_usd: null },
      { stage: 'download', seconds: 508345, micro_usd: 416e6, reserved_micro_usd: 82e6, limit_micro_usd: 900e6 }],
    by_cause: [{ cause: 'none', attempts: 9400, seconds: 480000, micro_usd: 384.8e6, estimated: false }, { cause: 'disk_full', attempts: 4, seconds: 20000, micro_usd: 19.6e6, estimated: false }, { cause: 'oom', attempts: 320, seconds: 12345, micro_usd: 14.6e6, estimated: true }],
    by_type: [{ instance_type: 'ml.c5.18xlarge', market: 'on_demand', attempts: 7500, seconds: 400000, micro_usd: 340e6, idle_micro_usd: 7.78e6, estimated: false }, { instance_type: 'ml.c5n.18xlarge', market: 'spot', attempts: 2500, seconds: 108345, micro_usd: 71.22e6, idle_micro_usd: 0, estimated: false }],
    by_phase: [['capacity_wait', 0], ['image', 11.4e6], ['data', 6.8e6], ['training', 379.3e6], ['upload', 6.9e6], ['warm_idle', 7.78e6]].map(([phase, micro_usd], i) => ({ phase, elapsed_seconds: 11400 * (i + 1), seconds: micro_usd / 850, micro_usd })),
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
  equal([await page.textContent('#at-end'), await page.getAttribute('#burn svg', 'aria-label')], ['696.00 USD', 'spent 419.00 USD of 900.00 USD, at the end likely 668.00 USD to 742.00 USD'], 'the burn-up goes on to the end as the forecast has it');
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

export async function money(page) {
  const id = await ended();
  if (!id) return;
  await cost(page, id);
  await timeline(page, id);
  await full(page, id);
  await hostileText(page, id);
}
