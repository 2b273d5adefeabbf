// A client made of /openapi.json: openapi-typescript's types and openapi-fetch, nothing of drover's own. It plans and submits a
// campaign, adds parts to it, follows it to its end and says what it cost. lint.mjs compiles it, follow.mjs runs it.
import createClient from 'openapi-fetch';
import type { components, operations, paths } from './api';

type Campaign = components['schemas']['Campaign'];
type File = components['schemas']['CampaignFile'];
type Query = NonNullable<operations['parts_list']['parameters']['query']>;
type Refused = operations['campaign_get']['responses'][404]['content']['application/problem+json'];

export const over = (c: Campaign): boolean => c.state === 'succeeded' || c.state === 'failed' || c.state === 'cancelled';
export const failed: Query = { state: 'failed', page_size: 10 };
export const change: operations['campaign_patch']['requestBody'] = { content: { 'application/json': { limits: { parts: null } } } };
export const refusal = (p: Refused): string => p.detail;

export type Followed = { parts: number; states: string[]; campaign: Campaign; failed: number; cost: number; missing: string };

export async function follow(baseUrl: string, token: string, file: File, uris: string[], pause: (ms: number) => Promise<void>): Promise<Followed> {
  const api = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });
  const key = () => ({ 'Idempotency-Key': crypto.randomUUID() });
  const plan = await api.POST('/v1/campaigns', { params: { query: { dry_run: true }, header: key() }, body: file });
  if (plan.error || !('stages' in plan.data)) throw new Error(JSON.stringify(plan.error));
  const made = await api.POST('/v1/campaigns', { params: { header: key() }, body: file });
  if (made.error || !('id' in made.data)) throw new Error(JSON.stringify(made.error));
  const campaign = made.data.id;
  const stage = file.stages[0].name;
  const lines = uris.map((uri) => JSON.stringify({ uri, size: 1 })).join('\n');
  const added = await api.POST('/v1/campaigns/{campaign}/parts', { params: { path: { campaign }, query: { stage, last: true }, header: key() }, headers: { 'content-type': 'application/x-ndjson' }, body: lines, bodySerializer: (x) => x });
  if (added.error) throw new Error(JSON.stringify(added.error));
  const states: string[] = [];
  let now: Campaign = made.data;
  while (!over(now)) {
    const { data, error } = await api.GET('/v1/campaigns/{campaign}', { params: { path: { campaign } } });
    if (error) throw new Error(refusal(error as Refused));
    now = data;
    if (states.at(-1) !== now.state) states.push(now.state);
    await pause(100);
  }
  const parts = await api.GET('/v1/campaigns/{campaign}/parts', { params: { path: { campaign }, query: failed } });
  const cost = await api.GET('/v1/campaigns/{campaign}/cost', { params: { path: { campaign } } });
  const nobody = await api.GET('/v1/campaigns/{campaign}', { params: { path: { campaign: 'c-999999' } } });
  return { parts: now.parts.total, states, campaign: now, failed: parts.data?.parts.length ?? -1, cost: cost.data?.metered.micro_usd ?? -1, missing: nobody.error && 'code' in nobody.error ? nobody.error.code : '' };
}
