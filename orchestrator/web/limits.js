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

const micro = (field) => (field === '' ? null : Math.round(Number(field) * 1e6));
const limitOf = (form) => (form.noBudget ? null : micro(form.budget));
const dollars = (musd) => (musd == null ? '' : String(musd / 1e6));

// The fields of a stage that differ, as PATCH takes them; null: none.
function stageChanges(stage, form) {
  const parts = form.parts === '' ? null : Number(form.parts);
  const body = parts !== (stage.limits?.parts ?? null) ? { parts } : {};
  const money = (musd) => (musd === null ? null : `${musd / 1e6} USD`);
  const budget = {};
  if (limitOf(form) !== stage.budget.limit_micro_usd) budget.total = money(limitOf(form));
  if (micro(form.perTask) !== stage.budget.per_task_micro_usd) budget.per_task = money(micro(form.perTask));
  if (Object.keys(budget).length) body.budget = budget;
  return Object.keys(body).length ? { stages: { [stage.name]: body } } : null;
}

// The same of the campaign, or of a stage of it.
function changes(campaign, stage, form) {
  if (stage) return stageChanges(stage, form);
  const body = {};
  const parts = form.parts === '' ? null : Number(form.parts);
  if (parts !== (campaign.limits.parts ?? null)) body.limits = { parts };
  const limit = limitOf(form);
  const budget = {};
  if (limit !== campaign.budget.limit_micro_usd) budget.limit_micro_usd = limit;
  if (form.atLimit !== campaign.budget.at_limit) budget.at_limit = form.atLimit;
  if (Object.keys(budget).length) body.budget = budget;
  if (Number(form.priority) !== campaign.priority) body.priority = Number(form.priority);
  if (form.deadline !== (campaign.deadline || '').slice(0, 16)) body.deadline = utc(form);
  return Object.keys(body).length ? body : null;
}

// The limits that a change sets, of the campaign or of its stage; those it leaves alone are undefined.
function changed(body, stage) {
  const of = (stage ? body?.stages?.[stage.name] : body) ?? {};
  const budget = stage ? of.budget?.total : of.budget?.limit_micro_usd;
  return { parts: stage ? of.parts : of.limits?.parts, budget: budget == null || stage ? budget : dollars(budget), perTask: of.budget?.per_task, priority: of.priority, deadline: of.deadline };
}

// The same as a forecast is asked for it; '': nothing that it knows of.
function question(body, stage) {
  const { parts, budget, priority } = changed(body, stage);
  const asked = Object.entries({ parts, budget: budget && budget.replace(' USD', ''), priority }).filter(([, v]) => v !== undefined);
  return (asked.length && stage ? [['stage', stage.name], ...asked] : asked).map(([k, v]) => `${k}=${v ?? 'none'}`).join();
}

// What bounds it no longer, in words.
function lifted(body, stage) {
  const now = changed(body, stage);
  const words = { budget: 'no budget', perTask: 'no budget of each part', deadline: 'no deadline', parts: 'no limit of parts at once' };
  return Object.keys(words).filter((k) => now[k] === null).map((k) => words[k]).join(' and ');
}

// What is needed beyond the change for parts to start again.
const heldByBudget = (c) => c.state === 'held' && c.guidance?.some((g) => g.kind === 'budget');

export function Limits({ campaign, focus, stage: stageName, onClose, onDone }) {
  const ref = useRef(null);
  const key = useRef(newKey());
  const first = useRef(campaign).current; // what was shown when it opened is what is changed
  const stage = first.stages.find((s) => s.name === stageName);
  const of = stage || first;
  const [form, setForm] = useState(() => ({ parts: String(of.limits?.parts ?? ''), budget: dollars(of.budget.limit_micro_usd), noBudget: of.budget.limit_micro_usd == null,
    perTask: dollars(of.budget.per_task_micro_usd), atLimit: first.budget.at_limit, priority: String(first.priority),
    deadline: (first.deadline || '').slice(0, 16) }));
  const [outcome, setOutcome] = useState({});
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const [resume, setResume] = useState(heldByBudget(first));
  // A field in which a browser sees no number or time has '' as its value, like an empty one: it alone knows, and says so when the form is sent.
  const [valid, setValid] = useState(true);
  useLayoutEffect(() => setValid(ref.current.querySelector('form').checkValidity()), [form]);
  const set = (name) => (e) => { setForm({ ...form, [name]: e.target.type === 'checkbox' ? e.target.checked : e.target.value }); key.current = newKey(); };
  useEffect(() => {
    ref.current.showModal();
    ref.current.querySelector(`[name=${focus || 'parts'}]`)?.focus();
  }, [focus]);
  const body = valid ? changes(first, stage, form) : null;
  const asked = question(body, stage);
  useEffect(() => {
    let stale = false;
    const what = asked && `?what_if=${encodeURIComponent(asked)}`;
    const timer = setTimeout(() => get(`/campaigns/${first.id}/forecast${what}`).then((f) => !stale && setOutcome({ now: f.campaign, then: f.what_if || f.campaign }),
      (e) => !stale && setProblem(e)), LOOK_AFTER_MS);
    return () => { stale = true; clearTimeout(timer); };
  }, [first, asked]);
  const go = async (event) => {
    event.preventDefault();
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
  const below = limitOf(form) !== null && limitOf(form) < of.budget.spent_micro_usd + of.budget.reserved_micro_usd;
  return html`<dialog ref=${ref} onClose=${onClose} aria-labelledby="limits-title">
    <h2 id="limits-title">Limits of ${first.id}${stage ? `, stage ${stage.name}` : ''}</h2>
    <form onSubmit=${go}><div class="fields">
      <label>Parts at once <input name="parts" type="number" min="0" step="1" value=${form.parts} placeholder="no limit" onInput=${set('parts')}/></label>
      <div><label>Budget, USD <input name="budget" type="number" min="0" step="any" required disabled=${form.noBudget} value=${form.noBudget ? '' : form.budget} placeholder=${form.noBudget ? 'none' : ''} onInput=${set('budget')}/></label>
        <label class="check"><input name="no_budget" type="checkbox" checked=${form.noBudget} onChange=${set('noBudget')}/> No budget</label></div>
      ${stage ? html`<label>Budget of each part, USD <input name="per_task" type="number" min="0" step="any" value=${form.perTask} placeholder="none" onInput=${set('perTask')}/></label>` : html`
      <label>When it is reached <select name="at_limit" value=${form.atLimit} onChange=${set('atLimit')}>
        ${['drain', 'stop', 'hold'].map((w) => html`<option key=${w} value=${w} selected=${w === form.atLimit}>${w}</option>`)}</select></label>
      <label>Priority, 0 to 100 <input name="priority" type="number" min="0" max="100" step="1" required value=${form.priority} onInput=${set('priority')}/></label>
      <label>Deadline, UTC <input name="deadline" type="datetime-local" value=${form.deadline} onInput=${set('deadline')}/></label>`}
    </div>
    <table class="outcome" aria-live="polite"><thead><tr><td></td><th class="num">Ends in</th><th class="num">Costs at the end</th></tr></thead>
      <tbody><${Outcome} name="Now" of=${outcome.now}/><${Outcome} name="Then" of=${outcome.then}/></tbody></table>
    ${!stage && form.deadline && html`<p id="verdict" aria-live="polite">${verdict(utc(form), outcome.then)}</p>`}
    <p class="muted">Running parts go on. ${usd(of.budget.spent_micro_usd)} spent, ${usd(of.budget.reserved_micro_usd)} reserved.</p>
    ${lifted(body, stage) && html`<p class="bad" id="lifted">There will be ${lifted(body, stage)}.</p>`}
    ${below && html`<p class="bad">That is less than what is spent and reserved: nothing more starts.</p>`}
    ${(heldByBudget(first) || resume) && html`<label class="check"><input type="checkbox" checked=${resume} onChange=${(e) => setResume(e.target.checked)}/> Resume it as well</label>`}
    ${problem && html`<p class="problem" role="alert">${problem.message}</p>`}
    <div class="row"><button class="primary" id="limits-go" disabled=${busy || (valid && !body && !resume)}>Change</button>
      <button type="button" onClick=${() => ref.current.close()}>Back</button></div></form>
  </dialog>`;
}
