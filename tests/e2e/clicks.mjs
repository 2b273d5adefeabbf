// A person without a mouse. Each journey - submit, see why parts failed, retry them, end a warm pool, look at the cost, change how many run at once,
// pause - is gone by Tab, Enter and typing alone, and takes at most two presses of a button or link from the page of the campaign (submit: from the list).
import { URL_, api, equal, get, ok, please, until } from './kit.mjs';

const SPEC = process.env.SPEC;
const SOURCE = /from: "([^"]+)"/.exec(SPEC)[1];
const NAME = 'laion-keyboard';
const TABS = 150;
let presses = 0;

// Tab until the element that `wanted` names (a selector, or what its text begins with) has the focus.
async function reach(page, wanted) {
  for (let i = 0; i < TABS; i++) {
    const there = await page.evaluate((w) => {
      const at = document.activeElement;
      return w.startsWith('=') ? at.textContent.trim().startsWith(w.slice(1)) && at.matches('a, button') : at.matches(w);
    }, wanted);
    if (there) return true;
    await page.keyboard.press('Tab');
  }
  return ok(false, `Tab reaches ${wanted}`);
}

async function press(page, wanted) {
  await page.waitForFunction((w) => (w.startsWith('=') ? [...document.querySelectorAll('a, button')].some((x) => x.textContent.trim().startsWith(w.slice(1)) && !x.disabled)
    : document.querySelector(w) && !document.querySelector(w).disabled), wanted);
  await reach(page, wanted);
  await page.keyboard.press('Enter');
  presses++;
}

async function journey(what, steps) {
  presses = 0;
  const good = await steps();
  ok(good && presses <= 2, `${what}: by keyboard alone, ${presses} ${presses === 1 ? 'press' : 'presses'}`, [good, presses]);
}

export async function clicks(page) {
  const faults = ['-0-', '-1-'].map((part) => ({ kind: 'job_failure', operation: 'CreateTrainingJob', name_contains: part, times: 1, reason: 'AlgorithmError: ValueError: no such column, exit code: 1' }));
  await please('faults', JSON.stringify(faults));
  await page.goto(URL_);
  await page.waitForSelector('#new');
  await journey('submit', async () => {
    await press(page, '#new');
    await page.waitForSelector('#spec');
    await reach(page, '#spec');
    await page.keyboard.insertText(SPEC.replace(/^name: .*$/m, `name: ${NAME}\nwarm_pool: {keep_alive: 10m, kill_when_queue_empty: no}`).replace('ml.c5.xlarge', 'ml.m5.xlarge').replace(/fan_out: .*/, 'fan_out: {from: api}'));
    await page.waitForSelector('#plan-parts');
    await press(page, '#submit');
    return until(15, async () => /^\/c\/\d+$/.test(new URL(page.url()).pathname));
  });
  const id = `c-${page.url().split('/').pop()}`;
  const home = page.url();
  const lines = [0, 1].map((i) => `{"uri":"${SOURCE.replace('*', `part-0000${i}.snappy`)}","size":1000}`).join('\n');
  await api('POST', `/campaigns/${id}/parts?stage=download`, lines, 'application/x-ndjson'); // open: it goes on
  await journey('watch', async () => until(60, async () => /failed 2/.test((await page.textContent('main')).replace(/\s+/g, ' '))));
  await journey('why did some fail', async () => {
    await press(page, '#failures tbody button.link');
    await page.waitForSelector('#part .tries');
    return /ValueError: no such column/.test(await page.textContent('#part'));
  });
  await page.goto(home);
  await journey('retry them', async () => {
    await press(page, '[data-retry]');
    await page.waitForSelector('#preview-parts');
    await press(page, '#confirm');
    return until(20, async () => (await get(`/operations?campaign=${id}`)).operations[0]?.parts === 2);
  });
  await journey('end a warm pool', async () => {
    // Both are through: a part that still waited would take the first one's pool, between the question and its answer.
    await until(60, async () => (await get(`/campaigns/${id}`)).parts.done === 2);
    const pool = await until(60, async () => (await get(`/pools?campaign=${id}`)).pools.find((p) => p.state === 'available' && !p.reused_by));
    await press(page, '.idle-pool button');
    await page.waitForSelector('dialog');
    await press(page, '#confirm');
    const ended = async () => (await get(`/pools?campaign=${id}`)).pools.find((p) => p.id === pool.id).state === 'terminated';
    return (await until(60, ended)) || console.log(`# ${JSON.stringify([pool, await get(`/pools?campaign=${id}`), await page.textContent('body')])}`);
  });
  await journey('what does it cost', async () => {
    await press(page, '=Cost');
    return until(10, async () => new URL(page.url()).pathname.endsWith('/cost') && (await page.locator('main h1').count()) > 0);
  });
  await page.goto(home);
  await journey('more at once', async () => {
    await press(page, '#limits');
    await page.waitForSelector('[name=parts]');
    await reach(page, '[name=parts]');
    await page.keyboard.type('7');
    await press(page, '#limits-go');
    return until(10, async () => (await get(`/campaigns/${id}`)).limits.parts === 7);
  });
  await journey('pause', async () => {
    await press(page, '=Pause');
    await page.waitForSelector('dialog');
    await press(page, '#confirm');
    return until(20, async () => (await get(`/campaigns/${id}`)).wanted === 'pause');
  });
  equal((await api('POST', `/campaigns/${id}:cancel`, {})).status, 202, 'it is cancelled');
  await page.goto(URL_);
}
