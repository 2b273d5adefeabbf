// The parts of a stage as tiles: one a part up to 4,096, beyond that the server aggregates and a tile shows its worst state
// with a mark for the failed share. A canvas, since ten thousand elements are slow; keys and a status line make it readable.
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { count, glyph, word } from './format.js';

const worst = ['failed', 'held', 'active', 'waiting', 'cancelled', 'skipped', 'done'];

function tileOf(data, i) {
  const t = data.tiles[i];
  if (!Array.isArray(t)) return { state: data.states[t], n: 1, failed: 0 };
  const n = t.reduce((a, b) => a + b, 0);
  const of = (s) => t[data.states.indexOf(s)];
  return { state: worst.find((s) => of(s) > 0) || 'waiting', n, failed: of('failed'), counts: t };
}

function layout(width, n) {
  const size = n <= 64 ? 32 : n <= 400 ? 22 : n <= 1500 ? 14 : 9;
  const gap = size > 12 ? 3 : 2;
  const columns = Math.max(1, Math.floor((width + gap) / (size + gap)));
  return { size, gap, columns, rows: Math.ceil(n / columns), step: size + gap };
}

function draw(canvas, data, width, focus) {
  const l = layout(width, data.tiles.length);
  const ratio = window.devicePixelRatio || 1;
  const height = Math.max(l.step, l.rows * l.step);
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = `${height}px`;
  const g = canvas.getContext('2d');
  const style = getComputedStyle(document.documentElement);
  const colour = (s) => style.getPropertyValue(`--s-${s}`).trim();
  g.scale(ratio, ratio);
  g.textAlign = 'center';
  g.textBaseline = 'middle';
  g.font = `${Math.floor(l.size * 0.55)}px system-ui, sans-serif`;
  for (let i = 0; i < data.tiles.length; i++) {
    const t = tileOf(data, i);
    const x = (i % l.columns) * l.step;
    const y = Math.floor(i / l.columns) * l.step;
    g.fillStyle = colour(t.state);
    g.fillRect(x, y, l.size, l.size);
    if (l.size >= 20) {
      g.fillStyle = colour(`${t.state}-ink`);
      g.fillText(glyph[t.state], x + l.size / 2, y + l.size / 2 + 1);
    } else if (t.failed > 0 && t.n > 1) {
      g.fillStyle = colour('failed-ink');
      g.fillRect(x, y + l.size - 2, Math.max(2, (l.size * t.failed) / t.n), 2);
    }
    if (i === focus) {
      g.strokeStyle = style.getPropertyValue('--focus').trim();
      g.lineWidth = 2;
      g.strokeRect(x - 1, y - 1, l.size + 2, l.size + 2);
    }
  }
  return l;
}

function describe(data, i) {
  const t = tileOf(data, i);
  const first = data.first + i * data.per_tile;
  if (t.n === 1 && data.per_tile === 1) return `part ${first}: ${glyph[t.state]} ${word(t.state)}`;
  const parts = data.states.map((s, k) => (t.counts[k] ? `${count(t.counts[k])} ${word(s)}` : '')).filter(Boolean);
  return `parts ${count(first)}–${count(Math.min(data.last, first + data.per_tile - 1))}: ${parts.join(', ')}`;
}

export function HeatMap({ data, onOpen, onZoom, zoomed }) {
  const canvas = useRef(null);
  const box = useRef(null);
  const [focus, setFocus] = useState(-1);
  const [width, setWidth] = useState(0);
  const l = useRef(null);
  useEffect(() => {
    const watch = new ResizeObserver((e) => setWidth(Math.floor(e[0].contentRect.width)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (data && width > 0) l.current = draw(canvas.current, data, width, focus);
  }, [data, width, focus]);
  const n = data ? data.tiles.length : 0;
  const open = (i) => {
    if (i < 0 || i >= n) return;
    const first = data.first + i * data.per_tile;
    if (data.per_tile === 1) onOpen(first);
    else onZoom(first, Math.min(data.last, first + data.per_tile - 1));
  };
  const at = (e) => {
    const r = canvas.current.getBoundingClientRect();
    const c = Math.floor((e.clientX - r.left) / l.current.step);
    const i = Math.floor((e.clientY - r.top) / l.current.step) * l.current.columns + c;
    return c < l.current.columns && i < n ? i : -1;
  };
  const key = (e) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -(l.current?.columns || 1), ArrowDown: l.current?.columns || 1 };
    if (e.key in moves) {
      setFocus(Math.min(n - 1, Math.max(0, focus + moves[e.key])));
      e.preventDefault();
    } else if (e.key === 'Enter') open(focus);
    else if (e.key === 'Escape' && zoomed) onZoom(null);
  };
  return html`<div ref=${box} class="heat">
    <canvas ref=${canvas} tabindex="0" role="application" aria-label="parts; arrow keys move, Enter opens" id="tiles"
      data-tiles=${n} data-states=${data && n <= 4096 && data.per_tile === 1 ? data.tiles.join('') : ''} onKeyDown=${key}
      onMouseMove=${(e) => l.current && setFocus(at(e))} onMouseLeave=${() => setFocus(-1)} onClick=${(e) => open(at(e))}></canvas>
    <p class="under" role="status">${data && focus >= 0 && focus < n ? describe(data, focus)
      : data && data.per_tile > 1 ? `${count(data.parts)} parts, ${count(data.per_tile)} a tile; a tile shows its worst state` : '\u00a0'}
      ${zoomed && html` <button class="link" onClick=${() => onZoom(null)}>show all parts</button>`}</p>
  </div>`;
}
