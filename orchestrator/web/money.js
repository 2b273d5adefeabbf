// The money of a campaign: burn-up against its budget with the forecast to its end, and what it went for: stages, causes, phases,
// instance types, failures. Each table is saved as CSV.
import { html } from './html.js';
import { forecastOf, get, unlessArchived } from './api.js';
import { Csv } from './csv.js';
import { CURVES_MS, useLive } from './live.js';
import { Loading } from './runs.js';
import { CampaignHead, Command, Strip, Trouble } from './show.js';
import { TimeChart, isFar, steps, timeText } from './timechart.js';
import { ENDED, ago, count, duration, percent, usd, word } from './format.js';

const TABLE = 20;
const part = (id, query) => `/c/${id.slice(2)}/parts?${new URLSearchParams(query)}`;

async function read(id) {
  const of = `/campaigns/${id}`;
  const [campaign, cost, phases, types, burn, forecast, failures] = await Promise.all([get(of), get(`${of}/cost`), get(`${of}/cost?by=phase`),
    unlessArchived(`${of}/cost?by=type`), get(`${of}/burn`), forecastOf(id), unlessArchived(`${of}/failures`)]);
  document.title = `cost of ${campaign.name} · drover`;
  return { campaign, cost, phases, types: types?.by_type || null, burn, forecast, failures };
}

// The money of a running campaign to its end: from now the middle of the forecast, between what 10 and 90 of 100 runs cost.
function fan(campaign, cost, forecast, now) {
  const f = forecast?.campaign;
  if (ENDED.includes(campaign.state) || !f?.cost || f.end?.p50_seconds == null) return null;
  const spent = cost.metered.micro_usd;
  const end = { y: f.cost.p50_micro_usd, low: f.cost.p10_micro_usd, high: f.cost.p90_micro_usd };
  const last = f.end.p90_seconds ?? f.end.p50_seconds;
  return [{ x: now, y: spent, low: spent, high: spent }, { x: now + f.end.p50_seconds * 1000, ...end }, { x: now + last * 1000, ...end }];
}

function Burn({ campaign, cost, burn, forecast }) {
  if (burn.points.length === 0) {
    return html`<section class="card wide" id="burn"><h2>Burn-up</h2><p class="muted">Nothing is reserved or spent yet. Money is reserved when a job is sent, and spent when it ends.</p></section>`;
  }
  const over = ENDED.includes(campaign.state);
  const first = Date.parse(burn.first_at);
  const points = burn.points.map((p) => ({ x: Date.parse(p.at), y: p.spent_micro_usd, low: p.spent_micro_usd, high: p.spent_micro_usd + p.reserved_micro_usd }));
  const now = over ? points[points.length - 1].x : Math.max(Date.now(), points[points.length - 1].x);
  const line = steps([{ x: first, y: 0, low: 0, high: 0 }, ...points, { ...points[points.length - 1], x: now }]);
  const ahead = fan(campaign, cost, forecast, now);
  const limit = cost.limit_micro_usd;
  const far = limit != null && isFar(limit, Math.max(ahead?.[2].high ?? 0, ...points.map((p) => p.high)));
  const to = ahead ? ahead[2].x : now;
  const every = Math.max(1, Math.ceil(burn.points.length / TABLE));
  const rows = burn.points.filter((_, i) => i % every === 0 || i === burn.points.length - 1);
  const text = timeText(first, to);
  return html`<section class="card wide" id="burn"><h2>Burn-up <${Csv} file=${`${campaign.id}-burn`} columns=${['at', 'spent_micro_usd', 'reserved_micro_usd']} rows=${burn.points}/></h2>
    <${TimeChart} from=${first} to=${to} marks=${ahead ? [now] : []} level=${limit != null && { y: limit }} xText=${text} yText=${(v) => usd(v, 2)}
      lines=${[{ key: 'a', points: line }, ...(ahead ? [{ key: 'b', points: ahead }] : [])]}
      label=${`spent ${usd(cost.metered.micro_usd)}${limit != null ? ` of ${usd(limit)}` : ''}${ahead ? `, at the end likely ${usd(ahead[1].low)} to ${usd(ahead[1].high)}` : ''}`}/>
    <ul class="legend"><li><i class="line a" aria-hidden="true"></i>spent, with what is reserved above it</li>
      ${ahead && html`<li><i class="line b" aria-hidden="true"></i>forecast, 10 to 90 of 100 runs</li>`}
      ${limit != null && html`<li><i class="line level" aria-hidden="true"></i>${far ? `the budget of ${usd(limit, 2)} is far above` : 'budget'}</li>`}</ul>
    <details><summary>As a table</summary><table><thead><tr><th scope="col">By</th><th scope="col" class="num">Spent</th><th scope="col" class="num">Reserved</th></tr></thead>
      <tbody>${rows.map((p) => html`<tr key=${p.at}><td><time datetime=${p.at} title=${p.at}>${text(Date.parse(p.at))}</time></td>
        <td class="num">${usd(p.spent_micro_usd)}</td><td class="num">${usd(p.reserved_micro_usd)}</td></tr>`)}</tbody></table></details>
  </section>`;
}

const Figure = ({ title, id, big, children }) => html`<section class="card"><h2>${title}</h2><p class="big" id=${id}>${big}</p><p class="muted">${children}</p></section>`;

function Figures({ campaign, cost, forecast }) {
  const spent = cost.metered.micro_usd;
  const limit = cost.limit_micro_usd;
  const whole = !ENDED.includes(campaign.state) && forecast?.campaign?.cost;
  return html`<${Figure} title="Spent" id="spent" big=${usd(spent)}>${count(cost.metered.seconds)} instance-seconds at list prices</${Figure}>
    <${Figure} title="Reserved" id="reserved" big=${usd(cost.reserved_micro_usd)}>for jobs that run, at their longest</${Figure}>
    <${Figure} title="At the end" id="at-end" big=${whole ? usd(whole.p50_micro_usd, 2) : ENDED.includes(campaign.state) ? usd(spent) : '–'}>
      ${whole ? `likely ${usd(whole.p10_micro_usd, 2)} to ${usd(whole.p90_micro_usd, 2)}` : ENDED.includes(campaign.state) ? `ended ${ago(campaign.ended_at)}` : forecast?.reason || 'not known yet'}</${Figure}>
    <${Figure} title="Budget" id="budget" big=${limit == null ? 'none' : usd(limit, 2)}>
      ${limit == null ? 'nothing stops it but its end' : `${percent(spent, limit)} spent, ${percent(spent + cost.reserved_micro_usd, limit)} with what is reserved; then ${cost.at_limit}`}
      ${whole && forecast.campaign.fits_budget < 0.9 && html`<br/><strong class="bad">${percent(forecast.campaign.fits_budget, 1)} of the runs stay within it</strong>`}</${Figure}>`;
}

// A share of the most as a bar.
export const Share = ({ of, most, kind = 'spent' }) => html`<${Strip} of=${[[kind, of]]} top=${most}/>`;

// rows of { name, micro_usd, ... }; columns: [head, of(row)] besides name and money. file and fields: its CSV.
export function MoneyTable({ title, id, rows, name, columns, file, fields, none, kind, note, wide }) {
  const most = Math.max(...rows.map((r) => r.micro_usd), 0);
  const all = rows.reduce((sum, r) => sum + r.micro_usd, 0);
  return html`<section class=${`card ${wide ? 'wide' : 'two'}`} id=${id}><h2>${title} ${rows.length > 0 && html`<${Csv} file=${file} columns=${fields} rows=${rows}/>`}</h2>
    ${rows.length === 0 ? html`<p class="muted">${none}</p>` : html`<table class="stack"><thead><tr><th class="third">${name[0]}</th>
      ${columns.map(([head]) => html`<th key=${head} class="num">${head}</th>`)}<th class="num">Cost</th></tr></thead>
      <tbody>${rows.map((r, i) => html`<tr key=${i}><td class="name over">${name[1](r)}<${Share} of=${r.micro_usd} most=${most} kind=${kind}/></td>
        ${columns.map(([head, of]) => html`<td key=${head} data-label=${head} class="num">${of(r)}</td>`)}
        <td data-label="Cost" class="num">${r.estimated ? '≈ ' : ''}${usd(r.micro_usd)} <span class="muted share">${percent(r.micro_usd, all)}</span></td></tr>`)}</tbody></table>`}
    ${note && html`<p class="muted">${note}</p>`}</section>`;
}

const clamp = (text) => html`<span class="clamp">${text}</span>`;

function Failed({ id, failures }) {
  const rows = [...failures.groups].sort((a, b) => b.lost_micro_usd - a.lost_micro_usd).map((g) => ({ ...g, micro_usd: g.lost_micro_usd }));
  const several = rows.some((g) => g.stage !== rows[0].stage);
  return html`<${MoneyTable} title="Failures by money" id="by-failure" wide rows=${rows} kind="lost" file=${`${id}-failures`} none="No failure stands."
    fields=${['stage', 'cause', 'signature', 'message', 'parts', 'final', 'retrying', 'first_at', 'last_at', 'lost_micro_usd', 'remedy']}
    name=${['Cause', (g) => html`<a href=${part(id, { stage: g.stage, state: 'failed', cause: g.cause })}>${word(g.cause)}</a>
      <span class="told">${several ? `${g.stage}: ` : ''}${g.message}</span>`]} columns=${[['Parts', (g) => count(g.parts)]]}
    note=${rows.length > 0 && 'Tries of parts whose failure stands; failed tries of parts that were done later are in the table by cause.'}/>`;
}

export function Money({ id, setLive }) {
  const { data, problem } = useLive(`/campaigns/${id}/events`, () => read(id), [id], setLive, CURVES_MS);
  if (!data) return html`<${Loading} problem=${problem}/>`;
  const { campaign, cost, phases, types, failures } = data;
  const paid = (rows) => rows.filter((r) => r.micro_usd > 0 || r.seconds > 0 || r.reserved_micro_usd > 0 || r.elapsed_seconds > 0);
  const none = 'Nothing is paid yet.';
  return html`<main>
    <${CampaignHead} campaign=${campaign} title="Cost" here="cost"/>
    <${Trouble} problem=${problem} data/>
    <div class="grid">
      <${Figures} ...${data}/>
      <${Burn} ...${data}/>
      <${MoneyTable} title="By stage" id="by-stage" rows=${paid(cost.by_stage)} none=${none} file=${`${id}-stages`} fields=${['stage', 'seconds', 'micro_usd', 'reserved_micro_usd', 'limit_micro_usd']}
        name=${['Stage', (r) => clamp(r.stage)]} columns=${[['Reserved', (r) => usd(r.reserved_micro_usd)], ['Budget', (r) => (r.limit_micro_usd == null ? '–' : usd(r.limit_micro_usd))]]}/>
      <${MoneyTable} title="By cause" id="by-cause" rows=${cost.by_cause} none=${none} file=${`${id}-causes`} fields=${['cause', 'attempts', 'seconds', 'micro_usd', 'estimated']}
        name=${['Cause', (r) => (r.cause === 'none' ? 'done' : word(r.cause))]} columns=${[['Tries', (r) => count(r.attempts)], ['Time', (r) => duration(r.seconds)]]}/>
      ${types && html`<${MoneyTable} title="By instance type" id="by-type" rows=${types.map((r) => ({ ...r, job_micro_usd: r.micro_usd, micro_usd: r.micro_usd + r.idle_micro_usd }))} none=${none}
        file=${`${id}-types`} fields=${['instance_type', 'market', 'attempts', 'seconds', 'job_micro_usd', 'idle_micro_usd', 'estimated']}
        name=${['Type', (r) => clamp(`${r.instance_type}${r.market === 'on_demand' ? '' : ` (${r.market})`}`)]} columns=${[['Tries', (r) => count(r.attempts)], ['Idle', (r) => usd(r.idle_micro_usd)]]}/>`}
      <${MoneyTable} title="By phase" id="by-phase" rows=${paid(phases.by_phase)} none="No job has ended yet." file=${`${id}-phases`} fields=${['phase', 'elapsed_seconds', 'seconds', 'micro_usd']}
        name=${['Phase', (r) => word(r.phase)]} columns=${[['Time', (r) => duration(r.elapsed_seconds)]]}
        note=${paid(phases.by_phase).length > 0 && `${usd(phases.trained_nothing.micro_usd)} trained nothing.`}/>
      ${failures && html`<${Failed} id=${id} failures=${failures}/>`}
      ${!types && html`<section class="card wide" id="archived"><h2>Archived</h2><p>Its parts and attempts are deleted, and with them its cost by instance type and its failures.</p></section>`}
    </div>
    <p class="row"><a href=${`/pools?campaign=${id}`} id="to-pools">its warm pools</a> <a href="/bill" id="to-bill">the bill of the month</a></p>
    <${Command} text=${`drover cost ${id} --by phase`}/>
  </main>`;
}
