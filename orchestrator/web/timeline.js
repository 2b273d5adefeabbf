// The time of a stage: its attempts by slot, parts an hour with the likely end, what failed most, and the share of rows that were kept.
import { html } from './html.js';
import { useQuery } from './address.js';
import { forecastOf, get } from './api.js';
import { Bars } from './chart.js';
import { Csv } from './csv.js';
import { Gantt, describe } from './gantt.js';
import { CURVES_MS, useLive } from './live.js';
import { Loading } from './runs.js';
import { CampaignHead, Trouble } from './show.js';
import { TimeChart, timeText } from './timechart.js';
import { count, duration, durationOrNever, parts, percent, rate, usd, word } from './format.js';

const FIELDS = ['stage', 'span', 'by'];
const ENDED = ['succeeded', 'failed', 'cancelled', 'skipped'];
const NEWEST = 20; // rows of the tables
const partLink = (id, stage, seq) => `/c/${id.slice(2)}?${new URLSearchParams({ stage, part: seq })}`;

async function read(id, at) {
  const campaign = await get(`/campaigns/${id}`);
  const stage = at.stage || (campaign.stages.find((s) => s.parts.total > 0) || campaign.stages[0]).name;
  document.title = `timeline of ${campaign.name} · drover`;
  if (campaign.archive) return { campaign, stage };
  const of = `stage=${encodeURIComponent(stage)}`;
  const [timeline, pace, kept, failures, forecast] = await Promise.all([get(`/campaigns/${id}/timeline?${of}`), get(`/campaigns/${id}/throughput?${of}`),
    get(`/campaigns/${id}/yield?${of}`), get(`/campaigns/${id}/failures?${of}`), forecastOf(id, `?${of}`)]);
  return { campaign, stage, timeline, pace, kept, failures, forecast };
}

// Names of the columns of an attempt, as CSV has them.
const attemptRows = (t) => t.attempts.map(([slot, part, n, state, cause, a, b, c, warm]) => {
  const iso = (ms) => (ms < 0 ? null : new Date(Date.parse(t.from_at) + ms).toISOString());
  return { slot, part, try: n, state: t.states[state], cause: cause > 0 ? t.causes[cause] : null, intended_at: iso(a), started_at: iso(b), ended_at: iso(c), warm: warm === 1 };
});

function Slots({ id, data, at, move }) {
  const t = data.timeline;
  const [a, b] = /^(\d+)-(\d+)$/.exec(at.span)?.slice(1).map(Number) || [];
  const zoom = b > a ? [a, b] : null;
  const newest = [...t.attempts].sort((x, y) => y[5] - x[5]).slice(0, NEWEST);
  const open = (attempt) => { history.pushState(null, '', partLink(id, data.stage, attempt[1])); dispatchEvent(new PopStateEvent('popstate')); };
  return html`<section class="card wide" id="slots"><h2>Slots <span class="muted">${t.slots.map((s) => `${count(s.slots)} × ${s.instance_type}${s.market === 'on_demand' ? '' : ` (${s.market})`}`).join(', ')}</span>
      ${t.attempts.length > 0 && html`<${Csv} file=${`${id}-attempts`} columns=${['slot', 'part', 'try', 'state', 'cause', 'intended_at', 'started_at', 'ended_at', 'warm']} rows=${() => attemptRows(t)}/>`}</h2>
    ${t.attempts.length === 0 ? html`<p class="muted">No job was sent yet.</p>` : html`<${Gantt} data=${t} zoom=${zoom} onZoom=${(z) => move({ span: z ? z.join('-') : '' })} open=${open}/>
    <ul class="legend"><li><span class="key ph-starting" aria-hidden="true"></span>starting</li><li><i class="dot s-active" aria-hidden="true">▶</i>running</li><li><i class="dot s-done" aria-hidden="true">✓</i>done</li>
      <li><i class="dot s-failed" aria-hidden="true">✗</i>failed</li><li><i class="dot s-cancelled" aria-hidden="true">⊘</i>stopped</li></ul>
    ${t.more && html`<p class="muted">The newest ${count(t.attempts.length)} tries; older ones may be left out.</p>`}
    <details><summary>The newest as a list</summary><ul class="lines">${newest.map((x) => html`<li key=${`${x[1]}/${x[2]}`}><a href=${partLink(id, data.stage, x[1])}>${describe(t, x, Date.parse(t.from_at))}</a></li>`)}</ul></details>`}
  </section>`;
}

// The likely end of the stage: the rate that the forecast expects until then, and between which times it ends.
function ahead(stage, forecast) {
  const f = forecast.campaign?.stages?.find((s) => s.name === stage.name);
  const end = f?.end;
  if (ENDED.includes(stage.state) || !(f?.parts_per_hour > 0) || end?.p50_seconds == null) return null;
  const now = Date.now();
  return { now, rate: f.parts_per_hour, low: now + end.p10_seconds * 1000, mid: now + end.p50_seconds * 1000, high: now + (end.p90_seconds ?? end.p50_seconds) * 1000 };
}

function Pace({ id, stage, pace, forecast }) {
  const spans = pace.spans.map((s) => ({ ...s, x: Date.parse(s.at) }));
  if (spans.length === 0) return html`<section class="card wide" id="pace"><h2>Throughput</h2><p class="muted">No part is done yet.</p></section>`;
  const next = ahead(stage, forecast);
  const from = spans[0].x;
  const last = spans[spans.length - 1];
  const to = next ? next.high : last.x + last.seconds * 1000;
  const stairs = (of) => spans.flatMap((s) => [{ x: s.x, y: of(s) }, { x: s.x + s.seconds * 1000, y: of(s) }]);
  const failed = spans.some((s) => s.failed > 0);
  const text = timeText(from, to);
  return html`<section class="card wide" id="pace"><h2>Throughput <span class="muted">parts an hour</span><${Csv} file=${`${id}-throughput`} columns=${['at', 'seconds', 'done', 'failed', 'parts_per_hour']} rows=${pace.spans}/></h2>
    <${TimeChart} from=${from} to=${to} xText=${text} yText=${(v) => (v === 0 ? '0' : rate(v))} marks=${next ? [next.now] : []} zones=${next ? [{ key: 'end', from: next.low, to: next.high }] : []}
      lines=${[...(failed ? [{ key: 'bad', points: stairs((s) => (s.failed * 3600) / s.seconds) }] : []), { key: 'a', points: stairs((s) => s.parts_per_hour) },
        ...(next ? [{ key: 'b', points: [{ x: next.now, y: next.rate }, { x: next.mid, y: next.rate }] }] : [])]}
      label=${`${rate(Math.max(...spans.map((s) => s.parts_per_hour)))} parts an hour at most, ${count(spans.reduce((n, s) => n + s.done, 0))} parts done${next ? `; ends likely between ${text(next.low)} and ${text(next.high)}` : ''}`}/>
    <ul class="legend"><li><i class="line a" aria-hidden="true"></i>parts done</li>${failed && html`<li><i class="line bad" aria-hidden="true"></i>failed tries</li>`}
      ${next && html`<li><i class="line b" aria-hidden="true"></i>expected, ${rate(next.rate)} an hour</li>
        <li><span class="key zone-end" aria-hidden="true"></span>likely end, in ${duration(forecast.low_seconds)} to ${durationOrNever(forecast.high_seconds)}</li>`}</ul>
    <details><summary>As a table</summary><table><thead><tr><th scope="col">From</th><th scope="col" class="num">Parts done</th><th scope="col" class="num">Failed tries</th><th scope="col" class="num">Parts an hour</th></tr></thead>
      <tbody>${spans.slice(-NEWEST).map((s) => html`<tr key=${s.at}><td>${text(s.x)}</td>
        <td class="num">${count(s.done)}</td><td class="num">${count(s.failed)}</td><td class="num">${rate(s.parts_per_hour)}</td></tr>`)}</tbody></table></details>
  </section>`;
}

function Pareto({ id, stage, failures, by, move }) {
  const causes = new Map();
  for (const g of failures.groups) {
    const c = causes.get(g.cause) || { cause: g.cause, parts: 0, lost: 0 };
    causes.set(g.cause, { ...c, parts: c.parts + g.parts, lost: c.lost + g.lost_micro_usd });
  }
  const of = by === 'money' ? (c) => c.lost : (c) => c.parts;
  const rows = [...causes.values()].sort((a, b) => of(b) - of(a));
  const all = rows.reduce((n, c) => n + of(c), 0);
  let sum = 0;
  return html`<section class="card two" id="pareto"><h2>What failed <span class="right row" role="group" aria-label="order">
      ${[['', 'parts'], ['money', 'money']].map(([key, name]) => html`<button key=${key} class="tab" aria-pressed=${by === key} onClick=${() => move({ by: key })}>by ${name}</button>`)}</span></h2>
    ${rows.length === 0 ? html`<p class="muted">Nothing has failed for good.</p>` : html`<${Bars} label="causes of failures" bad rows=${rows.map((c) => {
      sum += of(c);
      return { name: html`<a href=${`/c/${id.slice(2)}/parts?${new URLSearchParams({ stage, state: 'failed', cause: c.cause })}`}>${word(c.cause)}</a>`, value: of(c),
        text: `${parts(c.parts)}, ${usd(c.lost)}`, note: percent(sum, all) };
    })}/><p class="muted">The share is of all that is at or above the line.</p>`}</section>`;
}

function Kept({ id, kept }) {
  if (kept.points.length === 0) return html`<section class="card two" id="kept"><h2>Rows kept</h2><p class="muted">No part that is done has counted its rows.</p></section>`;
  const points = kept.points.flatMap((p) => [{ x: p.first, y: p.ratio }, { x: p.last + 1, y: p.ratio }]);
  const ratios = kept.points.map((p) => p.ratio);
  return html`<section class="card two" id="kept"><h2>Rows kept <span class="muted">by part</span><${Csv} file=${`${id}-yield`} columns=${['first', 'last', 'parts', 'rows', 'successes', 'ratio']} rows=${kept.points}/></h2>
    <${TimeChart} lines=${[{ key: 'a', points }]} top=${1} xText=${(v) => count(Math.round(v))} yText=${(v) => percent(v, 1)}
      label=${`share of rows kept: ${percent(Math.min(...ratios), 1)} to ${percent(Math.max(...ratios), 1)} over the parts`}/>
    ${kept.every > 1 && html`<p class="muted">One of ${count(kept.every)} parts is read.</p>`}
    <h3>Lowest</h3><table class="outcome"><tbody>${kept.lowest.slice(0, 5).map((p) => html`<tr key=${p.part}><th scope="row"><a href=${partLink(id, kept.stage, p.part)}>part ${count(p.part)}</a></th>
      <td class="num">${percent(p.ratio, 1)}</td><td class="num">${count(p.successes)} of ${count(p.rows)}</td></tr>`)}</tbody></table></section>`;
}

export function Timeline({ id, setLive }) {
  const [at, move] = useQuery(FIELDS);
  const { data, problem } = useLive(`/campaigns/${id}/events`, () => read(id, at), [id, at.stage], setLive, CURVES_MS);
  if (!data) return html`<${Loading} problem=${problem}/>`;
  const { campaign, stage } = data;
  const shown = campaign.stages.find((s) => s.name === stage);
  return html`<main>
    <${CampaignHead} campaign=${campaign} title="Timeline" here="timeline"/>
    <${Trouble} problem=${problem} data/>
    ${campaign.stages.length > 1 && html`<div class="fields"><label>Stage <select name="stage" value=${stage} onChange=${(e) => move({ stage: e.target.value, span: '' })}>
      ${campaign.stages.map((s) => html`<option key=${s.name} value=${s.name} selected=${s.name === stage}>${s.name} · ${word(s.state)}</option>`)}</select></label></div>`}
    ${!data.timeline ? html`<section class="card" id="archived"><h2>Archived</h2><p>Its attempts are deleted, and with them its timeline. Its cost is kept.</p></section>`
      : html`<div class="grid"><${Slots} id=${id} data=${data} at=${at} move=${move}/><${Pace} id=${id} stage=${shown} pace=${data.pace} forecast=${data.forecast}/>
        <${Pareto} id=${id} stage=${stage} failures=${data.failures} by=${at.by} move=${move}/><${Kept} id=${id} kept=${data.kept}/></div>`}
  </main>`;
}
