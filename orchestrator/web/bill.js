// The bill of a month by project or by the value of a tag, and by campaign, as it was booked at list prices.
import { html } from './html.js';
import { useQuery } from './address.js';
import { get } from './api.js';
import { Csv } from './csv.js';
import { CURVES_MS, useLive } from './live.js';
import { Share } from './money.js';
import { me } from './role.js';
import { Ago, Command, Trouble } from './show.js';
import { count, percent, usd, word } from './format.js';

const FIELDS = ['month', 'tag'];

// The month that lies n after one, as 2026-11.
function after(month, n) {
  const [y, m] = month.split('-').map(Number);
  const at = new Date(Date.UTC(y, m - 1 + n, 1));
  return Number.isFinite(at.getTime()) ? at.toISOString().slice(0, 7) : month;
}
const nameOf = (month) => new Date(`${month}-01T00:00:00Z`).toLocaleDateString('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });

// Each group with what its campaigns are not all of: those that are left out, jobs of no known campaign. The sum is the bill's.
const flat = (bill) => bill.groups.flatMap((g) => {
  const left = (key) => g[key] - g.campaigns.reduce((n, c) => n + c[key], 0);
  const others = { name: 'others', seconds: left('seconds'), micro_usd: left('micro_usd') };
  return [...g.campaigns, ...(others.micro_usd !== 0 ? [others] : [])].map((c) => ({ group: g.name, ...c }));
});
const nobody = (tag) => (tag ? `without ${tag}` : 'no known campaign');

// What costs money at this moment, by the hour.
function Now({ now }) {
  return html`<section class="card wide" id="now"><h2>At this moment <span class="right">${usd(now.micro_usd_per_hour)} an hour</span></h2>
    ${now.billable.length === 0 && html`<p class="muted">No job, idle pool, endpoint or file system costs anything.</p>`}
    ${now.billable.length > 0 && html`<table class="stack"><thead><tr><th class="third">What</th><th>Campaign</th><th class="num">Since</th><th class="num">An hour</th></tr></thead>
      <tbody>${now.billable.map((b, i) => html`<tr key=${i}><td class="name over">${b.count > 1 ? `${count(b.count)} ${word(b.kind)}s` : word(b.kind)} <span
          >${b.instances > 0 ? `${count(b.instances)} × ` : ''}${b.instance_type}${b.name ? ` · ${b.name}` : ''}</span></td>
        <td data-label="Campaign">${b.campaign ? html`<a href=${`/c/${b.campaign.slice(2)}/cost`}>${b.campaign}</a>${b.stage ? ` ${b.stage}` : ''}` : '–'}</td>
        <td data-label="Since" class="num">${b.since && html`<${Ago} at=${b.since}/>`}</td><td data-label="An hour" class="num">${usd(b.micro_usd_per_hour)}</td></tr>`)}</tbody></table>`}
    ${now.total > now.billable.length && html`<p class="muted">and ${count(now.total - now.billable.length)} more, each cheaper</p>`}</section>`;
}

function Group({ p, tag, all }) {
  const kinds = [['jobs', p.jobs_micro_usd], ['idle pools', p.idle_micro_usd], ['endpoints', p.hosting_micro_usd], ['file systems', p.storage_micro_usd]].filter(([, v]) => v > 0);
  const left = p.campaigns_total - p.campaigns.length;
  return html`<section class="card wide group"><h2><span class="clamp">${p.name ?? nobody(tag)}</span> <span class="right">${usd(p.micro_usd)}</span></h2>
    <p class="muted">${kinds.map(([name, v]) => `${name} ${usd(v)}`).join(' · ')}${kinds.length ? ' · ' : ''}${count(p.seconds)} instance-seconds · ${percent(p.micro_usd, all)} of the month</p>
    ${p.campaigns.length > 0 && html`<table class="stack"><thead><tr><th class="third">Campaign</th><th class="num">Instance-seconds</th><th class="num">Cost</th></tr></thead>
      <tbody>${p.campaigns.map((c) => html`<tr key=${c.campaign}><td class="name over"><a href=${`/c/${c.campaign.slice(2)}/cost`}>${c.name}</a> <span>${c.campaign}${tag ? ` · ${c.project}` : ''}</span>
        <${Share} of=${c.micro_usd} most=${p.campaigns[0].micro_usd}/></td>
        <td data-label="Instance-seconds" class="num">${count(c.seconds)}</td><td data-label="Cost" class="num">${usd(c.micro_usd)}</td></tr>`)}</tbody></table>`}
    ${left > 0 && html`<p class="muted">and ${count(left)} cheaper ones</p>`}</section>`;
}

export function Bill({ setLive }) {
  const [at, move] = useQuery(FIELDS);
  const { data, problem } = useLive('/events', () => {
    document.title = 'bill · drover';
    return Promise.all([get(`/bill?${new URLSearchParams(FIELDS.filter((f) => at[f]).map((f) => [f, at[f]]))}`), me().projects ? null : get('/billable')]); // what burns now is told of every project alone
  }, [at.month, at.tag], setLive, CURVES_MS);
  const [bill, burning] = data || [];
  const now = new Date().toISOString().slice(0, 7);
  return html`<main>
    <div class="head"><div><h1>Bill ${bill && html`<span class="muted">${nameOf(bill.month)}</span>`}</h1>
      <p class="muted">Booked at list prices when a job ends; months are those of UTC. It is not the invoice of AWS.</p></div>
      ${bill && html`<div class="row"><button id="before" onClick=${() => move({ month: after(bill.month, -1) })}>← ${nameOf(after(bill.month, -1))}</button>
        <button id="after" disabled=${bill.month >= now} onClick=${() => move({ month: after(bill.month, 1) })}>${nameOf(after(bill.month, 1))} →</button></div>`}</div>
    <${Trouble} problem=${problem} data=${bill}/>
    ${burning && html`<${Now} now=${burning}/>`}
    ${bill && html`<section class="card wide" id="total"><h2>In all
      ${bill.groups.length > 0 && html`<${Csv} file=${`bill-${bill.month}`} columns=${['group', 'project', 'campaign', 'name', 'seconds', 'micro_usd']} rows=${flat(bill)}/>`}</h2>
      <p class="big" id="bill" data-month=${bill.month}>${usd(bill.micro_usd)}</p>
      ${(bill.tags.length > 0 || bill.tag) && html`<label class="by group-by">By <select name="tag" value=${bill.tag || ''} onChange=${(e) => move({ tag: e.target.value })}>
        <option value="" selected=${!bill.tag}>project</option>
        ${[...new Set([...(bill.tag ? [bill.tag] : []), ...bill.tags])].map((k) => html`<option key=${k} value=${k} selected=${k === bill.tag}>tag ${k}</option>`)}</select></label>`}
      ${bill.groups.length === 0 && html`<p class="muted">Nothing was booked in this month.</p><${Command} text="drover ls"/>`}</section>
    ${bill.groups.map((p) => html`<${Group} key=${p.name ?? ''} p=${p} tag=${bill.tag} all=${bill.micro_usd}/>`)}`}
  </main>`;
}
