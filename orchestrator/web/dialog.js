// A modal that says exactly what will happen, how many parts it touches, and waits for a yes.
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';

export function Confirm({ title, preview, action, confirm, onClose, danger }) {
  const ref = useRef(null);
  const [shown, setShown] = useState(null);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    ref.current.showModal();
    preview().then(setShown, (e) => setProblem(e));
  }, []);
  const go = async () => {
    setBusy(true);
    try {
      await confirm();
      onClose();
    } catch (e) {
      setProblem(e);
      setBusy(false);
    }
  };
  return html`<dialog ref=${ref} onClose=${onClose} aria-label=${title}>
    <h2>${title}</h2>
    <div class="preview">${shown ?? (problem ? '' : 'looking …')}</div>
    ${problem && html`<p class="problem" role="alert">${problem.message}${problem.requestId ? ` (request ${problem.requestId})` : ''}</p>`}
    <div class="row">
      <button class=${danger ? 'danger' : 'primary'} id="confirm" disabled=${busy || shown == null} onClick=${go}>${action}</button>
      <button onClick=${onClose}>Back</button>
    </div>
  </dialog>`;
}
