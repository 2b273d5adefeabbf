// A modal that shows what will happen and how many parts it affects, and waits for confirmation.
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { newKey } from './api.js';

// Says text, or what preview() resolves to: { show, empty }. confirm(key) carries it out once, even if it is pressed
// several times.
function Confirm({ title, text, preview, action = title, confirm, onClose, danger }) {
  const ref = useRef(null);
  const key = useRef(newKey());
  const [shown, setShown] = useState(text && { show: html`<p>${text}</p>` });
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    ref.current.showModal();
    preview?.().then(setShown, setProblem);
  }, []); // eslint-disable-line react-hooks/exhaustive-deps -- what was shown when it opened is what is confirmed
  const go = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await confirm(key.current);
      ref.current.close();
    } catch (e) {
      setProblem(e);
      setBusy(false);
    }
  };
  return html`<dialog ref=${ref} onClose=${onClose} aria-labelledby="confirm-title">
    <h2 id="confirm-title">${title}</h2>
    <div class="preview">${shown ? shown.show : problem ? '' : html`<p class="muted">looking …</p>`}</div>
    ${problem && html`<p class="problem" role="alert">${problem.message}${problem.requestId ? ` (request ${problem.requestId})` : ''}</p>`}
    <div class="row">
      <button class=${danger ? 'danger' : 'primary'} id="confirm" disabled=${busy || !shown || shown.empty} onClick=${go}>${action}</button>
      <button onClick=${() => ref.current.close()}>Back</button>
    </div>
  </dialog>`;
}

// [ask, dialog]: ask(question) opens a Confirm with it, dialog is what to show, after() runs when it was closed.
export function useConfirm(after) {
  const [asked, setAsked] = useState(null);
  return [setAsked, asked && html`<${Confirm} ...${asked} onClose=${() => { setAsked(null); after(); }}/>`];
}
