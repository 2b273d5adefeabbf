// Two training runs side by side: in what they differ, what that made of time, cost and metrics, and their curves by step, by wall
// clock and by dollar.
import { useState } from 'preact/hooks';
import { html } from './html.js';
import { useQuery } from './address.js';
import { get } from './api.js';
import { Bars, Lines } from './chart.js';
import { useLive } from './live.js';
import { Commands, Head, Loading, Nothing, ask, nextCommands, runStages, shell } from './runs.js';
import { Command, Trouble } from './show.js';
import { count, durationFine, figure, usdFine } from './format.js';

const FIELDS = ['a', 'b', 'warm_up', 'by'];
const READ = FIELDS.filter((f) => f !== 'by');
const POINTS = 150;
const TABLE = 15;
const OTHER = ' other'; // no name of a run begins with a blank
const BY = [['step', 'step'], ['seconds', 'wall clock'], ['micro_usd', 'dollar']];

async function read(id, at) {
  const [campaign, stages] = await Promise.all([get(`/campaigns/${id}`), runStages(id)]);
  const names = stages.map((s) => s.name);
  const a = at.a || names.find((n) => n !== at.b) || '';
  const b = at.b || names.find((n) => n !== a) || '';
  document.title = `runs of ${campaign.name} compared · drover`;
  const query = new URLSearchParams({ a, b, points: POINTS, ...(at.warm_up ? { warm_up: at.warm_up } : {}) });
  return { campaign, names, a, b, ...(a && b ? await ask(`/campaigns/${id}/compare?${query}`) : {}) };
}

// A run of this campaign, or by its name one of any.
function Pick({ side, value, names, onPick }) {
  const [typing, setTyping] = useState(false);
  const label = `Run ${side.toUpperCase()}`;
  const list = !value || names.includes(value) ? names : [value, ...names];
  const pick = (v) => { setTyping(v === OTHER); if (v !== OTHER) onPick(v); };
  return html`<label>${label} <select name=${side} value=${typing ? OTHER : value} onChange=${(e) => pick(e.target.value)}>
      ${!value && html`<option value="" selected>choose</option>`}
      ${list.map((n) => html`<option key=${n} value=${n} selected=${!typing && n === value}>${n}</option>`)}<option value=${OTHER} selected=${typing}>another run …</option></select>
    ${typing && html`<input name=${`${side}-other`} aria-label=${`${label}, by its name`} placeholder="c-9/train/0/2" autocomplete="off" spellcheck="false"
      onChange=${(e) => e.target.value.trim() && pick(e.target.value.trim())}/>`}</label>`;
}

const signed = (v) => (v == null ? '–' : `${v > 0 ? '+' : v < 0 ? '−' : ''}${Math.abs(v).toFixed(1)} %`);
const change = (a, b) => signed(a > 0 ? (100 * (b - a)) / a : null);

function ahead(pace) {
  if (!pace) return 'No pace: it takes a metric of both runs at two steps and two instants.';
  if (!pace.step_seconds?.significant) return 'Neither makes its steps quicker, as far as this can be told.';
  const who = pace.quicker.toUpperCase();
  return pace.break_even_step != null ? `${who} is ahead from step ${count(pace.break_even_step)} on.` : `${who} is ahead from the start.`;
}

function judged(v) {
  if (v.significant == null) return 'too few values';
  if (!v.significant) return 'not significant';
  return v.p < 0.001 ? 'p < 0.001' : `p ${v.p.toPrecision(2)}`;
}

function Settings({ answer }) {
  const n = answer.settings.length;
  return html`<section class="card wide" aria-labelledby="settings-title"><h2 id="settings-title">${count(n)} of ${count(n + answer.settings_equal)} settings differ</h2>
    ${n > 0 && html`<table class="stack" id="settings"><thead><tr><th>Setting</th><th>A</th><th>B</th></tr></thead>
      <tbody>${answer.settings.map((s) => html`<tr key=${s.key}><td class="name"><code>${s.key}</code></td><td data-label="A" class="reason">${s.a ?? '–'}</td><td data-label="B" class="reason">${s.b ?? '–'}</td></tr>`)}</tbody></table>`}
  </section>`;
}

function Figures({ answer }) {
  const { a, b, pace, metrics } = answer;
  const spread = (s) => html`${figure(s.mean)} <span class="muted">(${Number(s.stddev.toPrecision(2))})</span>`;
  const rows = [['time', durationFine(a.seconds), durationFine(b.seconds), change(a.seconds, b.seconds), ''],
    ['cost', usdFine(a.micro_usd), usdFine(b.micro_usd), change(a.micro_usd, b.micro_usd), ''],
    ...(pace ? [['overhead', durationFine(a.overhead_seconds), durationFine(b.overhead_seconds), '', '']] : []),
    ...[...(pace?.step_seconds ? [{ name: 'seconds a step', ...pace.step_seconds }] : []), ...metrics].filter((v) => v.a && v.b)
      .map((v) => [v.name, spread(v.a), spread(v.b), signed(v.delta_percent), judged(v)])];
  return html`<section class="card wide" aria-labelledby="figures-title"><h2 id="figures-title">Figures <span class="muted">means after the warm-up, the deviation in brackets</span></h2>
    <table class="stack" id="figures"><thead><tr><th>What</th><th class="num">A</th><th class="num">B</th><th class="num">Change</th><th>Significance</th></tr></thead>
      <tbody>${rows.map(([name, x, y, delta, says], i) => html`<tr key=${i}><td class="name">${name}</td><td data-label="A" class="num">${x}</td><td data-label="B" class="num">${y}</td>
        <td data-label="Change" class="num">${delta}</td><td data-label="Significance">${says}</td></tr>`)}</tbody></table></section>`;
}

function Curve({ m, by }) {
  const sides = [['a', m.curve_a], ['b', m.curve_b]];
  const name = BY.find(([key]) => key === by)[1];
  const some = (list) => list.filter((_, i) => i % Math.ceil(list.length / TABLE) === 0 || i === list.length - 1);
  const xText = { step: (v) => `step ${count(v)}`, seconds: durationFine, micro_usd: usdFine }[by];
  return html`<figure class="metric"><figcaption><b>${m.name}</b> <span class="muted">at last</span>
      <span class="last"><i class="line a" aria-hidden="true"></i>A ${figure(m.last_a)}</span> <span class="last"><i class="line b" aria-hidden="true"></i>B ${figure(m.last_b)}</span></figcaption>
    <${Lines} lines=${sides.map(([key, list]) => ({ key, points: list.map((p) => ({ x: p[by], y: p.value })) }))} xText=${xText} sides dots=${sides.every(([, list]) => list.length <= 30)}
      label=${`${m.name} by ${name}: A ends with ${figure(m.last_a)}, B with ${figure(m.last_b)}`}/>
    <details><summary>As a table</summary><table>
      <thead><tr><th scope="col">Run</th><th scope="col">Step</th><th scope="col">Time</th><th scope="col">Cost</th><th scope="col">Value</th></tr></thead>
      <tbody>${sides.flatMap(([key, list]) => some(list).map((p) => html`<tr key=${`${key} ${p.step}`}><td>${key.toUpperCase()}</td><td>${count(p.step)}</td>
        <td>${durationFine(p.seconds)}</td><td>${usdFine(p.micro_usd)}</td><td>${figure(p.value)}</td></tr>`))}</tbody></table></details>
  </figure>`;
}

function Curves({ answer, by, move }) {
  const shown = answer.metrics.filter((m) => m.curve_a?.length > 0 && m.curve_b?.length > 0);
  if (shown.length === 0) return null;
  return html`<section class="card wide" id="curves" aria-labelledby="curves-title"><h2><span id="curves-title">Curves</span> <label class="right by">by <select name="by" value=${by} onChange=${(e) => move({ by: e.target.value })}>
      ${BY.map(([key, text]) => html`<option key=${key} value=${key} selected=${key === by}>${text}</option>`)}</select></label></h2>
    ${shown.map((m) => html`<${Curve} key=${m.name} m=${m} by=${by}/>`)}
    <p class="muted">Wall clock and dollars are counted since each program began.</p></section>`;
}

function Answer({ answer, by, move }) {
  const { a, b } = answer;
  const bar = (side, value, text) => ({ name: `${side} · ${count(value.instances)} × ${value.instance_type}`, ...text });
  const early = [['A', a], ['B', b]].filter(([, s]) => !s.succeeded).map(([n]) => n);
  return html`<div class="grid charts">
    <section class="card two"><h2>Which is ahead</h2><p class="ahead" id="ahead">${ahead(answer.pace)}</p>
      <p class="muted"><i class="line a" aria-hidden="true"></i>A <code>${a.run}</code><br/><i class="line b" aria-hidden="true"></i>B <code>${b.run}</code></p>
      ${early.length > 0 && html`<p class="problem">${early.join(' and ')} ${early.length > 1 ? 'have' : 'has'} not succeeded: the figures are of what ran so far.</p>`}</section>
    <section class="card" id="times"><h2>Time</h2><${Bars} label="time of both" rows=${[['A', a], ['B', b]].map(([n, s]) => bar(n, s, { value: s.seconds, text: durationFine(s.seconds) }))}/></section>
    <section class="card" id="costs"><h2>Cost</h2><${Bars} label="cost of both" rows=${[['A', a], ['B', b]].map(([n, s]) => bar(n, s, { value: s.micro_usd, text: usdFine(s.micro_usd) }))}/></section>
    <${Settings} answer=${answer}/><${Figures} answer=${answer}/><${Curves} answer=${answer} by=${by} move=${move}/>
  </div>`;
}

const line = (id, run) => shell(/^c-\d+\//.test(run) ? run : `${id}/${run}`);

// Why there is no comparison, and what comes next.
function Refused({ data, id }) {
  const { campaign, names, a, b, refused } = data;
  if (!refused) {
    return html`<${Nothing} why=${names.length === 0 ? 'No stage of this campaign trains: there is no run to compare.' : 'A comparison takes two runs; the other may be of another campaign.'}>
      <${Commands} list=${names.length === 0 ? ['drover ls'] : ['drover ls', `drover compare ${line(id, names[0])} c-9/train`]}/></${Nothing}>`;
  }
  if (refused.status === 400) return html`<p class="problem" role="alert">${refused.message}</p>`;
  return html`<${Nothing} why=${`${refused.message} (${a}, ${b})`}><${Commands} list=${[...nextCommands(campaign), `drover compare ${line(id, a)} ${line(id, b)}`]}/></${Nothing}>`;
}

export function Compare({ id, setLive }) {
  const [at, move] = useQuery(FIELDS);
  const { data, problem } = useLive(`/campaigns/${id}/events`, () => read(id, at), [id, ...READ.map((f) => at[f])], setLive);
  if (!data) return html`<${Loading} problem=${problem}/>`;
  const { campaign, names, answer, a, b } = data;
  const by = BY.some(([key]) => key === at.by) ? at.by : 'step';
  return html`<main>
    <${Head} campaign=${campaign} title="Compare"/>
    <${Trouble} problem=${problem} data/>
    <section class="card fields-card" aria-label="what is compared"><div class="fields">
      <${Pick} side="a" value=${a} names=${names} onPick=${(v) => move({ a: v, b })}/><${Pick} side="b" value=${b} names=${names} onPick=${(v) => move({ a, b: v })}/>
      <label>Warm-up, steps <input name="warm_up" type="number" min="0" step="1" value=${at.warm_up} placeholder="the first tenth" onChange=${(e) => move({ warm_up: e.target.value })}/></label></div>
      ${a && b && html`<p class="row"><button id="swap" onClick=${() => move({ a: b, b: a })}>Swap A and B</button></p>`}</section>
    ${answer ? html`<${Answer} answer=${answer} by=${by} move=${move}/>
      <${Command} text=${`drover compare ${line(id, a)} ${line(id, b)}${at.warm_up ? ` --warm-up ${at.warm_up}` : ''}`}/>` : html`<${Refused} data=${data} id=${id}/>`}
  </main>`;
}
