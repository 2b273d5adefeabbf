// One part: its attempts in order, the cost and the end of each, and the newest lines of an
// attempt's log.
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { get } from './api.js';
import { changeQuestion, MOVES, VERBS } from './failures.js';
import { Log } from './log.js';
import { Metrics } from './metrics.js';
import { Act } from './role.js';
import { Ago } from './show.js';
import { bytes, count, duration, glyph, durationOrNever, usd, word } from './format.js';

const PHASES = [['queued', 'intended_at', 'created_at'], ['starting', 'created_at', 'started_at'], ['running', 'started_at', 'ended_at']];

// Seconds of each phase that has begun; one without an end lasts until now, or until the attempt ended.
function phasesOf(a, now) {
  return PHASES.map(([name, from, to]) => {
    const end = Date.parse(a[to] || a.ended_at || '') || now;
    return { name, seconds: a[from] ? Math.max(0, (end - Date.parse(a[from])) / 1000) : 0 };
  }).filter((p) => p.seconds > 0);
}

// All attempts have the same scale. The text says what the bar shows.
function Timeline({ phases, longest }) {
  let x = 0;
  const total = phases.reduce((t, p) => t + p.seconds, 0);
  return html`<svg class="bar phases" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label=${`${duration(total)} in all`}>
      ${phases.map((p) => {
        const w = (1000 * p.seconds) / Math.max(longest, 1);
        x += w;
        return html`<rect key=${p.name} class=${`ph-${p.name}`} x=${x - w} y="0" width=${w} height="10"/>`;
      })}</svg>
    <ul class="legend">${phases.map((p) => html`<li key=${p.name}><i class=${`key ph-${p.name}`} aria-hidden="true"></i>${p.name} ${duration(p.seconds)}</li>`)}</ul>`;
}

// What was sent for a try, or would be.
function Request({ of }) {
  const [text, setText] = useState('');
  return html`<details onToggle=${(e) => e.target.open && get(of).then((r) => setText(JSON.stringify(r.request, null, 2)), (x) => setText(x.message))}>
    <summary>Request</summary><pre class="sent" tabindex="0" role="region" aria-label="request">${text}</pre></details>`;
}

function Tries({ list, of, onLog }) {
  if (list.length === 0) return html`<p class="muted">Not started yet.</p>`;
  const now = Date.now();
  const phases = list.map((a) => phasesOf(a, now));
  const longest = Math.max(...phases.map((p) => p.reduce((t, x) => t + x.seconds, 0)));
  return html`<ol class="tries">${list.map((a, i) => html`<li key=${a.n}>
    <div class="row try"><b>Try ${a.n}</b> <span>${word(a.state)}</span>${a.cause && a.cause !== 'none' ? html` <span class="tag">${word(a.cause)}</span>` : ''}
      <span class="muted"><${Ago} at=${a.started_at || a.intended_at}/> · ${usd(a.cost_micro_usd)}${a.estimated ? ' estimated' : ''} · ${a.instances} × ${a.instance_type}${a.volume_gb ? `, ${a.volume_gb} GB` : ''}</span>
      <button class="right" onClick=${() => onLog(a.n)} aria-label=${`log of try ${a.n}`}>Log</button></div>
    ${phases[i].length > 0 && html`<${Timeline} phases=${phases[i]} longest=${longest}/>`}
    ${a.reason && html`<p class="reason">${a.reason}</p>`}
    <p class="muted"><code>${a.job_name}</code>${/^https:/.test(a.console_url) && html` <a href=${a.console_url} rel="noreferrer" target="_blank">AWS console ↗</a>`}</p>
    <${Request} of=${`${of}&attempt=${a.n}`}/></li>`)}</ol>`;
}

// Why it is not running, its position and expected start, and what would change that.
function Why({ why }) {
  if (!why?.reason) return null;
  const s = why.starts;
  return html`<div id="why"><p class="muted">Waits: ${why.text}${why.place ? ` · place ${count(why.place)} of ${count(why.place_of)}` : ''}${
    !s ? '' : s.p50_seconds == null ? ' · does not start under the current limits' : ` · starts in ${duration(s.p50_seconds)} (${duration(s.p10_seconds)} to ${durationOrNever(s.p90_seconds)})`}</p>
    ${(why.changes || []).map((c) => html`<p class="muted" key=${c.command}><code>${c.command}</code>: starts in ${duration(c.starts.p50_seconds)}</p>`)}
    ${why.next && html`<p class="muted">Next: ${why.next}</p>`}</div>`;
}

// ask, onDone: for what is done to this part alone; closed: a cancelled campaign takes neither.
export function Part({ campaign, stage, seq, at, jump, closed, ask, onDone, onClose }) {
  const [part, setPart] = useState(null);
  const [why, setWhy] = useState(null);
  const [log, setLog] = useState(null);
  const [problem, setProblem] = useState(null);
  const head = useRef(null);
  const of = `?stage=${encodeURIComponent(stage)}`;
  useEffect(() => {
    let stale = false;
    get(`/parts/${campaign}/${seq}${of}`).then((p) => {
      if (stale) return;
      setPart(p);
      setProblem(null);
      if (p.state === 'waiting' || p.state === 'held') {
        // the reason is shown without the forecast
        get(`/campaigns/${campaign}/parts/${seq}/why${of}`).then((w) => !stale && setWhy(w), () => {});
      } else {
        setWhy(null);
      }
    }, (e) => !stale && setProblem(e));
    return () => { stale = true; };
  }, [campaign, of, seq, at]);
  useEffect(() => setLog(null), [campaign, stage, seq]);
  useEffect(() => {
    if (!jump) return;
    head.current.scrollIntoView({ block: 'center' });
    head.current.focus();
  }, [jump]);
  const mine = part && part.seq === seq ? part : null;
  return html`<section class="card wide" id="part" aria-labelledby="part-title">
    <h2 id="part-title" ref=${head} tabindex="-1">Part ${stage}/${seq} ${mine && html`<span class=${`tag s-${mine.state}`} id="part-state">${glyph[mine.phase] || glyph[mine.state]} ${word(mine.phase || mine.state)}</span>`}
      ${!closed && MOVES[mine?.state]?.map((verb) => html`<${Act} key=${verb} id=${`${verb}-part`}
        onClick=${() => ask(changeQuestion({ campaign, verb, selector: { stage, parts: [seq] }, onDone }))}>${VERBS[verb][0]}…<//>`)}
      <button class="link right" onClick=${onClose}>close</button></h2>
    ${problem && html`<p class="problem" role="alert">${problem.message}</p>`}
    ${mine && html`<p><code>${mine.uri}</code>${mine.size > 0 ? html` <span class="muted">${bytes(mine.size)}</span>` : ''}</p>
      ${mine.skipped && html`<p class="muted">${mine.skipped.text}</p>`}
      ${why && why.id === mine.id ? html`<${Why} why=${why}/>` : mine.wait_text && html`<p class="muted">Waits: ${mine.wait_text}</p>`}
      <${Tries} list=${mine.attempt_list} of=${`/campaigns/${campaign}/parts/${seq}/request${of}`} onLog=${setLog}/>
      ${mine.attempt_list.length > 0 && html`<${Metrics} key=${`${stage}/${seq}`} campaign=${campaign} stage=${stage} seq=${seq} at=${at}/>`}`}
    ${log != null && html`<${Log} campaign=${campaign} stage=${stage} seq=${seq} attempt=${log} at=${at} live=${!mine?.attempt_list.find((x) => x.n === log)?.ended_at}/>`}
  </section>`;
}
