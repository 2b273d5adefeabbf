// Several people: tokens and sessions, webhooks, projects, the audit of all that, and what a viewer and a token of one project see.
import { createServer } from 'node:http';
import { URL_, TOKEN, api, axe, equal, get, logIn, ok, shot, until } from './kit.mjs';
import { MARKUP, intruders, poison } from './hostile.mjs';

const ID = TOKEN.split('.')[0];
const where = (page) => new URL(page.url()).pathname;
const rows = (page, table) => page.$$eval(`${table} tbody tr`, (l) => l.map((tr) => [...tr.children].map((td) => td.textContent.replace(/\s+/g, ' ').trim())));
const row = (page, table, text) => page.locator(`${table} tbody tr`, { hasText: text });
const closed = (page) => page.waitForSelector('dialog', { state: 'detached' });
const said = (page, what) => until(20, async () => (await page.textContent('main')).includes(what));

async function submit(page) {
  await page.click('#form-go');
  await closed(page);
}

async function spoilt(page, path, pattern, there) {
  await page.route(pattern, async (route) => {
    const r = await route.fetch({ maxRetries: 2 });
    return route.fulfill({ response: r, json: poison(await r.json(), '', MARKUP) });
  });
  await page.goto(`${URL_}${path}`);
  await page.waitForSelector(there);
  equal([(await page.textContent('main')).includes(MARKUP), await intruders(page)], [true, { ran: null, csp: [], found: [] }], `hostile strings are text on ${path}`);
  await axe(page, `${path} with long names`);
  await page.unrouteAll({ behavior: 'wait' });
}

async function tokens(page) {
  await page.click('nav >> text=Settings');
  await page.waitForSelector('#sessions');
  equal([where(page), await page.textContent('#who')], ['/tokens', 'token file admin'], 'the header says who asks, and leads to the tokens');
  await axe(page, 'tokens');
  await page.click('#new-token');
  await page.fill('[name=name]', 'looks');
  await page.fill('[name=projects]', 'default,,');
  await axe(page, 'the form of a token');
  await page.click('#form-go');
  await page.waitForSelector('#form-done');
  const scoped = await page.textContent('dialog code');
  ok(/^viewer-[0-9a-f]{8}\.[0-9a-f]{64}$/.test(scoped), 'a token is shown when it is made', scoped);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.click('dialog .command button');
  equal(await page.evaluate(() => navigator.clipboard.readText()), scoped, 'and copied by a button');
  await axe(page, 'a token that is shown once');
  await shot(page, 'token-made', false);
  await page.click('#form-done');
  await closed(page);
  ok(!(await page.content()).includes(scoped.split('.')[1]), 'afterwards it is nowhere on the page');
  const cells = await until(20, async () => (await rows(page, '#tokens')).find((r) => r[0].startsWith('looks')));
  equal(cells?.slice(1, 4), ['viewer', 'default', 'never'], 'the list has its role, project and last use');
  ok(/^in (29 d 23 h|30 d 0 h)$/.test(cells[4]) && cells[5] === ID, 'when it expires, and who made it', cells);
  const watcher = (await api('POST', '/tokens', { name: 'watcher', role: 'viewer' })).json.token;
  const operator = (await api('POST', '/tokens', { name: 'ops', role: 'operator' })).json.token;
  await api('POST', '/login', { token: watcher });
  await page.reload();
  await page.waitForSelector('#sessions tbody tr >> nth=1');
  equal((await rows(page, '#sessions')).filter((r) => r[0].includes('this one')).map((r) => r[0].split(' s-')[0]), ['token file'], 'one of the sessions is marked as one\'s own');
  await shot(page, 'tokens');
  await row(page, '#sessions', 'watcher').locator('button').click();
  await page.click('#confirm');
  await closed(page);
  ok(await until(10, async () => (await row(page, '#sessions', 'watcher').count()) === 0), 'another\'s session is ended');
  await row(page, '#tokens', 'looks').locator('button').click();
  await page.waitForSelector('dialog');
  ok((await page.textContent('dialog')).includes(scoped.split('.')[0]) && (await fetch(`${URL_}/v1/session`, { headers: { authorization: `Bearer ${scoped}` } })).status === 200, 'before a token is revoked the page says what that does');
  await axe(page, 'a token that is to be revoked');
  await page.click('#confirm');
  await closed(page);
  ok(await until(10, async () => (await row(page, '#tokens', 'looks').count()) === 0), 'a revoked token leaves the list of valid ones');
  equal((await fetch(`${URL_}/v1/session`, { headers: { authorization: `Bearer ${scoped}` } })).status, 401, 'and is over');
  await page.click('summary');
  ok((await page.textContent('#ended-tokens')).includes('revoked'), 'it is kept among those that have ended');
  await spoilt(page, '/tokens', /\/v1\/(tokens|sessions)$/, '#sessions tbody tr');
  return { watcher, operator };
}

async function webhooks(page) {
  const got = [];
  const server = createServer((q, a) => { got.push(q.url); a.writeHead(got.length === 1 ? 500 : 204).end(); });
  await new Promise((r) => { server.listen(Number(process.env.HOOKS), '127.0.0.1', r); });
  const url = `http://127.0.0.1:${process.env.HOOKS}/hook`;
  await page.goto(`${URL_}/webhooks`);
  await page.waitForSelector('#nothing');
  equal(await page.textContent('#nothing code'), 'drover webhook add oncall https://hooks.example.com/drover --on held,failed', 'without a webhook the page says how to make one');
  await axe(page, 'no webhook');
  await page.click('#new-webhook');
  await page.fill('[name=name]', 'on call');
  await page.fill('[name=url]', url);
  await page.uncheck('[value=done]');
  await axe(page, 'the form of a webhook');
  await shot(page, 'webhook-form', false);
  await page.click('#form-go');
  await page.waitForSelector('#form-done');
  ok(/^whsec_/.test(await page.textContent('dialog code')), 'its secret is shown once');
  await page.click('#form-done');
  await closed(page);
  await page.waitForSelector('#webhooks');
  await page.click('[data-test]');
  ok(await until(30, async () => /500/.test((await rows(page, '#deliveries'))[0]?.[4])), 'a test is sent, and the log says what the receiver answered', await page.textContent('main'));
  equal(new URL(page.url()).search, '?log=w-1', 'the log has an address');
  await page.click('[data-test]');
  ok(await until(30, async () => (await rows(page, '#deliveries')).some((r) => r[1] === 'delivered' && /^answered 204 after \d+ ms$/.test(r[4]))), 'until it is delivered', await page.textContent('main'));
  await page.click('[data-change]');
  await page.fill('[name=quiet]', '22:00-07:00');
  await page.uncheck('[value=lost]');
  await api('PATCH', '/webhooks/w-1', { name: 'on duty' }, 'application/json', { 'if-match': '*' });
  await page.click('#form-go');
  ok(await until(10, async () => (await page.textContent('dialog [role=alert]')).includes('changed since')), 'a change of what somebody else has changed meanwhile is refused');
  await page.click('dialog >> text=Back');
  await closed(page);
  await page.click('[data-change]');
  await page.fill('[name=quiet]', '22:00-07:00');
  await page.uncheck('[value=lost]');
  await submit(page);
  const { webhooks: [w] } = await get('/webhooks');
  equal([w.name, w.url, w.kinds, w.quiet], ['on duty', url, ['held', 'budget', 'failed', 'stuck'], '22:00-07:00'], 'read again it is changed, and only that');
  ok(await said(page, 'quiet 22:00-07:00 UTC'), 'the list shows it');
  await axe(page, 'webhooks and a log');
  await shot(page, 'webhooks');
  await spoilt(page, '/webhooks?log=w-1', /\/v1\/webhooks(\/w-1\/deliveries.*)?$/, '#deliveries tbody tr');
  await page.goto(`${URL_}/webhooks`);
  await page.click('#webhooks button.danger');
  await page.click('#confirm');
  await page.waitForSelector('#nothing');
  equal((await get('/webhooks')).webhooks, [], 'a webhook is removed');
  await page.click('#new-webhook');
  await page.fill('[name=name]', 'people');
  await page.fill('[name=url]', 'mailto:a@example.com,b@example.com');
  await page.click('#form-go');
  await page.waitForSelector('#form-done');
  equal(await page.textContent('dialog [role=status]'), 'Mail goes to a@example.com, b@example.com. Press Test to see whether it arrives.', 'of mail no secret is shown');
  await page.click('#form-done');
  await closed(page);
  await page.click('[data-test]');
  ok(await until(30, async () => (await rows(page, '#deliveries'))[0]?.[1] === 'failed'), 'the log says that its server is not there', await page.textContent('main'));
  await page.click('[data-change]');
  await page.selectOption('[name=format]', 'json');
  await page.uncheck('[value=lost]');
  await submit(page);
  equal((await get('/webhooks')).webhooks.map((h) => [h.format, h.url, h.kinds.length]), [['email', 'mailto:a@example.com,b@example.com', 5]], 'mail stays mail, whatever format is selected');
  await page.click('#webhooks button.danger');
  await page.click('#confirm');
  await page.waitForSelector('#nothing');
  server.close();
}

async function projects(page) {
  await page.goto(`${URL_}/projects`);
  await page.waitForSelector('#installation');
  await page.click('[data-project=default]');
  await page.fill('[name=budget]', '12.5');
  await page.fill('[name=parts]', '3');
  await axe(page, 'the limits of a project');
  await submit(page);
  ok(await until(10, async () => (await rows(page, '#projects'))[0][3].startsWith('12.50 USD')), 'an admin gives a project a budget', await page.textContent('main'));
  await page.click('#change-limits');
  await page.fill('[name=budget]', '900');
  await submit(page);
  const [project, limits] = [(await get('/projects')).projects[0], await get('/limits')];
  equal([project.parts, project.budget.limit_micro_usd, limits.budget.limit_micro_usd, limits.parts], [3, 12500000, 900000000, null], 'and the installation one');
  await axe(page, 'projects');
  await shot(page, 'projects');
  for (const [path, etag] of [['/projects/default', '*'], ['/limits', '*']]) await api('PATCH', path, { budget: null, ...(path === '/limits' ? {} : { parts: null }) }, 'application/json', { 'if-match': etag });
  await spoilt(page, '/projects', /\/v1\/projects$/, '#projects tbody tr');
}

async function audit(page, ops) {
  await page.click('.tabs >> text=Audit');
  await page.waitForSelector('#audit');
  const first = (await rows(page, '#audit'))[0];
  equal([first[1].startsWith('token file'), ...first.slice(2)], [true, 'limits.change', 'this installation', 'budget 900.00 USD → none'], 'the newest change has before and after', first);
  const changed = (await rows(page, '#audit')).filter((r) => r[2] === 'project.change');
  equal(changed.map((r) => r[4]), ['parts 3 → nonebudget 12.50 USD → none', 'parts none → 3budget none → 12.5 USD'], 'of each member', changed);
  await page.fill('[name=action]', 'token');
  await page.keyboard.press('Enter');
  ok(await until(10, async () => (await rows(page, '#audit')).every((r) => r[2].startsWith('token.'))), 'a filter shows some of them');
  await page.fill('[name=who]', ops);
  await page.keyboard.press('Enter');
  await page.waitForSelector('#nothing');
  equal(new URL(page.url()).search, `?who=${ops}&action=token`, 'filters are in the address');
  await page.goBack();
  await page.waitForSelector('#audit');
  await page.goto(`${URL_}/audit?action=x9`);
  ok(await until(10, async () => (await page.textContent('[role=alert]')).length > 5), 'what is no action is said');
  await page.addInitScript(() => { // pages of three, while the tab is told so
    const real = window.fetch;
    window.fetch = (url, init) => real(sessionStorage.few ? String(url).replace('page_size=50', 'page_size=3') : url, init);
  });
  await page.evaluate(() => sessionStorage.setItem('few', '1'));
  await page.goto(`${URL_}/audit`);
  await page.waitForSelector('#audit');
  const newest = (await rows(page, '#audit')).map((r) => r.slice(1));
  await page.click('#older');
  ok(await until(10, async () => { const r = (await rows(page, '#audit')).map((x) => x.slice(1)); return r.length === 3 && JSON.stringify(r) !== JSON.stringify(newest); }), 'older ones are a page away');
  ok(/page_token=/.test(page.url()) && await page.isEnabled('#newest'), 'which has an address, too', page.url());
  await page.click('#newest');
  ok(await until(10, async () => JSON.stringify((await rows(page, '#audit')).map((x) => x.slice(1))) === JSON.stringify(newest)), 'and back');
  await page.evaluate(() => sessionStorage.removeItem('few'));
  await page.goto(`${URL_}/audit`);
  await page.waitForSelector('#audit');
  await axe(page, 'the audit');
  await shot(page, 'audit');
  await spoilt(page, '/audit', '**/v1/audit?*', '#audit tbody tr');
}

// By keyboard alone: g and a letter, and the palette.
async function byKeys(page) {
  await page.click('a.brand');
  await page.waitForSelector('#new');
  for (const [letter, path] of [['k', '/tokens'], ['w', '/webhooks'], ['j', '/projects'], ['u', '/audit']]) {
    await page.keyboard.press('g');
    await page.keyboard.press(letter);
    ok(await until(10, async () => where(page) === path), `g ${letter} leads to ${path}`, page.url());
  }
  await page.keyboard.press('Control+k');
  await page.fill('#palette-text', 'webhooks page');
  await page.keyboard.press('Enter');
  ok(await until(10, async () => where(page) === '/webhooks'), 'and the palette, too', page.url());
}

// What somebody of another role sees: buttons that are disabled and say why.
async function asRole(browser, token, role, see) {
  const c = await browser.context();
  const page = await c.newPage();
  await logIn(page, token);
  equal((await page.textContent('#who')).split(' ').at(-1), role, `${role}: the header says so`);
  await see(page);
  await c.close();
}
const disabled = (page, css) => page.$$eval(css, (l) => l.map((b) => [b.disabled, b.title, document.getElementById(b.getAttribute('aria-describedby') || '')?.textContent.length > 20]));
const NEEDS = { operator: 'This takes an operator; you are a viewer.', admin: 'This takes an admin; you are ' };

async function looksOn(page) {
  equal(await disabled(page, '#new'), [[true, NEEDS.operator, true]], 'viewer: New campaign is disabled and says why');
  const { campaigns } = await get('/campaigns');
  const open = campaigns.find((c) => c.state === 'running' && c.wanted === 'run');
  if (open) {
    await page.goto(`${URL_}/c/${open.id.slice(2)}`);
    await page.waitForSelector('#limits');
    const seen = await disabled(page, '.head .row button');
    ok(seen.length >= 4 && seen.every((x) => JSON.stringify(x) === JSON.stringify([true, NEEDS.operator, true])), 'viewer: so is each action of a campaign', seen);
    await axe(page, 'a campaign as a viewer sees it');
    await shot(page, 'viewer');
  }
  await page.goto(`${URL_}/tokens`);
  await page.waitForSelector('#sessions');
  equal([(await disabled(page, '#new-token'))[0], (await rows(page, '#sessions')).length, await page.locator('#tokens').count()], [[true, `${NEEDS.admin}a viewer.`, true], 1, 0], 'viewer: no token is seen, the own session is');
  await axe(page, 'tokens as a viewer sees them');
  for (const path of ['/webhooks', '/audit', '/projects']) {
    await page.goto(`${URL_}${path}`);
    await page.waitForSelector(path === '/projects' ? '#projects' : 'main .card p');
    equal([await page.locator('main [role=alert]').count(), await page.locator('main button:enabled:not(.link, [data-csv], .command button)').count()], [0, 0], `viewer: ${path} says what it may not show, and changes nothing`);
  }
}

async function operates(page) {
  ok(await page.isEnabled('#new'), 'operator: New campaign is enabled');
  await page.goto(`${URL_}/projects`);
  await page.waitForSelector('#installation');
  equal(await disabled(page, '#change-limits'), [[true, `${NEEDS.admin}an operator.`, true]], 'operator: limits are an admin\'s');
  await page.goto(`${URL_}/audit`);
  await page.waitForSelector('#audit');
  ok(!(await rows(page, '#audit')).some((r) => r[2].startsWith('token.')), 'operator: the audit is shown without tokens');
}

async function ofProject(page) {
  await page.goto(`${URL_}/projects`);
  await page.waitForSelector('#projects');
  equal([(await rows(page, '#projects')).map((r) => r[0]), await page.locator('#installation').count(), await page.isEnabled('[data-project=default]')], [['default'], 0, true], 'an admin of a project sees and changes that alone');
  await page.goto(`${URL_}/tokens`);
  await page.waitForSelector('#sessions');
  ok(await said(page, 'shown to admins of every project only') && await page.isDisabled('#new-token'), 'and no tokens');
  await page.goto(`${URL_}/bill`);
  const whole = () => document.querySelector('#total') && !document.querySelector('main [role=alert], #now');
  ok(await until(10, () => page.evaluate(whole)), 'the bill of its project it sees, and not what all cost at this moment', await page.textContent('main'));
  const id = (await get('/campaigns')).campaigns[0]?.id;
  for (const [what, path] of !id ? [] : [['its campaign', `/c/${id.slice(2)}`], ['the parts', `/c/${id.slice(2)}/parts`], ['and the warm pools of that', `/pools?campaign=${id}`]]) {
    await page.goto(URL_ + path);
    ok(await until(10, () => page.evaluate(() => document.querySelector('#progress, #idle-cost, main table') && !document.querySelector('main [role=alert]'))), `${what} it sees whole`, await page.textContent('main'));
  }
}

export async function people(page, notes, browser) {
  await page.goto(URL_);
  await page.waitForSelector('#new');
  const made = await tokens(page);
  await webhooks(page);
  await projects(page);
  await audit(page, 'ops');
  await byKeys(page);
  await asRole(browser, made.watcher, 'viewer', looksOn);
  await asRole(browser, made.operator, 'operator', operates);
  await asRole(browser, (await api('POST', '/tokens', { name: 'owner', role: 'admin', projects: ['default'] })).json.token, 'admin', ofProject);
}
