// One part: its tries in order, what each cost, why it ended, and the tail of its log.
import { useEffect, useState } from 'preact/hooks';
import { html } from './html.js';
import { get } from './api.js';
import { ago, duration, glyph, usd, word } from './format.js';

export function Part({ campaign, stage, seq, at, onClose }) {
  const [part, setPart] = useState(null);
  const [log, setLog] = useState(null);
  const [problem, setProblem] = useState(null);
  const of = `?stage=${encodeURIComponent(stage)}`;
  useEffect(() => {
    get(`/parts/${campaign}/${seq}${of}`).then((p) => { setPart(p); setProblem(null); }, setProblem);
  }, [campaign, seq, at]);
  useEffect(() => setLog(null), [campaign, seq]);
  const showLog = async () => {
    try {
      setLog((await get(`/campaigns/${campaign}/parts/${seq}/logs${of}`)).lines);
    } catch (e) {
      setProblem(e);
    }
  };
  return html`<section class="card wide" id="part">
    <h2>Part ${seq} ${part && html`<span class=${`tag s-${part.state}`}>${glyph[part.phase] || glyph[part.state]} ${word(part.phase || part.state)}</span>`}
      <button class="link right" onClick=${onClose}>close</button></h2>
    ${problem && html`<p class="problem" role="alert">${problem.message}</p>`}
    ${part && html`<p class="muted">${part.uri}${part.wait_text ? ` · waits: ${part.wait_text}` : ''}</p>
      <table><thead><tr><th>Try</th><th>State</th><th>Job</th><th>Started</th><th class="num">Ran</th><th class="num">Cost</th><th>Reason</th></tr></thead>
      <tbody>${part.attempt_list.map((a) => html`<tr key=${a.n}>
        <td>${a.n}</td><td>${word(a.state)}${a.cause ? html` <span class="tag">${word(a.cause)}</span>` : ''}</td>
        <td><code>${a.job_name}</code><br/><span class="muted">${a.instances} × ${a.instance_type}</span></td>
        <td title=${a.started_at}>${ago(a.started_at)}</td>
        <td class="num">${a.started_at ? duration((Date.parse(a.ended_at || new Date().toISOString()) - Date.parse(a.started_at)) / 1000) : '–'}</td>
        <td class="num">${usd(a.cost_micro_usd)}${a.estimated ? ' (estimated)' : ''}</td>
        <td>${a.reason || ''}</td></tr>`)}
      ${part.attempt_list.length === 0 && html`<tr><td colspan="7" class="muted">not started yet</td></tr>`}</tbody></table>
      <p><button onClick=${showLog}>Show the newest log</button></p>
      ${log && html`<pre class="log">${log.length ? log.map((l) => `${l.time.slice(11, 19)} ${l.host} ${l.text}`).join('\n') : 'no log yet'}</pre>`}`}
  </section>`;
}
