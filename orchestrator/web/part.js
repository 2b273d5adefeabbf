// One part: its attempts in order, the cost and the end of each, and the newest lines of an
// attempt's log.
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { get } from './api.js';
import { Ago } from './show.js';
import { bytes, count, duration, glyph, durationOrNever, usd, word } from './format.js';

const ran = (a) => (a.started_at ? duration((Date.parse(a.ended_at || new Date().toISOString()) - Date.parse(a.started_at)) / 1000) : '–');

function Tries({ list, onLog }) {
  if (list.length === 0) return html`<p class="muted">Not started yet.</p>`;
  return html`<table class="stack"><thead><tr><th>Try</th><th>State</th><th>Job</th><th>Started</th><th class="num">Ran</th><th class="num">Cost</th><th>Reason</th><td></td></tr></thead>
    <tbody>${list.map((a) => html`<tr key=${a.n}>
      <td class="name"><span class="only-narrow">Try </span>${a.n}</td>
      <td data-label="State">${word(a.state)}${a.cause && a.cause !== 'none' ? html` <span class="tag">${word(a.cause)}</span>` : ''}</td>
      <td class="why"><code>${a.job_name}</code><br/><span class="muted">${a.instances} × ${a.instance_type}${a.volume_gb ? `, ${a.volume_gb} GB` : ''}</span></td>
      <td data-label="Started"><${Ago} at=${a.started_at}/></td>
      <td data-label="Ran" class="num">${ran(a)}</td>
      <td data-label="Cost" class="num">${usd(a.cost_micro_usd)}${a.estimated ? html`<br/><span class="muted">estimated</span>` : ''}</td>
      <td class="why reason">${a.reason || ''}</td>
      <td class="act"><button onClick=${() => onLog(a.n)} aria-label=${`log of try ${a.n}`}>Log</button></td></tr>`)}</tbody></table>`;
}

function Log({ log }) {
  if (!log) return null;
  return html`<h3>Log of try ${log.attempt}</h3><pre class="log" tabindex="0" role="region" aria-label="log">${
    log.lines.length ? log.lines.map((l) => `${(l.time || '').slice(11, 19)} ${l.host} ${l.text}`).join('\n') : 'no lines yet'}</pre>`;
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

export function Part({ campaign, stage, seq, at, jump, onClose }) {
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
  const showLog = async (attempt) => {
    try {
      const page = await get(`/campaigns/${campaign}/parts/${seq}/logs${of}&attempt=${attempt}`);
      setLog({ attempt, lines: page.lines });
      setProblem(null);
    } catch (e) {
      setProblem(e);
    }
  };
  const mine = part && part.seq === seq ? part : null;
  return html`<section class="card wide" id="part" aria-labelledby="part-title">
    <h2 id="part-title" ref=${head} tabindex="-1">Part ${seq} ${mine && html`<span class=${`tag s-${mine.state}`} id="part-state">${glyph[mine.phase] || glyph[mine.state]} ${word(mine.phase || mine.state)}</span>`}
      <button class="link right" onClick=${onClose}>close</button></h2>
    ${problem && html`<p class="problem" role="alert">${problem.message}</p>`}
    ${mine && html`<p><code>${mine.uri}</code>${mine.size > 0 ? html` <span class="muted">${bytes(mine.size)}</span>` : ''}</p>
      ${why && why.id === mine.id ? html`<${Why} why=${why}/>` : mine.wait_text && html`<p class="muted">Waits: ${mine.wait_text}</p>`}
      <${Tries} list=${mine.attempt_list} onLog=${showLog}/>`}
    <${Log} log=${log}/>
  </section>`;
}
