// Campaigns that are held, stuck or cannot run: the page says what happened and has a button that mends it, whatever the
// length of names and reasons; limits change with a preview, once, also when the reply is lost.
import { URL_, api, axe, equal, get, goOn, ok, shot, timed, until } from './kit.mjs';

const SPEC = process.env.SPEC;
const LONG = 'ValueError: shard 00017 is broken at byte 1048576 '.repeat(10);
const NAME = 'averylongnamewithoutanyblank'.repeat(360); // 10 kB
const GUIDANCE = {
  breaker: { kind: 'breaker', title: 'stage download is held: the same failure came again', text: 'No part of it starts.', evidence: LONG, since: '2026-01-02T03:04:05Z', stage: 'download', runs: false,
    steps: [{ action: 'retry', label: 'Retry 3 and resume', command: 'drover retry', stage: 'download', parts: 3 }, { action: 'resume', label: 'Resume', command: 'drover resume' }] },
  budget: { kind: 'budget', title: 'held: the budget is used up', text: 'Nothing new starts.', evidence: '9.80 USD spent', since: null, stage: null, runs: false,
    steps: [{ action: 'budget', label: 'Raise budget and resume', command: 'drover budget' }] },
  gate: { kind: 'gate', title: 'stage sample is held: its gate did not let it pass', text: 'Its runs ended.', evidence: 'gate: loss is 4', since: null, stage: 'sample', runs: false,
    steps: [{ action: 'override', label: 'Override gate', command: 'drover override c-7/sample', stage: 'sample' }] },
  parked: { kind: 'parked', title: '1 part set aside', text: 'x', evidence: 'y', since: null, stage: null, runs: true,
    steps: [{ action: 'unpark', label: 'Try again', command: 'drover unpark' }, { action: 'show', label: 'Show', command: 'drover parked' }] },
};

// Every width at which the page is wider than its window.
async function tooWide(page) {
  const wide = [];
  for (const width of [320, 768, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    const r = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    if (r[0] > r[1]) wide.push([width, ...r]);
  }
  return wide;
}

async function held(page, id) {
  const real = (json) => ({ ...json, name: NAME, state: 'held', reason: `stage download: ${LONG}`, waits_for: null, guidance: [GUIDANCE.breaker, GUIDANCE.gate, GUIDANCE.parked], parked: 1 });
  await page.route(`**/v1/campaigns/${id}`, async (route) => {
    if (route.request().method() !== 'GET') return goOn(route);
    const r = await route.fetch({ maxRetries: 2 });
    return route.fulfill({ response: r, json: real(await r.json()) });
  });
  await page.route('**/v1/campaigns?*', async (route) => {
    const r = await route.fetch({ maxRetries: 2 });
    const list = await r.json();
    return route.fulfill({ response: r, json: { ...list, campaigns: list.campaigns.map(real) } });
  });
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.waitForSelector('#guidance');
  const text = await page.textContent('#guidance');
  ok(text.includes(GUIDANCE.breaker.title) && text.includes(LONG.trim()) && /since/.test(text), 'a held campaign says why, with the evidence and since when', text.slice(0, 200));
  equal(await page.$$eval('.banner [data-step]', (l) => l.map((x) => x.dataset.step)), ['retry', 'resume', 'override', 'unpark'], 'with a button for each step');
  equal([await page.textContent('#state'), await page.textContent('#eta')], ['held', '–'], 'and shows no end');
  equal(await tooWide(page), [], 'a name of 10 kB and a reason of 500 characters leave the page as wide as its window');
  await axe(page, 'a held campaign');
  await shot(page, 'held');
  let sent = null;
  await page.route(`**/v1/campaigns/${id}:override`, async (route) => { sent = route.request().postDataJSON(); return route.fulfill({ status: 202, json: {} }); });
  await page.click('[data-step=override]');
  await page.click('dialog #confirm:enabled');
  ok(await until(10, async () => sent !== null), 'the gate is overridden with a yes');
  equal(sent, { stage: 'sample' }, 'of its stage');
  await page.click('a.brand');
  await page.waitForSelector('td.name');
  equal(await tooWide(page), [], 'so does the list');
  ok((await page.textContent('.told')).includes(GUIDANCE.breaker.title), 'which says what happened, too');
  await axe(page, 'the list of held campaigns');
  await shot(page, 'list-held');
  await page.unrouteAll({ behavior: 'wait' });
}

// Its instance type has a quota of 0, for real.
async function waits(page, id) {
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.waitForSelector('#guidance');
  const text = await page.textContent('#guidance h2');
  ok(/quota 0 for ml\.m5\.large/.test(text), 'without a quota it says which type and limit', text);
  equal([await page.textContent('#state'), await page.textContent('#eta')], ['waiting', '–'], 'and neither that it runs nor when it ends');
  ok((await page.getAttribute('#guidance a.button', 'href')).startsWith('https://'), 'with the way to ask for more');
  await shot(page, 'quota-0');
}

// Its instance type has a quota and no price, for real.
async function unpriced(page, spec) {
  const { id } = (await api('POST', '/campaigns', spec.replace('ml.m5.large', 'ml.r5.xlarge').replace('name: guided', 'name: unpriced'), 'application/yaml')).json;
  await api('POST', `/campaigns/${id}/parts?stage=download&last=true`, '{"uri":"s3://drover-test/1","size":1}', 'application/x-ndjson');
  await until(20, async () => (await get(`/campaigns/${id}`)).guidance.length > 0);
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.waitForSelector('#guidance');
  const text = await page.textContent('#guidance');
  ok(/no price is known for ml\.r5\.xlarge/.test(text), 'without a price it says of which type, and that nothing starts', text);
  equal([await page.textContent('#state'), await page.textContent('#eta')], ['waiting', '–'], 'and neither that it runs nor when it ends');
  await axe(page, 'a campaign without a price');
  await shot(page, 'no-price');
  await api('POST', `/campaigns/${id}:cancel`, '{}');
}

// A list of fifty, in every state.
async function fifty(page) {
  const states = ['running', 'planned', 'draining', 'paused', 'held', 'succeeded', 'failed', 'cancelled'];
  await page.route('**/v1/campaigns?*', async (route) => {
    const r = await route.fetch({ maxRetries: 2 });
    const list = await r.json();
    const campaigns = Array.from({ length: 50 }, (_, i) => ({ ...list.campaigns[i % list.campaigns.length], id: `c-${1000 + i}`, name: `laion-${i}`, state: states[i % states.length], guidance: [] }));
    return route.fulfill({ response: r, json: { campaigns, next_page_token: null } }).catch(() => {}); // the page has gone
  });
  await page.click('a.brand');
  ok(await until(10, async () => (await page.locator('td.name a').count()) === 50), 'fifty campaigns are fifty rows');
  equal(await tooWide(page), [], 'no wider than the window');
  await axe(page, 'the list of fifty campaigns');
  await shot(page, 'fifty');
  await page.unrouteAll({ behavior: 'wait' });
}

// A browser says '' of a field in which it sees no number, as of an empty one.
async function noNumbers(page, id) {
  await api('PATCH', `/campaigns/${id}`, { budget: { limit_micro_usd: 900000000 } }, 'application/json', { 'if-match': '*' });
  const before = await get(`/campaigns/${id}`);
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  const sent = [];
  const asked = [];
  await page.route(`**/v1/campaigns/${id}`, (route) => { if (route.request().method() === 'PATCH') sent.push(route.request().postDataJSON()); return goOn(route); });
  await page.route(`**/v1/campaigns/${id}/forecast*`, (route) => { asked.push(new URL(route.request().url()).searchParams.get('what_if')); return goOn(route); });
  await page.click('#limits');
  await page.waitForSelector('.outcome');
  const wrong = async (name, text) => {
    await page.fill(`[name=${name}]`, '');
    await page.focus(`[name=${name}]`);
    await page.keyboard.type(text);
    await page.waitForTimeout(50);
    if (await page.isEnabled('#limits-go')) await page.click('#limits-go');
    const shown = await page.evaluate((n) => [document.querySelector(`[name=${n}]`)?.matches(':focus:invalid')], name);
    await page.waitForTimeout(100);
    return [...shown, await page.locator('dialog').count(), sent.length];
  };
  equal([before.budget.limit_micro_usd, await wrong('budget', '1e')], [900000000, [true, 1, 0]], 'a budget that is no number is sent back to its field, and nothing is changed', sent);
  equal(await wrong('budget', ''), [true, 1, 0], 'so is an empty one: to have none is said with a tick', sent);
  await page.fill('[name=budget]', '900');
  equal(await wrong('priority', ''), [true, 1, 0], 'so is a priority that is empty', sent);
  await page.fill('[name=priority]', String(before.priority));
  equal([await page.isDisabled('#limits-go'), await page.locator('#lifted').count()], [true, 0], 'with the old figures there is nothing to send');
  await page.check('[name=no_budget]');
  ok(/There will be no budget\./.test(await page.textContent('#lifted')), 'a tick takes the budget away, and the dialog says so before Change');
  ok(await until(10, async () => asked.includes('budget=none')), 'the forecast is of no budget', asked);
  await axe(page, 'the dialog of limits without a budget');
  await shot(page, 'no-budget', false);
  await page.click('#limits-go');
  ok(await until(10, async () => (await get(`/campaigns/${id}`)).budget.limit_micro_usd === null), 'and it is sent', sent);
  equal(sent, [{ budget: { limit_micro_usd: null } }], 'it alone, once');
  await page.unrouteAll({ behavior: 'wait' });
}

async function limits(page, id) {
  await page.click('#limits');
  await page.waitForSelector('.outcome');
  ok(await until(10, async () => !/…/.test(await page.textContent('.outcome'))), 'the dialog of limits shows what would follow', await page.textContent('.outcome'));
  ok(await page.isDisabled('#limits-go'), 'without a change there is nothing to send');
  await page.fill('[name=parts]', '7');
  await page.fill('[name=priority]', '77');
  await page.fill('[name=deadline]', '2099-12-01T18:00');
  await axe(page, 'the dialog of limits');
  await shot(page, 'limits', false);
  let lost = 0;
  await page.route(`**/v1/campaigns/${id}`, async (route) => {
    if (route.request().method() !== 'PATCH' || lost++ > 0) return goOn(route);
    await route.fetch();
    return route.abort();
  });
  const before = (await get(`/campaigns/${id}`)).version;
  await page.click('#limits-go');
  ok(await until(10, async () => (await page.locator('dialog').count()) === 0), 'a lost reply is asked for again');
  const after = await get(`/campaigns/${id}`);
  equal([lost, after.limits.parts, after.priority, after.deadline, after.version], [2, 7, 77, '2099-12-01T18:00:00+00:00', before + 1], 'and the change was made once');
  await page.unrouteAll({ behavior: 'wait' });
}

// Its input is being listed: no event tells how far it is, the page asks by itself.
async function lists(page, id) {
  let pages = 0;
  const listing = () => ({ operation: 'op-999', state: 'running', uri: 's3://b/*', pages: ++pages, objects: pages * 1000, refused: 1, problem: 'SlowDown', began_at: null, ended_at: null, elapsed_seconds: 9 });
  await page.route(`**/v1/campaigns/${id}`, async (route) => {
    const r = await route.fetch({ maxRetries: 2 });
    const c = await r.json();
    const stages = c.stages.map((s) => ({ ...s, closed: false, listing: listing() }));
    return route.fulfill({ response: r, json: { ...c, state: 'planned', guidance: [], stages, waits_for: 'the input of stage download is listed: 1000 objects in 1 pages so far' } });
  });
  await page.route('**/v1/operations?*', async (route) => route.fulfill({ json: { next_page_token: null, operations: [{ id: 'op-999', campaign: id, kind: 'list', selector: {}, changes: {},
    parts: 1000, done: 0, state: 'running', listing: listing(), undo: null, undoable: false, created_by: 'x', created_at: new Date().toISOString(), ended_at: null }] } }));
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.waitForSelector('#listing');
  const first = await page.textContent('#listing');
  ok(/being listed, [0-9,]+ objects in [0-9,]+ pages.*SlowDown/.test(first), 'a campaign whose input is being listed says how far it is, and what is in the way', first);
  equal([await page.textContent('#state'), await page.textContent('#eta')], ['waiting', '–'], 'that it waits, and no end');
  ok(/being listed/.test(await page.textContent('[data-operation=op-999]')), 'the listing is among its bulk changes', await page.textContent('#operations'));
  ok(await until(10, async () => (await page.textContent('#listing')) !== first), 'and it goes on without an event');
  await axe(page, 'a campaign whose input is being listed');
  await shot(page, 'listing');
  await page.unrouteAll({ behavior: 'wait' });
}

// The end of it: nothing of its parts is left to show, its counters and costs are.
async function archived(page, id) {
  await api('POST', `/campaigns/${id}:cancel`, '{}');
  await until(20, async () => (await get(`/campaigns/${id}`)).state === 'cancelled');
  const { status } = await api('POST', `/campaigns/${id}:archive`, '{}');
  ok(await until(20, async () => (await get(`/campaigns/${id}`)).archive?.state === 'archived'), 'a cancelled campaign is archived', status);
  await page.unrouteAll({ behavior: 'wait' });
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.waitForSelector('#archived');
  ok(/parts, attempts and metrics are deleted/.test(await page.textContent('#archived')), 'its page says what is deleted and what is kept', await page.textContent('#archived'));
  equal([await page.textContent('#state'), await page.locator('#parts').count(), await page.locator('[role=alert]').count()], ['cancelled, archived', 0, 0], 'without parts and without an error');
  ok(/0\.00/.test(await page.textContent('#cost')), 'with its cost', await page.textContent('#cost'));
  await axe(page, 'an archived campaign');
  await shot(page, 'archived');
}

// Chosen parts do not start until they are released: in the table by state, from the part's page, and all by the banner.
async function holds(page, id) {
  const parts = async () => (await get(`/campaigns/${id}`)).parts;
  const yes = async () => {
    await page.waitForSelector('#preview-parts');
    await page.click('#confirm');
    await page.waitForSelector('dialog', { state: 'detached' });
  };
  await page.goto(`${URL_}/c/${id.slice(2)}/parts?stage=download&state=waiting`);
  await page.waitForSelector('#parts-table');
  await page.check('[aria-label="part 1"]');
  await page.check('[aria-label="part 2"]');
  await page.click('#hold-picked');
  await page.waitForSelector('#preview-parts');
  ok(/Parts 1, 2/.test(await page.textContent('dialog')) && /not start until they are released/.test(await page.textContent('dialog')), 'a hold of two waiting parts is previewed', await page.textContent('dialog'));
  await yes();
  ok(await until(20, async () => (await parts()).held === 2), 'and they are held', await parts());
  ok(/: 2 parts are held\./.test(await page.textContent('.notice')), 'which the page says', await page.textContent('.notice'));
  await page.selectOption('[name=state]', 'held');
  ok(await until(10, async () => (await page.locator('#parts-table tbody tr').count()) === 2 && (await page.locator('#release-every').count()) === 1), 'the table shows them, with a release');
  await axe(page, 'the table of held parts');
  await shot(page, 'held-parts');
  await page.goto(`${URL_}/c/${id.slice(2)}?stage=download&part=1`);
  await page.click('#release-part');
  await yes();
  ok(await until(20, async () => (await parts()).held === 1), 'one is released from its page', await parts());
  ok(/: 1 part is released\./.test(await page.textContent('.notice')), 'which the page says, not that it is tried again', await page.textContent('.notice'));
  ok(await until(20, async () => (await page.locator('[data-kind=parts_held] h2').allTextContents()).join() === '1 part is held by a person'), 'the campaign says what is held');
  await page.click('[data-step=release]');
  await yes();
  ok(await until(20, async () => (await parts()).held === 0 && (await page.locator('[data-kind=parts_held]').count()) === 0), 'and its button releases the rest', await parts());
}

export async function guide(page) {
  const spec = SPEC.replace(/^name: .*$/m, 'name: guided').replace(/fan_out: .*/, 'fan_out: {from: api}').replace('ml.c5.xlarge', 'ml.m5.large');
  const { id } = (await api('POST', '/campaigns', spec, 'application/yaml')).json;
  await api('POST', `/campaigns/${id}/parts?stage=download&last=true`, [0, 1, 2].map((i) => `{"uri":"s3://drover-test/${i}","size":1}`).join('\n'), 'application/x-ndjson');
  await until(20, async () => (await get(`/campaigns/${id}`)).guidance.length > 0);
  await timed(waits, page, id);
  await timed(unpriced, page, spec);
  await timed(fifty, page);
  await timed(noNumbers, page, id);
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await timed(limits, page, id);
  await timed(lists, page, id);
  await timed(holds, page, id);
  await timed(held, page, id);
  await timed(archived, page, id);
}
