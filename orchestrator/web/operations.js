// The newest bulk changes of a campaign, with the undo of those of which parts have not started.
import { html } from './html.js';
import { get, post } from './api.js';
import { Act } from './role.js';
import { Ago } from './show.js';
import { count, duration, parts, word } from './format.js';

const SHOWN = 5;

export const readOperations = async (id) => (await get(`/operations?campaign=${id}&page_size=${SHOWN}`)).operations;

// The listing of an input, in words.
export function listed(l) {
  const state = l.state === 'running' ? 'being listed' : `listing ${word(l.state)}`;
  return `${state}, ${count(l.objects)} objects in ${count(l.pages)} pages, ${duration(l.elapsed_seconds)}${l.problem && `; ${l.problem}`}`;
}

// What became of it, in words.
function outcome(op) {
  const { undo } = op;
  if (op.listing) return op.state === 'done' ? parts(op.parts) : listed(op.listing);
  if (!undo) return `${count(op.done)} of ${parts(op.parts)}`;
  if (!undo.ended_at) return `being undone, ${parts(undo.undone)} so far`;
  if (op.kind !== 'retry') return `stopped after ${parts(op.done)}`;
  return `undone: ${parts(undo.undone)} failed as before, ${count(undo.went_on)} had started and ${undo.went_on === 1 ? 'goes' : 'go'} on`;
}

function undoQuestion(op) {
  return {
    title: `Undo ${op.id}`, action: 'Undo',
    text: html`${op.kind !== 'retry' ? 'It stops where it is; parts that it has changed stay so.'
      : 'Parts that have not started fail again as they had; those that have started go on.'}`,
    confirm: (key) => post(`/operations/${op.id}:cancel`, {}, key),
  };
}

const Undo = ({ op, ask, id }) => op.undoable && html`<${Act} id=${id} data-undo=${op.id} aria-label=${`undo ${op.id}`} onClick=${() => ask(undoQuestion(op))}>Undo…<//>`;

// What is said after a change that was asked for on this page; op: as it is in the list now, if it is there.
export function Told({ text, op, ask }) {
  return html`<p class="notice" role="status" id="notice">${op?.undo ? `Operation ${op.id} ${outcome(op)}.` : text}${op && html` <${Undo} op=${op} ask=${ask} id="undo-notice"/>`}</p>`;
}

export function Operations({ operations, ask }) {
  if (operations.length === 0) return null;
  return html`<section class="card wide" id="operations"><h2>Bulk changes</h2>
    <table class="stack"><thead><tr><th>Operation</th><th>What</th><th>State</th><th>Parts</th><th>Asked for</th><td></td></tr></thead>
    <tbody>${operations.map((op) => html`<tr key=${op.id} data-operation=${op.id}>
      <td class="name">${op.id}</td>
      <td data-label="What">${word(op.kind)}</td>
      <td data-label="State">${word(op.state)}</td>
      <td data-label="Parts">${outcome(op)}</td>
      <td data-label="Asked for"><${Ago} at=${op.created_at}/></td>
      <td class="act"><${Undo} op=${op} ask=${ask}/></td></tr>`)}</tbody></table>
  </section>`;
}
