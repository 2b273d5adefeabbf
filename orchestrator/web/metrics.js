// The metrics of a run's newest attempt: a line for each, the band between the extremes behind it, and the same as a table.
import { useEffect, useState } from 'preact/hooks';
import { html } from './html.js';
import { get } from './api.js';
import { count, duration } from './format.js';

const W = 600;
const H = 140;
const POINTS = 200;
const TABLE = 20;

export const figure = (v) => (v == null ? '–' : Number(v.toPrecision(5)).toString());

// Places of the values in the box; a series of equal values lies in the middle.
export function scale(values, size, flip) {
  const low = Math.min(...values);
  const span = Math.max(...values) - low;
  return (v) => {
    const part = span > 0 ? (v - low) / span : 0.5;
    return Math.round((flip ? 1 - part : part) * size * 10) / 10;
  };
}

function Chart({ s, by }) {
  const x = scale(s.chart.map((p) => p[by]), W, false);
  const y = scale(s.chart.flatMap((p) => [p.min, p.max]), H, true);
  const line = s.chart.map((p) => `${x(p[by])},${y(p.mean)}`).join(' ');
  const band = [...s.chart.map((p) => `${x(p[by])},${y(p.max)}`), ...s.chart.map((p) => `${x(p[by])},${y(p.min)}`).reverse()].join(' ');
  const last = s.chart[s.chart.length - 1];
  const every = Math.max(1, Math.ceil(s.chart.length / TABLE));
  const rows = s.chart.filter((_, i) => i % every === 0 || i === s.chart.length - 1);
  return html`<figure class="metric"><figcaption><b>${s.name}</b> ${figure(s.last)} <span class="muted">${figure(s.min)} to ${figure(s.max)}, ${count(s.points)} points</span></figcaption>
    <svg class="curve" viewBox=${`0 0 ${W} ${H}`} preserveAspectRatio="none" role="img"
      aria-label=${`${s.name} ${by === 'step' ? 'by step' : 'by time'}: ${figure(s.chart[0].mean)} at first, ${figure(s.last)} at last`}>
      <polygon class="spread" points=${band}/><polyline points=${line}/></svg>
    <p class="muted axis"><span>${by === 'step' ? `step ${count(s.chart[0].step)}` : '0 s'}</span><span>${by === 'step' ? `step ${count(last.step)}` : duration(last.seconds)}</span></p>
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
  return html`<div id="metrics"><h3>Metrics of try ${data.attempt} <label class="right">by <select value=${by} onChange=${(e) => setBy(e.target.value)}>
      <option value="step">step</option><option value="seconds">time</option></select></label></h3>
    ${data.note && html`<p class="muted">Not whole: ${data.note}</p>`}
    ${shown.map((s) => html`<${Chart} key=${s.name} s=${s} by=${by}/>`)}</div>`;
}
