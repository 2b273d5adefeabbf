// One campaign: progress and ETA, cost against budget, the heat map, one part's attempts, failures
// with a retry.
import { useState } from 'preact/hooks';
import { useQuery } from './address.js';
import { html } from './html.js';
import { forecastOf, get, post, unlessArchived } from './api.js';
import { useConfirm } from './dialog.js';
import { Failures, changeQuestion } from './failures.js';
import { Guidance, blocked, firstGuidance } from './guidance.js';
import { HeatMap } from './heatmap.js';
import { Limits } from './limits.js';
import { Operations, Told, listed, readOperations } from './operations.js';
import { readParked } from './parked.js';
import { Part } from './part.js';
import { Phases } from './phases.js';
import { End, ends } from './pools.js';
import { useLive } from './live.js';
import { Act } from './role.js';
import { runStages } from './runs.js';
import { Ago, Bar, CampaignPages, Legend, State, Strip } from './show.js';
import { ENDED, ago, bytes, count, duration, parts as all, percent, rate, durationOrNever, usd, utc, word } from './format.js';


// Rows written so far, when a stage counts rows.
function Yield({ stages }) {
  const sum = (key) => stages.reduce((a, s) => a + (s[key] || 0), 0);
  const rows = sum('rows_in');
  if (rows === 0) return null;
  return html`<p class="muted yield">${count(sum('successes'))} of ${count(rows)} rows kept (${percent(sum('successes'), rows)}) · ${count(sum('failed_to_download'))} not fetched ·
    ${' '}${count(sum('failed_to_resize'))} not decoded · ${bytes(sum('bytes'))}</p>`;
}

function Progress({ parts, stages }) {
  return html`<section class="card two"><h2>Progress</h2>
    <p><span class="big" id="progress">${percent(parts.done + parts.skipped, parts.total)}</span> <span class="muted">${count(parts.done + parts.skipped)} of ${all(parts.total)}</span></p>
    <${Bar} parts=${parts}/><${Legend} parts=${parts}/><${Yield} stages=${stages}/>
  </section>`;
}

// When the campaign ends; while that is not known, when the stage that is shown does.
function Eta({ forecast, campaign }) {
  const over = ENDED.includes(campaign.state) && campaign.ended_at;
  if (over) {
    const took = campaign.started_at ? duration((Date.parse(over) - Date.parse(campaign.started_at)) / 1000) : '–';
    return html`<section class="card"><h2>Took</h2><p class="big" id="eta">${took}</p><p class="muted">ended ${ago(over)}</p></section>`;
  }
  const f = forecast || {};
  const { end, reason } = f.campaign || {};
  const name = campaign.stages.length > 1 && `stage ${f.stage}`;
  const [mid, low, high] = end ? [end.p50_seconds, end.p10_seconds, end.p90_seconds] : [f.ends_in_seconds, f.low_seconds, f.high_seconds];
  const stuck = f.remaining > 0 && f.ends_in_seconds == null; // the stage never ends, and the campaign not before it
  const known = mid > 0 && !stuck && campaign.state === 'running' && !blocked(campaign);
  return html`<section class="card"><h2>Ends in ${known && !end && html`<span class="muted">${name}</span>`}</h2>
    <p class="big" id="eta" data-finished=${f.finished ?? 0}>${known ? duration(mid) : '–'}</p>
    <p class="muted" id="eta-note">${known ? html`likely ${duration(low)} to ${durationOrNever(high)}${f.parts_per_hour > 0 && html`<br/>${end && name} ${rate(f.parts_per_hour)} parts/h`}${reason && html`<br/>the campaign ${reason}`}`
      : firstGuidance(campaign) || campaign.waits_for || (!stuck && reason) || f.reason}</p>
    ${known && html`<${Advice} advice=${f.campaign?.advice}/>`}
  </section>`;
}

// The one change with the largest effect.
function Advice({ advice }) {
  const best = advice?.[0];
  if (!best) return null;
  const what = best.instance_type ? `${best.more} × ${best.instance_type}` : `${best.more} parts at once`;
  return html`<p class="muted" id="advice">+${what}: ${duration(best.sooner_seconds)} sooner, ${usd(best.dearer_micro_usd)} more</p>`;
}

// Warm pools that cost money now and may be ended.
function IdlePools({ pools, ask }) {
  return pools.slice(0, 3).map((p) => html`<p key=${p.id} class="row muted idle-pool">idle: ${count(p.instances)} × ${p.instance_type} of ${p.stage} <${End} pool=${p} onAsk=${ask}/></p>`);
}

function Cost({ campaign, cost, forecast, pools = [], ask }) {
  const whole = forecast?.campaign?.cost;
  const limit = cost.limit_micro_usd;
  const spent = cost.metered.micro_usd;
  const held = cost.reserved_micro_usd;
  const top = Math.max(limit ?? 0, spent + held, 1); // either may exceed a limit that was lowered
  return html`<section class="card"><h2>Cost</h2>
    <p class="big" id="cost" data-micro-usd=${spent}>${usd(spent)}</p>
    ${limit != null && html`<${Strip} of=${[['spent', spent], ['reserved', held]]} top=${top} label=${`${usd(spent)} spent and ${usd(held)} reserved of ${usd(limit)}`}/>`}
    <p class="muted">${limit == null ? 'no budget set' : `${percent(spent, limit)} of ${usd(limit)}`}<br/>${usd(held)} reserved<br/>
      ${count(cost.metered.seconds)} instance-seconds · list prices</p>
    ${whole && html`<p class="muted" id="cost-forecast">${usd(whole.p50_micro_usd)} at the end, likely ${usd(whole.p10_micro_usd)} to ${usd(whole.p90_micro_usd)}${
      forecast.campaign.fits_budget < 0.9 ? html`<br/><strong>the budget may not be enough</strong>` : ''}</p>`}
    <${IdlePools} pools=${pools} ask=${ask}/>
    <${Phases} campaign=${campaign} at=${spent}/>
  </section>`;
}

function Actions({ campaign, ask, onLimits }) {
  if (ENDED.includes(campaign.state) || campaign.wanted === 'cancel') return null;
  const { active, waiting } = campaign.parts;
  const go = (verb, title, text, danger) => () => ask({
    title, danger, text, confirm: (key) => post(`/campaigns/${campaign.id}:${verb}`, {}, key) });
  return html`<div class="row"><${Act} id="limits" onClick=${() => onLimits({})}>Limits…<//>
    ${campaign.wanted === 'run'
      ? html`<${Act} onClick=${go('drain', 'Drain', `No new part starts; the ${count(active)} that run go on to their end.`)}>Drain…<//>
        <${Act} onClick=${go('pause', 'Pause', `The jobs that run now (${count(active)}) are stopped; their parts start again after Resume.`)}>Pause…<//>`
      : html`<${Act} class="primary" onClick=${go('resume', 'Resume', `The ${count(waiting)} waiting parts start as slots and money allow.`)}>Resume…<//>`}
    <${Act} class="danger" onClick=${go('cancel', 'Cancel campaign', `Every job (${count(active)} run) is stopped and ${count(waiting)} waiting parts never start. This cannot be undone.`, true)}>Cancel…<//>
  </div>`;
}

function Head({ campaign, ask, onLimits }) {
  const at = campaign.started_at ? html`started <${Ago} at=${campaign.started_at}/>` : html`submitted <${Ago} at=${campaign.created_at}/>`;
  return html`<div class="head">
    <div><p class="muted"><a href="/">campaigns</a> / ${campaign.project}</p>
      <h1><span class="clamp">${campaign.name}</span> <${State} of=${campaign} id="state"/></h1>
      <p class="muted">${campaign.id} · ${at} · priority ${campaign.priority}${campaign.limits.parts != null ? ` · at most ${count(campaign.limits.parts)} parts at once` : ''}${
        campaign.deadline ? ` · deadline ${utc(campaign.deadline)}` : ''}</p></div>
    <${Actions} campaign=${campaign} ask=${ask} onLimits=${onLimits}/>
  </div><${CampaignPages} id=${campaign.id} here=""/>`;
}

function Stages({ campaign, shown, onStage }) {
  if (campaign.stages.length < 2) return html`<span class="muted">${shown}</span>`;
  return html`<span class="row" role="group" aria-label="stages">${campaign.stages.map((s) => html`<button key=${s.name} class="tab" aria-pressed=${s.name === shown} onClick=${() => onStage(s.name)}>
    ${s.name} · ${word(s.state)}${s.parts.failed > 0 ? html` <b class="bad">✗ ${count(s.parts.failed)}</b>` : ''}</button>`)}</span>`;
}

function Waiting({ stage }) {
  if (stage?.listing && stage.listing.state !== 'done') return html`<p class="muted" id="listing">Input of stage ${stage.name}: ${listed(stage.listing)}</p>`;
  if (stage?.reason && ['succeeded', 'failed', 'skipped'].includes(stage.state)) return html`<p class="muted" id="stage-reason">Stage ${stage.name} ${stage.state}: ${stage.reason}</p>`;
  if (!stage?.wait_reason || stage.wait_reason === 'none') return null;
  return html`<p class="muted" id="waits">Why the next part waits: ${stage.wait_text}</p>`;
}

// The address holds what is shown: ?stage=download&parts=4096-8191&part=17 can be sent to a
// colleague.
const FIELDS = ['stage', 'parts', 'part'];

function useAddress() {
  const [{ stage, parts, part }, move] = useQuery(FIELDS);
  const range = /^(\d+)-(\d+)$/.exec(parts);
  return [{ stage, zoom: range && [Number(range[1]), Number(range[2])], part: /^\d+$/.test(part) ? Number(part) : null }, move];
}

// True for tiles older than the newest counts, which they do not add up to.
function tilesBehind(tiles, stage) {
  const sums = Object.fromEntries(tiles.states.map((s) => [s, 0]));
  for (const t of tiles.tiles) {
    if (Array.isArray(t)) t.forEach((n, i) => { sums[tiles.states[i]] += n; });
    else sums[tiles.states[t]]++;
  }
  return tiles.states.some((s) => sums[s] !== stage.parts[s]);
}

// The campaigns as they were read last, by id.
const known = new Map();

// The stage that is shown when the address names none: one that goes on, else one with failures, else the first; of an address with
// parts the first that has any, as it was when that was the rule, and of one with a part the first that has this one.
function stageOf({ stages }, { stage, zoom, part }) {
  const some = stages.filter((s) => s.parts.total > part);
  return stage || ((!zoom && part == null && (some.find((s) => /running|held/.test(s.state)) || some.find((s) => s.parts.failed > 0))) || some[0] || stages[0]).name;
}

async function readAll(id, at) {
  const of = `/campaigns/${id}`;
  const was = known.get(id) || await get(of);
  const stage = stageOf(was, at);
  const query = `?${new URLSearchParams({ stage })}`;
  const ofParts = (path, more = '') => !was.archive && unlessArchived(`${of}/${path}${query}${more}`); // null and false: they are deleted
  const [campaign, runs, tiles, failures, cost, forecast, operations, pools] = await Promise.all([
    get(of), runStages(id), ofParts('tiles', at.zoom ? `&first=${at.zoom[0]}&last=${at.zoom[1]}` : ''), ofParts('failures'),
    get(`${of}/cost`), !was.archive && forecastOf(id, query), readOperations(id), get(`/pools?campaign=${id}&limit=20`).catch(() => null)]);
  known.set(id, campaign);
  document.title = `${percent(campaign.parts.done + campaign.parts.skipped, campaign.parts.total)} ${campaign.name} · drover`;
  const shown = campaign.stages.find((s) => s.name === stage);
  const lists = campaign.stages.some((s) => s.listing?.state === 'running'); // no event tells how far it is
  const parked = campaign.parked > 0 ? await readParked(id) : [];
  return { campaign, parked, runs, tiles, failures, cost, forecast, operations, pools: pools?.pools.filter(ends),
    behind: lists || stage !== stageOf(campaign, at) || (!at.zoom && tiles && shown != null && tilesBehind(tiles, shown)) };
}

// To the scaling table and the comparison of its training runs, the shown stage first.
function RunLinks({ id, runs, shown }) {
  if (runs.length === 0) return null;
  const of = runs.find((s) => s.name === shown);
  const group = of?.group || runs.find((s) => s.group)?.group;
  const to = (page, query) => `/c/${id.slice(2)}/${page}?${new URLSearchParams(query)}`;
  return html`${group && html`<a id="to-scaling" href=${to('scaling', { group })}>scaling</a> `}<a id="to-compare" href=${to('compare', of ? { a: of.name } : {})}>compare runs</a>`;
}

function Archived({ archive }) {
  return html`<section class="card wide" id="archived"><h2>Archived</h2>
    <p>${archive.archived_at ? html`Archived <${Ago} at=${archive.archived_at}/>` : 'It is being archived'}: its parts, attempts and metrics are deleted
      (${count(archive.attempts)} ${archive.attempts === 1 ? 'attempt' : 'attempts'}). Its counters, its cost and its file are kept.</p>
    ${archive.export && html`<p>${archive.export.ended_at ? 'Written to' : 'Being written to'} <code class="clamp">${archive.export.uri}</code>, ${count(archive.export.objects)} objects.</p>`}
    ${archive.export?.problem && html`<p class="problem" role="alert">The next object is tried again: ${archive.export.problem}</p>`}</section>`;
}

export function Campaign({ id, setLive }) {
  const [at, move] = useAddress();
  const [ask, dialog] = useConfirm(() => load());
  const [limits, setLimits] = useState(null);
  const [notice, setNotice] = useState(null); // { text, op }: the operation it is about
  const [jump, setJump] = useState(0);
  const { data, at: readAt, problem, load } = useLive(`/campaigns/${id}/events`, () => readAll(id, at), [id, at.stage, at.zoom?.join()], setLive);
  if (!data) {
    return html`<main>${problem ? html`<h1>${id}</h1><p class="problem" role="alert">${problem.message}</p><p><a href="/">all campaigns</a></p>` : html`<p class="muted">loading …</p>`}</main>`;
  }
  const { campaign, runs, tiles, failures, cost, forecast, operations, pools } = data;
  const top = html`<${Head} campaign=${campaign} ask=${ask} onLimits=${setLimits}/>${problem && html`<p class="problem" role="alert">Showing what was known ${ago(new Date(readAt).toISOString())}: ${problem.message}</p>`}`;
  if (!tiles || !failures) {
    return html`<main>
      ${top}
      <div class="grid">
        <${Progress} parts=${campaign.parts} stages=${campaign.stages}/>
        <${Eta} campaign=${campaign}/>
        <${Cost} campaign=${id} cost=${cost}/>
        ${campaign.archive && html`<${Archived} archive=${campaign.archive}/>`}
      </div>
    </main>`;
  }
  const shown = at.stage || tiles.stage;
  const stage = campaign.stages.find((s) => s.name === shown);
  // What is opened is of this stage, also when another one goes on.
  const open = (change) => move(campaign.stages.length > 1 ? { stage: shown, ...change } : change);
  const changed = (op, text) => setNotice({ op: op.id, text });
  return html`<main>
    ${top}
    <${Told} text=${notice?.text} op=${operations.find((o) => o.id === notice?.op)} ask=${ask}/>
    <${Guidance} campaign=${campaign} parked=${data.parked} ask=${ask} onLimits=${setLimits} onDone=${changed}/>
    <div class="grid">
      <${Progress} parts=${campaign.parts} stages=${campaign.stages}/>
      <${Eta} forecast=${forecast} campaign=${campaign}/>
      <${Cost} campaign=${id} cost=${cost} forecast=${forecast} pools=${pools} ask=${ask}/>
      <section class="card wide" id="parts">
        <h2>Parts <${Stages} campaign=${campaign} shown=${shown} onStage=${(s) => move({ stage: s, parts: '', part: '' })}/></h2>
        <${HeatMap} data=${tiles} open=${at.part} zoomed=${!!at.zoom} onOpen=${(n) => open({ part: `${n}` })} onZoom=${(a, b) => open({ parts: a == null ? '' : `${a}-${b}` })}/>
        <p class="row">${at.zoom && stage?.parts.failed > 0 && campaign.wanted !== 'cancel' && html`<${Act} id="retry-zoom" onClick=${() => ask(changeQuestion({
          campaign: id, verb: 'retry', selector: { stage: shown, parts: at.zoom.join('-') }, title: `Retry what failed of parts ${at.zoom.join(' to ')}`, onDone: changed }))}>Retry failed of these…<//>`}
          <a href=${`/c/${id.slice(2)}/parts?stage=${encodeURIComponent(shown)}${stage?.parts.failed > 0 ? '&state=failed' : ''}`} id="all-parts">${stage?.parts.failed > 0 ? 'failed parts' : 'all parts'} as a table</a>
          ${campaign.stages.some((s) => s.kind === 'endpoint') && html`<a href="/endpoints" id="to-endpoints">endpoints</a>`}
          ${campaign.stages.some((s) => s.kind === 'lustre') && html`<a href="/filesystems" id="to-filesystems">file systems</a>`}
          <${RunLinks} id=${id} runs=${runs} shown=${shown}/></p>
        ${!campaign.guidance?.length && html`<${Waiting} stage=${stage}/>`}
      </section>
      ${at.part != null && html`<${Part} campaign=${id} stage=${shown} seq=${at.part} at=${readAt} jump=${jump} closed=${campaign.wanted === 'cancel'} ask=${ask} onDone=${changed} onClose=${() => move({ part: '' })}/>`}
      <${Failures} campaign=${id} stage=${shown} failures=${failures} closed=${campaign.wanted === 'cancel'} ask=${ask} onPart=${(n) => { open({ part: `${n}` }); setJump(jump + 1); }} onDone=${changed}/>
      <${Operations} operations=${operations} ask=${ask}/>
    </div>
    ${limits && html`<${Limits} campaign=${campaign} ...${limits} onDone=${(text) => setNotice({ text })} onClose=${() => { setLimits(null); load(); }}/>`}
    ${dialog}
  </main>`;
}
