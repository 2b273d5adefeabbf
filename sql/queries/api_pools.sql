-- Warm pools as the API shows them.

-- Warm pools, open ones first, newest first. Open ones by pool_open, ended ones by the primary key backwards, of a campaign or
-- of a project's campaigns by pool_campaign: no more than $2 of each are read.
-- name: api_pools
-- $1 campaign bigint or 0, $2 rows bigint, $3 projects by commas text, '' for all
WITH mine AS (
    SELECT c.id FROM campaign c JOIN project o ON o.id = c.project_id WHERE ($1 <> 0 OR $3::text <> '') AND ($1 = 0 OR c.id = $1)
        AND ($3::text = '' OR o.name = ANY (string_to_array($3::text, ',')))),
open AS (
    SELECT * FROM pool x WHERE x.ended_at IS NULL AND (($1 = 0 AND $3::text = '') OR x.campaign_id IN (SELECT id FROM mine))
    ORDER BY x.id DESC LIMIT $2),
ended_of_all AS (
    SELECT * FROM pool x WHERE $1 = 0 AND $3::text = '' AND x.ended_at IS NOT NULL ORDER BY x.id DESC LIMIT $2),
ended_of_mine AS (
    SELECT x.* FROM mine CROSS JOIN LATERAL (
        SELECT * FROM pool y WHERE y.campaign_id = mine.id AND y.ended_at IS NOT NULL ORDER BY y.id DESC LIMIT $2) x
    ORDER BY x.id DESC LIMIT $2)
SELECT coalesce(json_agg(json_build_object('id', p.id, 'campaign', 'c-' || p.campaign_id, 'stage', g.name,
    'state', p.state, 'job_name', a.name, 'instance_type', p.instance_type, 'instances', p.instances,
    'keep_alive_seconds', p.keep_alive_s, 'available_at', p.available_at, 'expires_at', p.expires_at,
    'ended_at', p.ended_at, 'end_asked', p.end_asked, 'end_reason', nullif(p.end_reason, ''), 'reused_by', t.name,
    'idle_seconds', p.retained_s * p.instances, 'idle_micro_usd', p.musd)
    ORDER BY (p.ended_at IS NOT NULL), p.id DESC), '[]'::json)::text
FROM (SELECT * FROM (SELECT * FROM open UNION ALL SELECT * FROM ended_of_all UNION ALL SELECT * FROM ended_of_mine) u
      ORDER BY (u.ended_at IS NOT NULL), u.id DESC LIMIT $2) p
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

-- Open pools, the newest pool of all, and the cost of idling, which stays when a campaign is archived. Relies on pool_open and the
-- primary keys.
-- name: api_pools_now
-- $1 campaign bigint or 0, $2 projects by commas text, '' for all
WITH idle AS (
    SELECT coalesce(sum(m.warm_seconds), 0)::bigint AS seconds, coalesce(sum(m.warm_musd), 0)::bigint AS musd FROM money m
    WHERE CASE WHEN $1 <> 0 THEN m.level = 'campaign' AND m.ref_id = $1 AND ($2::text = '' OR EXISTS (
                   SELECT FROM campaign c JOIN project o ON o.id = c.project_id WHERE c.id = $1 AND o.name = ANY (string_to_array($2::text, ','))))
               WHEN $2::text <> '' THEN m.level = 'project' AND m.ref_id IN (SELECT id FROM project WHERE name = ANY (string_to_array($2::text, ',')))
               ELSE m.level = 'global' END)
SELECT (SELECT count(*) FROM pool x WHERE x.ended_at IS NULL AND ($1 = 0 OR x.campaign_id = $1)
        AND ($2::text = '' OR EXISTS (SELECT FROM campaign c JOIN project o ON o.id = c.project_id WHERE c.id = x.campaign_id AND o.name = ANY (string_to_array($2::text, ','))))),
    (SELECT coalesce(max(id), 0) FROM pool), (SELECT seconds FROM idle), (SELECT musd FROM idle);

-- All pools, and how many of them another job has used. Reads them all, or all of the campaign: its answer is to be kept.
-- name: api_pools_count
-- $1 campaign bigint or 0, $2 projects by commas text, '' for all
SELECT count(*), count(*) FILTER (WHERE state = 'reused')
FROM pool x WHERE ($1 = 0 OR campaign_id = $1)
    AND ($2::text = '' OR campaign_id IN (SELECT c.id FROM campaign c JOIN project o ON o.id = c.project_id WHERE o.name = ANY (string_to_array($2::text, ','))));
