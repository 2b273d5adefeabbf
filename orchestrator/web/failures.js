// Failures by cause with sample lines and remedies, and a retry of exactly the parts named.
// VOLUME_GB_MAX comes from core/model.h, by build.sh.
import { html } from './html.js';
import { post } from './api.js';
import { Act } from './role.js';
import { Ago } from './show.js';
import { count, durationOrNever, parts, usd, word } from './format.js';

// Groups are by cause and signature. A retry selects by cause, so all groups of a cause share one
// button.
function byCause(groups) {
  const causes = new Map();
  for (const g of groups) {
    const c = causes.get(g.cause) || { cause: g.cause, remedy: g.remedy, parts: 0, final: 0, retrying: 0, lost: 0, groups: [] };
    c.parts += g.parts;
    c.final += g.final;
    c.retrying += g.retrying;
    c.lost += g.lost_micro_usd;
    c.groups.push(g);
    causes.set(g.cause, c);
  }
  return [...causes.values()];
}

// Its button, what the parts will do, and what is said of them afterwards.
export const VERBS = { retry: ['Retry', 'will be tried again', 'tried again'], skip: ['Skip', 'will be given up for good', 'given up'],
  hold: ['Hold', 'will not start until they are released', 'held'], release: ['Release', 'will wait for their turn again', 'released'] };
export const MOVES = { failed: ['retry', 'skip'], waiting: ['hold'], held: ['release'] }; // what a person may do to a part, by its state

// What the new tries may have otherwise: a field a change, written into `to` as it is typed.
function Changes({ to, open }) {
  const field = (key, read) => (e) => { const v = e.target.value.trim(); if (v) to[key] = read(v); else delete to[key]; };
  return html`<details class="changes" open=${open}><summary>Change the new tries (empty: as before)</summary>
    <label class="volume">Volume, GB <input name="volume_gb" type="number" min="1" max=${VOLUME_GB_MAX} step="1" onInput=${field('volume_gb', Number)}/></label>
    <label class="volume">Instance type, one of the stage's list <input name="instance_type" autocomplete="off" spellcheck="false" onInput=${field('instance_type', String)}/></label>
    <label class="volume">Longest run time, such as 90m or 4h <input name="max_runtime" autocomplete="off" onInput=${field('max_runtime', String)}/></label>
    <p class="muted">Warm pools of another volume or type are not used: such parts start cold.</p>
  </details>`;
}

// The dialog for a retry, skip, hold or release of the parts of a selector; the same selector is previewed and carried out.
// after(key): what follows it, a resume. onDone(op, text): the operation, and what it does in words.
export function changeQuestion({ campaign, verb, selector, title, remedy, onDone, after }) {
  const [action, what, done] = VERBS[verb];
  const from = Object.keys(MOVES).find((state) => MOVES[state].includes(verb));
  const body = from === 'failed' ? { selector, changes: {} } : { selector };
  const helps = !!selector.cause?.some((c) => ['disk_full', 'oom', 'timeout'].includes(c));
  return {
    title: title || `${action} ${from} parts`,
    action,
    danger: verb === 'skip',
    preview: async () => {
      const p = await post(`/campaigns/${campaign}:${verb}?dry_run=true`, body);
      const more = p.parts > p.sample.length ? ' …' : '';
      return { empty: p.parts === 0, show: html`<p><b class="big" id="preview-parts">${count(p.parts)}</b> ${p.parts === 1 ? 'part' : 'parts'} ${what}.</p>
        ${p.sample.length > 0 && html`<p class="muted">${p.parts === 1 ? 'Part' : 'Parts'} ${p.sample.join(', ')}${more}. ${from === 'failed' && `Finished parts are not touched. Their failed tries cost ${usd(p.lost_micro_usd)}.`}</p>`}
        ${p.forecast && html`<p id="preview-forecast">${!p.forecast.known ? `New end: ${p.forecast.reason}.`
          : `The campaign ends in ${durationOrNever(p.forecast.end.p50_seconds)}${p.forecast.now ? ` instead of ${durationOrNever(p.forecast.now.p50_seconds)}` : ''}${
            p.forecast.added_micro_usd == null ? '' : `; ${usd(p.forecast.added_micro_usd)} more`}.`}</p>`}
        ${remedy && html`<p class="muted">What helps: ${remedy}.</p>`}
        ${verb === 'retry' && p.parts > 0 && html`<${Changes} to=${body.changes} open=${helps}/>`}` };
    },
    confirm: async (key) => {
      const op = await post(`/campaigns/${campaign}:${verb}`, body, key);
      if (after) await after(`${key}r`);
      onDone(op, `Operation ${op.id}: ${parts(op.parts)} ${op.parts === 1 ? 'is' : 'are'} ${done}.`);
    },
  };
}

export function retryQuestion(campaign, stage, causes, remedy, onDone, after) {
  return changeQuestion({ campaign, verb: 'retry', selector: stage || causes ? { stage, ...(causes ? { cause: causes } : {}) } : { state: 'failed' },
    title: causes ? `Retry failed parts: ${causes.map(word).join(', ')}` : 'Retry all failed parts', remedy, onDone, after });
}

function Evidence({ g, onPart }) {
  return html`<div class="evidence"><code>${g.message}</code>
    <p class="muted">${g.parts === 1 ? 'part' : 'parts'} ${g.sample.map((n, i) =>
      html`${i ? ', ' : ''}<button class="link" key=${n} aria-label=${`part ${n}`} onClick=${() => onPart(n)}>${n}</button>`)}${g.parts > g.sample.length ? ' …' : ''}</p></div>`;
}

// closed: a cancelled campaign cannot be retried.
export function Failures({ campaign, stage, failures, closed, ask, onPart, onDone }) {
  if (!failures || failures.groups.length === 0) return null;
  const causes = byCause(failures.groups);
  const first = failures.groups.reduce((a, b) => (a.first_at < b.first_at ? a : b));
  return html`<section class="card wide" id="failures">
    <h2>Failures <b>${count(failures.parts)}</b>
      ${causes.length > 1 && failures.final > 0 && !closed && html`<${Act} class="right" id="retry-all" onClick=${() => ask(retryQuestion(campaign, stage, null, null, onDone))}>Retry all ${count(failures.final)}…<//>`}</h2>
    <table class="stack"><thead><tr><th>Cause</th><th class="num">Parts</th><th>First</th><th class="num">Lost</th><th>Evidence and what helps</th><td></td></tr></thead>
    <tbody>${causes.map((c) => html`<tr key=${c.cause} data-cause=${c.cause}>
      <td class="name"><span class="tag s-failed">${word(c.cause)}</span>${c.groups.includes(first) && causes.length > 1 ? html`<br/><span class="muted">⚑ came first</span>` : ''}</td>
      <td data-label="Parts" class="num">${count(c.parts)}${c.retrying > 0 ? html`<br/><span class="muted">${count(c.retrying)} trying again</span>` : ''}</td>
      <td data-label="First"><${Ago} at=${c.groups.reduce((a, g) => (a < g.first_at ? a : g.first_at), '~')}/></td>
      <td data-label="Lost" class="num">${usd(c.lost)}</td>
      <td class="why">${c.groups.map((g) => html`<${Evidence} key=${g.signature} g=${g} onPart=${onPart}/>`)}<p class="muted">→ ${c.remedy}</p></td>
      <td class="act">${c.final > 0 && !closed && html`<${Act} class="primary" data-retry=${c.cause} onClick=${() => ask(retryQuestion(campaign, stage, [c.cause], c.remedy, onDone))}>Retry ${count(c.final)}…<//>`}</td>
    </tr>`)}</tbody></table>
  </section>`;
}
