// The dashboard by keyboard alone: pages, rows, a retry, the palette.
import { axe, equal, get, ok, shot, until } from './kit.mjs';

const where = (page) => new URL(page.url()).pathname;
const focused = (page) => page.evaluate(() => document.activeElement?.textContent?.trim());
const options = (page) => page.$$eval('#palette [role=option]', (l) => l.map((x) => x.textContent.replace(/\s+/g, ' ').trim()));
const lit = (page) => page.evaluate(() => {
  const id = document.querySelector('#palette-text').getAttribute('aria-activedescendant');
  return [...document.querySelectorAll('#palette [aria-selected=true]')].map((x) => [x.id === id, x.textContent.replace(/\s+/g, ' ').trim()]);
});

async function pages(page, id) {
  await page.click('a.brand');
  await page.waitForSelector('#new');
  for (const [letter, path] of [['e', '/endpoints'], ['f', '/filesystems'], ['p', '/pools'], ['q', '/quotas'], ['b', '/bill'], ['c', '/']]) {
    await page.keyboard.press('g');
    await page.keyboard.press(letter);
    ok(await until(10, async () => where(page) === path), `g ${letter} leads to ${path}`, page.url());
  }
  await page.waitForSelector('main tbody tr a');
  await page.keyboard.press('j');
  const first = await focused(page);
  await page.keyboard.press('j');
  const second = await focused(page);
  await page.keyboard.press('k');
  ok(first && second && first !== second && (await focused(page)) === first, 'j and k move from row to row', { first, second });
  for (let i = 0; i < 9 && (await focused(page)) !== 'laion-sample'; i++) await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  ok(await until(10, async () => where(page) === `/c/${id.slice(2)}`), 'Enter opens the row', page.url());
  await page.waitForSelector('#tiles');
  for (const [letter, rest] of [['a', '/parts'], ['t', '/timeline'], ['m', '/cost'], ['o', '']]) {
    await page.keyboard.press('g');
    await page.keyboard.press(letter);
    ok(await until(10, async () => where(page) === `/c/${id.slice(2)}${rest}`), `g ${letter} leads to ${rest || 'the campaign'}`, page.url());
  }
}

async function help(page) {
  await page.keyboard.press('?');
  await page.waitForSelector('#keys[open]');
  const shown = await page.$$eval('#keys kbd', (l) => l.map((x) => x.textContent));
  ok(['?', '/', 'Ctrl K', 'r', 'g c', 'g a'].every((k) => shown.includes(k)), '? shows the keys', shown);
  await axe(page, 'the keys');
  await shot(page, 'keys', false);
  await page.keyboard.press('g');
  await page.keyboard.press('c');
  ok(where(page) !== '/', 'in a dialog no key leads away');
  await page.click('#keys-off');
  await escape(page, '#keys');
  await page.keyboard.press('?');
  equal(await page.locator('#keys[open]').count(), 0, 'turned off, single keys do nothing');
  await page.click('#keys-open');
  await page.click('#keys-off');
  await escape(page, '#keys');
}

// A dialog takes the next key until it is gone.
async function escape(page, what) {
  await page.keyboard.press('Escape');
  await page.waitForSelector(what, { state: 'detached' });
}

async function retry(page, id) {
  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await page.waitForSelector('#parts-table');
  await page.selectOption('[name=state]', 'failed');
  await until(10, async () => (await page.locator('#parts-table tbody tr').count()) === 1);
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('/');
  equal(await page.evaluate(() => document.activeElement.name), 'state', '/ goes to the filter');
  await page.keyboard.press('j');
  equal(await page.evaluate(() => document.activeElement.name), 'state', 'where letters are the field\'s own');
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('j');
  await page.keyboard.press('r');
  await page.waitForSelector('#preview-parts');
  equal(await page.textContent('#preview-parts'), '1', 'r asks to retry the part of the row');
  await escape(page, '#preview-parts');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#retry-part');
  await page.keyboard.press('r');
  await page.waitForSelector('#preview-parts');
  ok(true, 'and of an open part');
  await escape(page, '#preview-parts');
  equal((await get(`/operations?campaign=${id}`)).operations, [], 'nothing was done without a yes');
}

async function palette(page, id) {
  await page.keyboard.press('Control+k');
  await page.waitForSelector('#palette[open]');
  const first = await options(page);
  const found = () => until(10, async () => (await page.fill('#palette-text', 'page'), (await options(page)).length >= 10));
  ok(first.some((x) => x === 'Retry… Part download/3 action') && (await found()), 'Ctrl K opens the palette: actions of this page, and pages', first);
  await page.fill('#palette-text', '');
  await axe(page, 'the palette');
  await shot(page, 'palette', false);
  equal(await lit(page), [[true, first[0]]], 'the first is selected, as it is told to a screen reader');
  await page.keyboard.press('ArrowDown');
  equal((await lit(page)).map((x) => x[1]), [(await options(page))[1]], 'arrow down selects the next');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  equal((await lit(page)).map((x) => x[1]), [(await options(page)).at(-1)], 'arrow up goes around');
  await page.fill('#palette-text', 'laion-open');
  ok(await until(10, async () => (await options(page)).length === 1), 'campaigns are found by name', await options(page));
  await page.keyboard.press('Enter');
  const other = (await get('/campaigns')).campaigns.find((c) => c.name === 'laion-open').id;
  ok(await until(10, async () => where(page) === `/c/${other.slice(2)}`), 'Enter opens the campaign', page.url());
  await page.keyboard.press('Control+k');
  await page.fill('#palette-text', 'no such thing');
  equal(await page.textContent('#palette [role=status]'), 'nothing matches', 'what is not there is said');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#palette', { state: 'detached' });
  await page.goBack();
  await page.waitForSelector('#retry-part');
  await page.keyboard.press('Control+k');
  await page.fill('#palette-text', 'retry action');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#preview-parts');
  ok(true, 'an action of the page is carried out as by its button');
  await escape(page, '#preview-parts');
  await page.keyboard.press('Control+k');
  await page.waitForSelector('#palette[open]');
  await escape(page, '#palette');
  equal((await get(`/operations?campaign=${id}`)).operations, [], 'Escape closes it, and nothing was done');
}

// Campaigns that do not fit are counted, not cut silently.
async function many(page) {
  await page.route('**/v1/campaigns?page_size=200', (route) => route.fulfill({ json: { next_page_token: null,
    campaigns: Array.from({ length: 200 }, (_, i) => ({ id: `c-${i + 1000}`, name: `night-${i}<img src=x>` })) } }));
  await page.keyboard.press('Control+k');
  await page.fill('#palette-text', 'night');
  ok(await until(10, async () => (await page.textContent('#palette [role=status]')) === '188 more: type on'), 'what does not fit is counted', await page.textContent('#palette'));
  equal(await page.locator('#palette img').count(), 0, 'a name is text');
  await escape(page, '#palette');
  await page.unrouteAll({ behavior: 'wait' });
}

export async function keys(page, id) {
  await pages(page, id);
  await help(page);
  await retry(page, id);
  await palette(page, id);
  await many(page);
}
