// The parts of a stage as a table: filters in the address, pages as they are asked for, and a retry, skip, hold or release of
// exactly what is selected or of all that match.
import { useState } from 'preact/hooks';
import { html } from './html.js';
import { useQuery } from './address.js';
import { get } from './api.js';
import { useConfirm } from './dialog.js';
import { changeQuestion, MOVES, VERBS } from './failures.js';
import { useLive } from './live.js';
import { Told, readOperations } from './operations.js';
import { Act } from './role.js';
import { CampaignHead, Trouble } from './show.js';
import { bytes, count, glyph, usd, word } from './format.js';

const PAGE = 100;
const STATES = ['waiting', 'active', 'held', 'done', 'failed', 'skipped', 'cancelled'];
const FIELDS = ['stage', 'state', 'cause', 'attempts', 'text', 'cost', 'since'];
const EACH = ['attempts', 'text', 'cost', 'since']; // the server looks at parts one by one for these, a thousand a request
const NONE = Object.fromEntries(EACH.map((f) => [f, '']));
const LOOKS = 40; // such requests for one page, at most
const EACH_MS = 5000; // between two reads of such a list

// The query of the API for what the address asks for.
function query(at, token) {
  const q = new URLSearchParams({ page_size: PAGE, stage: at.stage });
  if (at.state) q.set('state', at.state);
  if (at.cause) q.set('cause', at.cause);
  const terms = [at.attempts && `attempts>=${at.attempts}`, at.text && `text="${at.text.replaceAll('"', '')}"`, at.cost && `cost>=${at.cost}`, at.since && `updated>=${at.since}:00Z`];
  if (terms.some(Boolean)) q.set('filter', terms.filter(Boolean).join(' AND '));
  if (token) q.set('page_token', token);
  return q;
}

function Filters({ at, stages, causes, move }) {
  const pick = (name, label, values) => html`<label>${label} <select name=${name} value=${at[name]} onChange=${(e) => move({ [name]: e.target.value })}>
    ${name !== 'stage' && html`<option value="" selected=${!at[name]}>any</option>`}
    ${values.map((v) => html`<option key=${v} value=${v} selected=${v === at[name]}>${word(v)}</option>`)}</select></label>`;
  const each = (name, label, type) => html`<label>${label} <input name=${name} ...${type} value=${at[name]} disabled=${!!at.cause} onChange=${(e) => move({ [name]: e.target.value })}/></label>`;
  return html`<div class="fields">
    ${stages.length > 1 && pick('stage', 'Stage', stages)}
    ${pick('state', 'State', STATES)}
    ${pick('cause', 'Cause', at.cause && !causes.includes(at.cause) ? [at.cause, ...causes] : causes)}
    ${each('attempts', 'Tries, at least', { type: 'number', min: 0, step: 1 })}
    ${each('text', 'Reason or input has', { maxlength: 100 })}
    ${each('cost', 'USD, at least', { type: 'number', min: 0, step: 'any' })}
    ${each('since', 'Changed since, UTC', { type: 'datetime-local' })}
  </div>`;
}

function Row({ p, id, can, picked, onPick }) {
  return html`<tr>
    <td class="pick">${can && html`<input type="checkbox" aria-label=${`part ${p.seq}`} checked=${picked} onChange=${onPick}/>`}</td>
    <td class="name"><a href=${`/c/${id.slice(2)}?stage=${encodeURIComponent(p.stage)}&part=${p.seq}`}>Part ${p.seq}</a></td>
    <td data-label="State"><span class=${`tag s-${p.state}`}>${glyph[p.phase] || glyph[p.state]} ${word(p.phase || p.state)}</span></td>
    <td data-label="Cause">${word(p.cause)}</td>
    <td data-label="Tries" class="num">${count(p.attempts)}</td>
    <td data-label="Cost" class="num">${usd(p.cost_micro_usd)}</td>
    <td class="why reason"><span class="told">${p.reason || p.wait_text || p.uri}${p.size > 0 && !p.reason && !p.wait_text ? ` (${bytes(p.size)})` : ''}</span></td></tr>`;
}

export function Parts({ id, setLive }) {
  const [at, go] = useQuery(FIELDS);
  const [pages, setPages] = useState(1);
  const [picked, setPicked] = useState([]);
  const [ask, dialog] = useConfirm(() => load());
  const [notice, setNotice] = useState(null);
  const narrow = EACH.some((f) => at[f]);
  const { data, problem, load } = useLive(`/campaigns/${id}/events`, async () => {
    const campaign = await get(`/campaigns/${id}`);
    const stage = at.stage || (campaign.stages.find((s) => s.parts.total > 0) || campaign.stages[0]).name;
    const [failures, operations] = await Promise.all([get(`/campaigns/${id}/failures?stage=${encodeURIComponent(stage)}`), readOperations(id)]);
    let list = { parts: [], next_page_token: null };
    for (let i = 0; i < pages * (narrow ? LOOKS : 1) && list.parts.length < pages * PAGE; i++) {
      const next = await get(`/campaigns/${id}/parts?${query({ ...at, stage }, list.next_page_token)}`);
      list = { parts: [...list.parts, ...next.parts], next_page_token: next.next_page_token };
      if (!next.next_page_token) break;
    }
    document.title = `parts of ${campaign.name} · drover`;
    return { campaign, stage, operations, causes: [...new Set(failures.groups.map((g) => g.cause))], ...list };
  }, [id, pages, ...FIELDS.map((f) => at[f])], setLive, narrow ? EACH_MS : undefined);
  const move = (change) => {
    go((change.cause ?? at.cause) ? { ...change, ...NONE } : change);
    setPages(1);
    setPicked([]);
  };
  if (!data) return html`<main><p class=${problem ? 'problem' : 'muted'} role=${problem ? 'alert' : undefined}>${problem ? problem.message : 'loading …'}</p></main>`;
  const { campaign, stage, parts } = data;
  const kind = at.state in MOVES ? at.state : 'failed'; // what can be selected
  const able = parts.filter((p) => p.state === kind).map((p) => p.seq);
  const chosen = picked.filter((n) => able.includes(n));
  const all = !narrow && (!at.state || at.state === kind) && (kind === 'failed' || !at.cause); // what a selector of the API can name
  const none = chosen.length === 0 ? 'picks-none' : undefined; // why the buttons of a selection are disabled
  const done = (op, text) => { setNotice({ op: op.id, text }); setPicked([]); };
  const act = (verb, selector) => () => ask(changeQuestion({ campaign: id, verb, selector, onDone: done }));
  const some = { stage, parts: chosen };
  const every = { stage, state: kind, ...(at.cause ? { cause: [at.cause] } : {}) };
  const closed = campaign.wanted === 'cancel';
  return html`<main>
    <${CampaignHead} campaign=${campaign} title=${`Parts${campaign.stages.length > 1 ? ` of ${stage}` : ''}`} here="parts"/>
    <${Trouble} problem=${problem} data/>
    <${Told} text=${notice?.text} op=${data.operations.find((o) => o.id === notice?.op)} ask=${ask}/>
    <section class="card wide parts-card" aria-label="parts">
      <${Filters} at=${{ ...at, stage }} stages=${campaign.stages.map((s) => s.name)} causes=${data.causes} move=${move}/>
      ${able.length > 0 && !closed && html`<div class="row picks" id="picks">
        <label class="check"><input type="checkbox" id="pick-all" checked=${chosen.length === able.length} onChange=${(e) => setPicked(e.target.checked ? able : [])}/> ${count(able.length)} ${kind} shown</label>
        ${MOVES[kind].map((verb) => html`
          <${Act} key=${verb} disabled=${chosen.length === 0} id=${`${verb}-picked`} aria-describedby=${none} onClick=${act(verb, some)}>${VERBS[verb][0]} ${chosen.length > 0 ? count(chosen.length) : 'selected'}…<//>`)}
        ${none && html`<span class="muted" id=${none}>None is selected: tick ${kind} parts first.</span>`}
        ${all && MOVES[kind].map((verb) => html`<${Act} key=${verb} id=${`${verb}-every`} onClick=${act(verb, every)}>${VERBS[verb][0]} all matching…<//>`)}
      </div>`}
      ${parts.length === 0 ? html`<p class="muted">No part matches. ${(at.state || at.cause || narrow) && html`<button class="link" onClick=${() => move({ state: '', cause: '', ...NONE })}>show all</button>`}</p>`
        : html`<table class="stack" id="parts-table"><thead><tr><td></td><th>Part</th><th>State</th><th>Cause</th><th class="num">Tries</th><th class="num">Cost</th><th>Reason or input</th></tr></thead>
          <tbody>${parts.map((p) => html`<${Row} key=${p.id} p=${p} id=${id} can=${p.state === kind} picked=${chosen.includes(p.seq)}
            onPick=${(e) => setPicked(e.target.checked ? [...picked, p.seq] : picked.filter((n) => n !== p.seq))}/>`)}</tbody></table>`}
      ${data.next_page_token && html`<p class="row"><button id="more" onClick=${() => setPages(pages + 1)}>More</button><span class="muted">${count(parts.length)} shown</span></p>`}
    </section>
    ${dialog}
  </main>`;
}
