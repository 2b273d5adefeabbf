// Endpoints of stages that deploy: all of them with what they cost, and one with its times, a question to its model, a later end
// and its end.
import { useEffect, useState } from 'preact/hooks';
import { html } from './html.js';
import { ask, del, get, getTagged, patch } from './api.js';
import { useConfirm } from './dialog.js';
import { useLive } from './live.js';
import { Act } from './role.js';
import { Ago, Command, Trouble } from './show.js';
import { count, duration, durationFine, usd, usdFine, word } from './format.js';

const LOOKS = { in_service: 'running', deleting: 'draining', failed: 'failed' }; // as states of campaigns look
const LIVE_ON = ['30m', '1h', '2h', '4h', '8h'];
const ANSWER_MAX = 20000; // characters that are shown

const EndpointState = ({ of, id }) => html`<span class=${`state st-${LOOKS[of.state] || 'new'}`} id=${id}>${word(of.state)}</span>`;
const instances = (e) => `${count(e.instances)} × ${e.instance_type}`;
const cost = (e) => `${e.estimated ? '≈ ' : ''}${usdFine(e.cost_micro_usd)}`;
const inService = (e) => e.state === 'in_service' && !e.delete_asked;
const left = (iso) => (Date.parse(iso) - Date.now()) / 1000;

// When it goes: its time, or that it was asked to go.
function End({ of }) {
  if (of.ended_at) return html`gone <${Ago} at=${of.ended_at}/>`;
  if (of.delete_asked || of.state === 'deleting') return 'being deleted';
  if (!of.delete_after) return html`<span class="muted">${duration(of.ttl_seconds)} after it is in service</span>`;
  return html`<time datetime=${of.delete_after} title=${of.delete_after}>in ${duration(left(of.delete_after))}</time>`;
}

function Table({ list }) {
  return html`<table class="stack" id="endpoints"><thead><tr><th class="third">Endpoint</th><th>State</th><th class="num">Instances</th><th class="num">Deleted</th>
      <th class="num">An hour</th><th class="num">Cost</th></tr></thead>
    <tbody>${list.map((e) => html`<tr key=${e.name}>
      <td class="name"><a class="clamp" href=${`/endpoints/${e.name}`}>${e.name}</a>
        <p class="told">${e.reason || html`stage ${e.stage} of ${e.campaign}`}</p></td>
      <td><${EndpointState} of=${e}/></td>
      <td data-label="Instances" class="num">${instances(e)}</td>
      <td data-label="Deleted" class="num"><${End} of=${e}/></td>
      <td data-label="An hour" class="num">${usd(e.micro_usd_per_hour)}</td>
      <td data-label="Cost" class="num">${cost(e)}</td></tr>`)}</tbody></table>`;
}

const None = () => html`<div id="nothing"><h2>No endpoint yet</h2>
  <p>A stage with kind: endpoint deploys a model, asks it once, and is deleted when its time is over. The example is a whole file:</p>
  <${Command} text="drover init huggingface-endpoint campaign.yaml"/><${Command} text="drover submit campaign.yaml"/></div>`;

export function Endpoints({ setLive }) {
  const { data, problem } = useLive('/events', async () => {
    document.title = 'endpoints · drover';
    return get('/endpoints');
  }, [], setLive);
  return html`<main><h1>Endpoints</h1>
    <${Trouble} problem=${problem} data=${data}/>
    ${data && html`<section class="card wide">${data.endpoints.length > 0 ? html`<${Table} list=${data.endpoints}/>` : html`<${None}/>`}</section>`}
  </main>`;
}

// A question to the model, and its answer as it came.
function Question({ name }) {
  const [type, setType] = useState('application/json');
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const [said, setSaid] = useState(null);
  const [problem, setProblem] = useState(null);
  const go = async (e) => {
    e.preventDefault();
    setBusy(true);
    setProblem(null);
    const began = performance.now();
    try {
      const answer = await ask(`/endpoints/${name}:invoke`, text, type);
      setSaid({ answer, seconds: (performance.now() - began) / 1000 });
    } catch (p) {
      setSaid(null);
      setProblem(p);
    }
    setBusy(false);
  };
  return html`<section class="card wide"><h2>Ask the model</h2><form onSubmit=${go}>
    <label>Input <textarea name="input" rows="4" required value=${text} onInput=${(e) => setText(e.target.value)} placeholder='{"inputs": "Where is the herd?"}'></textarea></label>
    <div class="fields"><label>Content type <input name="type" required value=${type} onInput=${(e) => setType(e.target.value)}/></label></div>
    <${Act} class="primary" id="ask" disabled=${busy}>${busy ? 'Asking …' : 'Ask'}<//></form>
    ${problem && html`<p class="problem" role="alert">${problem.message}</p>`}
    ${said && html`<p class="muted" role="status">Answered in ${durationFine(said.seconds)}, ${count(said.answer.length)} characters${said.answer.length > ANSWER_MAX ? `, the first ${count(ANSWER_MAX)}` : ''}:</p>
      <pre class="log" id="answer" tabindex="0">${said.answer.slice(0, ANSWER_MAX)}</pre>`}
    <p class="muted">A question counts as use: an idle endpoint lives on.</p></section>`;
}

const extendQuestion = (e, etag) => {
  let ttl = LIVE_ON[1];
  return { title: `Let ${e.name} live longer`, action: 'Extend',
    preview: async () => ({ show: html`<label>From now on for <select name="ttl" onChange=${(x) => { ttl = x.target.value; }}>
        ${LIVE_ON.map((t) => html`<option key=${t} value=${t} selected=${t === ttl}>${t}</option>`)}</select></label>
      <p>Each hour costs ${usd(e.micro_usd_per_hour)} and is reserved at once. Without a change it is deleted <${End} of=${e}/>.</p>` }),
    confirm: (key) => patch(`/endpoints/${e.name}`, { ttl }, etag, `${key}${ttl}`) };
};
const deleteQuestion = (e) => ({ title: `Delete ${e.name}`, action: 'Delete', danger: true, confirm: () => del(`/endpoints/${e.name}`),
  text: html`The endpoint, its config and its model go; who asks it gets no answer any more. It has cost ${cost(e)}. This cannot be undone.` });

function Facts({ e }) {
  const rows = [
    ['Stage', html`${e.stage} of <a href=${`/c/${e.campaign.slice(2)}`}>${e.campaign}</a>, try ${e.try}`],
    ['Instances', instances(e)],
    ['In service', e.in_service_at && html`<${Ago} at=${e.in_service_at}/>`],
    ['Deleted', html`<${End} of=${e}/>${e.idle_seconds != null && !e.ended_at ? `, or after ${duration(e.idle_seconds)} without a question` : ''}`],
    ['Overrun', e.overrun_seconds > 0 && `${duration(e.overrun_seconds)} beyond its ttl, ${usd(e.micro_usd_per_hour * e.overrun_seconds / 3600)}`],
    ['Asked to live until', e.extend_to && html`<time>${e.extend_to}</time>, not taken yet`],
    ['Not extended', e.extend_refused && 'the budget has no room'],
    ['Last question', e.last_invocation && html`<${Ago} at=${e.last_invocation}/>, or up to a minute before`],
    ['Smoke test', e.tested && `passed${e.p95_us != null ? `, 95 of 100 answers within ${durationFine(e.p95_us / 1e6)}` : ''}`],
    ['Cost', `${cost(e)}${e.estimated ? ' so far' : ''}, ${usd(e.micro_usd_per_hour)} an hour, ${usd(e.reserved_micro_usd)} reserved`],
    ['In SageMaker', [['model', e.model], ['config', e.endpoint_config], ['endpoint', e.endpoint]].filter(([, n]) => n).map(([w]) => w).join(', ')],
  ];
  return html`<table class="outcome" id="facts"><tbody>${rows.filter(([, v]) => v).map(([k, v]) => html`<tr key=${k}><th scope="row">${k}</th><td>${v}</td></tr>`)}</tbody></table>`;
}

export function Endpoint({ id, setLive }) {
  const [onAsk, dialog] = useConfirm(() => load());
  const { data, problem, load } = useLive('/events', () => getTagged(`/endpoints/${id}`), [id], setLive);
  useEffect(() => { document.title = `${id} · drover`; }, [id]);
  const e = data?.value;
  return html`<main>
    <div class="head"><div><p class="muted"><a href="/endpoints">endpoints</a></p>
      <h1><span class="clamp">${id}</span> ${e && html`<${EndpointState} of=${e} id="state"/>`}</h1></div>
      ${e && inService(e) && html`<div class="row"><${Act} id="extend" onClick=${() => onAsk(extendQuestion(e, data.etag))}>Extend…<//>
        <${Act} class="danger" id="delete" onClick=${() => onAsk(deleteQuestion(e))}>Delete…<//></div>`}</div>
    <${Trouble} problem=${problem} data=${e}/>
    ${e?.reason && html`<p class="problem">${e.reason}</p>`}
    ${e && html`<section class="card wide" aria-label="facts"><${Facts} e=${e}/></section>`}
    ${e && inService(e) && html`<${Question} name=${id}/>`}
    ${dialog}
  </main>`;
}
