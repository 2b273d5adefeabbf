// Numbers, money and times for display.

export const usd = (micro, digits = Math.abs(micro) < 1e5 ? 4 : 2) =>
  micro == null ? '–' : `${(micro / 1e6).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: digits })} USD`;

// The same with all digits below a thousandth of a dollar, as runs of a sample cost.
export const usdFine = (micro) => usd(micro, Math.abs(micro) < 1000 ? 6 : undefined);

export const count = (n) => (n ?? 0).toLocaleString('en');

export const parts = (n) => `${count(n)} ${n === 1 ? 'part' : 'parts'}`;

// 5 digits of a measured value.
export const figure = (v) => (v == null ? '–' : Number(v.toPrecision(5)).toString());

export const percent = (part, whole) => (whole > 0 ? `${Math.floor((100 * part) / whole)} %` : '0 %');

export function duration(seconds) {
  if (seconds == null) return '–';
  const s = Math.max(0, Math.round(seconds));
  const d = Math.floor(s / 86400);
  const h = Math.floor((s % 86400) / 3600);
  const m = Math.floor((s % 3600) / 60);
  if (d) return `${d} d ${h} h`;
  if (h) return `${h} h ${m} m`;
  if (m) return `${m} m ${s % 60} s`;
  return `${s} s`;
}

// The same with parts of a second below a minute: what is measured, not guessed.
export const durationFine = (seconds) => (seconds != null && seconds < 59.95 ? `${Number(seconds.toPrecision(3))} s` : duration(seconds));

// The upper bound of a forecast, which may be missing.
export const durationOrNever = (seconds) => (seconds == null ? 'never' : duration(seconds));

export function ago(iso, now = Date.now()) {
  if (!iso) return '–';
  return `${duration((now - Date.parse(iso)) / 1000)} ago`;
}

// 2026-01-02 03:04 UTC.
export const utc = (at) => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

// The zone of the times that pages show.
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

// 14:03:07, in the browser's time zone.
export const clock = (ms) => new Date(ms).toLocaleTimeString('en-GB');

// The states of a campaign that is over.
export const ENDED = ['succeeded', 'failed', 'cancelled'];

// Glyph and word together: colour is never the only sign.
export const glyph = {
  waiting: '·', active: '▶', held: '‖', done: '✓', failed: '✗', skipped: '⤼', cancelled: '⊘',
  submitting: '↑', starting: '↑', running: '▶', uploading: '▶', stopping: '■', verifying: '▶', backing_off: '↻',
};
export const order = ['done', 'skipped', 'active', 'waiting', 'held', 'failed', 'cancelled'];
export const word = (s) => (s || '').replace(/_/g, ' ');

export function bytes(n) {
  if (n == null) return '–';
  let value = n;
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let i = 0;
  for (; value >= 1000 && i < units.length - 1; i++) value /= 1000;
  return `${i === 0 ? value : value.toFixed(1)} ${units[i]}`;
}

export const rate = (perHour) => (perHour >= 100 ? count(Math.round(perHour)) : perHour.toFixed(1));
