// Charts without a library, in one picture each: lines over a common scale, bars with their values beside them.
import { html } from './html.js';
import { figure } from './format.js';

const W = 600;
const H = 140;

// Places of the values in the box; a series of equal values lies in the middle.
function scale(values, size, flip) {
  const low = Math.min(...values);
  const span = Math.max(...values) - low;
  return (v) => {
    const part = span > 0 ? (v - low) / span : 0.5;
    return Math.round((flip ? 1 - part : part) * size * 10) / 10;
  };
}

// lines: [{ key, points: [{ x, y, low, high }] }]; key is the class of a line. low and high, when given, are a band behind it.
// dots: marks each point. sides: shows the least and the most of all values beside the picture.
// origin: both axes begin at 0. xText: how a place of the axis reads.
export function Lines({ lines, label, xText, origin, dots, sides }) {
  const all = lines.flatMap((l) => l.points);
  const zero = origin ? [0] : [];
  const xs = [...zero, ...all.map((p) => p.x)];
  const ys = [...zero, ...all.flatMap((p) => [p.low ?? p.y, p.high ?? p.y])];
  const x = scale(xs, W, false);
  const y = scale(ys, H, true);
  const at = (points, key) => points.map((p) => `${x(p.x)},${y(p[key])}`);
  return html`<div class=${sides ? 'plot' : ''}>
    ${sides && html`<p class="muted sides" aria-hidden="true"><span>${figure(Math.max(...ys))}</span><span>${figure(Math.min(...ys))}</span></p>`}
    <svg class="curve" viewBox=${`0 0 ${W} ${H}`} preserveAspectRatio="none" role="img" aria-label=${label}>
      ${lines.map((l) => l.points.some((p) => p.low != null) && html`<polygon key=${`${l.key} spread`} class=${`spread ${l.key}`} points=${[...at(l.points, 'high'), ...at(l.points, 'low').reverse()].join(' ')}/>`)}
      ${lines.map((l) => html`<polyline key=${l.key} class=${l.key} points=${at(l.points, 'y').join(' ')}/>`)}
      ${dots && lines.map((l) => l.key !== 'ideal' && html`<path key=${`${l.key} dots`} class=${l.key} d=${at(l.points, 'y').map((p) => `M${p}h0`).join('')}/>`)}</svg></div>
    <p class=${`muted axis${sides ? ' beside' : ''}`}><span>${xText(Math.min(...xs))}</span><span>${xText(Math.max(...xs))}</span></p>`;
}

// rows: [{ name, value, text, note, good }]; limit: a mark at that value. bad: of failures.
export function Bars({ rows, label, limit, bad }) {
  const top = Math.max(...rows.map((r) => r.value), limit ?? 0) || 1;
  const wide = (v) => Math.round((10000 * v) / top) / 10;
  return html`<ul class="bars" aria-label=${label}>${rows.map((r, i) => html`<li key=${i}><span class="clamp">${r.name}</span> <span class="figures">${r.text}${r.note && html` <b>${r.note}</b>`}</span>
    <svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true"><rect class="track" x="0" y="0" width="1000" height="10"/>
      <rect class=${r.good ? 'good' : bad ? 'lost' : 'spent'} x="0" y="0" width=${wide(r.value)} height="10"/>
      ${limit != null && html`<rect class="limit" x=${Math.min(wide(limit), 997)} y="0" width="3" height="10"/>`}</svg></li>`)}</ul>`;
}
