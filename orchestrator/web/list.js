// All campaigns, newest first, those that need a person marked.
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { get, stream } from './api.js';
import { ago, count, percent, usd, word } from './format.js';

export function List() {
  const [page, setPage] = useState(null);
  const [quotas, setQuotas] = useState([]);
  const [problem, setProblem] = useState(null);
  const timer = useRef(null);
  const load = () => Promise.all([get('/campaigns?page_size=100'), get('/quotas')]).then(([c, q]) => {
    setPage(c);
    setQuotas(q.quotas || []);
    setProblem(null);
  }, setProblem);
  useEffect(() => {
    load();
    const close = stream('/events', () => { timer.current ||= setTimeout(() => { timer.current = null; load(); }, 500); }, () => {});
    return () => { close(); clearTimeout(timer.current); };
  }, []);
  return html`<main>
    <header class="head"><h1>Campaigns</h1></header>
    ${problem && html`<p class="problem" role="alert">${problem.message}</p>`}
    <section class="card wide">
      ${page && page.campaigns.length === 0 && html`<p>No campaign yet. Submit one: <code>drover submit campaign.yaml</code></p>`}
      ${page && page.campaigns.length > 0 && html`<table><thead><tr><th>Name</th><th>State</th><th class="num">Parts over</th><th class="num">Running</th><th class="num">Failed</th><th class="num">Spent</th><th class="num">Budget</th><th>Submitted</th></tr></thead>
      <tbody>${page.campaigns.map((c) => html`<tr key=${c.id}>
        <td><a href=${`/c/${c.id.replace('c-', '')}`}>${c.name}</a> <span class="muted">${c.id}</span></td>
        <td><span class=${`state st-${c.state}`}>${word(c.state)}${c.reason ? `: ${c.reason}` : ''}</span></td>
        <td class="num">${percent(c.parts.done + c.parts.skipped, c.parts.total)} of ${count(c.parts.total)}</td>
        <td class="num">${count(c.parts.active)}</td>
        <td class="num">${c.parts.failed ? html`<b class="bad">✗ ${count(c.parts.failed)}</b>` : '0'}</td>
        <td class="num">${usd(c.budget.spent_micro_usd)}</td><td class="num">${usd(c.budget.limit_micro_usd)}</td>
        <td title=${c.created_at}>${ago(c.created_at)}</td></tr>`)}</tbody></table>`}
    </section>
    <section class="card wide"><h2>Slots</h2>
      <table><thead><tr><th>Instance type</th><th class="num">Held by drover</th><th class="num">By others</th><th class="num">Free</th><th class="num">Quota</th><th class="num">List price</th></tr></thead>
      <tbody>${quotas.map((q) => html`<tr key=${q.instance_type + q.market}><td>${q.instance_type}${q.market === 'on_demand' ? '' : ` (${q.market})`}</td><td class="num">${count(q.held)}</td><td class="num">${count(q.foreign)}</td>
        <td class="num">${q.free == null ? '–' : count(q.free)}</td><td class="num">${q.limit == null ? 'unknown' : count(q.limit)}</td><td class="num">${q.price_micro_usd_per_hour == null ? 'unknown' : `${usd(q.price_micro_usd_per_hour)}/h`}</td></tr>`)}</tbody></table>
    </section>
  </main>`;
}
