// A new campaign from its file: the server plans each change, every fault is shown at its line, and
// the file is sent once.
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { newKey, postYaml } from './api.js';
import { count, duration, durationOrNever, usd, word } from './format.js';

const PLAN_AFTER_MS = 400; // pause in typing before a plan is requested

function Forecast({ forecast: f }) {
  if (!f) return null;
  if (!f.known) return html`<p class="muted" id="plan-forecast">When it ends: ${f.reason}</p>`;
  if (f.end.p50_seconds == null) return html`<p id="plan-forecast">Does not end under the current limits: a cap, quota or price blocks it</p>`;
  return html`<p id="plan-forecast">Ends in <b>${duration(f.end.p50_seconds)}</b> (${duration(f.end.p10_seconds)} to ${durationOrNever(f.end.p90_seconds)})${
    f.cost && html`, costs <b>${usd(f.cost.p50_micro_usd)}</b> (${usd(f.cost.p10_micro_usd)} to ${usd(f.cost.p90_micro_usd)})`}</p>`;
}

function Plan({ plan }) {
  return html`<div>
    <p><b>${plan.name}</b>: <b id="plan-parts">${count(plan.parts.total)}</b> parts in ${count(plan.stages.length)} ${plan.stages.length === 1 ? 'stage' : 'stages'}${
      plan.worst_case_micro_usd == null ? '' : `, at worst ${usd(plan.worst_case_micro_usd)}`}${plan.budget_micro_usd == null ? '' : ` of a budget of ${usd(plan.budget_micro_usd)}`} · <span class="muted">${plan.prices}</span></p>
    <${Forecast} forecast=${plan.forecast}/>
    ${plan.warnings.length > 0 && html`<ul class="warnings">${plan.warnings.map((w) => html`<li><span class="tag st-held">${word(w.code)}</span> ${w.stage ? `${w.stage}: ` : ''}${w.message}</li>`)}</ul>`}
  </div>`;
}

// onJump: takes the fault whose line is to be shown.
function Faults({ problem, onJump }) {
  return html`<div class="problem" role="alert"><p>${problem.message}</p>
    ${problem.errors.length > 0 && html`<ul>${problem.errors.map((f) => html`<li>
      ${f.line ? html`<button type="button" class="link" onClick=${() => onJump(f)} aria-label=${`line ${f.line}, column ${f.column}`}><code>${f.line}:${f.column}</code></button> ` : ''}
      ${f.pointer && html`<code>${f.pointer}</code>: `}${f.message}${f.hint ? html` <span class="muted">→ ${f.hint}</span>` : ''}</li>`)}</ul>`}</div>`;
}

// The file with the numbers of its lines.
function Editor({ area, text, onText }) {
  const numbers = useRef(null);
  return html`<span class="editor"><span ref=${numbers} aria-hidden="true">${text.split('\n').map((_, i) => i + 1).join('\n')}</span>
    <textarea id="spec" ref=${area} rows="16" wrap="off" spellcheck=${false} value=${text} onInput=${(e) => onText(e.target.value)}
      onScroll=${(e) => { numbers.current.scrollTop = e.target.scrollTop; }} placeholder="version: 1"></textarea></span>`;
}

// Selects the line of a fault and brings it into view.
function jump(area, { line }) {
  const lines = area.value.split('\n');
  const from = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
  area.focus();
  area.setSelectionRange(from, from + lines[line - 1].length);
  area.scrollTop = (area.scrollHeight * (line - 5)) / lines.length;
}

// A campaign of this name is live: which one, and the keys in which its file differs.
function Live({ problem }) {
  return html`<div class="problem" role="alert"><p>${problem.message}. <a href=${`/c/${problem.campaign.replace('c-', '')}`}>Open ${problem.campaign}</a></p>
    ${problem.errors.length > 0 && html`<ul id="differs">${problem.errors.map((f) => html`<li><code>${f.pointer}</code> ${f.message}</li>`)}</ul>`}</div>`;
}

export function Submit({ onClose, onDone }) {
  const ref = useRef(null);
  const area = useRef(null);
  const key = useRef(newKey());
  const [text, setText] = useState('');
  const [plan, setPlan] = useState(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const live = problem?.code === 'live_name'; // a second press submits another one of this name
  useEffect(() => { ref.current.showModal(); }, []);
  useEffect(() => {
    setPlan(null);
    setProblem(null);
    key.current = newKey();
    if (!text.trim()) return undefined;
    let stale = false;
    const timer = setTimeout(() => postYaml('/campaigns?dry_run=true', text).then((p) => !stale && setPlan(p), (e) => !stale && setProblem(e)), PLAN_AFTER_MS);
    return () => { stale = true; clearTimeout(timer); };
  }, [text]);
  const file = async (f) => f && setText(await f.text());
  const go = async () => {
    setBusy(true);
    try {
      onDone((await postYaml(`/campaigns${live ? '' : '?live_name=refuse'}`, text, key.current)).id);
    } catch (e) {
      setProblem(e);
      setBusy(false);
    }
  };
  const faults = problem && html`<${Faults} problem=${problem} onJump=${(f) => jump(area.current, f)}/>`;
  return html`<dialog ref=${ref} class="large" onClose=${onClose} aria-labelledby="submit-title"
      onDragOver=${(e) => e.preventDefault()} onDrop=${(e) => { e.preventDefault(); file(e.dataTransfer.files[0]); }}>
    <h2 id="submit-title">New campaign</h2>
    <label>Campaign file, pasted, dropped here or chosen
      <${Editor} area=${area} text=${text} onText=${setText}/></label>
    <label class="file"><input type="file" accept=".yaml,.yml,.json" onChange=${(e) => file(e.target.files[0])} aria-label="choose a campaign file"/></label>
    <div class="preview" aria-live="polite">${live && html`<${Live} problem=${problem}/>`}${plan && problem && !live && faults}${
      plan ? html`<${Plan} plan=${plan}/>` : problem ? faults : html`<p class="muted">${text.trim() ? 'planning …' : 'What it will do and may cost is shown here before anything starts.'}</p>`}</div>
    <div class="row"><button class="primary" id="submit" disabled=${!plan || busy} onClick=${go}>${live ? 'Submit a second one' : 'Submit'}</button>
      <button onClick=${() => ref.current.close()}>Back</button></div>
  </dialog>`;
}
