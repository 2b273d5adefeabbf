// Projects and the installation above them: how much may run and be spent, and what is.
import { useState } from 'preact/hooks';
import { html } from './html.js';
import { getTagged, patchOnce } from './api.js';
import { Csv } from './csv.js';
import { CURVES_MS, useLive } from './live.js';
import { Act, me } from './role.js';
import { Form, SettingsHead } from './settings.js';
import { Command, Strip, Trouble } from './show.js';
import { count, percent, usd } from './format.js';

const money = (b) => b.spent_micro_usd + b.reserved_micro_usd;

// What is spent and reserved of a budget.
export function Budget({ of, name }) {
  if (of.limit_micro_usd == null) return null;
  const top = Math.max(of.limit_micro_usd, money(of), 1);
  return html`<${Strip} of=${[['spent', of.spent_micro_usd], ['reserved', of.reserved_micro_usd]]} top=${top} label=${`${percent(money(of), of.limit_micro_usd)} of the budget of ${name} spent or reserved`}/>`;
}

// of: a project, or the installation without a name. Only what differs is sent, against the version that was shown.
function change(of, path, etag, onClose) {
  const was = { parts: of.parts == null ? '' : String(of.parts), budget: of.budget.limit_micro_usd == null ? '' : String(of.budget.limit_micro_usd / 1e6), weight: String(of.weight) };
  const send = (form) => {
    const body = {};
    const now = (name) => form.get(name) ?? was[name];
    if (now('parts') !== was.parts) body.parts = now('parts') === '' ? null : Number(now('parts'));
    if (now('budget') !== was.budget) body.budget = now('budget') === '' ? null : { total: `${now('budget')} USD` };
    if (now('weight') !== was.weight) body.weight = Number(now('weight'));
    return Object.keys(body).length > 0 ? patchOnce(path, body, etag) : null;
  };
  return html`<${Form} title=${of.name ? `Limits of ${of.name}` : 'Limits of this installation'} action="Change" send=${send} onClose=${onClose}>
    <div class="fields"><label>Budget, USD <input name="budget" type="number" min="0" step="any" value=${was.budget} placeholder="none"/></label>
      <label>Parts at once <input name="parts" type="number" min="0" step="1" value=${was.parts} placeholder="no limit"/></label>
      ${of.name && html`<label>Weight <input name="weight" type="number" min="1" step="1" required value=${was.weight}/></label>`}</div>
    <p class="muted">${usd(of.budget.spent_micro_usd)} spent, ${usd(of.budget.reserved_micro_usd)} reserved. Running parts go on. ${of.name ? 'Of slots that are short, a project gets a share by its weight.' : ''}</p><//>`;
}

const rows = (projects) => projects.map((p) => ({ name: p.name, weight: p.weight, parts: p.parts, ...p.budget }));
const COLUMNS = ['name', 'weight', 'parts', 'limit_micro_usd', 'reserved_micro_usd', 'spent_micro_usd'];

export function Projects({ setLive }) {
  const [form, setForm] = useState(null);
  const { data, problem, load } = useLive('/events', async () => {
    document.title = 'projects · drover';
    const [projects, limits] = await Promise.all([getTagged('/projects'), me().projects ? null : getTagged('/limits')]); // the installation is nobody's of a project
    return { projects, limits };
  }, [], setLive, CURVES_MS);
  const close = () => { setForm(null); load(); };
  const list = data?.projects.value.projects;
  const all = data?.limits?.value;
  const types = Object.entries(all?.instances || {});
  return html`<main><${SettingsHead} here="/projects" title="Projects" text="A campaign counts in the project that its file names: its money, and how much of it runs at once."/>
    <${Trouble} problem=${problem} data=${data}/>
    ${list && html`<section class="card wide" aria-label="projects"><h2>By project ${list.length > 0 && html`<${Csv} file="projects" columns=${COLUMNS} rows=${() => rows(list)}/>`}</h2>
      <table class="stack" id="projects"><thead><tr><th class="third">Project</th><th class="num">Spent</th><th class="num">Reserved</th><th class="num">Budget</th>
        <th class="num">Parts at once</th><th class="num">Weight</th><th class="act">Limits</th></tr></thead>
      <tbody>${list.map((p) => html`<tr key=${p.name}><td class="name over"><span class="clamp">${p.name}</span><${Budget} of=${p.budget} name=${p.name}/></td>
        <td data-label="Spent" class="num">${usd(p.budget.spent_micro_usd)}</td><td data-label="Reserved" class="num">${usd(p.budget.reserved_micro_usd)}</td>
        <td data-label="Budget" class="num">${p.budget.limit_micro_usd == null ? 'none' : html`${usd(p.budget.limit_micro_usd)} <span
          class=${money(p.budget) >= p.budget.limit_micro_usd ? 'bad' : 'muted'}>${percent(money(p.budget), p.budget.limit_micro_usd)}</span>`}</td>
        <td data-label="Parts at once" class="num">${p.parts == null ? 'no limit' : count(p.parts)}</td><td data-label="Weight" class="num">${count(p.weight)}</td>
        <td class="act"><${Act} needs="admin" data-project=${p.name}
          onClick=${() => setForm(change(p, `/projects/${encodeURIComponent(p.name)}`, data.projects.etag, close))} aria-label=${`Change ${p.name}`}>Change…<//></td></tr>`)}</tbody></table>
      ${list.length < 2 && html`<p class="muted">A campaign file with project: laion makes another one. A shell shows what each has cost:</p><${Command} text="drover bill"/>`}</section>`}
    ${all && html`<section class="card wide" id="installation"><h2>This installation <${Act} needs="admin" class="right" id="change-limits"
        onClick=${() => setForm(change(all, '/limits', data.limits.etag, close))}>Change…<//></h2>
      <${Budget} of=${all.budget} name="this installation"/>
      <p>${usd(all.budget.spent_micro_usd)} spent, ${usd(all.budget.reserved_micro_usd)} reserved of
        ${' '}${all.budget.limit_micro_usd == null ? 'no budget' : html`a budget of <b>${usd(all.budget.limit_micro_usd)}</b>`}, and${' '}
        ${all.parts == null ? 'any number of parts' : html`at most <b>${count(all.parts)}</b> parts`} at once.</p>
      ${types.length > 0 && html`<p class="muted">Instances at most: ${types.map(([t, n]) => `${count(n)} × ${t}`).join(', ')}.</p>`}</section>`}
    ${form}
  </main>`;
}
