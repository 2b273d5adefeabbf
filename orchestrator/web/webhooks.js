// Webhooks: whom drover tells of what, tests of them, and the log of what was sent.
import { useState } from 'preact/hooks';
import { html } from './html.js';
import { useQuery } from './address.js';
import { del, get, getTagged, patchOnce, postOnce } from './api.js';
import { useConfirm } from './dialog.js';
import { CURVES_MS, useLive } from './live.js';
import { Act, may, me } from './role.js';
import { Closed, Form, Secret, SettingsHead } from './settings.js';
import { Ago, Command, Trouble, Until } from './show.js';
import { count, word } from './format.js';

const FIELDS = ['log'];
const KINDS = { held: 'a campaign is held', budget: 'a part of a budget is spent', failed: 'parts failed', done: 'a campaign ended', stuck: 'nothing of a campaign runs, or it is late', lost: 'jobs were lost and found' };
const LOOKS = { delivered: 'succeeded', failed: 'failed', failing: 'held', partly: 'held', waiting: 'new' }; // as states of campaigns look
const State = ({ of }) => html`<span class=${`state st-${LOOKS[of] || 'new'}`}>${of || 'nothing sent'}</span>`;

function Fields({ of }) {
  const secret = of && ['slack', 'teams'].includes(of.format); // the address is shown without its path
  return html`<label>Name <input name="name" required maxlength="64" value=${of?.name} placeholder="on call" autocomplete="off"/></label>
    <label class="volume">Address <input name="url" type="url" required=${!secret} maxlength="2048"
      value=${secret ? '' : of?.url} placeholder=${secret ? `as it is: ${of.url}` : 'https://hooks.example.com/drover or mailto:a@example.com,b@example.com'} autocomplete="off"/></label>
    <fieldset class="kinds"><legend>Told when</legend>${Object.entries(KINDS).map(([k, what]) =>
      html`<label class="check" key=${k}><input type="checkbox" name="kinds" value=${k} checked=${!of || of.kinds.includes(k)}/> ${what}</label>`)}</fieldset>
    <div class="fields"><label>Format <select name="format">${['json', 'slack', 'teams', 'email'].map((f) => html`<option key=${f} value=${f} selected=${f === (of?.format || 'json')}>${f}</option>`)}</select></label>
      <label>Quiet hours, UTC <input name="quiet" value=${of?.quiet} pattern="[0-9]{2}:[0-9]{2}-[0-9]{2}:[0-9]{2}" placeholder="22:00-07:00" autocomplete="off"/></label>
      ${!of && html`<label>Project <input name="project" placeholder="every one" value=${me().projects?.split(',')[0]} autocomplete="off"/></label>`}</div>`;
}

// mailto: and the format email go together, whatever is selected.
function formatOf(form) {
  if (form.get('url').startsWith('mailto:')) return 'email';
  return form.get('url') && form.get('format') === 'email' ? 'json' : form.get('format');
}

const read = (form) => ({ name: form.get('name'), url: form.get('url'), format: formatOf(form), kinds: form.getAll('kinds'), quiet: form.get('quiet') || null });

const fresh = (onClose) => html`<${Form} title="New webhook" action="Add" onClose=${onClose}
  made=${(w) => ({ title: `${w.id} added`, show: w.secret ? html`<${Secret} text=${w.secret}><p class="muted">The receiver checks signatures with it. Then press Test.</p><//>`
    : html`<p>Mail goes to ${w.url.slice(7).replaceAll(',', ', ')}. Press Test to see whether it arrives.</p>` })}
  send=${(form) => {
    const { quiet, ...body } = read(form);
    return postOnce('/webhooks', { ...body, ...(quiet ? { quiet } : {}), ...(form.get('project') ? { project: form.get('project') } : {}) });
  }}><${Fields}/><//>`;

// Only what differs is sent, against the version that was shown.
function change({ value, etag }, onClose) {
  const send = (form) => {
    const body = Object.fromEntries(Object.entries(read(form)).filter(([k, v]) => !(k === 'url' && !v) && String(v) !== String(value[k])));
    return Object.keys(body).length > 0 ? patchOnce(`/webhooks/${value.id}`, body, etag) : null;
  };
  return html`<${Form} title=${`Change ${value.name}`} action="Change" send=${send} onClose=${onClose}><${Fields} of=${value}/><//>`;
}

const remove = (w) => ({ title: `Remove ${w.name}`, action: 'Remove', danger: true, confirm: () => del(`/webhooks/${w.id}`),
  text: html`It is told nothing more; ${w.waiting > 0 ? `${count(w.waiting)} that wait are not sent, and ` : ''}its log goes with it. This cannot be undone.` });

function Table({ list, log, onLog, onTest, onChange, ask }) {
  return html`<table class="stack" id="webhooks"><thead><tr><th class="third">Webhook</th><th>Told when</th><th>Last</th><th class="num">Waiting</th><th class="act">Do</th></tr></thead>
    <tbody>${list.map((w) => html`<tr key=${w.id}><td class="name"><span class="clamp">${w.name}</span> <span class="muted">${w.id}</span><p class="told"><code>${w.url}</code></p>
        <p class="told">${w.format}, ${w.project ? `project ${w.project}` : 'every project'}${w.quiet ? `, quiet ${w.quiet} UTC` : ''}</p></td>
      <td data-label="Told when" class="reason">${w.kinds.join(', ')}</td><td data-label="Last"><${State} of=${w.last}/>${w.dropped > 0 && html`<p class="told bad">${count(w.dropped)} found its queue full</p>`}</td>
      <td data-label="Waiting" class="num">${count(w.waiting)}${w.failed > 0 && html`<p class="told bad">${count(w.failed)} given up</p>`}</td>
      <td class="act"><div class="row"><${Act} needs="admin" data-test=${w.id} onClick=${() => onTest(w)} aria-label=${`Test ${w.name}`}>Test<//>
        <button aria-pressed=${log === w.id} class="toggle" data-log=${w.id} onClick=${() => onLog(log === w.id ? '' : w.id)} aria-label=${`log of ${w.name}`}>Log</button>
        <${Act} needs="admin" data-change=${w.id} onClick=${() => onChange(w)} aria-label=${`Change ${w.name}`}>Change…<//>
        <${Act} needs="admin" class="danger" onClick=${() => ask(remove(w))} aria-label=${`Remove ${w.name}`}>Remove…<//></div></td></tr>`)}</tbody></table>`;
}

function Log({ of, deliveries, onResend }) {
  return html`<section class="card wide" id="log"><h2><span class="clamp">Sent to ${of?.name || 'it'}</span> <span class="muted">the last 14 days, newest first</span></h2>
    ${deliveries.length === 0 ? html`<p class="muted">Nothing was sent yet. Press Test, or use a shell:</p><${Command} text=${`drover webhook test ${of?.id}`}/>`
      : html`<table class="stack" id="deliveries"><thead><tr><th>Message</th><th>State</th><th>Campaign</th><th class="num">Tries</th>
        <th class="third">Answer to the last</th><th class="num">Happened</th><th class="act">Again</th></tr></thead>
      <tbody>${deliveries.map((d) => html`<tr key=${d.id}><td class="name">${word(d.kind)} <span class="muted">${d.id}</span></td><td data-label="State"><${State} of=${d.state}/></td>
        <td data-label="Campaign">${d.campaign ? html`<a href=${`/c/${d.campaign.slice(2)}`}>${d.campaign}</a>` : '–'}</td><td data-label="Tries" class="num">${count(d.tries)}</td>
        <td class="why reason">${d.tries > 0 && html`<span class=${d.problem ? 'bad' : ''}>${d.problem || `answered ${d.status}`}</span> <span
          class="muted">after ${count(Math.ceil(d.took_microseconds / 1000))} ms</span>`}${d.next_at && d.tries > 0 ? html` <span class="muted">next try <${Until} at=${d.next_at}/></span>` : ''}</td>
        <td data-label="Happened" class="num"><${Ago} at=${d.at}/></td>
        <td class="act">${d.state !== 'waiting' && html`<${Act} needs="admin" onClick=${() => onResend(d)} aria-label=${`Send ${d.id} again`}>Send again<//>`}</td></tr>`)}</tbody></table>`}</section>`;
}

export function Webhooks({ setLive }) {
  const [at, go] = useQuery(FIELDS);
  const [ask, dialog] = useConfirm(() => close());
  const [form, setForm] = useState(null);
  const [notice, setNotice] = useState('');
  const [trouble, setTrouble] = useState(null);
  const sees = may('admin');
  const { data, problem, load } = useLive('/events', async () => {
    document.title = 'webhooks · drover';
    const [{ webhooks }, log] = await Promise.all([sees ? get('/webhooks') : { webhooks: [] },
      sees && at.log ? get(`/webhooks/${encodeURIComponent(at.log)}/deliveries?limit=100`).catch((e) => { if (e.status === 404) return null; throw e; }) : null]);
    return { webhooks, log: log?.deliveries, behind: log?.deliveries.some((d) => d.state === 'waiting' && d.tries === 0) };
  }, [at.log], setLive, CURVES_MS);
  const close = () => { setForm(null); load(); };
  const act = (f) => async (x) => {
    setTrouble(null);
    try {
      setNotice(await f(x) || '');
      load();
    } catch (p) {
      setTrouble(p);
    }
  };
  const test = act(async (w) => {
    const d = await postOnce(`/webhooks/${w.id}/test`);
    go({ log: w.id });
    return `${d.id}, a message that says it is a test, is sent to ${w.name}.`;
  });
  const again = act(async (d) => { await postOnce(`/webhooks/${at.log}/deliveries/${d.id}:resend`); return `${d.id} is sent once more.`; });
  const edit = act(async (w) => setForm(change(await getTagged(`/webhooks/${w.id}`), close)));
  return html`<main><${SettingsHead} here="/webhooks" title="Webhooks" text="Whom drover tells when a campaign needs somebody: a program, Slack, Teams or people by mail.">
      <${Act} needs="admin" class="primary" id="new-webhook" onClick=${() => setForm(fresh(close))}>New webhook…<//><//>
    <p class="notice" role="status" id="notice">${notice}</p><${Trouble} problem=${trouble}/><${Trouble} problem=${problem} data=${data}/>
    ${!sees && html`<${Closed} needs="admins" what="Webhooks"/>`}
    ${sees && data && html`<section class="card wide" aria-label="webhooks">${data.webhooks.length > 0
      ? html`<${Table} list=${data.webhooks} log=${at.log} onLog=${(log) => go({ log })} onTest=${test} onChange=${edit} ask=${ask}/>`
      : html`<div id="nothing"><h2>Nobody is told yet</h2><p>A webhook posts a signed message to an address, or a mail to mailto:a@example.com, when a campaign is held, fails, ends or nears its budget. Press New webhook, or use a shell:</p>
        <${Command} text="drover webhook add oncall https://hooks.example.com/drover --on held,failed"/></div>`}</section>
    ${data.log && html`<${Log} of=${data.webhooks.find((w) => w.id === at.log)} deliveries=${data.log} onResend=${again}/>`}`}
    ${form}
    ${dialog}
  </main>`;
}
