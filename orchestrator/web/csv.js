// Tables as files: the figures of the API, not those that are shown.
import { html } from './html.js';

// A cell. A text that a spreadsheet would take for a formula, also behind blanks and in the wide forms of its signs, gets an apostrophe.
function cell(v) {
  if (v == null) return '';
  if (typeof v === 'number' || typeof v === 'boolean') return String(v);
  const text = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r]/.test(v) ? `'${v}` : String(v);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// columns: names of members, in order. A member of micro-USD is written in USD, with all its digits.
export function csv(columns, rows) {
  const name = (c) => c.replace(/micro_usd$/, 'usd');
  const value = (r, c) => (c.endsWith('micro_usd') && r[c] != null ? r[c] / 1e6 : r[c]);
  return `${columns.map(name).join(',')}\n${rows.map((r) => columns.map((c) => cell(value(r, c))).join(',')).join('\n')}\n`;
}

// Offers a text as a file. The address is kept for a moment: a browser may begin to read it after the click.
export function save(name, type, text) {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(new Blob([text], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

// A button that saves rows as FILE.csv. rows: a list, or a function that makes it when it is pressed.
export function Csv({ file, columns, rows }) {
  const go = () => save(`${file}.csv`, 'text/csv', csv(columns, typeof rows === 'function' ? rows() : rows));
  return html`<button class="tab right" data-csv=${file} onClick=${go} aria-label=${`${file} as CSV`}>CSV</button>`;
}
