// What the dashboard's checks share: TAP, waiting, the browser and its watchers, droverd's API, and the half that owns the processes.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, loadavg } from 'node:os';
import { createInterface } from 'node:readline';

const require = createRequire(process.env.PACKAGES);
const { chromium } = require('playwright-core');
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
// Debian has the same Chromium twice. The one without the parts that draw a browser's window takes a third less CPU time.
const SHELL = '/usr/bin/chromium-headless-shell';
const CHROMIUM = existsSync(SHELL) ? SHELL : '/usr/bin/chromium';
const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--disable-quic', '--in-process-gpu', '--num-raster-threads=1'];

export const URL_ = process.env.DROVER_URL;
export const TOKEN = process.env.DROVER_TOKEN;
const SHOTS = process.env.SHOTS_DIR;

let n = 0;
let bad = 0;
export function ok(good, what, detail) {
  n++;
  if (!good) bad++;
  const why = good || detail === undefined ? '' : `: ${(typeof detail === 'string' ? detail : JSON.stringify(detail)).slice(0, 1500).replace(/\n/g, ' | ')}`;
  console.log(`${good ? 'ok' : 'not ok'} ${n} - ${what}${why}`);
  return good;
}
export const equal = (got, want, what) => ok(JSON.stringify(got) === JSON.stringify(want), what, { got, want });
export function done() {
  console.log(`1..${n}`);
  process.exitCode = bad ? 1 : 0;
}

// `seconds` on a quiet machine, up to ten times as long on one whose cores are shared: for limits of waits (tests/kit: the same rule).
export const patience = (seconds) => seconds * Math.min(10, Math.max(1, loadavg()[0] / availableParallelism()));

// Until f() gives something true; its value, or null when the time is over. The longer it waits the less often it looks.
export async function until(seconds, f) {
  const began = Date.now();
  const end = began + patience(seconds) * 1000;
  for (;;) {
    const value = await f().catch(() => null);
    if (value) return value;
    if (Date.now() > end) return null;
    await new Promise((r) => setTimeout(r, Math.min(150, Math.max(40, (Date.now() - began) / 20))));
  }
}

// Lets a request that a check looked at go on. One that cannot, since its page went meanwhile, is given up: the page that is there asks again.
export const goOn = (route) => route.continue().catch(() => route.abort().catch(() => {}));

// Asks dashboard.py for something outside the browser.
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
export async function please(verb, arg = '') {
  console.log(`@${verb} ${arg}`);
  return JSON.parse((await answers.next()).value);
}
export const hangUp = () => process.stdin.destroy();

// Says how long a step took: the suite has 90 s.
export async function timed(step, ...args) {
  const began = Date.now();
  const value = await step(...args);
  console.log(`# ${step.name}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
  return value;
}

let keys = 0;
export async function api(method, path, body, type = 'application/json', more = {}) {
  const headers = { authorization: `Bearer ${TOKEN}`, ...more };
  if (method !== 'GET') {
    headers['content-type'] = type;
    headers['idempotency-key'] = `e2e-${process.pid}-${keys++}`;
  }
  const r = await fetch(`${URL_}/v1${path}`, { method, headers, body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body) });
  const text = await r.text();
  return { status: r.status, text, json: text ? JSON.parse(text) : null };
}
export const get = async (path) => (await api('GET', path)).json;

// A browser that notes whatever a page must not do: script errors, refused content, requests to others, reloads.
export async function openBrowser() {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGS });
  const notes = { console: [], errors: [], csp: [], hosts: new Set(), documents: 0, sizes: {}, statuses: [] };
  async function context(options = {}) {
    const c = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', ...options });
    await c.addInitScript(() => {
      window.__csp = [];
      document.addEventListener('securitypolicyviolation', (e) => window.__csp.push(`${e.violatedDirective} ${e.blockedURI}`));
    });
    c.setDefaultTimeout(90000); // the suite's own limit ends what hangs
    c.on('page', (page) => {
      page.on('console', (m) => { if (['error', 'warning'].includes(m.type()) && !m.text().startsWith('Failed to load resource')) notes.console.push(m.text()); });
      page.on('pageerror', (e) => notes.errors.push(String(e)));
      page.on('request', (r) => {
        notes.hosts.add(new URL(r.url()).host);
        if (r.resourceType() === 'document') notes.documents++;
      });
      page.on('response', (r) => notes.statuses.push(`${r.status()} ${r.request().method()} ${new URL(r.url()).pathname}`));
    });
    return c;
  }
  return { browser, notes, context };
}

export async function logIn(page, token = TOKEN) {
  await page.goto(URL_);
  await page.fill('input[name=token]', token);
  await page.click('button.primary');
  await page.waitForSelector('#new');
}

// A picture as people see it: a desk in both themes and a telephone.
export async function shot(page, name, whole = true) {
  if (!SHOTS) return;
  for (const [kind, width, height, colorScheme] of [['light', 1440, 900, 'light'], ['dark', 1440, 900, 'dark'], ['narrow', 390, 844, 'light']]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    await settled(page);
    await page.screenshot({ path: `${SHOTS}/${name}-${kind}.png`, fullPage: whole });
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1440, height: 900 });
  await settled(page);
}
const settled = (page) => page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));

const CELLS = [['light', 1440], ['dark', 320], ['light', 768], ['dark', 1440], ['light', 320], ['dark', 768]];
const EVERY_CELL = Boolean(process.env.EVERY_CELL);
let pages = 0;

// axe over what is shown now: in one of two themes and three widths, the next one with each page, or with EVERY_CELL in all six;
// none of the six may be wider than the window. The policy forbids inline script: axe comes by the debugger.
export async function axe(page, name) {
  const found = [];
  const turn = CELLS[pages++ % CELLS.length];
  if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(AXE);
  for (const cell of CELLS) {
    const [colorScheme, width] = cell;
    const say = (fault) => found.push(`${colorScheme} ${width}: ${fault}`);
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    await settled(page);
    const wide = () => page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
    for (let i = 0; i < 200 && await wide(); i++) await page.waitForTimeout(20); // a canvas is drawn anew after the window has changed
    if (await wide()) say('the page is wider than the window');
    if (!EVERY_CELL && cell !== turn) continue;
    const r = await page.evaluate(async () => {
      const out = await window.axe.run();
      return { rules: out.passes.length, faults: out.violations.map((v) => `${v.id}: ${v.nodes.map((x) => x.html.slice(0, 80)).slice(0, 3).join(' ')}`) };
    });
    if (r.rules < 10) say(`axe looked at ${r.rules} rules only`);
    r.faults.forEach(say);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1440, height: 900 });
  equal(found, [], `axe has nothing to say about ${name}, ${EVERY_CELL ? 'light and dark, 1440, 768 and 320' : turn.join(', ')} px wide`);
}
