// File systems of stages of kind lustre: what they cost, when they go, and their end before their time.
import { html } from './html.js';
import { del, get } from './api.js';
import { useConfirm } from './dialog.js';
import { useLive } from './live.js';
import { Act } from './role.js';
import { Ago, Command, Trouble } from './show.js';
import { count, duration, usd, usdFine, word } from './format.js';

const LOOKS = { available: 'running', exporting: 'draining', deleting: 'draining', failed: 'failed' }; // as states of campaigns look
const cost = (f) => `${f.estimated ? '≈ ' : ''}${usdFine(f.cost_micro_usd)}`;

// When it goes: after its last use or at its time, whichever comes first.
function End({ of }) {
  if (of.ended_at) return html`gone <${Ago} at=${of.ended_at}/>`;
  if (of.delete_asked || of.state === 'exporting' || of.state === 'deleting') return 'being deleted';
  const left = (Date.parse(of.delete_after) - Date.now()) / 1000;
  return html`<time datetime=${of.delete_after} title=${of.delete_after}>${of.keep ? '' : 'after its last use, or '}in ${duration(left)}</time>`;
}

const question = (f) => ({ title: `Delete ${f.name}`, action: 'Delete', danger: true, confirm: () => del(`/filesystems/${f.name}`),
  text: html`${f.export ? `What jobs wrote is exported to ${f.import} first. ` : 'What jobs wrote is lost. '}Jobs that still mount it fail.
    It has cost ${cost(f)}. This cannot be undone.` });

function Table({ list, onAsk }) {
  return html`<table class="stack" id="filesystems"><thead><tr><th class="third">File system</th><th>State</th><th class="num">Size</th><th class="num">Deleted</th>
      <th class="num">An hour</th><th class="num">Cost</th><th>End</th></tr></thead>
    <tbody>${list.map((f) => html`<tr key=${f.name}>
      <td class="name"><span class="clamp">${f.name}</span>
        <p class="told">${f.reason || html`stage ${f.stage} of <a href=${`/c/${f.campaign.slice(2)}`}>${f.campaign}</a>${f.import ? `, from ${f.import}` : ''}`}</p></td>
      <td><span class=${`state st-${LOOKS[f.state] || 'new'}`}>${word(f.state)}</span></td>
      <td data-label="Size" class="num">${count(f.size_gib)} GiB ${f.deployment}</td>
      <td data-label="Deleted" class="num"><${End} of=${f}/></td>
      <td data-label="An hour" class="num">${usd(f.micro_usd_per_hour)}</td>
      <td data-label="Cost" class="num">${cost(f)}</td>
      <td>${!f.ended_at && !f.delete_asked && html`<${Act} class="danger" onClick=${() => onAsk(question(f))} aria-label=${`Delete ${f.name}`}>Delete…<//>`}</td></tr>`)}</tbody></table>`;
}

const None = () => html`<div id="nothing"><h2>No file system yet</h2>
  <p>A stage with kind: lustre makes one over a prefix of S3, later stages mount it, and it is deleted after its last use. The example has one:</p>
  <${Command} text="drover init laion-campaign campaign.yaml"/><${Command} text="drover submit campaign.yaml"/></div>`;

export function Filesystems({ setLive }) {
  const [ask, dialog] = useConfirm(() => load());
  const { data, problem, load } = useLive('/events', async () => {
    document.title = 'file systems · drover';
    return get('/filesystems');
  }, [], setLive);
  return html`<main><h1>File systems</h1>
    <${Trouble} problem=${problem} data=${data}/>
    ${data && html`<section class="card wide">${data.filesystems.length > 0 ? html`<${Table} list=${data.filesystems} onAsk=${ask}/>` : html`<${None}/>`}</section>`}
    ${dialog}
  </main>`;
}
