// One campaign: progress and ETA, cost against budget, the heat map, failures with their remedy and a retry button, one part's tries.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { get, post, stream } from './api.js';
import { HeatMap } from './heatmap.js';
import { Confirm } from './dialog.js';
import { Part } from './part.js';
import { ago, count, duration, glyph, order, percent, usd, word } from './format.js';

const REFRESH_MS = 250; // events that come in between are answered by one reload
const POLL_MS = 10000;

function Progress({ parts }) {
  const total = parts.total || 1;
  const over = parts.done + parts.skipped;
  return html`<section class="card wide">
    <h2>Progress <b id="progress">${percent(over, parts.total)}</b></h2>
    <svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label="${over} of ${parts.total} parts over">
      ${order.reduce((acc, s) => {
        const w = (1000 * (parts[s] || 0)) / total;
        acc.out.push(html`<rect class=${`s-${s}`} x=${acc.x} y="0" width=${w} height="10"><title>${word(s)} ${parts[s]}</title></rect>`);
        acc.x += w;
        return acc;
      }, { x: 0, out: [] }).out}
    </svg>
    <ul class="legend">${order.filter((s) => parts[s] > 0).map((s) => html`<li><i class=${`dot s-${s}`}></i>${glyph[s]} ${word(s)} <b data-count=${s}>${count(parts[s])}</b></li>`)}
      <li class="muted">of ${count(parts.total)} parts</li></ul>
  </section>`;
}

function Eta({ forecast, campaign }) {
  const over = campaign.ended_at;
  return html`<section class="card">
    <h2>${over ? 'Took' : 'Ends in'}</h2>
    <p class="big" id="eta">${over ? duration((Date.parse(over) - Date.parse(campaign.started_at)) / 1000)
      : forecast?.ends_in_seconds != null ? duration(forecast.ends_in_seconds) : '–'}</p>
    <p class="muted">${over ? `ended ${ago(over)}`
      : forecast?.ends_in_seconds != null
        ? `likely ${duration(forecast.low_seconds)} to ${duration(forecast.high_seconds)} · ${forecast.parts_per_hour.toFixed(1)} parts/h`
        : forecast?.reason || ''}</p>
  </section>`;
}

function Cost({ cost }) {
  if (!cost) return html`<section class="card"><h2>Cost</h2><p class="big">–</p></section>`;
  const limit = cost.limit_micro_usd;
  const spent = cost.metered.micro_usd;
  const top = Math.max(limit ?? 0, spent + cost.reserved_micro_usd, 1);
  return html`<section class="card">
    <h2>Cost</h2>
    <p class="big" id="cost">${usd(spent)}</p>
    <svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label="spent and reserved against the budget">
      <rect class="track" x="0" y="0" width="1000" height="10"/>
      <rect class="spent" x="0" y="0" width=${(1000 * spent) / top} height="10"/>
      <rect class="reserved" x=${(1000 * spent) / top} y="0" width=${(1000 * cost.reserved_micro_usd) / top} height="10"/>
    </svg>
    <p class="muted">${limit == null ? 'no budget set' : `${percent(spent, limit)} of ${usd(limit)}`} · ${usd(cost.reserved_micro_usd)} reserved ·
      ${' '}${count(cost.metered.seconds)} instance-seconds · list prices</p>
  </section>`;
}

function Failures({ failures, onRetry, onPart }) {
  if (!failures || failures.groups.length === 0) return null;
  return html`<section class="card wide" id="failures">
    <h2>Failures <b>${count(failures.parts)}</b></h2>
    <table><thead><tr><th>Cause</th><th class="num">Parts</th><th>First</th><th class="num">Lost</th><th>Evidence and remedy</th><th></th></tr></thead>
    <tbody>${failures.groups.map((g) => html`<tr key=${g.cause + g.signature}>
      <td><span class="tag">${word(g.cause)}</span></td>
      <td class="num">${count(g.parts)}${g.retrying > 0 ? html`<br/><span class="muted">${count(g.retrying)} trying again</span>` : ''}</td>
      <td title=${g.first_at}>${ago(g.first_at)}</td>
      <td class="num">${usd(g.lost_micro_usd)}</td>
      <td><code>${g.message}</code><p class="muted">${g.remedy}</p>
        <p class="muted">parts ${g.sample.map((n, i) => html`${i ? ', ' : ''}<button class="link" onClick=${() => onPart(n)}>${n}</button>`)}${g.parts > g.sample.length ? ' …' : ''}</p></td>
      <td>${g.final > 0 && html`<button class="primary" data-retry=${g.cause} onClick=${() => onRetry(g)}>Retry ${count(g.final)}…</button>`}</td>
    </tr>`)}</tbody></table>
  </section>`;
}

function useCampaign(id, stage, zoom) {
  const [view, setView] = useState({});
  const [problem, setProblem] = useState(null);
  const busy = useRef(false);
  const again = useRef(false);
  const load = useCallback(async () => {
    if (busy.current) {
      again.current = true;
      return;
    }
    busy.current = true;
    try {
      const range = zoom ? `&first=${zoom[0]}&last=${zoom[1]}` : '';
      const of = stage ? `?stage=${encodeURIComponent(stage)}` : '?';
      const [campaign, tiles, failures, cost, forecast] = await Promise.all([
        get(`/campaigns/${id}`), get(`/campaigns/${id}/tiles${of}${range}`), get(`/campaigns/${id}/failures`),
        get(`/campaigns/${id}/cost`), get(`/campaigns/${id}/forecast${of}`)]);
      setView({ campaign, tiles, failures, cost, forecast, at: Date.now() });
      setProblem(null);
    } catch (e) {
      setProblem(e);
    }
    busy.current = false;
    if (again.current) {
      again.current = false;
      setTimeout(load, REFRESH_MS);
    }
  }, [id, stage, zoom && zoom[0], zoom && zoom[1]]);
  return { view, problem, load };
}

function Actions({ campaign, ask }) {
  const over = ['succeeded', 'failed', 'cancelled'].includes(campaign.state);
  if (over) return null;
  const go = (verb, title, text, danger) => () => ask({
    title, action: title, danger, preview: async () => text, confirm: () => post(`/campaigns/${campaign.id}:${verb}`) });
  return html`<div class="row">
    ${campaign.wanted === 'run'
      ? html`<button onClick=${go('drain', 'Drain', 'No new part starts; what runs goes on to its end.')}>Drain</button>
        <button onClick=${go('pause', 'Pause', `Jobs that run are stopped; their parts start again after Resume. ${campaign.parts.active} are running.`)}>Pause</button>`
      : html`<button class="primary" onClick=${go('resume', 'Resume', 'Parts start again as slots and money allow.')}>Resume</button>`}
    <button class="danger" onClick=${go('cancel', 'Cancel campaign', `Every job is stopped and ${campaign.parts.waiting} waiting parts never start. This cannot be undone.`, true)}>Cancel…</button>
  </div>`;
}

export function Campaign({ id }) {
  const [stage, setStage] = useState(null);
  const [zoom, setZoom] = useState(null);
  const [part, setPart] = useState(null);
  const [asked, setAsked] = useState(null);
  const [live, setLive] = useState('stale');
  const { view, problem, load } = useCampaign(id, stage, zoom);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => { load(); }, [load]);
  useEffect(() => {
    let timer = null;
    const soon = () => { timer ||= setTimeout(() => { timer = null; latest.current(); }, REFRESH_MS); };
    const close = stream(`/campaigns/${id}/events`, soon, setLive);
    const poll = setInterval(() => latest.current(), POLL_MS);
    return () => { close(); clearInterval(poll); clearTimeout(timer); };
  }, [id]);
  const { campaign, tiles, failures, cost, forecast } = view;
  if (!campaign) return problem ? html`<p class="problem" role="alert">${problem.message}</p>` : html`<p class="muted">loading …</p>`;
  const retry = (g) => setAsked({
    title: `Retry parts that failed: ${word(g.cause)}`, action: 'Retry',
    preview: async () => {
      const p = await post(`/campaigns/${id}:retry?dry_run=true`, { selector: { cause: [g.cause] } });
      return html`<p><b id="preview-parts">${count(p.parts)}</b> ${p.parts === 1 ? 'part' : 'parts'} will be tried again${p.sample?.length ? `: ${p.sample.join(', ')}` : ''}.
        Finished parts are not touched.</p><p class="muted">${g.remedy}</p>`;
    },
    confirm: async () => { await post(`/campaigns/${id}:retry`, { selector: { cause: [g.cause] } }); load(); } });
  const shown = stage || tiles?.stage;
  return html`<main>
    <header class="head">
      <div><p class="muted"><a href="/">campaigns</a> / ${campaign.project}</p>
        <h1>${campaign.name} <span class=${`state st-${campaign.state}`} id="state">${word(campaign.state)}${campaign.reason ? `: ${campaign.reason}` : ''}</span></h1>
        <p class="muted">${campaign.id} · started ${ago(campaign.started_at || campaign.created_at)} · priority ${campaign.priority}${campaign.limits.parts != null ? ` · at most ${campaign.limits.parts} parts at once` : ''}</p></div>
      <div class="side"><span class=${`chip ${live}`} id="live">${live === 'live' ? 'live' : 'stale · retrying'}</span><${Actions} campaign=${campaign} ask=${setAsked}/></div>
    </header>
    ${problem && html`<p class="problem" role="alert">showing the last known: ${problem.message}</p>`}
    <div class="grid">
      <${Progress} parts=${campaign.parts}/>
      <${Eta} forecast=${forecast} campaign=${campaign}/>
      <${Cost} cost=${cost}/>
      <section class="card wide">
        <h2>Parts ${campaign.stages.length > 1 ? campaign.stages.map((s) => html`<button class=${s.name === shown ? 'tab on' : 'tab'} onClick=${() => { setZoom(null); setStage(s.name); }}>${s.name} · ${word(s.state)}</button>`) : html`<span class="muted">${shown}</span>`}</h2>
        ${campaign.stages.filter((s) => s.name === shown && s.wait_reason && s.wait_reason !== 'none').map((s) => html`<p class="muted">the next part waits: ${s.wait_text}</p>`)}
        <${HeatMap} data=${tiles} zoomed=${!!zoom} onOpen=${setPart} onZoom=${(a, b) => setZoom(a == null ? null : [a, b])}/>
      </section>
      ${part != null && html`<${Part} campaign=${id} stage=${shown} seq=${part} at=${view.at} onClose=${() => setPart(null)}/>`}
      <${Failures} failures=${failures} onRetry=${retry} onPart=${setPart}/>
    </div>
    ${asked && html`<${Confirm} ...${asked} onClose=${() => { setAsked(null); load(); }}/>`}
  </main>`;
}
