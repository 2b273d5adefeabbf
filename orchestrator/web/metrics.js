// The metrics of a run's newest attempt: a line for each, the band between the extremes behind it, and the same as a table.
import { useEffect, useState } from 'preact/hooks';
import { html } from './html.js';
import { get } from './api.js';
import { Lines } from './chart.js';
import { count, duration, figure } from './format.js';

const POINTS = 200;
const TABLE = 20;

function Chart({ s, by }) {
  const points = s.chart.map((p) => ({ x: p[by], y: p.mean, low: p.min, high: p.max }));
  const every = Math.max(1, Math.ceil(s.chart.length / TABLE));
  const rows = s.chart.filter((_, i) => i % every === 0 || i === s.chart.length - 1);
  return html`<figure class="metric"><figcaption><b>${s.name}</b> ${figure(s.last)} <span class="muted">${figure(s.min)} to ${figure(s.max)}, ${count(s.points)} points</span></figcaption>
    <${Lines} lines=${[{ key: 'a', points }]} xText=${(v) => (by === 'step' ? `step ${count(v)}` : duration(v))}
      label=${`${s.name} ${by === 'step' ? 'by step' : 'by time'}: ${figure(s.chart[0].mean)} at first, ${figure(s.last)} at last`}/>
    <details><summary>As a table</summary><table><thead><tr><th scope="col">Step</th><th scope="col">Time</th><th scope="col">Mean</th><th scope="col">Least</th><th scope="col">Most</th></tr></thead>
      <tbody>${rows.map((p) => html`<tr key=${p.step}><td>${count(p.step)}</td><td>${duration(p.seconds)}</td><td>${figure(p.mean)}</td><td>${figure(p.min)}</td><td>${figure(p.max)}</td></tr>`)}</tbody></table></details>
  </figure>`;
}

// at: changes when something of the part may have changed.
export function Metrics({ campaign, stage, seq, at }) {
  const [data, setData] = useState(null);
  const [by, setBy] = useState('step');
  useEffect(() => {
    let stale = false;
    get(`/campaigns/${campaign}/parts/${seq}/metrics?points=${POINTS}&stage=${encodeURIComponent(stage)}`).then((d) => !stale && setData(d), () => {});
    return () => { stale = true; };
  }, [campaign, stage, seq, at]);
  const shown = (data?.series || []).filter((s) => s.chart.length > 0);
  if (shown.length === 0) return null;
  const other = `/c/${campaign.slice(2)}/compare?${new URLSearchParams({ a: `${stage}/${seq}/${data.attempt}` })}`;
  return html`<div id="metrics"><h3>Metrics of try ${data.attempt} <a href=${other}>compare with another run</a> <label class="right by">by <select value=${by} onChange=${(e) => setBy(e.target.value)}>
      <option value="step">step</option><option value="seconds">time</option></select></label></h3>
    ${data.note && html`<p class="muted">Not whole: ${data.note}</p>`}
    ${shown.map((s) => html`<${Chart} key=${s.name} s=${s} by=${by}/>`)}</div>`;
}
