// Endpoints: one that really comes into service is found, asked, given more time and deleted in the browser.
import { URL_, api, axe, equal, get, ok, shot, until } from './kit.mjs';
import { MARKUP, intruders, poison } from './hostile.mjs';

const FILE = `version: 1
name: answers
stages:
  - name: serve
    kind: endpoint
    model: {data: "s3://drover-test/model.tar.gz", image: "drover/user:test"}
    instance_type: ml.m5.xlarge
    ttl: 1h
    idle: 30m
    smoke_test: {payloads: ["hello"]}
`;
const fact = async (page, name) => page.textContent(`#facts tr:has(th:text-is("${name}")) td`);

async function none(page) {
  await page.goto(URL_);
  await page.waitForSelector('#new');
  await page.click('nav >> text=Endpoints');
  await page.waitForSelector('#nothing');
  equal([new URL(page.url()).pathname, await page.$$eval('#nothing code', (l) => l.map((x) => x.textContent))],
    ['/endpoints', ['drover init huggingface-endpoint campaign.yaml', 'drover submit campaign.yaml']], 'every page leads to the endpoints; without one it says how to make it');
  equal(await page.getAttribute('nav [aria-current]', 'href'), '/endpoints', 'where one is, the page says');
  await axe(page, 'no endpoint');
  await shot(page, 'endpoints-none');
}

async function talk(page, name) {
  await page.fill('[name=input]', '<b>where</b> is the herd?');
  await page.fill('[name=type]', 'text/plain');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#answer');
  equal(await page.textContent('#answer'), 'asked <<b>where</b> is the herd?>', 'the model is asked from its page and answers, as text');
  const [route, said] = [`**/v1/endpoints/${name}:invoke`, { status: 424, json: { title: 'the model did not answer well', detail: 'the model answered with 400: too long', code: 'model' } }];
  await page.route(route, (r) => r.fulfill(said));
  await page.click('#ask');
  ok(await until(10, async () => (await page.textContent('section [role=alert]')) === said.json.detail), 'what a model refuses is said in its words');
  await page.unrouteAll({ behavior: 'wait' });
}

async function longer(page, name) {
  const before = (await get(`/endpoints/${name}`)).delete_after;
  await page.click('#extend');
  await page.waitForSelector('dialog [name=ttl]');
  ok((await page.textContent('dialog')).includes('Each hour costs 36.00 USD'), 'before it lives longer the page says what that costs');
  await axe(page, 'an endpoint that is to live longer');
  await page.selectOption('dialog [name=ttl]', '4h');
  await page.click('#confirm');
  const taken = await until(30, async () => { const e = await get(`/endpoints/${name}`); return e.extend_to === null && e.delete_after > before && e; });
  ok(taken && Date.parse(taken.delete_after) - Date.now() > 3.9 * 3600e3, 'it lives on for the four hours that were chosen', taken);
  ok(await until(20, async () => /^in 3 h 5\d m, or after 30 m 0 s without a question$/.test(await fact(page, 'Deleted'))), 'and the page says so', await fact(page, 'Deleted'));
}

async function hostile(page, name) {
  await page.route('**/v1/endpoints**', async (route) => {
    const r = await route.fetch({ maxRetries: 2 });
    return route.fulfill({ response: r, json: poison(await r.json(), '', MARKUP) });
  });
  for (const [path, where] of [['', '#endpoints'], [`/${name}`, '#facts']]) {
    await page.goto(`${URL_}/endpoints${path}`);
    await page.waitForSelector(where);
    equal([(await page.textContent(where)).includes(MARKUP), await intruders(page)], [true, { ran: null, csp: [], found: [] }], `hostile strings are text on /endpoints${path && '/NAME'}`);
  }
  await page.unrouteAll({ behavior: 'wait' });
}

export async function endpoints(page) {
  await none(page);
  const made = await api('POST', '/campaigns', FILE, 'application/yaml');
  if (!ok(made.status === 201, 'a campaign with an endpoint', made.text)) return;
  const e = await until(60, async () => (await get('/endpoints')).endpoints.find((x) => x.state === 'in_service' && x.tested));
  if (!ok(e, 'comes into service', await get('/endpoints'))) return;
  await page.waitForSelector('#endpoints .st-running');
  equal([await page.textContent('#endpoints td.name a'), await page.textContent('#endpoints td.name p')], [e.name, `stage serve of ${made.json.id}`], 'the list shows it without a reload');
  await axe(page, 'the endpoints');
  await shot(page, 'endpoints');
  await page.click('#endpoints td.name a');
  await page.waitForSelector('#facts');
  equal([await fact(page, 'Instances'), await fact(page, 'In SageMaker'), (await fact(page, 'Cost')).includes('36.00 USD an hour')], ['1 × ml.m5.xlarge', 'model, config, endpoint', true], 'a click leads to what is known of it');
  await talk(page, e.name);
  await axe(page, 'an endpoint');
  await shot(page, 'endpoint');
  await longer(page, e.name);
  await hostile(page, e.name);
  await page.goto(`${URL_}/endpoints/${e.name}`);
  await page.click('#delete');
  await page.click('#confirm');
  ok(await until(60, async () => (await page.textContent('#state')) === 'deleted'), 'it is deleted by a person, and the page follows it to its end');
  equal([await page.locator('#extend, #delete, #ask').count(), /ago$/.test(await fact(page, 'Deleted'))], [0, true], 'then nothing more can be done with it');
  await page.goto(`${URL_}/endpoints/none`);
  ok(await until(10, async () => (await page.locator('main > [role=alert]').count()) === 1), 'one that is not there is an error');
}
