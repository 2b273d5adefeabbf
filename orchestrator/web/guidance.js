// What the server says of a campaign that is held, stuck or cannot run, with a button for each step that mends it.
import { html } from './html.js';
import { post } from './api.js';
import { changeQuestion, retryQuestion } from './failures.js';
import { Parked, unparkQuestion } from './parked.js';
import { Act } from './role.js';
import { Ago } from './show.js';
import { count } from './format.js';

// True when it is said to run but no part of it runs or can start.
export const blocked = (c) => !!c.waits_for || (c.state === 'running' && c.guidance?.[0]?.runs === false);

export const firstGuidance = (c) => c.guidance?.[0]?.title;

function Step({ campaign, step, first, ask, onLimits, onDone }) {
  const { id, parts } = campaign;
  const resume = (key) => post(`/campaigns/${id}:resume`, {}, key);
  const actions = {
    resume: () => ask({ title: 'Resume', text: `The ${count(parts.waiting)} waiting parts start as slots and money allow.`, confirm: resume }),
    release: () => ask(changeQuestion({ campaign: id, verb: 'release', selector: { state: 'held' }, onDone })),
    retry: () => ask(retryQuestion(id, step.stage, null, null, onDone, resume)),
    override: () => ask({ title: `Override the gate of ${step.stage}`, action: 'Override gate', text: `The stage succeeds, and the stages that need it start.`,
      confirm: (key) => post(`/campaigns/${id}:override`, { stage: step.stage }, key) }),
    budget: () => onLimits({ focus: 'budget', stage: step.stage }),
    part_budget: () => onLimits({ focus: 'per_task', stage: step.stage }),
    limits: () => onLimits({ focus: 'parts', stage: step.stage }),
    unpark: () => ask(unparkQuestion(id)),
  };
  const go = actions[step.action];
  if (go) return html`<${Act} class=${first ? 'primary' : undefined} data-step=${step.action} onClick=${go}>${step.label}…<//>`;
  const link = /^https:\/\//.test(step.url || '');
  return html`${link && html`<a class="button" href=${step.url} rel="noreferrer" target="_blank">${step.label} ↗</a>`}
    ${step.command && html`<code class="step">${step.command}</code>`}`;
}

export function Guidance({ campaign, parked, ask, onLimits, onDone }) {
  return (campaign.guidance || []).map((g, i) => html`<section key=${`${g.kind}${g.stage}`} class="card banner" id=${i === 0 ? 'guidance' : undefined} data-kind=${g.kind} aria-label=${g.title}>
    <h2>${g.title}</h2>
    <p>${g.text} ${g.since && html`<span class="muted">since <${Ago} at=${g.since}/></span>`}</p>
    ${g.kind === 'parked' && parked.length > 0 ? html`<${Parked} list=${parked}/>` : g.evidence && html`<p class="evidence-box" tabindex="0" role="group" aria-label="evidence"><code>${g.evidence}</code></p>`}
    <div class="row">${(g.steps || []).map((s, n) => html`<${Step} key=${n} first=${n === 0} campaign=${campaign} step=${s} ask=${ask} onLimits=${onLimits} onDone=${onDone}/>`)}</div>
  </section>`);
}
