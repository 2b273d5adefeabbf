// Log in, submit, watch, open the failure, retry, see the part done; then what happens when droverd is away.
import { URL_, TOKEN, api, axe, equal, get, ok, please, shot, timed, until } from './kit.mjs';
import { keys } from './keys.mjs';

const SPEC = process.env.SPEC;
const PARTS = Number(process.env.PARTS);
const SOURCE = /from: "([^"]+)"/.exec(SPEC)[1];
const BROKEN = Number(process.env.BROKEN);
const state = (page) => page.textContent('#state');
const states = (page) => page.getAttribute('#tiles', 'data-states');
const DONE = '3';
const FAILED = '4';

async function login(page, notes) {
  await page.goto(URL_);
  await page.waitForSelector('input[name=token]');
  await axe(page, 'the login');
  await page.fill('input[name=token]', 'admin-00000000.0123456789012345678901234567890123456789');
  await page.click('button.primary');
  const text = await until(5, () => page.textContent('[role=alert]'));
  ok(text && text.length > 10, 'a wrong token is answered with words', text);
  await page.fill('input[name=token]', TOKEN);
  await page.click('button.primary');
  await page.waitForSelector('#new');
  ok(await until(5, () => page.getByText('No campaign yet').isVisible()), 'the right token opens the list, which says what belongs there');
  const cookie = (await page.context().cookies()).find((c) => c.name === 'drover_session');
  ok(cookie && cookie.httpOnly && cookie.sameSite === 'Strict', 'the session is a HttpOnly, SameSite=Strict cookie', cookie);
  await axe(page, 'the empty list');
  await shot(page, 'list-empty');
  // Whatever follows happens in this one document.
  await page.evaluate(() => { window.__mark = 'here'; });
  notes.documents = 0;
}

async function submit(page) {
  await page.click('#new');
  await page.fill('#spec', SPEC.replace('instance_type:', 'instance_typ:').replace('max_runtime: 5m', 'max_runtime: soon'));
  await page.waitForSelector('dialog [role=alert] li');
  const faults = await page.$$eval('dialog [role=alert] li', (l) => l.map((x) => x.textContent));
  ok(faults.length >= 2 && faults.every((f) => /^\d+:\d+ *\n? *[a-z_.0-9]+: /.test(f)), 'a campaign file with two mistakes shows both, each with line, column and key', faults);
  const [line] = faults[1].split(':');
  await page.locator('dialog [role=alert] li button').nth(1).click();
  const there = await page.$eval('#spec', (a) => [document.activeElement === a, a.value.slice(0, a.selectionStart).split('\n').length,
    a.value.slice(a.selectionStart, a.selectionEnd), a.previousElementSibling.textContent.split('\n').length === a.value.split('\n').length]);
  ok(there[0] && there[1] === Number(line) && !there[2].includes('\n') && there[2].trim() && there[3], 'a press on its place selects the line; lines are numbered', [line, there]);
  ok(await page.isDisabled('#submit'), 'it cannot be submitted');
  await axe(page, 'the dialog of a new campaign with faults');
  await shot(page, 'new-faults', false);
  await page.fill('#spec', SPEC);
  await page.waitForSelector('#plan-parts');
  equal(await page.textContent('#plan-parts'), String(PARTS), 'a good one shows how many parts it has before anything starts');
  await shot(page, 'new-plan', false);
  await page.dblclick('#submit');
  await page.waitForSelector('#tiles');
  ok(/^\/c\/\d+$/.test(new URL(page.url()).pathname), 'submitting opens the campaign', page.url());
  equal((await get('/campaigns')).campaigns.length, 1, 'a double click submitted one campaign');
  return `c-${page.url().split('/').pop()}`;
}

// A file whose name is live is submitted again: a person says twice that a second one is meant. Its campaign waits for
// its parts, so that it is live for as long as this takes.
async function again(page, first) {
  const spec = SPEC.replace(/^name: .*$/m, 'name: laion-open').replace(/fan_out: .*/, 'fan_out: {from: api}');
  const { id } = (await api('POST', '/campaigns', spec, 'application/yaml')).json;
  await page.click('a.brand');
  await page.click('#new');
  await page.fill('#spec', spec.replace('max_runtime: 5m', 'max_runtime: 6m'));
  await page.waitForSelector('#plan-parts');
  await page.click('#submit');
  await page.waitForSelector('#differs');
  equal(await page.$$eval('#differs li', (l) => l.map((x) => x.textContent)), ['stages.download.max_runtime 5m -> 6m'], 'a name that is live is refused with the keys that differ');
  ok((await page.textContent('dialog [role=alert]')).includes(`Open ${id}`), 'and the way to the other one');
  equal(await page.textContent('#submit'), 'Submit a second one', 'a second press would submit it');
  equal((await get('/campaigns')).campaigns.length, 2, 'nothing was submitted');
  await axe(page, 'the dialog of a name that is live');
  await shot(page, 'new-live', false);
  await page.click(`dialog a[href="/c/${id.slice(2)}"]`);
  ok(await until(10, async () => page.url().endsWith(`/c/${id.slice(2)}`)), 'which opens it');
  await api('POST', `/campaigns/${id}:cancel`, {});
  await page.click('a.brand');
  await page.click('text=laion-sample');
  await page.waitForSelector('#tiles');
  ok(page.url().endsWith(`/c/${first.slice(2)}`), 'and back to the first');
}

// Every change of the page, noted by the page itself: tiles, ETA and how many parts the ETA was made from.
const record = (page) => page.evaluate(() => {
  window.__seen = [];
  const look = () => {
    const eta = document.querySelector('#eta');
    const tiles = document.querySelector('#tiles');
    if (!eta || !tiles) return;
    const now = { finished: Number(eta.dataset.finished), eta: eta.textContent, note: document.querySelector('#eta-note')?.textContent, states: tiles.dataset.states,
      ended: !/running|planned/.test(document.querySelector('#state').textContent) };
    if (JSON.stringify(now) !== JSON.stringify(window.__seen.at(-1))) window.__seen.push(now);
  };
  new MutationObserver(look).observe(document.querySelector('main'), { subtree: true, childList: true, attributes: true, characterData: true });
  look();
});

async function watch(page, id) {
  await record(page);
  ok(await until(20, async () => /running/.test(await state(page))), 'it runs');
  ok(await until(20, async () => (await states(page)).includes('1')), 'tiles become active');
  equal(await page.textContent('#live'), '● live', 'the page says it is live');
  await until(20, async () => (await get(`/campaigns/${id}`)).parts.done >= 6);
  await shot(page, 'running');
  const text = await until(60, async () => (/failed/.test(await state(page)) ? state(page) : null));
  ok(text, 'with one broken part it ends as failed', await state(page));
  const want = [...Array(PARTS)].map((_, i) => (i === BROKEN ? FAILED : DONE)).join('');
  equal(await until(3, async () => ((await states(page)) === want ? want : null)) || (await states(page)), want, 'the tiles show it: all done but the broken one');
  const seen = await page.evaluate(() => window.__seen);
  ok(new Set(seen.map((s) => s.states)).size >= 4, 'the tiles changed step by step', seen.map((s) => s.states));
  const early = seen.filter((s) => s.finished < 5 && !s.ended);
  ok(early.length > 0 && early.every((s) => s.eta === '–' && /needs \d( more)? finished parts? of download/.test(s.note)), 'under 5 finished parts no ETA is shown, but why', early);
  const late = seen.filter((s) => s.finished >= 5 && !s.ended && /\d+ s/.test(s.eta));
  ok(late.length > 0, 'later there is an ETA', seen.slice(-8));
}

// The log of a try that goes on is read again while the page is live; on a page of its own, since this one is never loaded again.
async function goesOn(context, id, part) {
  const page = await context.newPage();
  let n = 0;
  await page.route('**/v1/parts/**', (route) => route.fulfill({ json: { ...part, attempt_list: part.attempt_list.map((a) => ({ ...a, ended_at: null })) } }));
  await page.route('**/logs?*', (route) => route.fulfill({ json: { job_name: 'x', lines: Array.from({ length: ++n }, (_, i) => ({ host: 'h', text: `line ${i}.`, level: 'info' })) } }));
  await page.goto(`${URL_}/c/${id.slice(2)}?part=${part.seq}`);
  await page.click('#part .try button');
  ok(await until(30, async () => (await page.textContent('#part pre.log')).includes('line 1.')), 'the log of a try that has not ended grows on the page', await page.locator('#part').textContent());
  await page.close();
}

async function failure(page, id) {
  const api_ = (await get(`/campaigns/${id}/failures`)).groups;
  equal(api_.length, 1, 'one group of failures');
  const row = page.locator('#failures tbody tr');
  await until(10, async () => (await row.count()) === 1);
  equal(await row.getAttribute('data-cause'), 'bad_input', 'the failure has its cause');
  ok((await row.textContent()).includes(api_[0].message) && (await row.textContent()).includes(api_[0].remedy), 'and shows the evidence and what helps', await row.textContent());
  await row.locator('button.link').first().click();
  await page.waitForSelector('#part .tries');
  ok(new URL(page.url()).search.includes(`part=${BROKEN}`), 'the open part is in the address', page.url());
  const part = await get(`/parts/${id}/${BROKEN}`);
  const tries = await page.$$eval('#part .tries > li', (l) => l.map((x) => x.textContent));
  equal(tries.length, part.attempt_list.length, 'every try of the part is listed');
  ok(part.attempt_list.every((a, i) => tries[i].includes(a.job_name) && tries[i].includes(a.reason)), 'with its job and its reason', { tries, list: part.attempt_list });
  await page.click('#part .try button');
  ok(await until(10, async () => /parquet/i.test(await page.textContent('#part pre.log'))), 'the log of the try says what is wrong', await page.locator('#part').textContent());
  await page.fill('#part input[type=search]', 'parquet');
  ok(await until(5, async () => (await page.locator('#part mark').count()) > 0 && /\d+ found/.test(await page.textContent('#part .log-tools'))), 'what is looked for in it is marked and counted');
  await page.click('#first-error');
  ok(/error/i.test(await page.textContent('#part .log .error.here')), 'and it jumps to the first line of an error');
  await goesOn(page.context(), id, part);
  await page.click('#part .tries summary');
  ok(await until(5, async () => JSON.parse((await page.textContent('#part .sent')) || '{}').TrainingJobName === part.attempt_list[0].job_name), 'what was sent for a try is shown', await page.textContent('#part .sent'));
  equal(await page.getAttribute('#part .tries li a', 'href'), part.attempt_list[0].console_url, 'and a link leads to its page at AWS');
  await axe(page, 'a campaign with an open failure');
  await shot(page, 'failure');
}

// The table of parts: filters in the address, a retry of exactly what is selected or of all that match.
async function table(page, id) {
  await page.click('#all-parts');
  await page.waitForSelector('#parts-table');
  equal([new URL(page.url()).pathname, new URL(page.url()).search], [`/c/${id.slice(2)}/parts`, '?stage=download&state=failed'], 'the table of failed parts has an address');
  const rows = page.locator('#parts-table tbody tr');
  equal(await rows.count(), 1, 'which shows the failed part alone');
  const none = await page.getAttribute('#retry-picked', 'aria-describedby');
  ok((await page.isDisabled('#retry-picked')) && /None is selected/.test(await page.textContent(`#${none}`)), 'with nothing selected there is nothing to retry, and it says why');
  await page.check('#parts-table input[type=checkbox]');
  await page.click('#retry-picked');
  await page.waitForSelector('#preview-parts');
  ok((await page.textContent('#preview-parts')) === '1' && (await page.textContent('dialog')).includes(`Part ${BROKEN}.`), 'one selected: the preview names it');
  ok(/^The campaign ends in .+; \d+\.\d+ USD more\.$/.test(await page.textContent('#preview-forecast')), 'with the new end and what it adds', await page.textContent('dialog'));
  equal(await page.locator(`#${none}`).count(), 0, 'and nothing is said of an empty selection');
  await page.keyboard.press('Escape');
  await page.click('#skip-every');
  await page.waitForSelector('#preview-parts');
  ok(/given up for good/.test(await page.textContent('dialog')), 'a skip of all that match says what it means', await page.textContent('dialog'));
  await page.keyboard.press('Escape');
  equal((await get(`/operations?campaign=${id}`)).operations, [], 'and without a yes nothing happens');
  await axe(page, 'the table of parts');
  await page.selectOption('[name=state]', 'done');
  ok(await until(5, async () => (await rows.count()) === PARTS - 1), 'another state: its parts');
  equal(new URL(page.url()).search, '?stage=download&state=done', 'and its address');
  await shot(page, 'parts');
  for (const [field, value, some] of [['text', 'PART-00004', 1], ['cost', '900', 0], ['since', '2020-01-01T00:00', PARTS - 1]]) {
    await page.fill(`[name=${field}]`, value);
    await page.keyboard.press('Tab');
    ok(await until(10, async () => (await rows.count()) === some) && new URL(page.url()).searchParams.get(field) === value, `those with ${field} ${value}: ${some}`, [await rows.count(), page.url()]);
    await page.goBack();
    ok(await until(10, async () => (await rows.count()) === PARTS - 1), 'and without it all again');
  }
  await page.goBack();
  ok(await until(5, async () => (await rows.count()) === 1), 'back goes back');
  await shot(page, 'parts-failed');
  await page.click('#parts-table td.name a');
  await page.waitForSelector('#part .tries');
  ok(new URL(page.url()).search.includes(`part=${BROKEN}`), 'its link opens the part');
}

async function money(page, id) {
  const agrees = await until(10, async () => {
    const cost = await get(`/campaigns/${id}/cost`);
    return Number(await page.getAttribute('#cost', 'data-micro-usd')) === cost.metered.micro_usd && cost.metered.micro_usd > 0 && cost.reserved_micro_usd === 0 ? cost : null;
  });
  ok(agrees, 'the cost shown is what the API says');
  const text = (agrees.metered.micro_usd / 1e6).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 4 });
  equal(await page.textContent('#cost'), `${text} USD`, 'in dollars');
  await page.click('#phases summary');
  await page.waitForSelector('#phases tbody tr');
  const { by_phase: phases } = await get(`/campaigns/${id}/cost?by=phase`);
  const spent = phases.filter((p) => p.elapsed_seconds > 0 || p.micro_usd > 0);
  equal([spent.reduce((sum, p) => sum + p.micro_usd, 0), await page.$$eval('#phases tbody td:first-child', (l) => l.map((x) => x.textContent))],
    [agrees.metered.micro_usd, spent.map((p) => p.phase.replace('_', ' '))], 'where the hour went: the phases, which add up to the cost');
  ok((await page.textContent('#trained-nothing')).includes('trained nothing'), 'and what trained nothing');
  await shot(page, 'phases');
  await axe(page, 'where the hour went');
  await page.click('#phases summary');
}

async function retry(page, id) {
  await please('mend');
  await page.click('[data-retry=bad_input]');
  await page.waitForSelector('#preview-parts');
  const preview = await page.textContent('#preview-parts');
  const asked = await api('POST', `/campaigns/${id}:retry?dry_run=true`, { selector: { cause: ['bad_input'] } });
  equal(preview, String(asked.json.parts), 'the preview names the count that the API names');
  await page.click('dialog details.changes summary');
  await page.fill('dialog [name=volume_gb]', '60');
  await page.fill('dialog [name=max_runtime]', '2h');
  await page.fill('dialog [name=instance_type]', 'ml.c5.18xlarge');
  await axe(page, 'the retry dialog');
  await shot(page, 'retry', false);
  await page.click('#confirm');
  await page.waitForSelector('dialog [role=alert]');
  ok(/lists ml\.c5\.xlarge/.test(await page.textContent('dialog [role=alert]')), 'a type that the stage does not list is refused in the dialog, with its list', await page.textContent('dialog [role=alert]'));
  await page.fill('dialog [name=instance_type]', 'ml.c5.xlarge');
  await page.dblclick('#confirm');
  const notice = await until(10, () => page.textContent('#notice'));
  const ops = (await get(`/operations?campaign=${id}`)).operations;
  equal(ops.map((o) => [o.kind, o.parts]), [['retry', Number(preview)]], 'pressed twice it is one operation over as many parts');
  equal(ops[0].changes, { volume_gb: 60, max_runtime: 7200, instance_type: 'ml.c5.xlarge' }, 'with what was changed');
  ok(notice && notice.includes(ops[0].id), 'which is named', notice);
  ok(await until(30, async () => (await states(page))[BROKEN] === DONE), 'the part is seen done', await states(page));
  ok(await until(20, async () => /succeeded/.test(await state(page))), 'and the campaign succeeded', await state(page));
  ok(await until(10, async () => /done/.test(await page.textContent('#part-state'))), 'the open part says so too');
  equal(await page.$$eval('#part .tries > li', (l) => l.length), 2, 'with both its tries');
  const sent = (await get(`/campaigns/${id}/parts/${BROKEN}/request`)).request;
  equal([sent.ResourceConfig.VolumeSizeInGB, sent.StoppingCondition.MaxRuntimeInSeconds], [60, 7200], 'the new one as it was asked for');
  equal(await page.locator('#failures').count(), 0, 'no failure is left');
  const after = (await get(`/operations?campaign=${id}`)).operations[0];
  equal([after.state, after.done], ['done', Number(preview)], 'the operation carried out as many as the preview named');
  await money(page, id);
}

// Two people press retry at once: every part is tried once more, not twice.
async function twice(page) {
  await please('faults', JSON.stringify(['-0-', '-1-'].map((part) => ({ kind: 'job_failure', operation: 'CreateTrainingJob', name_contains: part, times: 1, reason: 'AlgorithmError: ValueError, exit code: 1' }))));
  const id = (await api('POST', '/campaigns', SPEC.replace(/^name: .*$/m, 'name: laion-twice').replace(/fan_out: .*/, 'fan_out: {from: api}'), 'application/yaml')).json.id;
  const lines = [0, 1, 2, 3].map((i) => `{"uri":"${SOURCE.replace('*', `part-0000${i}.snappy`)}","size":1000}`).join('\n');
  await api('POST', `/campaigns/${id}/parts?stage=download&last=true`, lines, 'application/x-ndjson');
  await page.click('a.brand');
  await page.click(`text=laion-twice`);
  ok(await until(40, async () => /failed/.test(await state(page))), 'a campaign with two failing parts fails');
  await page.waitForSelector('[data-retry=user_code]');
  const both = await Promise.all([1, 2].map(() => api('POST', `/campaigns/${id}:retry`, { selector: { cause: ['user_code'] } })));
  ok(both.every((r) => r.status === 202), 'two retries at once are both accepted', both);
  equal(both.map((r) => r.json.parts).sort(), [0, 2], 'one of them names both parts, the other none');
  return id;
}

// A retry whose parts have not started, since nothing may, is undone where it is told of; an earlier one has its row.
async function undo(page) {
  await please('faults', JSON.stringify(['-0-', '-1-'].map((part) => ({ kind: 'job_failure', operation: 'CreateTrainingJob', name_contains: part, times: 1, reason: 'AlgorithmError: ValueError, exit code: 1' }))));
  const id = (await api('POST', '/campaigns', SPEC.replace(/^name: .*$/m, 'name: laion-undo').replace(/fan_out: .*/, 'fan_out: {from: api}'), 'application/yaml')).json.id;
  const lines = [0, 1].map((i) => `{"uri":"${SOURCE.replace('*', `part-0000${i}.snappy`)}","size":1000}`).join('\n');
  await api('POST', `/campaigns/${id}/parts?stage=download`, lines, 'application/x-ndjson'); // open: it goes on, so that it can be paused
  await until(40, async () => (await get(`/campaigns/${id}`)).parts.failed === 2);
  await api('POST', `/campaigns/${id}:pause`, {});
  await page.click('a.brand');
  await page.click('text=laion-undo');
  await page.click('[data-retry=user_code]');
  await page.waitForSelector('#preview-parts');
  await page.click('#confirm');
  await page.waitForSelector('#undo-notice');
  const op = (await get(`/operations?campaign=${id}`)).operations[0];
  ok(await until(20, async () => (await states(page)) === '00'), 'retried while paused, the parts wait', await states(page));
  equal(await page.getAttribute(`#operations tr[data-operation="${op.id}"] button`, 'data-undo'), op.id, 'the row of the operation offers its undo');
  await shot(page, 'undo');
  await page.click('#undo-notice');
  await page.waitForSelector('dialog #confirm:not([disabled])');
  await axe(page, 'the question of an undo');
  await page.click('#confirm');
  ok(await until(20, async () => /undone: 2 parts failed as before, 0 had started and go on/.test(await page.textContent('#notice'))), 'what became of it is said with both counts', await page.textContent('#notice'));
  ok(await until(20, async () => (await states(page)) === FAILED + FAILED), 'the tiles fail again');
  equal(await page.locator('[data-undo]').count(), 0, 'no undo is offered any more');
  equal(await page.getAttribute('#failures tbody tr', 'data-cause'), 'user_code', 'with the cause they had');
  await axe(page, 'a campaign with an undone operation');
  await api('POST', `/campaigns/${id}:cancel`, {});
}

// droverd dies in the middle of a campaign and comes back: the page keeps its data, says so, and goes on.
async function away(page, id) {
  const before = await page.textContent('h1');
  await please('stop');
  ok(await until(10, async () => /stale/.test(await page.textContent('#live'))), 'without droverd the page says that it is stale');
  ok(await until(15, async () => (await page.locator('main > .problem').count()) === 1), 'and that it shows the last known');
  ok((await page.textContent('h1')).startsWith(before.split(' ')[0]) && (await states(page)).length === 4, 'which is still there');
  await axe(page, 'a campaign while droverd is away');
  await shot(page, 'stale');
  await please('start');
  ok(await until(15, async () => /live/.test(await page.textContent('#live'))), 'when droverd is back it is live again');
  ok(await until(40, async () => /succeeded/.test(await state(page))), 'and has caught up: succeeded', await state(page));
  equal(await until(3, async () => ((await states(page)) === DONE.repeat(4) ? DONE.repeat(4) : null)), DONE.repeat(4), 'every tile is done');
  equal(await page.locator('main > .problem').count(), 0, 'the warning is gone');
  for (const n of [0, 1]) equal((await get(`/parts/${id}/${n}`)).attempt_list.length, 2, `part ${n} was tried again once`);
}

export async function journey(page, notes) {
  await timed(login, page, notes);
  const id = await timed(submit, page);
  await timed(watch, page, id);
  await timed(again, page, id);
  await timed(money, page, id);
  await timed(failure, page, id);
  await timed(table, page, id);
  await timed(keys, page, id);
  await timed(retry, page, id);
  await timed(undo, page);
  const second = await timed(twice, page);
  await timed(away, page, second);
  await page.click('a.brand');
  await page.waitForSelector('#new');
  await axe(page, 'the list');
  await shot(page, 'list');
  equal([await page.evaluate(() => window.__mark), notes.documents], ['here', 1], 'all this without one reload; one document is that of the log on its own page');
}
