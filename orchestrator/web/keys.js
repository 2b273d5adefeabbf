// Keys for what is done often, and a palette of pages, campaigns and the actions of the present page. What a page offers is
// read off the page itself: its rows, its filter, its buttons. Single keys can be turned off (WCAG 2.1.4).
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { get } from './api.js';
import { CAMPAIGN_PAGES } from './show.js';
import { count } from './format.js';

const NEXT_MS = 1500; // from g to its letter
const SHOWN = 12; // of the palette; the rest is counted
const CAMPAIGNS = 200; // the newest
const OFF = 'drover-keys-off';

const CAMPAIGN = /^\/c\/(?:c-)?(\d+)/;
const all = (css) => [...document.querySelectorAll(css)];

// Where g and a letter lead: [letter, address, name].
function places(links, path) {
  const id = CAMPAIGN.exec(path)?.[1];
  const of = id ? CAMPAIGN_PAGES.map(([to, name, letter]) => [letter, `/c/${id}${to && `/${to}`}`, `${name} of this campaign`]) : [];
  return [...links.map(([to, name, letter]) => [letter, to, name]), ...of];
}

// The next or previous row of the page's lists is focused by its link or first button; Enter then does what it does.
function step(by) {
  const rows = all('main tbody tr').map((tr) => tr.querySelector('a[href]') || tr.querySelector('button:not([disabled])')).filter(Boolean);
  const here = document.activeElement?.closest('tr');
  const at = rows.findIndex((x) => x.closest('tr') === here);
  const to = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by];
  to?.focus();
  to?.closest('tr').scrollIntoView({ block: 'nearest' });
}

function filter() {
  const field = all('main input[type=search], main .fields input, main .fields select').find((x) => !x.disabled);
  field?.focus();
  return !!field;
}

// Of the open part, of those that are ticked, or of the one whose row has the focus.
function retry() {
  const press = () => all('#retry-part, #retry-picked:not([disabled])')[0]?.click();
  const box = document.activeElement?.closest('#parts-table tr')?.querySelector('input[type=checkbox]');
  if (!box || box.checked) return press();
  box.click();
  return setTimeout(press, 50); // once the page has taken the tick
}

// The heading that an element stands under, without what stands beside its text.
const heading = (x) => [...(x.closest('section')?.querySelector('h2')?.childNodes || [])].filter((n) => n.nodeType === Node.TEXT_NODE).map((n) => n.textContent).join('').trim();
const named = (b) => b.getAttribute('aria-label') || [b.textContent.trim(), heading(b)].filter(Boolean).join(' ');

// Buttons of the page that ask before they do something.
const actions = () => all('main button:not([disabled])').filter((b) => /…$/.test(b.textContent.trim()) && b.offsetParent)
  .map((b) => ({ kind: 'action', name: named(b), go: () => b.click() }));

const open = () => all('dialog[open]').length > 0;
const typing = (e) => e.target.closest?.('input:not([type=checkbox]), textarea, select, [contenteditable]');

// A modal that is closed by Escape, and gives the focus back.
function useModal() {
  const ref = useRef(null);
  useEffect(() => { ref.current.showModal(); }, []);
  return ref;
}

function Help({ links, path, off, onOff, onClose }) {
  const ref = useModal();
  const keys = [['?', 'these keys'], ['Ctrl K', 'palette: pages, campaigns by name, actions of this page'], ['/', 'filter, or the palette where there is none'], ['j  k', 'next, previous row'],
    ['Enter', 'open the row'], ['r', 'retry the open part, the ticked parts, or the part of the row'], ...places(links, path).map(([letter, , name]) => [`g ${letter}`, name])];
  return html`<dialog ref=${ref} id="keys" onClose=${onClose} aria-labelledby="keys-title"><h2 id="keys-title">Keys</h2>
    <table><thead><tr><th>Key</th><th>What it does</th></tr></thead><tbody>${keys.map(([k, what]) => html`<tr key=${k}><td><kbd>${k}</kbd></td><td>${what}</td></tr>`)}</tbody></table>
    <label class="check"><input type="checkbox" id="keys-off" checked=${off} onChange=${(e) => onOff(e.target.checked)}/> single keys do nothing (Ctrl K still works)</label>
    <div class="row"><button class="primary" onClick=${() => ref.current.close()}>Close</button></div></dialog>`;
}

function Palette({ links, path, go, onClose }) {
  const ref = useModal();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const [campaigns, setCampaigns] = useState([]);
  const here = useRef(null);
  here.current ||= [...actions(), ...places(links, path).map(([, to, name]) => ({ kind: 'page', name, go: () => go(to) }))];
  useEffect(() => {
    get(`/campaigns?page_size=${CAMPAIGNS}`).then((r) => setCampaigns(r.campaigns.map((c) => ({ kind: 'campaign', name: `${c.name} ${c.id}`, go: () => go(`/c/${c.id.slice(2)}`) }))), () => {});
  }, []); // eslint-disable-line react-hooks/exhaustive-deps -- once, when it opens
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [...here.current, ...campaigns].filter((x) => words.every((w) => `${x.name} ${x.kind}`.toLowerCase().includes(w)));
  const items = found.slice(0, SHOWN);
  const run = (item) => {
    ref.current.close(); // the focus goes back before the action takes it
    item?.go();
  };
  const key = (e) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (by && items.length > 0) setAt((at + by + items.length) % items.length);
    else if (e.key === 'Enter') run(items[at]);
    else return;
    e.preventDefault();
  };
  return html`<dialog ref=${ref} id="palette" onClose=${onClose} aria-label="palette">
    <input id="palette-text" type="text" role="combobox" aria-label="page, campaign or action" aria-expanded="true" aria-autocomplete="list" aria-controls="palette-list" autocomplete="off" spellcheck="false" autofocus
      placeholder="page, campaign or action" aria-activedescendant=${items.length > 0 ? `palette-${at}` : undefined} value=${text} onInput=${(e) => { setText(e.target.value); setAt(0); }} onKeyDown=${key}/>
    <ul id="palette-list" role="listbox" aria-label="what matches">${items.map((x, i) => html`<li key=${i} id=${`palette-${i}`} role="option" aria-selected=${i === at} onClick=${() => run(x)}>
      <span class="clamp">${x.name}</span> <span class="muted">${x.kind}</span></li>`)}</ul>
    <p class="muted" role="status">${found.length === 0 ? 'nothing matches' : found.length > SHOWN ? `${count(found.length - SHOWN)} more: type on` : ''}</p></dialog>`;
}

export function Keys({ links, path, go }) {
  const [shown, setShown] = useState(null);
  const [off, setOff] = useState(() => localStorage.getItem(OFF) === '1');
  const began = useRef(0); // when g was pressed
  const press = useRef(null);
  press.current = (e) => {
    if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === 'k') {
      e.preventDefault();
      if (!open()) setShown('palette');
      return;
    }
    if (off || e.ctrlKey || e.metaKey || e.altKey || open() || typing(e)) return;
    const after = Date.now() - began.current < NEXT_MS;
    began.current = 0;
    const place = after && places(links, path).find(([letter]) => letter === e.key);
    if (place) go(place[1]);
    else if (e.key === 'g') began.current = Date.now();
    else if (e.key === '?') setShown('help');
    else if (e.key === '/') filter() || setShown('palette');
    else if (e.key === 'j' || e.key === 'k') step(e.key === 'j' ? 1 : -1);
    else if (e.key === 'r') retry();
    else return;
    e.preventDefault();
  };
  useEffect(() => {
    const on = (e) => press.current(e);
    addEventListener('keydown', on);
    return () => removeEventListener('keydown', on);
  }, []);
  const turn = (to) => {
    setOff(to);
    localStorage.setItem(OFF, to ? '1' : '0');
  };
  const close = () => setShown(null);
  return html`<button class="link" id="keys-open" aria-haspopup="dialog" onClick=${() => setShown('help')}>keys</button>
    ${shown === 'help' && html`<${Help} links=${links} path=${path} off=${off} onOff=${turn} onClose=${close}/>`}
    ${shown === 'palette' && html`<${Palette} links=${links} path=${path} go=${go} onClose=${close}/>`}`;
}
