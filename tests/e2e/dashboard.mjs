// The browser's half of the dashboard test: a person's way through a campaign that has a broken part, in Chromium.
// Each check file drives its own pages; this one orders them and holds the rules that stand for all: one document per page,
// no script error, nothing refused by the policy, nobody else asked.
import { axe, equal, done, hangUp, logIn, ok, openBrowser, timed } from './kit.mjs';
import { journey } from './journey.mjs';
import { guide } from './guide.mjs';
import { large } from './large.mjs';
import { hostile } from './hostile.mjs';
import { clicks } from './clicks.mjs';
import { craft } from './craft.mjs';
import { eight } from './eight.mjs';
import { frozen } from './frozen.mjs';
import { endpoints } from './endpoints.mjs';
import { filesystems } from './filesystems.mjs';
import { money } from './money.mjs';
import { parked } from './parked.mjs';
import { people } from './people.mjs';
import { runs } from './runs.mjs';

process.on('unhandledRejection', (e) => ok(false, 'nothing the browser was given failed unseen', e?.stack));
const b = await openBrowser();
try {
  const c = await b.context();
  const page = await c.newPage();
  const only = process.env.ONLY?.split(',');
  if (only && !only.includes('journey')) await logIn(page);
  for (const part of [journey, runs, large, guide, craft, clicks, eight, frozen, endpoints, filesystems, money, people, parked, hostile]) if (!only || only.includes(part.name)) await timed(part, page, b.notes, b);
  await page.context().clearCookies();
  await page.evaluate(() => document.querySelector('a.brand')?.click()); // none: the page has found out by itself
  await page.waitForSelector('input[name=token]');
  ok(true, 'a session that has ended leads to the login');
  await logIn(page);
  await page.click('text=log out');
  await page.waitForSelector('input[name=token]');
  const after = await page.evaluate(async () => (await fetch('/v1/session')).status);
  equal(after, 401, 'who logs out is out');
  equal(await page.evaluate(() => window.__csp), [], 'the policy refused nothing');
  equal(b.notes.errors, [], 'no script error');
  equal(b.notes.console, [], 'no console error or warning');
  equal([...b.notes.hosts], [new URL(process.env.DROVER_URL).host], 'nobody but droverd was asked');
  equal(b.notes.statuses.filter((s) => /^5/.test(s)), [], 'no answer was a 5xx');
  await page.goto(`${process.env.DROVER_URL}/pools`);
  await page.waitForSelector('text=Sign in with Example');
  await axe(page, 'the login with a provider');
  await page.click('text=Sign in with Example');
  await page.waitForSelector('#who');
  equal([await page.textContent('#who'), new URL(page.url()).pathname], ['ada operator', '/pools'], 'the button of the provider leads to a session, and back to the page');
} catch (e) {
  ok(false, 'the way through the dashboard was gone to its end', e.stack);
} finally {
  await b.browser.close();
  hangUp();
}
done();
