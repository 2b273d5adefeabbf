// Tokens and browser sessions: who may do what, until when; made, shown once, revoked.
import { useState } from 'preact/hooks';
import { html } from './html.js';
import { del, get, postOnce } from './api.js';
import { useConfirm } from './dialog.js';
import { CURVES_MS, useLive } from './live.js';
import { Act, may, me } from './role.js';
import { Closed, Form, Secret, SettingsHead } from './settings.js';
import { Ago, Command, Trouble, Until } from './show.js';
import { count } from './format.js';

const LIVES = [['1d', 'a day'], ['30d', '30 days'], ['90d', '90 days'], ['365d', 'a year'], ['', 'never']];
const LOOKS = { admin: 'held', operator: 'running', viewer: 'new' }; // as states of campaigns look
const Role = ({ of }) => html`<span class=${`tag st-${LOOKS[of]}`}>${of}</span>`;
const projects = (t) => t.projects?.join(', ') || 'every one';

function New({ known, onClose }) {
  const send = (form) => {
    const names = form.get('projects').split(',').map((x) => x.trim()).filter(Boolean);
    return postOnce('/tokens', { name: form.get('name'), role: form.get('role'), ...(names.length ? { projects: names } : {}), ...(form.get('lives') ? { expires_in: form.get('lives') } : {}) });
  };
  const made = (t) => ({ title: `Token ${t.name} made`, show: html`<${Secret} text=${t.token}><p class="muted">A shell takes it from a file: write it to one that only you may read, and let DROVER_TOKEN_FILE name that file.</p><//>` });
  return html`<${Form} title="New token" action="Make it" send=${send} made=${made} onClose=${onClose}>
    <label>Name <input name="name" required maxlength="64" placeholder="ci" autocomplete="off"/></label>
    <div class="fields"><label>Role <select name="role"><option value="viewer">viewer: looks on</option>
        <option value="operator">operator: changes campaigns</option><option value="admin">admin: changes limits and tokens, too</option></select></label>
      <label>Expires <select name="lives">${LIVES.map(([v, name]) => html`<option key=${v} value=${v} selected=${v === '30d'}>${v ? `in ${name}` : name}</option>`)}</select></label></div>
    <label>Projects, by commas <input name="projects" list="projects" placeholder="every one" autocomplete="off"/></label><datalist id="projects">${known.map((p) => html`<option key=${p} value=${p}/>`)}</datalist><//>`;
}

const revoke = (t) => ({ title: `Revoke ${t.name || t.id}`, action: 'Revoke', danger: true, confirm: () => del(`/tokens/${t.id}`),
  text: html`Whatever asks with <code>${t.id}</code> is refused from now on, and its browser sessions end${t.id === me().token_id ? ', this one too' : ''}. This cannot be undone.` });

function Table({ tokens, ask, id }) {
  const over = id === 'ended-tokens';
  return html`<table class="stack" id=${id}><thead><tr><th class="third">Token</th><th>Role</th><th>Projects</th><th class="num">Last used</th><th class="num">${over ? 'Ended' : 'Expires'}</th>
      <th>Made by</th>${!over && html`<th class="act">Revoke</th>`}</tr></thead>
    <tbody>${tokens.map((t) => html`<tr key=${t.id}><td class="name"><span class="clamp">${t.name}</span> <span class="muted">${t.id}</span>${t.id === me().token_id && html` <span class="tag s-skipped">yours</span>`}</td>
      <td data-label="Role"><${Role} of=${t.role}/></td><td data-label="Projects" class="reason">${projects(t)}</td>
      <td data-label="Last used" class="num">${t.used_at ? html`<${Ago} at=${t.used_at}/>` : 'never'}</td>
      <td data-label=${over ? 'Ended' : 'Expires'} class="num">${over ? html`${t.state} <${Ago} at=${t.revoked_at || t.expires_at}/>` : t.expires_at ? html`<${Until} at=${t.expires_at}/>` : 'never'}</td>
      <td data-label="Made by" class="reason"><span class="muted">${t.created_by || 'droverd'}</span></td>
      ${!over && html`<td class="act"><${Act} needs="admin" class="danger" onClick=${() => ask(revoke(t))} aria-label=${`Revoke ${t.name || t.id}`}>Revoke…<//></td>`}</tr>`)}</tbody></table>`;
}

const end = (s) => ({ title: s.current ? 'End this session' : `End session ${s.id}`, action: 'End', danger: true, confirm: () => del(`/sessions/${s.id}`),
  text: html`${s.current ? 'It is the one of this page: you will have to log in again.' : html`The browser at <code>${s.address || 'an unknown address'}</code> has to log in again.`}` });

function Sessions({ sessions, ask }) {
  return html`<section class="card wide"><h2>Browser sessions <b>${count(sessions.length)}</b></h2>
    <table class="stack" id="sessions"><thead><tr><th class="third">Session</th><th>Address</th><th class="num">Began</th><th class="num">Last used</th><th class="num">Ends</th><th class="act">End</th></tr></thead>
    <tbody>${sessions.map((s) => html`<tr key=${s.id}><td class="name"><span class="clamp">${s.name}</span> <span class="muted">${s.id}</span>${s.current && html` <span class="tag s-skipped">this one</span>`}</td>
      <td data-label="Address" class="reason">${s.address || 'unknown'}</td><td data-label="Began" class="num"><${Ago} at=${s.created_at}/></td>
      <td data-label="Last used" class="num">${s.used_at ? html`<${Ago} at=${s.used_at}/>` : 'never'}</td><td data-label="Ends" class="num"><${Until} at=${s.expires_at}/></td>
      <td class="act"><button class="danger" onClick=${() => ask(end(s))} aria-label=${`End session ${s.id}`}>End…</button></td></tr>`)}</tbody></table></section>`;
}

export function Tokens({ setLive }) {
  const [ask, dialog] = useConfirm(() => close());
  const [fresh, setFresh] = useState(false);
  const sees = may('admin') && !me().projects; // a token is nobody's of a project
  const { data, problem, load } = useLive('/events', async () => {
    document.title = 'tokens · drover';
    const [tokens, { sessions }, { projects: all }] = await Promise.all([sees ? get('/tokens').then((r) => r.tokens) : null, get('/sessions'), get('/projects')]);
    return { tokens, sessions, known: all.map((p) => p.name) };
  }, [], setLive, CURVES_MS);
  const valid = data?.tokens?.filter((t) => t.state === 'valid');
  const over = data?.tokens?.filter((t) => t.state !== 'valid');
  const close = () => { setFresh(false); load(); };
  return html`<main><${SettingsHead} here="/tokens" title="Tokens" text="A person or a program that has a token may do what its role says, in its projects.">
      <${Act} needs="admin" disabled=${!sees} class="primary" id="new-token" onClick=${() => setFresh(true)}>New token…<//><//>
    <${Trouble} problem=${problem} data=${data}/>
    ${data && !sees && html`<${Closed} needs="admins of every project" what="Tokens"/>`}
    ${valid && html`<section class="card wide"><h2>Valid <b>${count(valid.length)}</b></h2><${Table} id="tokens" tokens=${valid} ask=${ask}/>
      ${valid.length < 2 && html`<p class="muted">Nobody else has one. Press New token, or use a shell:</p><${Command} text="drover token new ci --role operator --expires 90d"/>`}
      ${over.length > 0 && html`<details class="more"><summary>${count(over.length)} revoked or expired</summary><${Table} id="ended-tokens" tokens=${over}/></details>`}</section>`}
    ${data && html`<${Sessions} sessions=${data.sessions} ask=${ask}/>`}
    ${fresh && html`<${New} known=${data?.known || []} onClose=${close}/>`}
    ${dialog}
  </main>`;
}
