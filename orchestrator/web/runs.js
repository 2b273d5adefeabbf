// What the pages of scaling and of comparisons share: the training stages of a campaign, an answer or why there is none, their head.
import { html } from './html.js';
import { get } from './api.js';
import { Command } from './show.js';

const known = new Map(); // a campaign's file never changes

// The stages of a campaign that train, as { name, group, metrics }: those that run a user's image and are no endpoint.
export async function runStages(id) {
  if (!known.has(id)) {
    const { spec } = await get(`/campaigns/${id}/spec`);
    known.set(id, spec.stages.filter((s) => s.worker === 0 && !s.endpoint).map((s) => ({ name: s.name, group: s.group || null,
      metrics: (s.training?.metrics || []).map(([name]) => name).filter((name) => name !== 'step') })));
  }
  return known.get(id);
}

export const groupsOf = (stages) => [...new Set(stages.map((s) => s.group).filter(Boolean))];

// { answer } or, when what was asked for does not exist or does not fit, { refused }.
export async function ask(path) {
  try {
    return { answer: await get(path), refused: null };
  } catch (e) {
    if (![400, 404, 409, 410, 422].includes(e.status)) throw e;
    return { answer: null, refused: e };
  }
}

// One word of a command line.
export const shell = (text) => (/^[\w.,:=+@%/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

export function Head({ campaign, title }) {
  return html`<p class="muted"><a href="/">campaigns</a> / <a href=${`/c/${campaign.id.slice(2)}`}><span class="clamp">${campaign.name}</span></a></p><h1>${title}</h1>`;
}

// Nothing can be shown: why, and the commands that come next.
export const Nothing = ({ why, children }) => html`<section class="card" id="nothing"><p role="status">${why}</p>${children}</section>`;

// How a campaign that has no run to show yet comes to one.
export function nextCommands(campaign) {
  if (['succeeded', 'cancelled'].includes(campaign.state)) return [`drover get ${campaign.id}`];
  return [campaign.state === 'failed' ? `drover failures ${campaign.id}` : `drover watch ${campaign.id}`];
}

export const Commands = ({ list }) => html`<h2>Next</h2>${list.map((c) => html`<${Command} key=${c} text=${c}/>`)}`;

// A page that has no data yet.
export const Loading = ({ problem }) => html`<main>${problem ? html`<p class="problem" role="alert">${problem.message}</p><p><a href="/">all campaigns</a></p>` : html`<p class="muted">loading …</p>`}</main>`;
