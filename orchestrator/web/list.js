// All campaigns, newest first, and the slots they share.
import { useState } from 'preact/hooks';
import { html } from './html.js';
import { get } from './api.js';
import { useConfirm } from './dialog.js';
import { AllParked, readParked } from './parked.js';
import { QuotaTable } from './quotas.js';
import { Act } from './role.js';
import { Strays } from './strays.js';
import { Submit } from './submit.js';
import { useLive } from './live.js';
import { Ago, Bar, Command, State, Trouble } from './show.js';
import { count, percent, usd } from './format.js';

const PAGE = 50;

function Campaigns({ campaigns }) {
  return html`<table class="stack"><thead><tr><th class="third">Name</th><th>State</th><th>Progress</th><th class="num">Running</th>
      <th class="num">Failed</th><th class="num">Spent</th><th class="num">Budget</th><th class="num">Submitted</th></tr></thead>
    <tbody>${campaigns.map((c) => html`<tr key=${c.id}>
      <td class="name"><a class="clamp" href=${`/c/${c.id.replace('c-', '')}`}>${c.name}</a> <span class="muted">${c.id}</span>
        ${c.guidance?.length > 0 && html`<p class="told">${c.guidance[0].title}</p>`}</td>
      <td><${State} of=${c}/></td>
      <td data-label="Progress" class="over"><${Bar} parts=${c.parts}/><span>${percent(c.parts.done + c.parts.skipped, c.parts.total)} of ${count(c.parts.total)}</span></td>
      <td data-label="Running" class="num">${count(c.parts.active)}</td>
      <td data-label="Failed" class="num">${c.parts.failed ? html`<b class="bad">✗ ${count(c.parts.failed)}</b>` : '0'}</td>
      <td data-label="Spent" class="num">${usd(c.budget.spent_micro_usd)}</td>
      <td data-label="Budget" class="num">${usd(c.budget.limit_micro_usd)}</td>
      <td data-label="Submitted" class="num"><${Ago} at=${c.created_at}/></td></tr>`)}</tbody></table>`;
}

// Nothing was ever submitted: what to do next.
function First() {
  return html`<div id="first"><h2>No campaign yet</h2>
    <p>A campaign is one file: its input, its jobs, their instance types and limits. Press New campaign and paste it, or use a shell:</p>
    <ol class="steps"><li>Check the file and see its plan and cost; nothing starts. <${Command} text="drover validate campaign.yaml"/></li>
      <li>Submit it. <${Command} text="drover submit campaign.yaml"/></li>
      <li>Follow it here, or in the shell. <${Command} text="drover watch"/></li></ol></div>`;
}

export function List({ setLive, go }) {
  const [token, setToken] = useState('');
  const [fresh, setFresh] = useState(false);
  const [ask, dialog] = useConfirm(() => load());
  const { data, problem, load } = useLive('/events', async () => {
    const [page, q, strays, parked] = await Promise.all([get(`/campaigns?page_size=${PAGE}${token ? `&page_token=${encodeURIComponent(token)}` : ''}`), get('/quotas'),
      get('/strays?limit=20').catch(() => null), readParked()]); // a token for some projects may not see them
    document.title = 'drover';
    return { ...page, quotas: q.quotas || [], strays, parked };
  }, [token], setLive);
  return html`<main>
    <div class="head"><h1>Campaigns</h1><${Act} class="primary" id="new" onClick=${() => setFresh(true)}>New campaign…<//></div>
    <${Trouble} problem=${problem} data=${data}/>
    ${data?.strays?.sum.running > 0 && html`<${Strays} list=${data.strays.strays.filter((s) => s.running)} total=${data.strays.sum.running} ask=${ask}/>`}
    ${data?.parked.length > 0 && html`<${AllParked} list=${data.parked} ask=${ask}/>`}
    ${data && html`<section class="card wide">
      ${data.campaigns.length === 0 ? html`<${First}/>`
        : html`<${Campaigns} campaigns=${data.campaigns}/>`}
      ${(token || data.next_page_token) && html`<p class="row"><button disabled=${!token} onClick=${() => setToken('')}>Newest</button>
        <button disabled=${!data.next_page_token} onClick=${() => setToken(data.next_page_token)}>Older</button></p>`}
    </section>
    <section class="card wide"><h2>Slots</h2><${QuotaTable} rows=${data.quotas}/></section>`}
    ${dialog}
    ${fresh && html`<${Submit} onClose=${() => setFresh(false)} onDone=${(id) => go(`/c/${id.replace('c-', '')}`)}/>`}
  </main>`;
}
