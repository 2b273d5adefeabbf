// Training runs on the pages of scaling and of comparisons: real runs on one host and on two, what the pages say against what the
// API says, the addresses, the keyboard, and what they say when there is nothing to show.
import { URL_, api, axe, equal, get, goOn, ok, shot, timed, until } from './kit.mjs';
import { MARKUP, intruders, poison } from './hostile.mjs';

const STEPS = 20;
const FILE = `version: 1
name: laion-train
stages:
  - name: train
    image: drover/user:test
    command: [train, "${STEPS}", "0.08"]
    instance_type: ml.m5.xlarge
    max_runtime: 5m
    verify: none
    hyperparameters: {batch: 64}
    metrics:
      - {name: step, regex: 'step=([0-9]+)'}
      - {name: loss, regex: 'loss=([0-9.]+)'}
      - {name: images_per_second, regex: 'images_per_second=([0-9.]+)'}
    matrix: {instance_count: [1, 2]}
  - name: odd
    extends: train
    matrix:
      include:
        - {name: a, instance_count: 1}
        - {name: b, instance_count: 2, hyperparameters: {batch: 32}}
`;
const number = (v) => Number(v.toPrecision(5)).toString();
const usd = (micro) => `${(micro / 1e6).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: micro < 1000 ? 6 : micro < 1e5 ? 4 : 2 })} USD`;
const cells = (page, where) => page.$$eval(`${where} tbody tr`, (l) => l.map((tr) => [...tr.children].map((x) => x.textContent)));
const query = (page) => new URL(page.url()).search;
const commands = (page) => page.$$eval('#nothing .command code', (l) => l.map((x) => x.textContent));

async function scaling(page, id) {
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.click('#to-scaling');
  await page.waitForSelector('#scaling');
  equal([new URL(page.url()).pathname, query(page)], [`/c/${id.slice(2)}/scaling`, '?group=train'], 'a campaign with a matrix leads to its scaling table in one click');
  const whole = (await get(`/campaigns/${id}/scaling?group=train`)).rows;
  equal((await cells(page, '#scaling')).map((r) => [r[0], r[1], r[2]]), whole.map((r) => [r.stage, `${r.instances} × ml.m5.xlarge`, r.speedup.toFixed(2)]), 'it has a row for each run');
  await page.focus('[name=metric]');
  await page.keyboard.press('ArrowDown');
  ok(await until(10, async () => query(page) === '?group=train&metric=loss'), 'by the keyboard it is measured by another metric, and the address says so', page.url());
  await page.keyboard.press('ArrowDown');
  await until(10, async () => (await page.textContent('#throughput h2')).includes('images_per_second'));
  const { rows, epoch } = await get(`/campaigns/${id}/scaling?group=train&metric=images_per_second`);
  equal((await cells(page, '#scaling')).map((r) => [r[2], r[3], r[4], r[5], r[7]]),
    rows.map((r) => [number(r.rate.median), `${number(r.rate.p25)} to ${number(r.rate.p75)}`, r.speedup.toFixed(2), `${(100 * r.efficiency).toFixed(1)} %`, usd(r.epoch_micro_usd)]),
    'rate, quartiles, speed-up, efficiency and cost are those of the API');
  equal([await page.getAttribute('#throughput svg', 'aria-label'), epoch], [`images_per_second by instances: ${number(rows[0].rate.median)} with 1, ${number(rows[1].rate.median)} with 2`, 1000000], 'the throughput is drawn, and said');
  const line = async (key) => (await page.getAttribute(`#throughput polyline.${key}`, 'points')).split(' ').map((p) => p.split(',').map(Number));
  const [measured, ideal] = [await line('a'), await line('ideal')];
  ok(ideal.length === 3 && ideal[0].join() === '0,140' && ideal[2].join() === '600,0' && measured[1][1] > 5 && measured[1][1] < 40, 'below the ideal line, which begins at nothing', { measured, ideal });
  await page.fill('[name=deadline]', '2h');
  await page.keyboard.press('Enter');
  ok(await until(10, async () => (await page.locator('#times .limit').count()) === 2), 'a deadline is a mark in the times');
  const late = (await get(`/campaigns/${id}/scaling?group=train&metric=images_per_second&deadline=2h`)).rows;
  equal([late.map((r) => r.in_time), (await cells(page, '#scaling')).map((r) => r[8])], [[false, true], ['too late', 'cheapest in time']], 'which run is too late and which is the cheapest in time is said');
  ok((await page.textContent('#costs')).includes('cheapest') && (await page.textContent('#times')).includes('too late'), 'beside the bars, too');
  equal(await page.textContent('.command code'), `drover scaling ${id} --group train --metric images_per_second --deadline 2h`, 'and the command that says the same');
  await axe(page, 'a scaling table');
  await shot(page, 'scaling');
  await page.fill('[name=deadline]', 'soon');
  await page.keyboard.press('Enter');
  ok(await until(10, async () => /as 90m or 10h/.test(await page.textContent('main > [role=alert]'))), 'a deadline that is no time is refused with what to write');
  await page.goBack();
  ok(await until(10, async () => (await page.locator('#scaling').count()) === 1), 'back goes back');
  await page.selectOption('[name=group]', 'odd');
  await page.waitForSelector('#nothing');
  ok(/odd-a and odd-b differ in more than instances: hyperparameters\.batch/.test(await page.textContent('#nothing')), 'runs that differ in more get no table: the difference is named', await page.textContent('#nothing'));
  equal(await commands(page), [`drover get ${id}`, `drover compare ${id}/odd-a ${id}/odd-b`], 'with the next commands');
  await axe(page, 'runs that are of two tables');
  await shot(page, 'scaling-refused');
  await page.goBack();
  await page.click('#scaling td.act a');
  await page.waitForSelector('#figures');
}

// Which is ahead, as the page says it; real runs on a busy machine may be of any pace.
const ahead = (pace) => {
  if (!pace) return 'No pace: it takes a metric of both runs at two steps and two instants.';
  if (!pace.step_seconds?.significant) return 'Neither makes its steps quicker, as far as this can be told.';
  return `${pace.quicker.toUpperCase()} is ahead from ${pace.break_even_step == null ? 'the start' : `step ${pace.break_even_step} on`}.`;
};
// Where both curves of the loss end in the box of 600 units: as drawn, and as the API has them.
const ends = async (page) => Promise.all(['a', 'b'].map(async (key) => Number((await page.getAttribute(`#curves figure >> nth=1 >> polyline.${key}`, 'points')).split(' ').at(-1).split(',')[0])));
function due(loss, by) {
  const all = [...loss.curve_a, ...loss.curve_b].map((p) => p[by]);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return [loss.curve_a, loss.curve_b].map((c) => (600 * (c.at(-1)[by] - low)) / (high - low));
}

async function curves(page, answer) {
  const figures = page.locator('#curves figure');
  equal(await figures.count(), 2, 'a chart for each metric that both have');
  const loss = answer.metrics.find((m) => m.name === 'loss');
  equal([loss.curve_a.length, loss.curve_b.length], [STEPS, STEPS], 'each run printed all its steps');
  for (const by of ['step', 'seconds', 'micro_usd']) {
    await page.selectOption('#curves [name=by]', by);
    const want = due(loss, by);
    // The page writes tenths, and rounds a half of one its own way.
    const there = async () => (await ends(page)).every((x, i) => Math.abs(x - want[i]) < 0.051);
    ok(await until(5, there), `by ${by} both curves end where the API has them`, `${await ends(page)}, not ${want}`);
  }
  ok(/by=micro_usd/.test(query(page)), 'which the address says');
  await page.selectOption('#curves [name=by]', 'step');
  await figures.nth(1).locator('summary').click();
  const table = await page.$$eval('#curves figure:nth-of-type(2) tbody tr', (l) => l.map((tr) => [...tr.children].map((x) => x.textContent)));
  const last = (side, p) => [side, String(p.step), usd(p.micro_usd), number(p.value)];
  equal(table.filter((r) => r[1] === String(STEPS)).map((r) => [r[0], r[1], r[3], r[4]]), [last('A', loss.curve_a.at(-1)), last('B', loss.curve_b.at(-1))], 'and as a table');
}

async function compare(page, id) {
  equal([new URL(page.url()).pathname, query(page)], [`/c/${id.slice(2)}/compare`, '?a=train-1&b=train-2'], 'a row leads to its comparison with the first');
  const answer = await get(`/campaigns/${id}/compare?a=train-1&b=train-2&points=150`);
  equal([await cells(page, '#settings'), await page.textContent('#settings-title')], [[['instance_count', '1', '2']], `1 of ${answer.settings_equal + 1} settings differ`], 'what differs, and nothing else');
  const says = (m) => (!m.significant ? 'not significant' : m.p < 0.001 ? 'p < 0.001' : `p ${m.p.toPrecision(2)}`);
  const rows = Object.fromEntries((await cells(page, '#figures')).map((r) => [r[0], r.slice(1)]));
  const sign = (v) => `${v > 0 ? '+' : v < 0 ? '−' : ''}${Math.abs(v).toFixed(1)} %`;
  for (const m of [...answer.metrics, ...(answer.pace?.step_seconds ? [{ name: 'seconds a step', ...answer.pace.step_seconds }] : [])]) {
    equal([rows[m.name][0].split(' ')[0], rows[m.name][1].split(' ')[0], ...rows[m.name].slice(2)], [number(m.a.mean), number(m.b.mean), sign(m.delta_percent), says(m)], `${m.name}: both means, the change, whether it is chance`);
  }
  equal([rows.loss[3], rows.images_per_second[3]], ['not significant', 'p < 0.001'], 'the same loss is not significant, twice the rate is');
  equal(await page.textContent('#ahead'), ahead(answer.pace), 'which is ahead, and from which step on');
  equal([await page.$$eval('#costs .figures', (l) => l.map((x) => x.textContent))], [[usd(answer.a.micro_usd), usd(answer.b.micro_usd)]], 'what each cost');
  await curves(page, answer);
  await shot(page, 'compare');
  await page.click('#swap');
  const back = ahead((await get(`/campaigns/${id}/compare?a=train-2&b=train-1`)).pace);
  ok(await until(10, async () => (await page.textContent('#settings tbody tr')) === 'instance_count21' && (await page.textContent('#ahead')) === back), 'the other way round it is said the other way round', await page.textContent('#ahead'));
  equal(query(page), '?a=train-2&b=train-1&by=step', 'at its own address');
  await page.fill('[name=warm_up]', String(STEPS));
  await page.keyboard.press('Enter');
  ok(await until(10, async () => (await page.textContent('#ahead')).startsWith('No pace')), 'all of it warm-up: no pace, and it says what that takes');
  await page.fill('[name=warm_up]', '');
  await page.keyboard.press('Enter');
  await page.selectOption('[name=b]', { label: 'another run …' });
  await page.waitForSelector('[name=b-other]');
  await axe(page, 'a comparison, and a run asked for by its name');
  await page.fill('[name=b-other]', `${id}/odd-b/0/1`);
  await page.keyboard.press('Enter');
  ok(await until(10, async () => (await cells(page, '#settings')).some((r) => r[0] === 'hyperparameters.batch')), 'a run of any campaign is compared by its name');
  await page.goto(`${URL_}/c/${id.slice(2)}/compare?a=train-1&b=train-2/0/9`);
  await page.waitForSelector('#nothing');
  equal([(await page.textContent('#nothing p')).includes('no such attempt'), (await commands(page)).at(-1)], [true, `drover compare ${id}/train-1 ${id}/train-2/0/9`], 'a try that is not there is named');
  await page.goto(`${URL_}/c/${id.slice(2)}?stage=train-2&part=0`);
  await page.click('#metrics h3 a');
  await page.waitForSelector('#figures');
  equal(query(page), '?a=train-2%2F0%2F1', "a run's metrics lead to its comparison with another");
  await page.route(`**/v1/campaigns/${id}`, async (route) => {
    const response = await route.fetch(), json = await response.json();
    json.stages.find((s) => s.name === 'odd-a').parts.total = 2;
    await route.fulfill({ response, json });
  });
  await page.goto(`${URL_}/c/${id.slice(2)}?part=1`);
  await page.waitForSelector('#part-title');
  equal((await page.textContent('#part-title')).split(' ').slice(0, 2), ['Part', 'odd-a/1'], 'an address of a part without its stage opens the first stage that has this part, and the stage is named');
  await page.unroute(`**/v1/campaigns/${id}`);
}

// Campaigns that have nothing to show, and one that has no run yet.
async function nothing(page) {
  const plain = (await api('POST', '/campaigns', process.env.SPEC.replace(/^name: .*$/m, 'name: no-runs').replace(/fan_out: .*/, 'fan_out: {from: api}'), 'application/yaml')).json.id;
  await page.goto(`${URL_}/c/${plain.slice(2)}`);
  await page.waitForSelector('#all-parts');
  equal(await page.locator('#to-scaling, #to-compare').count(), 0, 'a campaign that trains nothing has no such links');
  await page.goto(`${URL_}/c/${plain.slice(2)}/scaling`);
  await page.waitForSelector('#nothing');
  equal(await commands(page), ['drover validate campaign.yaml', 'drover submit campaign.yaml'], 'and at the address it says what a matrix is and the next commands');
  await page.goto(`${URL_}/c/${plain.slice(2)}/compare`);
  await page.waitForSelector('#nothing');
  equal(await commands(page), ['drover ls'], 'no run to compare: neither');
  await axe(page, 'a comparison of nothing');
  await shot(page, 'compare-nothing');
  await api('POST', `/campaigns/${plain}:cancel`, {});
  const early = (await api('POST', '/campaigns', FILE.replace('laion-train', 'early').replace('ml.m5.xlarge', 'ml.m5.large'), 'application/yaml')).json.id;
  await page.goto(`${URL_}/c/${early.slice(2)}/scaling`);
  await page.waitForSelector('#nothing');
  ok(/it has not succeeded yet/.test(await page.textContent('#nothing')), 'before a run has succeeded there is no table');
  equal((await commands(page))[0], `drover watch ${early}`, 'and the next command is to watch it');
  await page.goto(`${URL_}/c/${early.slice(2)}/compare`);
  await page.waitForSelector('#nothing');
  equal((await commands(page))[0], `drover watch ${early}`, 'so says the comparison');
  await api('POST', `/campaigns/${early}:cancel`, {});
  await page.goto(`${URL_}/c/999999/scaling`);
  ok(await until(10, async () => (await page.locator('main > [role=alert]').count()) === 1), 'a campaign that is not there is an error');
}

// Every string of every answer is markup: it stays text on both pages.
async function poisoned(page, id) {
  await page.route('**/v1/**', async (route) => {
    if (/\/events$/.test(new URL(route.request().url()).pathname)) return goOn(route);
    const r = await route.fetch({ maxRetries: 2 });
    return route.fulfill({ response: r, json: poison(await r.json(), '', MARKUP) });
  });
  for (const [path, what] of [['scaling?group=train&metric=images_per_second', '#scaling'], ['compare?a=train-1&b=train-2', '#figures'], ['scaling?group=odd', '#nothing']]) {
    await page.goto(`${URL_}/c/${id.slice(2)}/${path}`);
    await page.waitForSelector(what);
    const told = (await page.textContent(what)).includes(MARKUP);
    equal([told, await intruders(page)], [true, { ran: null, csp: [], found: [] }], `${path.split('?')[0]}: hostile strings are shown letter for letter`);
  }
  await page.unrouteAll({ behavior: 'wait' });
}

export async function runs(page) {
  const made = await api('POST', '/campaigns', FILE, 'application/yaml');
  if (!ok(made.status === 201, 'a campaign of four training runs', made.text)) return;
  const { id } = made.json;
  await timed(nothing, page);
  const whole = async () => (await get(`/campaigns/${id}/metrics`)).series.filter((s) => s.complete && s.points === STEPS).length === 8;
  if (!ok(await until(60, async () => (await get(`/campaigns/${id}`)).state === 'succeeded' && whole()), 'whose logs were read to their ends', await get(`/campaigns/${id}/metrics`))) return;
  await timed(scaling, page, id);
  await timed(compare, page, id);
  await timed(poisoned, page, id);
}
