// Curves over time or another common scale, with marked axes. Labels are elements beside the picture, evenly spaced, since the
// picture is stretched and the page's policy allows no inline style.
import { html } from './html.js';
import { duration } from './format.js';

const W = 1000;
const H = 200;
const Y_TICKS = 4;
const X_TICKS = 4;

// The least of 1, 2, 2.5, 4, 5 or 10 times a power of ten that is not below v.
export function roundUp(v) {
  if (!(v > 0)) return 1;
  const ten = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 2.5, 4, 5, 10].map((m) => m * ten).find((x) => x >= v * 0.999999);
}

const even = (n, from, to) => Array.from({ length: n + 1 }, (_, i) => from + ((to - from) * i) / n);

// A curve that keeps its value until the next point.
export const steps = (points) => points.flatMap((p, i) => (i + 1 < points.length ? [p, { ...p, x: points[i + 1].x }] : [p]));

// A level so high that the curves would lie on the axis is left out of the picture.
export const isFar = (level, peak) => level > 4 * peak;

// lines: [{ key, points: [{ x, y, low, high }] }], key is the class of a line; low and high are a band behind it.
// zones: [{ key, from, to }], parts of the x-axis. level: { y }, a line over all of it. marks: places of x with a line.
// xText and yText: how a value of an axis reads.
export function TimeChart({ lines, zones = [], level, marks = [], label, id, from, to, top, xText, yText }) {
  const fits = (p) => Number.isFinite(p.x) && Number.isFinite(p.y);
  const shown = lines.map((l) => ({ ...l, points: l.points.filter(fits) })).filter((l) => l.points.length > 0);
  const xs = shown.flatMap((l) => l.points.map((p) => p.x));
  const x0 = from ?? Math.min(...xs);
  const x1 = Math.max(to ?? Math.max(...xs), x0 + 1);
  const peak = Math.max(0, ...shown.flatMap((l) => l.points.map((p) => p.high ?? p.y)));
  if (!Number.isFinite(x0) || !Number.isFinite(x1)) return null; // times that are none
  const most = top ?? roundUp(level && !isFar(level.y, peak) ? Math.max(level.y, peak) : peak);
  const x = (v) => Math.round(((Math.min(Math.max(v, x0), x1) - x0) / (x1 - x0)) * W * 10) / 10;
  const y = (v) => Math.round((1 - Math.min(Math.max(v, 0), most) / most) * H * 10) / 10;
  const at = (points, key) => points.map((p) => `${x(p.x)},${y(p[key])}`);
  return html`<div class="chart" id=${id}>
    <p class="muted ys" aria-hidden="true">${even(Y_TICKS, most, 0).map((v) => html`<span key=${v}>${yText(v)}</span>`)}</p>
    <svg class="curve" viewBox=${`0 0 ${W} ${H}`} preserveAspectRatio="none" role="img" aria-label=${label}>
      ${even(Y_TICKS, 0, H).map((v) => html`<line key=${v} class="rule" x1="0" x2=${W} y1=${v} y2=${v}/>`)}
      ${zones.map((z) => html`<rect key=${z.key} class=${`zone ${z.key}`} x=${x(z.from)} y="0" width=${Math.max(1, x(z.to) - x(z.from))} height=${H}/>`)}
      ${shown.map((l) => l.points.some((p) => p.low != null) && html`<polygon key=${`${l.key} spread`} class=${`spread ${l.key}`} points=${[...at(l.points, 'high'), ...at(l.points, 'low').reverse()].join(' ')}/>`)}
      ${level && level.y <= most && html`<line class="level" x1="0" x2=${W} y1=${y(level.y)} y2=${y(level.y)}/>`}
      ${marks.map((v) => html`<line key=${v} class="now" x1=${x(v)} x2=${x(v)} y1="0" y2=${H}/>`)}
      ${shown.map((l) => html`<polyline key=${l.key} class=${l.key} points=${at(l.points, 'y').join(' ')}/>`)}</svg>
    <p class="muted xs" aria-hidden="true">${even(X_TICKS, x0, x1).map((v, i) => html`<span key=${v} class=${i % 2 ? 'odd' : ''}>${xText(v)}</span>`)}</p>
  </div>`;
}

// A place of a time axis: the clock, with the day when it spans more than one.
export function timeText(from, to) {
  const long = to - from > 20 * 3600e3;
  const options = long ? { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' } : { hour: '2-digit', minute: '2-digit', ...(to - from < 600e3 ? { second: '2-digit' } : {}) };
  return (v) => new Date(v).toLocaleString('en-GB', options);
}

// Seconds since a begin.
export const sinceText = (from) => (v) => duration((v - from) / 1000);
