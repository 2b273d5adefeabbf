// Who changed what: before, after, when. The filters and the page are in the address.
import { html } from './html.js';
import { useQuery } from './address.js';
import { get } from './api.js';
import { Csv } from './csv.js';
import { CURVES_MS, useLive } from './live.js';
import { may } from './role.js';
import { Closed, SettingsHead } from './settings.js';
import { Ago, Command, Trouble } from './show.js';
import { usd, utc } from './format.js';

const FIELDS = ['who', 'action', 'campaign', 'page_token'];
const COLUMNS = ['id', 'at', 'who', 'name', 'role', 'action', 'subject', 'campaign', 'before', 'detail', 'request_id'];
const KINDS = ['campaign', 'parts', 'operation', 'project', 'limits', 'token', 'webhook', 'endpoint', 'filesystem', 'pool', 'quota', 'source', 'stray', 'smoke'];
const named = (k) => k.replace(/\bbudget\.(limit_micro_usd|total)$/, 'budget').replace(/\bper_task_micro_usd$/, 'per_task');
const HIDDEN = /(reserved|spent)_micro_usd$/; // what stood beside a limit

const flat = (v, path = '') => (v && typeof v === 'object' && !Array.isArray(v) ? Object.entries(v).flatMap(([k, x]) => flat(x, path ? `${path}.${k}` : k)) : [[path, v]]);
function text(key, v) {
  if (v == null) return 'none';
  if (typeof v === 'number' && key.endsWith('micro_usd')) return usd(v);
  if (key.endsWith('_at') && Date.parse(v)) return utc(v);
  return Array.isArray(v) ? v.map(String).join(', ') : String(v);
}
const members = (v) => new Map(flat(v || {}).filter(([k]) => k && !HIDDEN.test(k)).map(([k, x]) => [named(k), text(k, x)]));

// Each member with what it was and what it became. Without a before, what was asked for.
function Change({ row }) {
  const was = members(row.before);
  const now = members(row.detail);
  const keys = [...new Set([...was.keys(), ...now.keys()])];
  return html`<ul class="changed">${keys.map((k) => html`<li key=${k}><code>${k}</code> ${was.has(k) && html`<del>${was.get(k)}</del>`}${
    was.has(k) && now.has(k) && html` <span aria-label="became">→</span> `}${now.has(k) && html`<b>${now.get(k)}</b>`}</li>`)}</ul>`;
}

function Subject({ row }) {
  const name = html`<span class="clamp">${row.subject === '*' ? 'this installation' : row.subject}</span>`;
  return row.campaign ? html`<a href=${`/c/${row.campaign.slice(2)}`}>${name}</a>${row.subject !== row.campaign && html` <span class="muted">of ${row.campaign}</span>`}` : name;
}

function Table({ rows }) {
  return html`<table class="stack" id="audit"><thead><tr><th>When</th><th>Who</th><th>Action</th><th>Of what</th><th class="third">Before and after</th></tr></thead>
    <tbody>${rows.map((r) => html`<tr key=${r.id}><td data-label="When"><${Ago} at=${r.at}/></td>
      <td class="name"><span class="clamp">${r.name || r.who}</span> <span class="muted" title=${r.who}>${r.role}</span></td>
      <td data-label="Action"><span class="tag">${r.action}</span></td><td data-label="Of what" class="reason"><${Subject} row=${r}/></td>
      <td class="why"><${Change} row=${r}/></td></tr>`)}</tbody></table>`;
}

export function Audit({ setLive }) {
  const [at, go] = useQuery(FIELDS);
  const sees = may('operator');
  const { data, problem } = useLive('/events', async () => {
    document.title = 'audit · drover';
    const campaign = at.campaign && `c-${at.campaign.replace(/^c-/, '')}`;
    return sees ? get(`/audit?${new URLSearchParams({ page_size: 50, ...Object.fromEntries(Object.entries({ ...at, campaign }).filter(([, v]) => v)) })}`) : { audit: [] };
  }, FIELDS.map((f) => at[f]), setLive, CURVES_MS);
  const move = (change) => go({ page_token: '', ...change });
  const field = (name, label, more) => html`<label>${label} <input name=${name} value=${at[name]} autocomplete="off" onChange=${(e) => move({ [name]: e.target.value.trim() })} ...${more}/></label>`;
  const filtered = at.who || at.action || at.campaign;
  return html`<main><${SettingsHead} here="/audit" title="Audit" text="Who changed what, newest first. Rows are kept, nobody can change them."/>
    <${Trouble} problem=${problem} data=${data}/>
    ${!sees && html`<${Closed} needs="operators and admins" what="Changes"/>`}
    ${sees && html`<section class="card wide" aria-label="changes">
      <div class="fields">${field('who', 'Who: a token\'s name or id')}${field('action', 'Action', { list: 'actions', placeholder: 'any' })}${field('campaign', 'Campaign', { placeholder: 'any' })}</div>
      <datalist id="actions">${KINDS.map((k) => html`<option key=${k} value=${k}/>`)}</datalist>
      ${data && (data.audit.length > 0 ? html`<${Table} rows=${data.audit}/>`
        : html`<p class="muted" id="nothing">${filtered ? 'Nothing matches on this page.' : 'Nothing was changed yet. A shell shows the same:'}</p>${!filtered && html`<${Command} text="drover audit"/>`}`)}
      ${data && html`<p class="row pages"><button id="newest" disabled=${!at.page_token} onClick=${() => move({})}>Newest</button>
        <button id="older" disabled=${!data.next_page_token} onClick=${() => move({ page_token: data.next_page_token })}>Older</button>
        ${filtered && html`<button class="link" onClick=${() => move({ who: '', action: '', campaign: '' })}>show all</button>`}
        ${data.audit.length > 0 && html`<${Csv} file="audit" columns=${COLUMNS} rows=${() => data.audit.map((r) => ({ ...r, before: r.before && JSON.stringify(r.before), detail: JSON.stringify(r.detail) }))}/>`}</p>`}
    </section>`}
  </main>`;
}
