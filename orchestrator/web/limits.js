// How much of a campaign may run at once, its budget, its priority and its deadline: shows the end and the cost that would follow before
// anything is changed. The change carries a key and the version that was shown.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { get, newKey, patch, post } from './api.js';
import { duration, durationOrNever, usd } from './format.js';

const LOOK_AFTER_MS = 300; // pause in typing before a forecast is requested

function Outcome({ name, of }) {
  if (!of) return html`<tr><th scope="row">${name}</th><td class="num" colspan="2">…</td></tr>`;
  const end = of.end?.p50_seconds;
  return html`<tr><th scope="row">${name}</th>
    <td class="num">${!of.known ? 'not known yet' : end == null ? 'does not end' : html`${duration(end)} <span class="muted">${duration(of.end.p10_seconds)} to ${durationOrNever(of.end.p90_seconds)}</span>`}</td>
    <td class="num">${of.cost ? html`${usd(of.cost.p50_micro_usd)} <span class="muted">to ${usd(of.cost.p90_micro_usd)}</span>` : '–'}</td></tr>`;
}

// Whether a forecast meets a deadline, and what keeps it from ending sooner.
function verdict(deadline, of) {
  const end = of?.end;
  if (!deadline || !of?.known) return '';
  const left = (Date.parse(deadline) - Date.now()) / 1000;
  const binds = of.binding && of.binding !== 'none' ? ` What binds: ${of.binding}${of.binding_instance_type ? ` of ${of.binding_instance_type}` : ''}.` : '';
  if (end?.p50_seconds == null) return `The deadline is not met: it does not end.${binds}`;
  if (end.p50_seconds > left) return `It is late by ${duration(end.p50_seconds - left)}.${binds}`;
  const sure = end.p90_seconds != null && end.p90_seconds <= left;
  return `The deadline is ${sure ? 'met' : 'at risk'}, with ${duration(left - end.p50_seconds)} to spare.${binds}`;
}

const utc = (form) => (form.deadline ? `${form.deadline.slice(0, 16)}:00Z` : null);

// The fields that differ from the campaign, as PATCH takes them; null: nothing differs.
function changes(campaign, stage, form) {
  const body = {};
  const was = stage ? stage.limits?.parts : campaign.limits.parts;
  const parts = form.parts === '' ? null : Number(form.parts);
  if (parts !== (was ?? null)) {
    if (stage) body.stages = { [stage.name]: { parts } };
    else body.limits = { parts };
  }
  const limit = form.noBudget ? null : Math.round(Number(form.budget) * 1e6);
  const budget = {};
  if (limit !== campaign.budget.limit_micro_usd) budget.limit_micro_usd = limit;
  if (form.atLimit !== campaign.budget.at_limit) budget.at_limit = form.atLimit;
  if (Object.keys(budget).length) body.budget = budget;
  if (Number(form.priority) !== campaign.priority) body.priority = Number(form.priority);
  if (form.deadline !== (campaign.deadline || '').slice(0, 16)) body.deadline = utc(form);
  return Object.keys(body).length ? body : null;
}

// The same as a forecast is asked for it; '': nothing that it knows of.
function question(body) {
  const of = { parts: body?.limits?.parts, budget: body?.budget?.limit_micro_usd, priority: body?.priority };
  if (of.budget != null) of.budget = (of.budget / 1e6).toFixed(6);
  return Object.entries(of).filter(([, v]) => v !== undefined).map(([k, v]) => `${k}=${v ?? 'none'}`).join();
}

// What bounds the campaign no longer, in words.
function lifted(body, stage) {
  const gone = [];
  if (body?.budget?.limit_micro_usd === null) gone.push('no budget');
  if (body?.deadline === null) gone.push('no deadline');
  if ((stage ? body?.stages?.[stage.name] : body?.limits)?.parts === null) gone.push('no limit of parts at once');
  return gone.join(' and ');
}

// What is needed beyond the change for parts to start again.
const heldByBudget = (c) => c.state === 'held' && c.guidance?.some((g) => g.kind === 'budget');

export function Limits({ campaign, focus, stage: stageName, onClose, onDone }) {
  const ref = useRef(null);
  const key = useRef(newKey());
  const first = useRef(campaign).current; // what was shown when it opened is what is changed
  const stage = first.stages.find((s) => s.name === stageName);
  const [form, setForm] = useState(() => ({ parts: String((stage ? stage.limits?.parts : first.limits.parts) ?? ''),
    budget: first.budget.limit_micro_usd == null ? '' : String(first.budget.limit_micro_usd / 1e6), noBudget: first.budget.limit_micro_usd == null, atLimit: first.budget.at_limit, priority: String(first.priority),
    deadline: (first.deadline || '').slice(0, 16) }));
  const [outcome, setOutcome] = useState({});
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const [resume, setResume] = useState(heldByBudget(first));
  // A field in which a browser sees no number or time has '' as its value, like an empty one: it alone knows, and says so when the form is sent.
  const [valid, setValid] = useState(true);
  useLayoutEffect(() => setValid(ref.current.querySelector('form').checkValidity()));
  const set = (name) => (e) => { setForm({ ...form, [name]: e.target.type === 'checkbox' ? e.target.checked : e.target.value }); key.current = newKey(); };
  useEffect(() => {
    ref.current.showModal();
    ref.current.querySelector(`[name=${focus || 'parts'}]`)?.focus();
  }, [focus]);
  const body = valid ? changes(first, stage, form) : null;
  const asked = question(body);
  useEffect(() => {
    let stale = false;
    const what = asked && `?what_if=${encodeURIComponent(asked)}`;
    const timer = setTimeout(() => get(`/campaigns/${first.id}/forecast${what}`).then((f) => !stale && setOutcome({ now: f.campaign, then: f.what_if || f.campaign }),
      (e) => !stale && setProblem(e)), LOOK_AFTER_MS);
    return () => { stale = true; clearTimeout(timer); };
  }, [first, asked]);
  const go = async (e) => {
    e.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      if (body) await patch(`/campaigns/${first.id}`, body, `"${first.version}"`, key.current);
      if (resume) await post(`/campaigns/${first.id}:resume`, {}, `${key.current}r`);
      onDone(`Limits of ${first.id} changed${resume ? '; it goes on' : ''}.`);
      ref.current.close();
    } catch (e) {
      setProblem(e);
      setBusy(false);
    }
  };
  const below = !form.noBudget && form.budget !== '' && Number(form.budget) * 1e6 < first.budget.spent_micro_usd + first.budget.reserved_micro_usd;
  return html`<dialog ref=${ref} onClose=${onClose} aria-labelledby="limits-title">
    <h2 id="limits-title">Limits of ${first.id}${stage ? `, stage ${stage.name}` : ''}</h2>
    <form onSubmit=${go}><div class="fields">
      <label>Parts at once <input name="parts" type="number" min="0" step="1" value=${form.parts} placeholder="no limit" onInput=${set('parts')}/></label>
      <div><label>Budget, USD <input name="budget" type="number" min="0" step="any" required disabled=${form.noBudget} value=${form.noBudget ? '' : form.budget} placeholder=${form.noBudget ? 'none' : ''} onInput=${set('budget')}/></label>
        <label class="check"><input name="no_budget" type="checkbox" checked=${form.noBudget} onChange=${set('noBudget')}/> No budget</label></div>
      <label>When it is reached <select name="at_limit" value=${form.atLimit} onChange=${set('atLimit')}>
        ${['drain', 'stop', 'hold'].map((w) => html`<option key=${w} value=${w} selected=${w === form.atLimit}>${w}</option>`)}</select></label>
      <label>Priority, 0 to 100 <input name="priority" type="number" min="0" max="100" step="1" required value=${form.priority} onInput=${set('priority')}/></label>
      <label>Deadline, UTC <input name="deadline" type="datetime-local" value=${form.deadline} onInput=${set('deadline')}/></label>
    </div>
    <table class="outcome" aria-live="polite"><thead><tr><td></td><th class="num">Ends in</th><th class="num">Costs at the end</th></tr></thead>
      <tbody><${Outcome} name="Now" of=${outcome.now}/><${Outcome} name="Then" of=${outcome.then}/></tbody></table>
    ${form.deadline && html`<p id="verdict" aria-live="polite">${verdict(utc(form), outcome.then)}</p>`}
    <p class="muted">Running parts go on. ${usd(first.budget.spent_micro_usd)} spent, ${usd(first.budget.reserved_micro_usd)} reserved.</p>
    ${lifted(body, stage) && html`<p class="bad" id="lifted">There will be ${lifted(body, stage)}.</p>`}
    ${below && html`<p class="bad">That is less than what is spent and reserved: nothing more starts.</p>`}
    ${(heldByBudget(first) || resume) && html`<label class="check"><input type="checkbox" checked=${resume} onChange=${(e) => setResume(e.target.checked)}/> Resume it as well</label>`}
    ${problem && html`<p class="problem" role="alert">${problem.message}</p>`}
    <div class="row"><button class="primary" id="limits-go" disabled=${busy || (valid && !body && !resume)}>Change</button>
      <button type="button" onClick=${() => ref.current.close()}>Back</button></div></form>
  </dialog>`;
}
