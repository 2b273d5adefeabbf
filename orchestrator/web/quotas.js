// Quotas by instance type: what drover holds, what others in the account hold, what is free.
import { html } from './html.js';
import { get } from './api.js';
import { Csv } from './csv.js';
import { useLive } from './live.js';
import { Ago, Command, Strip, Trouble } from './show.js';
import { count, usd, word } from './format.js';

const FIELDS = ['instance_type', 'market', 'limit', 'held', 'foreign', 'free', 'price_micro_usd_per_hour', 'source', 'read_at'];

function Gauge({ q }) {
  const top = Math.max(q.limit ?? 0, q.held + q.foreign, 1);
  return html`<${Strip} of=${[['spent', q.held], ['foreign', q.foreign]]} top=${top}
    label=${`${count(q.held)} held by drover, ${count(q.foreign)} by others, of ${q.limit == null ? 'an unknown quota' : count(q.limit)}`}/>`;
}

const MARKETS = { on_demand: '', spot: ' (spot)', warm: ' (warm pools)' };

// True when nothing is free that is used. Spot and warm quotas are 0 until somebody asks for them.
const isFull = (q) => q.limit != null && q.free <= 0 && q.market !== 'warm' && (q.held + q.foreign > 0 || q.market === 'on_demand');

export function QuotaTable({ rows }) {
  if (rows.length === 0) return html`<p class="muted">No instance type is known yet: quotas and prices are read of AWS when droverd starts.</p>`;
  return html`<table class="stack"><thead><tr><th class="third">Instance type</th>
    <th class="num">By drover</th><th class="num">By others</th><th class="num">Free</th><th class="num">Quota</th><th class="num">List price</th><th class="num">Read</th></tr></thead>
    <tbody>${rows.map((q) => html`<tr key=${q.instance_type + q.market}><td class="name over">${q.instance_type}${MARKETS[q.market] ?? ` (${word(q.market)})`}<${Gauge} q=${q}/></td>
      <td data-label="By drover" class="num">${count(q.held)}</td><td data-label="By others" class="num">${count(q.foreign)}</td>
      <td data-label="Free" class="num">${q.free == null ? '–' : isFull(q) ? html`<b class="bad">${count(q.free)}</b>` : count(q.free)}</td>
      <td data-label="Quota" class="num">${q.limit == null ? 'unknown' : count(q.limit)}</td>
      <td data-label="List price" class="num">${q.price_micro_usd_per_hour == null ? 'unknown' : `${usd(q.price_micro_usd_per_hour, 6)}/h`}</td>
      <td data-label="Read" class="num">${q.read_at ? html`<${Ago} at=${q.read_at}/>` : '–'}</td></tr>`)}</tbody></table>
    <ul class="legend"><li><span class="key used" aria-hidden="true"></span>held by drover, warm pools too</li><li><span class="key foreign" aria-hidden="true"></span>by others in the account, learned from refusals</li></ul>`;
}

export function Quotas({ setLive }) {
  const { data, problem } = useLive('/events', async () => {
    document.title = 'quotas · drover';
    return get('/quotas');
  }, [], setLive);
  const rows = data && [...data.quotas].sort((a, b) => b.held + b.foreign - a.held - a.foreign);
  const full = rows?.find(isFull);
  return html`<main><h1>Quotas</h1>
    <${Trouble} problem=${problem} data=${data}/>
    ${data && html`<section class="card wide" id="quotas"><h2>Instances at once ${rows.length > 0 && html`<${Csv} file="quotas" columns=${FIELDS} rows=${rows}/>`}</h2>
      <${QuotaTable} rows=${rows}/>
      ${full && html`<p class="muted">${full.limit === 0 ? 'The quota is 0 for' : 'Nothing is free of'} ${full.instance_type}${MARKETS[full.market] ?? ''}. To ask AWS for N:</p>
        <${Command} text=${`drover quotas request ${full.instance_type.replace(/[^\w.-]/g, '')} --value N${full.market === 'on_demand' ? '' : ` --market ${word(full.market)}`}`}/>`}
    </section>`}
  </main>`;
}
