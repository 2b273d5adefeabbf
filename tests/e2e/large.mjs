// Campaigns of 4,096 and 100,000 parts whose instance type has a quota of 0, so that nothing starts: tiles, zoom, keys, addresses,
// and pause, resume, cancel by their dialogs.
import { URL_, api, axe, equal, get, ok, patience, shot, until } from './kit.mjs';

const SPEC = process.env.SPEC;
const spec = (name) => SPEC.replace(/^name: .*$/m, `name: ${name}`).replace(/fan_out: .*/, 'fan_out: {from: api}').replace('ml.c5.xlarge', 'ml.m5.large');
const tiles = (page) => page.getAttribute('#tiles', 'data-tiles').then(Number);

async function make(name, parts) {
  const id = (await api('POST', '/campaigns', spec(name), 'application/yaml')).json.id;
  const lines = Array.from({ length: parts }, (_, i) => `{"uri":"s3://drover-test/meta/part-${String(i).padStart(6, '0')}.parquet","size":${1000 + i}}`).join('\n');
  const r = await api('POST', `/campaigns/${id}/parts?stage=download&last=true`, lines, 'application/x-ndjson');
  equal([r.status, r.json.total], [201, parts], `${parts} parts are posted`);
  return id;
}

// The page's own request for tiles: how long it took and how much came.
async function open(page, id) {
  const answer = page.waitForResponse((r) => r.url().includes(`/campaigns/${id}/tiles`));
  const began = Date.now();
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.waitForSelector('#tiles');
  const body = await (await answer).body();
  return { bytes: body.length, ms: Date.now() - began, json: JSON.parse(body) };
}

async function keyboard(page) {
  const note = () => page.textContent('#tile-note');
  await page.focus('#tiles');
  await page.keyboard.press('ArrowRight');
  ok(/^part 0: /.test(await note()), 'an arrow key goes to the first tile', await note());
  await page.keyboard.press('ArrowRight');
  ok(/^part 1: waiting/.test(await note()), 'the next to the second, with its state in words', await note());
  await page.keyboard.press('ArrowDown');
  const row = /^part (\d+): /.exec(await note());
  ok(row && Number(row[1]) > 10, 'down goes a row on', await note());
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('End');
  ok(/^part 4095: /.test(await note()), 'End goes to the last', await note());
  await page.keyboard.press('Enter');
  await page.waitForSelector('#part code');
  ok((await page.textContent('#part')).includes('part-004095.parquet'), 'Enter opens the part', await page.textContent('#part'));
  ok(await page.getByText('Not started yet').isVisible(), 'which says that it has not started');
  ok(/quota/.test(await page.textContent('#part')), 'and why it waits');
}

async function ask(page, button, wanted) {
  await page.click(`.head button:has-text("${button}")`);
  await page.waitForSelector('#confirm:enabled');
  if (button === 'Cancel') {
    ok(/4,096 waiting parts/.test(await page.textContent('dialog')), 'the cancel dialog says how many parts it takes', await page.textContent('dialog'));
    await axe(page, 'the cancel dialog');
    await shot(page, 'cancel', false);
  }
  await page.click('#confirm');
  ok(await until(15, async () => new RegExp(wanted).test(await page.textContent('#state'))), `${button} makes it ${wanted}`, await page.textContent('#state'));
}

async function all(page, id) {
  const o = await open(page, id);
  equal([await tiles(page), o.json.per_tile], [4096, 1], '4,096 parts are 4,096 tiles');
  ok(o.bytes <= 40000, `in ${o.bytes} bytes (40,000 at most)`);
  ok(o.ms < 1000 * patience(3), `shown after ${o.ms} ms`);
  await keyboard(page);
  await shot(page, '4096');
  await axe(page, '4,096 tiles');
  await page.click('.head button:has-text("Pause")');
  await page.waitForSelector('#confirm:enabled');
  await page.keyboard.press('Escape');
  equal([await until(5, async () => (await page.locator('dialog').count()) === 0), (await get(`/campaigns/${id}`)).wanted], [true, 'run'], 'Escape leaves a dialog and nothing happens');
  await ask(page, 'Pause', 'paused');
  await ask(page, 'Resume', 'waiting');
  await ask(page, 'Drain', 'paused|draining');
  await ask(page, 'Resume', 'waiting');
  await ask(page, 'Cancel', 'cancelled');
  ok(await until(20, async () => (await page.getAttribute('#tiles', 'data-states')) === '6'.repeat(4096)), 'all tiles are cancelled');
  equal(await page.locator('.head button').count(), 0, 'nothing is left to press');
}

async function zoom(page, id) {
  const o = await open(page, id);
  const n = await tiles(page);
  ok(n <= 2048 && n > 1024 && o.json.per_tile > 1, `100,000 parts are ${n} tiles of ${o.json.per_tile}, made by the server`);
  equal(o.json.tiles.flat().reduce((a, b) => a + b, 0), 100000, 'every part is in one of them');
  ok(o.bytes <= 40000, `in ${o.bytes} bytes (40,000 at most)`);
  ok(o.ms < 1000 * patience(3), `shown after ${o.ms} ms`);
  await shot(page, '100000');
  await page.focus('#tiles');
  await page.keyboard.press('End');
  await page.keyboard.press('End');
  ok(/–99,999: .* waiting/.test(await page.textContent('#tile-note')), 'the last tile says what it holds', await page.textContent('#tile-note'));
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  ok(await until(5, async () => (await tiles(page)) === o.json.per_tile), 'Enter zooms into a tile: one tile a part');
  const address = page.url();
  ok(new URL(address).search.includes(`parts=${o.json.per_tile}-${2 * o.json.per_tile - 1}`), 'the zoom is in the address', address);
  await page.locator('#tiles').click({ position: { x: 8, y: 8 } });
  await page.waitForSelector('#part code');
  ok((await page.textContent('#part')).includes(`part-${String(o.json.per_tile).padStart(6, '0')}`), 'a click opens the part', await page.textContent('#part code'));
  await shot(page, '100000-zoom');
  await page.goBack();
  await until(5, async () => (await page.locator('#part').count()) === 0);
  equal(page.url(), address, 'back closes it');
  await page.click('#zoom-out');
  ok(await until(5, async () => (await tiles(page)) === n), 'and all parts are shown again');
  await page.goto(address);
  await page.waitForSelector('#tiles');
  equal(await tiles(page), o.json.per_tile, 'the address opens the same zoom for somebody else');
}

// A campaign of the stages `download` and `again`, with these parts.
async function makeTwo(text, parts) {
  const stage = text.slice(text.indexOf('  - name: download')).replace('name: download', 'name: again').replace('images-', 'again-');
  const made = await api('POST', '/campaigns', `${text.trimEnd()}\n${stage}`, 'application/yaml');
  if (!ok(made.status === 201, 'a campaign of two stages', made.text)) return null;
  for (const [name, uris] of Object.entries(parts)) {
    const lines = uris.map((uri) => `{"uri":"s3://drover-test/${uri}","size":1}`).join('\n');
    await api('POST', `/campaigns/${made.json.id}/parts?stage=${name}&last=true`, lines, 'application/x-ndjson');
  }
  return made.json.id;
}

// Two stages: a tab each, tiles and address follow.
async function stages(page) {
  const id = await makeTwo(spec('laion-stages'), { download: [0, 1, 2].map((i) => `download/${i}.parquet`), again: [0, 1, 2, 3, 4].map((i) => `again/${i}.parquet`) });
  if (!id) return;
  await open(page, id);
  equal(await page.locator('.tab').count(), 2, 'has a tab for each');
  ok(await until(5, async () => (await tiles(page)) === 3), 'the first is shown');
  await page.click('.tab:has-text("again")');
  ok(await until(5, async () => (await tiles(page)) === 5), 'then the other');
  equal(new URL(page.url()).search, '?stage=again', 'and the address says so');
  await page.locator('#tiles').click({ position: { x: 8, y: 8 } });
  ok(await until(5, async () => (await page.textContent('#part')).includes('s3://drover-test/again/0.parquet')), 'its parts are its own', await page.textContent('#part'));
  await axe(page, 'two stages');
  await shot(page, 'stages');
}

// While a later stage runs the end is the campaign's; while that is not known, the shown stage's, by its name, or why there is none.
async function end(page, id) {
  const why = 'needs 5 finished parts of again, or expect: in its stage';
  const unknown = { known: false, end: null, cost: null, stages: [], advice: [], reason: why };
  const over = { stage: 'download', finished: 1, remaining: 0, ends_in_seconds: null, low_seconds: null, high_seconds: null, parts_per_hour: null, reason: 'nothing is left' };
  let forecast;
  await page.route('**/forecast*', (route) => route.fulfill({ json: forecast }));
  await page.route(`**/v1/campaigns/${id}`, async (route) => {
    const r = await route.fetch({ maxRetries: 2 });
    return route.fulfill({ response: r, json: { ...(await r.json()), state: 'running', ended_at: null, waits_for: null, guidance: [] } });
  });
  for (const [given, what, eta, head, note] of [
    [{ ...over, campaign: { ...unknown, known: true, end: { p10_seconds: 7200, p50_seconds: 9000, p90_seconds: 14400 }, reason: null } }, 'of the campaign', '2 h 30 m', 'Ends in ', 'likely 2 h 0 m to 4 h 0 m'],
    [{ ...over, campaign: unknown }, 'not known, with the reason', '–', 'Ends in ', why],
    [{ ...over, remaining: 3, ends_in_seconds: 600, low_seconds: 540, high_seconds: 660, parts_per_hour: 60, reason: undefined, campaign: unknown }, 'of the stage, by its name', '10 m 0 s', 'Ends in stage download', why],
  ]) {
    forecast = given;
    await page.goto(`${URL_}/c/${id.slice(2)}`);
    await page.waitForSelector('#eta');
    const card = page.locator('.card:has(#eta)');
    equal([await card.locator('#eta').textContent(), await card.locator('h2').textContent()], [eta, head], `the end is ${what}`);
    ok((await card.locator('#eta-note').textContent()).includes(note), 'and what is said of it', await card.textContent());
  }
  await page.unrouteAll({ behavior: 'wait' });
}

// The second of two stages fails, for real: its failures, their retry and their parts are its own.
async function second(page) {
  const id = await makeTwo(spec('laion-second').replaceAll('ml.m5.large', 'ml.c5.xlarge'), { download: ['meta/part-00000.snappy.parquet'], again: ['no/0.parquet', 'no/1.parquet'] });
  if (!id) return;
  const ended = async () => { const c = await get(`/campaigns/${id}`); return c.state === 'failed' && c; };
  const c = await until(120, ended);
  equal(c?.stages?.map((s) => [s.name, s.state, s.parts.failed]), [['download', 'succeeded', 0], ['again', 'failed', 2]], 'the first stage succeeds, the parts of the second fail');
  await page.goto(`${URL_}/c/${id.slice(2)}`);
  await page.click('[data-retry]');
  await page.waitForSelector('#preview-parts');
  equal([await page.textContent('#preview-parts'), await page.isEnabled('#confirm')], ['2', true], 'a retry of what failed finds the parts');
  await page.keyboard.press('Escape');
  equal(await tiles(page), 2, 'the tiles are of that stage');
  await page.locator('#failures button.link').first().click();
  ok(await until(5, async () => (await page.textContent('#part')).includes('s3://drover-test/no/')), 'and so is the part that the evidence names', await page.textContent('#part'));
  equal(new URL(page.url()).search, '?stage=again&part=0', 'which the address names with its stage');
  await page.goto(`${URL_}/c/${id.slice(2)}/cost`);
  await page.waitForSelector('#by-failure tbody a');
  ok(/stage=again&state=failed/.test(await page.getAttribute('#by-failure tbody a', 'href')), 'the money of failures leads to the parts of their stage', await page.getAttribute('#by-failure tbody a', 'href'));
  await end(page, id);
  await page.goto(`${URL_}/c/${id.slice(2)}?part=0`);
  ok(await until(10, async () => (await page.textContent('#part')).includes('meta/part-00000.snappy.parquet')), 'an address with a part and no stage is of the first, as ever', await page.textContent('main'));
}

export async function large(page) {
  await all(page, await make('laion-4096', 4096));
  await zoom(page, await make('laion-100000', 100000));
  await stages(page);
  await second(page);
}
