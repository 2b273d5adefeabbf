// What more instances made of the same work: the scaling table of a matrix, and the same as charts of throughput, time and cost.
import { html } from './html.js';
import { useQuery } from './address.js';
import { get } from './api.js';
import { Bars, Lines } from './chart.js';
import { useLive } from './live.js';
import { Commands, Head, Loading, Nothing, ask, groupsOf, nextCommands, runStages, shell } from './runs.js';
import { Command, Trouble } from './show.js';
import { count, durationFine, figure, usdFine } from './format.js';

const FIELDS = ['group', 'metric', 'epoch', 'deadline', 'warm_up'];
const EPOCH = 1000000; // the API's

async function read(id, at) {
  const [campaign, all] = await Promise.all([get(`/campaigns/${id}`), runStages(id)]);
  const groups = groupsOf(all);
  const group = at.group || groups[0] || '';
  const stages = all.filter((s) => s.group === group);
  document.title = `scaling of ${campaign.name} · drover`;
  const wanted = { ...at, group, epoch: at.metric ? at.epoch : '' };
  const query = new URLSearchParams(FIELDS.filter((f) => wanted[f]).map((f) => [f, wanted[f]]));
  return { campaign, groups, group, stages, wanted, ...(groups.length > 0 ? await ask(`/campaigns/${id}/scaling?${query}`) : {}) };
}

function Fields({ at, data, move }) {
  const metrics = [...new Set([...data.stages.flatMap((s) => s.metrics), ...(at.metric ? [at.metric] : [])])];
  const groups = data.groups.includes(data.group) ? data.groups : [data.group, ...data.groups];
  const change = (name) => (e) => move({ [name]: e.target.value.trim() });
  return html`<div class="fields">
    ${groups.length > 1 && html`<label>Matrix <select name="group" value=${data.group} onChange=${change('group')}>${groups.map((g) => html`<option key=${g} value=${g} selected=${g === data.group}>${g}</option>`)}</select></label>`}
    <label>Measured by <select name="metric" value=${at.metric} onChange=${change('metric')}><option value="" selected=${!at.metric}>the time of whole runs</option>
      ${metrics.map((m) => html`<option key=${m} value=${m} selected=${m === at.metric}>${m}</option>`)}</select></label>
    ${at.metric && html`<label>Units in an epoch <input name="epoch" type="number" min="1" step="1" value=${at.epoch} placeholder=${EPOCH} onChange=${change('epoch')}/></label>
      <label>Warm-up, steps <input name="warm_up" type="number" min="0" step="1" value=${at.warm_up} placeholder="the first tenth" onChange=${change('warm_up')}/></label>`}
    <label>Deadline <input name="deadline" value=${at.deadline} placeholder="90m, 10h" autocomplete="off" onChange=${change('deadline')}/></label>
  </div>`;
}

const cheapest = (answer) => (answer.deadline_seconds == null ? 'cheapest' : 'cheapest in time');
const verdict = (answer, row) => (row.cheapest ? html`<span class="tag st-succeeded">${cheapest(answer)}</span>` : row.in_time ? '' : html`<span class="tag st-held">too late</span>`);
const compareLink = (id, a, b) => `/c/${id.slice(2)}/compare?${new URLSearchParams({ a, b })}`;

function Table({ id, answer }) {
  const rated = answer.metric != null;
  const first = answer.rows[0];
  return html`<table class="stack" id="scaling"><thead><tr><th>Run</th><th class="num">Instances</th>${rated && html`<th class="num">Rate, median</th><th class="num">Quartiles</th>`}
      <th class="num">Speed-up</th><th class="num">Efficiency</th><th class="num">${rated ? 'Epoch' : 'Time'}</th><th class="num">Cost</th><td></td><td></td></tr></thead>
    <tbody>${answer.rows.map((r) => html`<tr key=${r.stage}>
      <td class="name"><a href=${`/c/${id.slice(2)}?stage=${encodeURIComponent(r.stage)}&part=0`}>${r.stage}</a></td>
      <td data-label="Instances" class="num">${count(r.instances)} × ${r.instance_type}</td>
      ${rated && html`<td data-label="Rate, median" class="num">${figure(r.rate.median)}</td><td data-label="Quartiles" class="num">${figure(r.rate.p25)} to ${figure(r.rate.p75)}</td>`}
      <td data-label="Speed-up" class="num">${r.speedup.toFixed(2)}</td>
      <td data-label="Efficiency" class="num">${(100 * r.efficiency).toFixed(1)} %</td>
      <td data-label=${rated ? 'Epoch' : 'Time'} class="num">${durationFine(r.epoch_seconds)}</td>
      <td data-label="Cost" class="num">${usdFine(r.epoch_micro_usd)}</td>
      <td class="verdict">${verdict(answer, r)}</td>
      <td class="act">${r !== first && html`<a href=${compareLink(id, first.stage, r.stage)} aria-label=${`compare ${first.stage} with ${r.stage}`}>compare</a>`}</td></tr>`)}</tbody></table>`;
}

function Charts({ answer }) {
  const rated = answer.metric != null;
  const of = rated ? 'an epoch' : 'a run';
  const rows = [...answer.rows].sort((a, b) => a.instances - b.instances);
  const value = (r) => (rated ? r.rate.median : r.speedup);
  const measured = rows.map((r) => ({ x: r.instances, y: value(r), ...(rated ? { low: r.rate.p25, high: r.rate.p75 } : {}) }));
  const ideal = [{ x: 0, y: 0 }, ...rows.map((r) => ({ x: r.instances, y: value(r) / r.efficiency }))];
  const name = (r) => `${r.stage} · ${r.instances === 1 ? '1 instance' : `${count(r.instances)} instances`}`;
  const last = rows[rows.length - 1];
  return html`<div class="grid charts">
    <section class="card two" id="throughput"><h2>${rated ? html`Throughput <span class="muted">${answer.metric}</span>` : 'Speed-up'}</h2>
      <${Lines} lines=${[{ key: 'ideal', points: ideal }, { key: 'a', points: measured }]} origin dots sides
        label=${`${rated ? answer.metric : 'speed-up'} by instances: ${figure(value(rows[0]))} with ${rows[0].instances}, ${figure(value(last))} with ${last.instances}`}
        xText=${(n) => (n === 0 ? '0' : n === 1 ? '1 instance' : `${count(n)} instances`)}/>
      <ul class="legend"><li><i class="line a" aria-hidden="true"></i>${rated ? 'measured, with its quartiles' : 'measured'}</li><li><i class="line ideal" aria-hidden="true"></i>ideal</li></ul></section>
    <section class="card" id="times"><h2>Time of ${of}</h2>
      <${Bars} label=${`time of ${of}`} limit=${answer.deadline_seconds} rows=${rows.map((r) => ({ name: name(r), value: r.epoch_seconds, text: durationFine(r.epoch_seconds), note: r.in_time ? '' : 'too late' }))}/>
      ${answer.deadline_seconds != null && html`<p class="muted">the mark: ${durationFine(answer.deadline_seconds)}, the deadline</p>`}</section>
    <section class="card" id="costs"><h2>Cost of ${of}</h2>
      <${Bars} label=${`cost of ${of}`} rows=${rows.map((r) => ({ name: name(r), value: r.epoch_micro_usd, text: usdFine(r.epoch_micro_usd), note: r.cheapest ? cheapest(answer) : '', good: r.cheapest }))}/></section>
  </div>`;
}

// Why there is no table, and what comes next.
function Refused({ data, id }) {
  const { campaign, groups, stages, refused } = data;
  if (groups.length === 0) {
    return html`<${Nothing} why="This campaign has no matrix. A stage with matrix: is a run for each of its rows; a scaling table is made of them.">
      <${Commands} list=${['drover validate campaign.yaml', 'drover submit campaign.yaml']}/></${Nothing}>`;
  }
  if (refused.status === 400) return html`<p class="problem" role="alert">${refused.message}</p>`;
  const [a, b] = stages;
  return html`<${Nothing} why=${refused.message}>
    <${Commands} list=${[...nextCommands(campaign), ...(b ? [`drover compare ${id}/${shell(a.name)} ${id}/${shell(b.name)}`] : [])]}/>
    ${b && html`<p><a href=${compareLink(id, a.name, b.name)}>compare ${a.name} with ${b.name}</a></p>`}</${Nothing}>`;
}

export function Scaling({ id, setLive }) {
  const [at, move] = useQuery(FIELDS);
  const { data, problem } = useLive(`/campaigns/${id}/events`, () => read(id, at), [id, ...FIELDS.map((f) => at[f])], setLive);
  if (!data) return html`<${Loading} problem=${problem}/>`;
  const { campaign, answer, wanted } = data;
  const options = [['group', '--group'], ['metric', '--metric'], ['epoch', '--epoch'], ['deadline', '--deadline'], ['warm_up', '--warm-up']];
  return html`<main>
    <${Head} campaign=${campaign} title=${data.groups.length > 1 ? `Scaling of ${data.group}` : 'Scaling'}/>
    <${Trouble} problem=${problem} data/>
    ${data.groups.length > 0 && html`<section class="card fields-card" aria-label="what is measured"><${Fields} at=${at} data=${data} move=${move}/>
      ${!at.metric && html`<p class="muted">A metric that is a rate, such as images_per_second, leaves out the warm-up and shows the throughput.</p>`}</section>`}
    ${answer ? html`<${Charts} answer=${answer}/>
      <section class="card wide" aria-label="scaling table"><${Table} id=${id} answer=${answer}/>
        ${answer.epoch != null && html`<p class="muted">An epoch of ${count(answer.epoch)} units at the median rate after the warm-up; its cost at the price of the attempt.</p>`}
        ${answer.left_out.length > 0 && html`<ul class="warnings" id="left-out">${answer.left_out.map((r) => html`<li key=${r.stage}>Left out: <b>${r.stage}</b>, ${r.reason}.</li>`)}</ul>`}
        <${Command} text=${`drover scaling ${id} ${options.filter(([f]) => wanted[f]).map(([f, o]) => `${o} ${shell(wanted[f])}`).join(' ')}`}/></section>`
      : html`<${Refused} data=${data} id=${id}/>`}
  </main>`;
}
