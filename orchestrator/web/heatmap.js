// The parts of a stage as tiles: one per part up to 4,096; beyond that the server aggregates and a
// tile shows its worst state, with a bar for the failed share. Drawn on a canvas, since thousands
// of elements are slow; arrow keys, Enter and a status line make it usable without a mouse. Colour
// is never the only sign: large tiles have a glyph, small ones a stroke.
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { count, glyph, word } from './format.js';

const worst = ['failed', 'held', 'active', 'waiting', 'cancelled', 'skipped', 'done'];
const GLYPH_FROM = 18; // px; smaller tiles get strokes
const TILE_MAX = 40;
const TILE_MIN = 7;
const ROWS_WANTED = 12; // of large tiles; more for more parts

function tileOf(data, i) {
  const t = data.tiles[i];
  if (!Array.isArray(t)) return { state: data.states[t], n: 1, failed: 0 };
  const n = t.reduce((a, b) => a + b, 0);
  const of = (s) => t[data.states.indexOf(s)];
  return { state: worst.find((s) => of(s) > 0) || 'waiting', n, failed: of('failed'), counts: t };
}

// Tiles fill the width and are as large as the number of rows allows.
function layout(width, n) {
  const wanted = n <= 512 ? Math.min(ROWS_WANTED, Math.max(1, Math.ceil(n / 16))) : 28;
  const ideal = Math.sqrt((width * wanted * 20) / Math.max(1, n));
  const wish = Math.max(TILE_MIN + 1, Math.min(TILE_MAX, ideal));
  const gap = wish > 16 ? 3 : wish > 11 ? 2 : 1;
  const columns = Math.max(1, Math.floor((width + gap) / wish));
  const step = Math.min(TILE_MAX, (width + gap) / columns);
  return { step, gap, size: step - gap, columns, rows: Math.ceil(n / columns) };
}

function mark(g, t, x, y, size) {
  if (t.n > 1) {
    if (t.failed > 0) g.fillRect(x, y + size - 2, Math.max(2, (size * t.failed) / t.n), 2);
    return;
  }
  g.beginPath();
  if (t.state === 'failed') {
    g.moveTo(x + 2, y + 2);
    g.lineTo(x + size - 2, y + size - 2);
    g.moveTo(x + size - 2, y + 2);
    g.lineTo(x + 2, y + size - 2);
  } else if (t.state === 'active') {
    g.moveTo(x + 2, y + size / 2);
    g.lineTo(x + size - 2, y + size / 2);
  } else if (t.state === 'held') {
    g.moveTo(x + size / 2, y + 2);
    g.lineTo(x + size / 2, y + size - 2);
  }
  g.stroke();
}

function draw(canvas, data, width) {
  const l = layout(width, data.tiles.length);
  const ratio = window.devicePixelRatio || 1;
  const height = Math.max(Math.ceil(l.step), Math.ceil(l.rows * l.step));
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const g = canvas.getContext('2d');
  const style = getComputedStyle(document.documentElement);
  const colours = Object.fromEntries(worst.map((s) => [s, [style.getPropertyValue(`--s-${s}`).trim(), style.getPropertyValue(`--s-${s}-ink`).trim()]]));
  g.scale(ratio, ratio);
  g.textAlign = 'center';
  g.textBaseline = 'middle';
  g.lineWidth = 1;
  g.font = `${Math.floor(l.size * 0.5)}px system-ui, "DejaVu Sans", sans-serif`;
  for (let i = 0; i < data.tiles.length; i++) {
    const t = tileOf(data, i);
    const x = (i % l.columns) * l.step;
    const y = Math.floor(i / l.columns) * l.step;
    const [fill, ink] = colours[t.state];
    g.fillStyle = fill;
    if (l.size >= GLYPH_FROM && g.roundRect) {
      g.beginPath();
      g.roundRect(x, y, l.size, l.size, 3);
      g.fill();
    } else g.fillRect(x, y, l.size, l.size);
    g.fillStyle = ink;
    g.strokeStyle = ink;
    if (l.size >= GLYPH_FROM && t.n === 1) g.fillText(glyph[t.state], x + l.size / 2, y + l.size / 2 + 1);
    else mark(g, t, x, y, l.size);
  }
  return l;
}

function describe(data, i) {
  const t = tileOf(data, i);
  const first = data.first + i * data.per_tile;
  if (data.per_tile === 1) return `part ${first}: ${word(t.state)}`;
  const parts = data.states.map((s, k) => (t.counts[k] ? `${count(t.counts[k])} ${word(s)}` : '')).filter(Boolean);
  return `parts ${count(first)}–${count(Math.min(data.last, first + data.per_tile - 1))}: ${parts.join(', ')}`;
}

const summary = (data, zoomed) => {
  if (data.tiles.length === 0) return 'No parts yet.';
  if (zoomed) return `parts ${count(data.first)}–${count(data.last)} of ${count(data.parts)}${data.per_tile > 1 ? `, ${count(data.per_tile)} a tile` : ''}`;
  return data.per_tile > 1 ? `${count(data.parts)} parts, ${count(data.per_tile)} a tile; a tile shows its worst state; open one to see its parts`
    : 'point at a tile, or use the arrow keys; click or Enter shows the part';
};

export function HeatMap({ data, open, onOpen, onZoom, zoomed }) {
  const canvas = useRef(null);
  const frame = useRef(null);
  const box = useRef(null);
  const [focus, setFocus] = useState(-1);
  const [width, setWidth] = useState(0);
  const [theme, setTheme] = useState(0);
  const l = useRef(null);
  const n = data.tiles.length;
  useEffect(() => {
    const watch = new ResizeObserver((e) => setWidth(Math.floor(e[0].contentRect.width)));
    watch.observe(box.current);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const redraw = () => setTheme((x) => x + 1);
    dark.addEventListener('change', redraw);
    return () => { watch.disconnect(); dark.removeEventListener('change', redraw); };
  }, []);
  useEffect(() => {
    if (width > 0) l.current = draw(canvas.current, data, width);
  }, [data, width, theme]);
  // The frame around the focused tile is an element of its own, so that moving it redraws no tile.
  const around = focus >= 0 && focus < n ? focus : data.per_tile === 1 && open != null ? open - data.first : -1;
  useEffect(() => {
    const at = l.current;
    const style = frame.current.style;
    style.display = at && around >= 0 && around < n ? 'block' : 'none';
    if (!at || around < 0) return;
    style.left = `${(around % at.columns) * at.step - 2}px`;
    style.top = `${Math.floor(around / at.columns) * at.step - 2}px`;
    style.width = style.height = `${at.size + 4}px`;
  }, [around, data, n, width]);
  useEffect(() => setFocus(-1), [data.first, data.last, data.stage]);
  const go = (i) => {
    if (i < 0 || i >= n) return;
    const first = data.first + i * data.per_tile;
    if (data.per_tile === 1) onOpen(first);
    else onZoom(first, Math.min(data.last, first + data.per_tile - 1));
  };
  const at = (e) => {
    if (!l.current) return -1;
    const r = canvas.current.getBoundingClientRect();
    const c = Math.floor((e.clientX - r.left) / l.current.step);
    const i = Math.floor((e.clientY - r.top) / l.current.step) * l.current.columns + c;
    return c < l.current.columns && i < n ? i : -1;
  };
  const key = (e) => {
    const columns = l.current?.columns || 1;
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -n, End: n };
    if (e.key in moves) {
      setFocus(focus < 0 ? Math.max(0, around) : Math.min(n - 1, Math.max(0, focus + moves[e.key])));
      e.preventDefault();
    } else if (e.key === 'Enter') go(around);
    else if (e.key === 'Escape' && zoomed) onZoom(null);
  };
  return html`<div class="heat">
    <div ref=${box} class="tiles">
      <canvas ref=${canvas} tabindex="0" role="application" aria-label="Parts as tiles. Arrow keys move, Enter opens." aria-describedby="tile-note" id="tiles"
        data-tiles=${n} data-states=${data.per_tile === 1 ? data.tiles.join('') : ''} onKeyDown=${key}
        onMouseMove=${(e) => setFocus(at(e))} onMouseLeave=${() => setFocus(-1)} onClick=${(e) => go(at(e))}></canvas>
      <div ref=${frame} class="frame"></div>
    </div>
    <p class="under"><span role="status" id="tile-note">${focus >= 0 && focus < n ? describe(data, focus) : summary(data, zoomed)}</span>
      ${zoomed && html`<button class="link" id="zoom-out" onClick=${() => onZoom(null)}>show all parts</button>`}</p>
  </div>`;
}
