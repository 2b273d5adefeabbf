// What the pages of people and settings share: their tabs, a form in a modal, a secret that is shown once.
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { Command } from './show.js';

// Address, name, and the letter that leads there after g.
export const SETTINGS = [['/tokens', 'Tokens', 'k'], ['/webhooks', 'Webhooks', 'w'], ['/projects', 'Projects', 'j'], ['/audit', 'Audit', 'u']];

export const SettingsHead = ({ here, title, text, children }) => html`<nav class="tabs" aria-label="settings">${SETTINGS.map(([to, name]) =>
    html`<a key=${to} href=${to} aria-current=${to === here ? 'page' : null}>${name}</a>`)}</nav>
  <div class="head"><div><h1>${title}</h1><p class="muted">${text}</p></div><div class="row">${children}</div></div>`;

// What a role may not see.
export const Closed = ({ needs, what }) => html`<section class="card wide"><p class="muted">${what} are shown to ${needs} only.</p></section>`;

// A secret that is in no other answer.
export const Secret = ({ text, children }) => html`<p><b>Copy it now.</b> It is not shown again.</p><${Command} text=${text}/>${children}`;

// A form in a modal. send(values) carries it out; what it resolves to is shown by made(), or the modal closes.
export function Form({ title, action, send, made, children, onClose }) {
  const ref = useRef(null);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const [result, setResult] = useState(null);
  useEffect(() => { ref.current.showModal(); }, []);
  const close = () => ref.current.close();
  const go = async (e) => {
    e.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      const r = await send(new FormData(e.target));
      if (made) setResult(r);
      else close();
    } catch (p) {
      setProblem(p);
    }
    setBusy(false);
  };
  return html`<dialog ref=${ref} onClose=${onClose} aria-labelledby="form-title"><h2 id="form-title">${result ? made(result).title : title}</h2>
    ${result ? html`<div role="status">${made(result).show}</div><div class="row"><button class="primary" id="form-done" onClick=${close}>Done</button></div>`
      : html`<form id="form" onSubmit=${go}>${children}
        ${problem && html`<div class="problem" role="alert">${problem.message}${problem.errors?.length > 0 && html`<ul>${problem.errors.map((f) => html`<li>${f.message}</li>`)}</ul>`}</div>`}
        <div class="row"><button class="primary" id="form-go" disabled=${busy}>${action}</button><button type="button" onClick=${close}>Back</button></div></form>`}
  </dialog>`;
}
