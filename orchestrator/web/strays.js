// Jobs, endpoints and file systems that no row stands for: what they cost, and their end.
import { html } from './html.js';
import { post } from './api.js';
import { Act } from './role.js';
import { Ago, Command } from './show.js';
import { count, usdFine, word } from './format.js';

const cost = (s) => (s.cost_micro_usd == null ? 'unknown' : `${s.estimated ? '≈ ' : ''}${usdFine(s.cost_micro_usd)}`);

const question = (s) => ({ title: `End ${s.job_name}`, action: 'End', danger: true, confirm: () => post(`/strays/${s.job_name}:stop`),
  text: html`${s.kind === 'job' ? 'The job is stopped.' : s.kind === 'file_system' ? 'The file system is deleted with its data.'
    : 'What is there of its endpoint, config and model is deleted.'} It has cost ${cost(s)}. This cannot be undone.` });

export function Strays({ list, total, ask }) {
  return html`<section class="card wide" id="strays"><h2>Strays</h2>
    <p class="bad">${count(total)} of this installation ${total === 1 ? 'is' : 'are'} at AWS that no campaign knows: the database was restored, or has lost rows.</p>
    <table class="stack"><thead><tr><th class="third">Name</th><th>Kind</th><th>State</th><th class="num">Since</th><th class="num">Cost</th><th>End</th></tr></thead>
    <tbody>${list.map((s) => html`<tr key=${s.job_name}>
      <td class="name"><span class="clamp">${s.job_name}</span></td>
      <td data-label="Kind">${word(s.kind)}</td>
      <td data-label="State">${s.stop_asked ? 'being ended' : s.status || 'there'}</td>
      <td data-label="Since" class="num"><${Ago} at=${s.created_at || s.found_at}/></td>
      <td data-label="Cost" class="num">${cost(s)}</td>
      <td>${!s.stop_asked && html`<${Act} class="danger" onClick=${() => ask(question(s))} aria-label=${`End ${s.job_name}`}>End…<//>`}</td></tr>`)}</tbody></table>
    ${total > list.length && html`<p class="row"><${Command} text="drover strays"/></p>`}
  </section>`;
}
