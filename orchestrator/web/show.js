// Small elements used by several pages: a state, a bar of states, a time, a problem.
import { useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { ago, count, duration, glyph, order, word } from './format.js';

export const State = ({ of, id }) =>
  of.waits_for || (of.state === 'running' && of.guidance?.[0]?.runs === false)
    ? html`<span class="state st-held" id=${id}>waiting</span>`
    : html`<span class=${`state st-${of.state}`} id=${id}>${word(of.state)}${of.archive ? `, ${of.archive.state}` : ''}</span>`;

export const Ago = ({ at }) => html`<time datetime=${at || ''} title=${at || ''}>${ago(at)}</time>`;

export const Until = ({ at }) => html`<time datetime=${at} title=${at}>in ${duration((Date.parse(at) - Date.now()) / 1000)}</time>`;

// A bar of pieces [class, amount], one after the other. label: what it says; without one it is decoration. Widths are SVG
// attributes: the page's content security policy allows no inline style.
export function Strip({ of, top, label }) {
  let x = 0;
  return html`<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" role=${label && 'img'} aria-label=${label} aria-hidden=${!label}>
    <rect class="track" x="0" y="0" width="1000" height="10"/>
    ${of.map(([look, n]) => {
      const w = top > 0 ? Math.min(1000, (1000 * n) / top) : 0;
      x += w;
      return w > 0 && html`<rect key=${look} class=${look} x=${x - w} y="0" width=${w} height="10"/>`;
    })}
  </svg>`;
}

// Shares of the states as one bar.
export function Bar({ parts }) {
  return html`<${Strip} label=${`${count(parts.done + parts.skipped)} of ${count(parts.total)} parts over`} of=${order.map((s) => [`s-${s}`, parts[s] || 0])} top=${parts.total}/>`;
}

// Why the newest read failed. data: there is an older one.
export const Trouble = ({ problem, data }) => problem && html`<p class="problem" role="alert">${data ? 'Showing the last known: ' : ''}${problem.message}</p>`;

// A command to copy. Without a clipboard (a page over plain http) it is selected instead.
export function Command({ text }) {
  const ref = useRef(null);
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      getSelection().selectAllChildren(ref.current);
    }
  };
  return html`<div class="command"><code ref=${ref}>${text}</code><button class="tab" aria-label=${`copy ${text}`} onClick=${copy}>${copied ? 'Copied' : 'Copy'}</button></div>`;
}

export const Legend = ({ parts }) => html`<ul class="legend">
  ${order.filter((s) => parts[s] > 0).map((s) => html`<li key=${s}><i class=${`dot s-${s}`} aria-hidden="true">${glyph[s]}</i>${word(s)} <b data-count=${s}>${count(parts[s])}</b></li>`)}</ul>`;

// The last word of the address, the name, and the letter that leads there after g.
export const CAMPAIGN_PAGES = [['', 'Overview', 'o'], ['parts', 'Parts', 'a'], ['timeline', 'Timeline', 't'], ['cost', 'Cost', 'm']];

// The pages of a campaign; here: the last word of the address of this one.
export const CampaignPages = ({ id, here }) => html`<nav class="tabs" aria-label="pages of the campaign">${CAMPAIGN_PAGES.map(([to, name]) =>
  html`<a key=${to} href=${`/c/${id.slice(2)}${to && `/${to}`}`} aria-current=${to === here ? 'page' : null}>${name}</a>`)}</nav>`;

export const CampaignHead = ({ campaign, title, here }) => html`<p class="muted"><a href="/">campaigns</a> / <a href=${`/c/${campaign.id.slice(2)}`}><span class="clamp">${campaign.name}</span></a></p>
  <h1>${title}</h1><${CampaignPages} id=${campaign.id} here=${here}/>`;
