// Where the hour went: time and money of a campaign by phase, what trained nothing, and what would cut it. Read when it is opened.
import { useEffect, useState } from 'preact/hooks';
import { html } from './html.js';
import { get } from './api.js';
import { duration, percent, usd, word } from './format.js';

// at: changes when the cost may have changed.
export function Phases({ campaign, at }) {
  const [open, setOpen] = useState(false);
  const [cost, setCost] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    let stale = false;
    if (open) get(`/campaigns/${campaign}/cost?by=phase`).then((c) => { if (!stale) { setCost(c); setProblem(null); } }, (e) => !stale && setProblem(e));
    return () => { stale = true; };
  }, [campaign, open, at]);
  const rows = (cost?.by_phase || []).filter((p) => p.elapsed_seconds > 0 || p.micro_usd > 0);
  const all = rows.reduce((sum, p) => sum + p.micro_usd, 0);
  const advice = (cost?.stages || []).flatMap((s) => s.advice.map((a) => ({ ...a, stage: s.stage })));
  return html`<details id="phases" onToggle=${(e) => setOpen(e.target.open)}><summary>Where the hour went</summary>
    ${problem && html`<p class="problem" role="alert">${problem.message}</p>`}
    ${cost && rows.length === 0 && html`<p class="muted">No job has ended yet.</p>`}
    ${rows.length > 0 && html`<table><thead><tr><th scope="col">Phase</th><th scope="col">Time</th><th scope="col">Cost</th></tr></thead>
      <tbody>${rows.map((p) => html`<tr key=${p.phase}><td>${word(p.phase)}</td><td>${duration(p.elapsed_seconds)}</td><td>${usd(p.micro_usd)}</td></tr>`)}</tbody></table>
      <p class="muted" id="trained-nothing">${usd(cost.trained_nothing.micro_usd)} trained nothing: ${percent(cost.trained_nothing.micro_usd, all)} of the bill</p>`}
    ${advice.map((a) => html`<p class="muted" key=${`${a.stage} ${a.text}`}><b>${a.stage}, ${word(a.phase)}</b> ${usd(a.micro_usd)}, ${duration(a.elapsed_seconds)}: ${a.text}</p>`)}
  </details>`;
}
