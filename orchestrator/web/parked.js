// What the leader set aside since one of its values is refused: of one campaign, or of all.
import { html } from './html.js';
import { get, post } from './api.js';
import { Act } from './role.js';
import { Ago, Command } from './show.js';
import { utc, word } from './format.js';

const SHOWN = 20;

// Of one campaign, or of all. None when they may not be seen: a token for some projects is told of none of all.
export const readParked = (campaign) => get(`/parked?limit=${SHOWN}${campaign ? `&campaign=${campaign}` : ''}`).then((p) => p.parked, () => []);

export const unparkQuestion = (campaign) => ({ title: `Try again what is set aside of ${campaign}`, action: 'Try again', confirm: (key) => post(`/campaigns/${campaign}:unpark`, {}, key),
  text: 'It may start jobs that cost money. What is refused again is set aside again.' });

// ask: takes the question that lets a row's campaign be tried again; without it the rows are of one campaign.
export const Parked = ({ list, ask }) => html`<table class="stack" id="parked"><thead><tr><th>What</th><th>Kind</th><th class="third">Reason</th><th class="num">Since</th><th>What to do</th>${ask && html`<th>Again</th>`}</tr></thead>
  <tbody>${list.map((p) => html`<tr key=${p.kind + p.id}>
    <td class="name why">${p.part == null ? p.id : html`<a href=${`/c/${p.campaign.slice(2)}?${new URLSearchParams({ stage: p.stage, part: p.part })}`}>part ${p.part} of ${p.stage}</a>`}
      ${ask && html` <a class="muted" href=${`/c/${p.campaign.slice(2)}`}>${p.campaign}</a>`}${p.job_name && html`<p class="told">${p.job_name}</p>`}</td>
    <td data-label="Kind">${word(p.kind)}</td>
    <td data-label="Reason" class="reason"><span class="clamp" title=${p.reason}>${p.reason}</span></td>
    <td data-label="Since" class="num"><${Ago} at=${p.since}/> <span class="muted">${utc(p.since)}</span></td>
    <td data-label="What to do" class="reason why">${p.what_to_do}</td>
    ${ask && html`<td>${p.campaign !== 'c-0' && html`<${Act} onClick=${() => ask(unparkQuestion(p.campaign))} aria-label=${`Try ${p.kind} ${p.id} again`}>Try again…<//>`}</td>`}</tr>`)}</tbody></table>
  ${list.length === SHOWN && html`<p class="row"><${Command} text=${`drover parked${ask ? '' : ` ${list[0].campaign}`}`}/></p>`}`;

export const AllParked = ({ list, ask }) => html`<section class="card wide"><h2>Set aside</h2>
  <p class="bad">A value of each is refused by the database or by this droverd. Its slots and money are kept while its job may live; everything else goes on.</p>
  <${Parked} list=${list} ask=${ask}/></section>`;
