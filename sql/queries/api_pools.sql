-- Warm pools as the API shows them.

-- Warm pools, open ones first, newest first. Relies on pool_open and the primary key.
-- name: api_pools
-- $1 campaign bigint or 0, $2 rows bigint, $3 projects by commas text, '' for all
SELECT coalesce(json_agg(json_build_object('id', p.id, 'campaign', 'c-' || p.campaign_id, 'stage', g.name,
    'state', p.state, 'job_name', a.name, 'instance_type', p.instance_type, 'instances', p.instances,
    'keep_alive_seconds', p.keep_alive_s, 'available_at', p.available_at, 'expires_at', p.expires_at,
    'ended_at', p.ended_at, 'end_asked', p.end_asked, 'end_reason', nullif(p.end_reason, ''), 'reused_by', t.name,
    'idle_seconds', p.retained_s * p.instances, 'idle_micro_usd', p.musd)
    ORDER BY (p.ended_at IS NOT NULL), p.id DESC), '[]'::json)::text
FROM (SELECT * FROM pool x WHERE ($1 = 0 OR x.campaign_id = $1)
          AND ($3::text = '' OR EXISTS (SELECT FROM campaign c JOIN project o ON o.id = c.project_id WHERE c.id = x.campaign_id AND o.name = ANY (string_to_array($3::text, ','))))
      ORDER BY (x.ended_at IS NOT NULL), x.id DESC LIMIT $2) p
JOIN attempt a ON a.id = p.attempt_id
JOIN stage g ON g.id = p.stage_id
LEFT JOIN attempt t ON t.id = p.taken_by;

-- The open pool that this job left: its state, whether a job takes it, 1 when its end is asked for now. $1 job name text
-- name: api_pool_end
WITH open AS (
    SELECT p.id, p.state, p.taken_by IS NOT NULL AS taken FROM pool p JOIN attempt a ON a.id = p.attempt_id
    WHERE a.name = $1 AND p.ended_at IS NULL FOR UPDATE OF p),
asked AS (
    UPDATE pool SET end_asked = true FROM open WHERE pool.id = open.id AND open.state = 'available' AND NOT open.taken
    RETURNING pool.id)
SELECT state, taken, (SELECT count(*) FROM asked) FROM open;

-- Result of warm pools: starts on kept instances, and the cost of idling, which stays when a campaign is archived. Relies
-- on pool_campaign and the primary key of money.
-- name: api_pools_sum
-- $1 campaign bigint or 0, $2 projects by commas text, '' for all
WITH idle AS (
    SELECT coalesce(sum(m.warm_seconds), 0)::bigint AS seconds, coalesce(sum(m.warm_musd), 0)::bigint AS musd FROM money m
    WHERE CASE WHEN $1 <> 0 THEN m.level = 'campaign' AND m.ref_id = $1
               WHEN $2::text <> '' THEN m.level = 'project' AND m.ref_id IN (SELECT id FROM project WHERE name = ANY (string_to_array($2::text, ',')))
               ELSE m.level = 'global' END)
SELECT json_build_object('pools', count(*), 'reused', count(*) FILTER (WHERE state = 'reused'),
    'open', count(*) FILTER (WHERE ended_at IS NULL),
    'idle_seconds', (SELECT seconds FROM idle), 'idle_micro_usd', (SELECT musd FROM idle))::text
FROM pool x WHERE ($1 = 0 OR campaign_id = $1)
    AND ($2::text = '' OR EXISTS (SELECT FROM campaign c JOIN project o ON o.id = c.project_id WHERE c.id = x.campaign_id AND o.name = ANY (string_to_array($2::text, ','))));
