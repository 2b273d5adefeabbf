// Warm pools: how long each stood idle, what that cost and what it was good for.
import { html } from './html.js';
import { useQuery } from './address.js';
import { get, post } from './api.js';
import { Csv } from './csv.js';
import { useConfirm } from './dialog.js';
import { useLive } from './live.js';
import { count, duration, usd, word } from './format.js';
import { Act } from './role.js';
import { Trouble } from './show.js';
import { timeText } from './timechart.js';

const FIELDS = ['campaign'];
const COLUMNS = ['id', 'campaign', 'stage', 'state', 'job_name', 'instance_type', 'instances', 'keep_alive_seconds', 'available_at', 'expires_at', 'ended_at', 'end_asked', 'end_reason', 'reused_by', 'idle_seconds', 'idle_micro_usd'];
const LOOKS = { available: 'held', in_use: 'running', reused: 'succeeded', terminated: 'cancelled' }; // as states of campaigns look
const KINDS = { available: 'idle', in_use: 'active', reused: 'done', terminated: 'cancelled' };

// When it stood idle, on an axis that all pools share.
function Idle({ p, from, to, now }) {
  if (!p.available_at) return null;
  const x = (at) => Math.max(0, Math.min(1000, (1000 * (at - from)) / (to - from)));
  const begin = Date.parse(p.available_at);
  const end = p.ended_at ? Date.parse(p.ended_at) : now;
  if (!Number.isFinite(begin + end)) return null;
  return html`<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label=${`idle for ${duration((end - begin) / 1000)}`}><rect class="track" x="0" y="0" width="1000" height="10"/>
    <rect class=${`pool-${KINDS[p.state] || 'idle'}`} x=${x(begin)} y="0" width=${Math.max(4, x(end) - x(begin))} height="10"/></svg>`;
}

// True when a person may end it.
export const ends = (p) => p.state === 'available' && !p.reused_by && !p.end_asked && !p.end_reason;
const question = (p) => ({ title: `End pool #${p.id}`, action: 'End', danger: true, confirm: () => post(`/pools/${p.job_name}:end`, {}),
  text: html`${count(p.instances)} × ${p.instance_type} of stage ${p.stage} are released. The next job of this kind starts cold.` });

// onAsk: takes the question that ends the pool once it is confirmed.
export function End({ pool, onAsk }) {
  return html`<${Act} class="danger" onClick=${() => onAsk(question(pool))} aria-label=${`End pool ${pool.id}`}>End…<//>`;
}

function Table({ pools, now, onAsk }) {
  const times = pools.map((p) => Date.parse(p.available_at)).filter(Number.isFinite);
  const from = Math.min(now - 60e3, ...times);
  const text = timeText(from, now);
  return html`<table class="stack" id="pools"><thead><tr><th class="third">Pool <span class="muted">idle, ${text(from)} to ${text(now)}</span></th>
      <th>State</th><th class="num">Instances</th><th class="num">Idle</th><th class="num">Cost of it</th><th>What came of it</th><th>End</th></tr></thead>
    <tbody>${pools.map((p) => html`<tr key=${p.id}><td class="name over">#${p.id}${' '}
        <a href=${`/c/${p.campaign.slice(2)}/timeline?${new URLSearchParams({ stage: p.stage })}`}>${p.stage} of ${p.campaign}</a>
        <${Idle} p=${p} from=${from} to=${now} now=${now}/></td>
      <td><span class=${`state st-${LOOKS[p.state] || 'new'}`}>${word(p.state)}</span></td>
      <td data-label="Instances" class="num">${count(p.instances)} × ${p.instance_type}</td>
      <td data-label="Idle" class="num">${p.idle_seconds > 0 ? duration(p.idle_seconds / p.instances) : p.state === 'available' && p.available_at ? duration((now - Date.parse(p.available_at)) / 1000) : '–'}</td>
      <td data-label="Cost of it" class="num">${usd(p.idle_micro_usd)}</td>
      <td class="reason">${p.reused_by ? html`<span class="told">next job: ${p.reused_by}</span>` : p.end_reason
        || (p.state === 'available' && p.expires_at ? html`ends by itself at <time datetime=${p.expires_at} title=${p.expires_at}>${text(Date.parse(p.expires_at))}</time>` : '')}</td>
      <td>${ends(p) && html`<${End} pool=${p} onAsk=${onAsk}/>`}${p.end_asked && !p.ended_at ? 'being ended' : ''}</td></tr>`)}</tbody></table>`;
}

export function Pools({ setLive }) {
  const [at, move] = useQuery(FIELDS);
  const [ask, dialog] = useConfirm(() => load());
  const { data, problem, load } = useLive('/events', async () => {
    document.title = 'warm pools · drover';
    return get(`/pools${at.campaign ? `?campaign=${encodeURIComponent(at.campaign)}` : ''}`);
  }, [at.campaign], setLive);
  const now = Date.now();
  const s = data?.sum;
  return html`<main><h1>Warm pools ${at.campaign && html`<span class="muted">of ${at.campaign} <button class="link" onClick=${() => move({ campaign: '' })}>show all</button></span>`}</h1>
    <${Trouble} problem=${problem} data=${data}/>
    ${data && html`<div class="grid charts">
      <section class="card"><h2>Idle cost</h2><p class="big" id="idle-cost">${usd(s.idle_micro_usd)}</p><p class="muted">${duration(s.idle_seconds)} of one instance</p></section>
      <section class="card"><h2>Open now</h2><p class="big">${count(s.open)}</p><p class="muted">their instances count in the quota</p></section>
      <section class="card two"><h2>Reused</h2><p class="big">${count(s.reused)}</p><p class="muted">of ${count(s.pools)}: jobs that started warm</p></section></div>
    <section class="card wide" aria-label="pools"><h2>Pools ${data.pools.length > 0 && html`<${Csv} file="pools" columns=${COLUMNS} rows=${data.pools}/>`}</h2>
      ${data.pools.length === 0 ? html`<p class="muted">No job has kept its instances. A stage keeps them with warm_pool: {keep_alive: 15m} in the campaign file; the quota for warm pools is
        0 until AWS raises it.</p>`
        : html`<${Table} pools=${data.pools} now=${now} onAsk=${ask}/>${data.pools.length < s.pools && html`<p class="muted">${count(data.pools.length)} of ${count(s.pools)} are shown, open ones first.</p>`}`}</section>`}
    ${dialog}
  </main>`;
}
