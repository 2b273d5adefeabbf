// Attempts by slot and time, drawn on a canvas, which carries 10,000 of them. Arrow keys go from one to the next, Enter opens its part,
// + and - change the span. Colour is never the only sign: a failed attempt is crossed, one that runs has an open end.
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { clock, count, duration, glyph, word } from './format.js';
import { timeText } from './timechart.js';

const ROW_MAX = 20;
const ROW_MIN = 4;
const WANTED = 320; // px of height, when the slots allow it
const LEAST_MS = 1000; // span of the closest view
const [SLOT, PART, TRY, STATE, CAUSE, INTENDED, STARTED, ENDED, WARM] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const LOOK = { succeeded: 'done', failed: 'failed', stopped: 'cancelled', conflict: 'held' };
const SIGN = { ...glyph, succeeded: glyph.done, stopped: glyph.cancelled, conflict: glyph.held };

export const rowsOf = (data) => data.slots.reduce((n, s) => n + s.slots, 0);
const typeOf = (data, slot) => {
  let first = 0;
  for (const s of data.slots) {
    if (slot < first + s.slots) return s.market === 'on_demand' ? s.instance_type : `${s.instance_type} (${s.market})`;
    first += s.slots;
  }
  return '';
};
const colour = (data, a) => LOOK[data.states[a[STATE]]] || 'active';

export function describe(data, a, from) {
  const state = data.states[a[STATE]];
  const cause = a[CAUSE] > 0 ? `, ${word(data.causes[a[CAUSE]])}` : '';
  const took = a[ENDED] >= 0 ? duration((a[ENDED] - a[INTENDED]) / 1000) : `since ${clock(from + a[INTENDED])}`;
  const start = a[STARTED] >= 0 ? `, ${duration((a[STARTED] - a[INTENDED]) / 1000)} of it ${a[WARM] ? 'to a warm start' : 'to start'}` : '';
  return `part ${count(a[PART])}, try ${a[TRY]}: ${SIGN[state] || glyph.active} ${word(state)}${cause}, ${took}${start}, ${clock(from + a[INTENDED])} on ${typeOf(data, a[SLOT])}`;
}

function draw(canvas, data, width, view, now) {
  const rows = Math.max(1, rowsOf(data));
  const step = Math.max(ROW_MIN, Math.min(ROW_MAX, WANTED / rows));
  const size = step > 8 ? step - 3 : step - 1;
  const height = Math.ceil(rows * step);
  const ratio = Math.min(window.devicePixelRatio || 1, 30000 / Math.max(height, 1));
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const g = canvas.getContext('2d');
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  const fills = Object.fromEntries(['done', 'failed', 'active', 'cancelled', 'held'].map((s) => [s, [of(`s-${s}`), of(`s-${s}-ink`)]]));
  const [start, rule] = [of('s-held'), of('line')];
  g.scale(ratio, ratio);
  g.fillStyle = rule;
  let slot = 0;
  for (const s of data.slots.slice(0, -1)) { // a line between the types
    slot += s.slots;
    g.fillRect(0, slot * step - 1.5, width, 1);
  }
  const x = (ms) => ((ms - view[0]) / (view[1] - view[0])) * width;
  for (const a of data.attempts) {
    const from = x(a[INTENDED]);
    const to = x(a[ENDED] >= 0 ? a[ENDED] : now);
    if (to < 0 || from > width) continue;
    const run = a[STARTED] >= 0 ? Math.min(x(a[STARTED]), to) : a[ENDED] >= 0 ? from : to;
    const y = a[SLOT] * step + (step - size) / 2;
    const name = colour(data, a);
    const left = Math.max(0, from);
    const right = Math.min(width, Math.max(to, from + 1));
    g.fillStyle = start;
    if (run > left) g.fillRect(left, y + size / 3, run - left, Math.max(1, size / 3)); // thin until its program runs
    g.fillStyle = fills[name][0];
    const begin = Math.max(left, run);
    const wide = Math.max(right - begin - (right - begin > 4 ? 1 : 0), 1);
    g.fillRect(begin, y, wide, size);
    if (name === 'failed' && wide >= 5 && size >= 5) {
      g.strokeStyle = fills[name][1];
      g.beginPath();
      const end = Math.min(begin + size, begin + wide);
      g.moveTo(begin + 1, y + 1);
      g.lineTo(end - 1, y + size - 1);
      g.moveTo(end - 1, y + 1);
      g.lineTo(begin + 1, y + size - 1);
      g.stroke();
    } else if (a[ENDED] < 0 && wide >= 8) {
      g.fillStyle = fills[name][1];
      g.beginPath();
      g.moveTo(begin + wide - 6, y + 1);
      g.lineTo(begin + wide - 1, y + size / 2);
      g.lineTo(begin + wide - 6, y + size - 1);
      g.fill();
    }
  }
  return { step, x };
}

// The attempt next to i in one direction: along the slot, or the one of the next used slot that is nearest in time.
function next(data, i, key) {
  const a = data.attempts[i];
  const same = (b) => b[SLOT] === a[SLOT];
  let best = -1;
  data.attempts.forEach((b, k) => {
    const than = data.attempts[best];
    if (key === 'ArrowRight' && same(b) && b[INTENDED] > a[INTENDED] && (best < 0 || b[INTENDED] < than[INTENDED])) best = k;
    if (key === 'ArrowLeft' && same(b) && b[INTENDED] < a[INTENDED] && (best < 0 || b[INTENDED] > than[INTENDED])) best = k;
    const below = key === 'ArrowDown' ? b[SLOT] === a[SLOT] + 1 : key === 'ArrowUp' && b[SLOT] === a[SLOT] - 1;
    if (below && (best < 0 || Math.abs(b[INTENDED] - a[INTENDED]) < Math.abs(than[INTENDED] - a[INTENDED]))) best = k;
  });
  return best;
}

// zoom: [from, to] in ms since data.from_at, null for all. open(attempt): a click or Enter.
export function Gantt({ data, zoom, onZoom, open }) {
  const canvas = useRef(null);
  const box = useRef(null);
  const frame = useRef(null);
  const [width, setWidth] = useState(0);
  const [theme, setTheme] = useState(0);
  const [focus, setFocus] = useState(-1);
  const drawn = useRef(null);
  const from = Date.parse(data.from_at);
  const live = data.attempts.some((a) => a[ENDED] < 0);
  const now = live ? Math.max(Date.now() - from, ...data.attempts.map((a) => a[INTENDED])) : 0;
  const last = Math.max(now, LEAST_MS, ...data.attempts.map((a) => a[ENDED]));
  const view = zoom || [0, last];
  useEffect(() => {
    const watch = new ResizeObserver((e) => setWidth(Math.floor(e[0].contentRect.width)));
    watch.observe(box.current);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const redraw = () => setTheme((x) => x + 1);
    dark.addEventListener('change', redraw);
    return () => { watch.disconnect(); dark.removeEventListener('change', redraw); };
  }, []);
  useEffect(() => {
    if (width > 0) drawn.current = draw(canvas.current, data, width, view, now);
  }, [data, width, theme, view[0], view[1]]); // eslint-disable-line react-hooks/exhaustive-deps -- the span by its values
  const shown = data.attempts[focus];
  useEffect(() => {
    const d = drawn.current;
    const style = frame.current.style;
    style.display = d && shown ? 'block' : 'none';
    if (!d || !shown) return;
    const left = Math.max(0, Math.min(width, d.x(shown[INTENDED])));
    const right = Math.max(left + 2, Math.min(width, d.x(shown[ENDED] >= 0 ? shown[ENDED] : now)));
    style.left = `${left - 2}px`;
    style.top = `${shown[SLOT] * d.step - 1}px`;
    style.width = `${right - left + 4}px`;
    style.height = `${d.step + 1}px`;
  }, [focus, data, width, view[0], view[1]]); // eslint-disable-line react-hooks/exhaustive-deps -- as above
  useEffect(() => setFocus(-1), [data.stage]);
  const at = (e) => {
    if (!drawn.current) return -1;
    const r = canvas.current.getBoundingClientRect();
    const slot = Math.floor((e.clientY - r.top) / drawn.current.step);
    const ms = view[0] + ((e.clientX - r.left) / width) * (view[1] - view[0]);
    const slack = (2 / width) * (view[1] - view[0]);
    return data.attempts.findIndex((a) => a[SLOT] === slot && a[INTENDED] - slack <= ms && (a[ENDED] < 0 || ms <= a[ENDED] + slack));
  };
  const look = (factor) => {
    const middle = shown ? (shown[INTENDED] + (shown[ENDED] >= 0 ? shown[ENDED] : now)) / 2 : (view[0] + view[1]) / 2;
    const half = Math.max(LEAST_MS, (view[1] - view[0]) * factor) / 2;
    const a = Math.max(0, Math.min(middle - half, last - 2 * half));
    if (2 * half >= last) onZoom(null);
    else onZoom([Math.round(a), Math.round(Math.min(last, a + 2 * half))]);
  };
  const slide = (share) => {
    if (!zoom) return;
    const by = Math.max(-zoom[0], Math.min(last - zoom[1], share * (zoom[1] - zoom[0])));
    onZoom([Math.round(zoom[0] + by), Math.round(zoom[1] + by)]);
  };
  const key = (e) => {
    if (e.key.startsWith('Arrow')) {
      const to = shown ? next(data, focus, e.key) : 0;
      if (to >= 0 && data.attempts.length > 0) {
        setFocus(to);
        const a = data.attempts[to];
        if (zoom && (a[INTENDED] > view[1] || (a[ENDED] >= 0 && a[ENDED] < view[0]))) onZoom([a[INTENDED], a[INTENDED] + view[1] - view[0]]);
      }
      e.preventDefault();
    } else if (e.key === 'Enter' && shown) open(shown);
    else if (e.key === '+') look(0.5);
    else if (e.key === '-') look(2);
    else if (e.key === 'Escape' && zoom) onZoom(null);
  };
  const text = timeText(from + view[0], from + view[1]);
  return html`<div class="gantt">
    <div class="scroll"><div ref=${box} class="tiles"><canvas ref=${canvas} tabindex="0" role="application" id="gantt" aria-describedby="gantt-note" data-attempts=${data.attempts.length} data-rows=${rowsOf(data)}
      aria-label="Attempts by slot and time. Arrow keys move, Enter opens the part, plus and minus change the span." onKeyDown=${key}
      onMouseMove=${(e) => setFocus(at(e))} onMouseLeave=${() => setFocus(-1)} onClick=${(e) => { const i = at(e); if (i >= 0) open(data.attempts[i]); }}></canvas><div ref=${frame} class="frame"></div></div></div>
    <p class="muted axis"><span>${text(from + view[0])}</span><span class="odd">${text(from + (view[0] + view[1]) / 2)}</span><span>${text(from + view[1])}</span></p>
    <p class="under"><span role="status" id="gantt-note">${shown ? describe(data, shown, from) : `${count(data.attempts.length)} tries on ${count(rowsOf(data))} slots; point at one, or use the arrow keys`}</span></p>
    <p class="row zooms" role="group" aria-label="span"><button class="tab" id="closer" disabled=${view[1] - view[0] <= LEAST_MS} onClick=${() => look(0.5)}>+ closer</button>
      <button class="tab" id="wider" disabled=${!zoom} onClick=${() => look(2)}>− wider</button>
      <button class="tab" disabled=${!zoom || zoom[0] <= 0} onClick=${() => slide(-0.5)}>← earlier</button><button class="tab" disabled=${!zoom || zoom[1] >= last} onClick=${() => slide(0.5)}>later →</button>
      ${zoom && html`<button class="tab" onClick=${() => onZoom(null)}>all</button>`}</p>
  </div>`;
}
