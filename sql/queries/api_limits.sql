-- Limits of projects and of the installation, warm pools: what people set and see beside their campaigns.

-- name: api_projects
SELECT coalesce(json_agg(json_build_object('name', p.name, 'weight', p.weight, 'parts', p.parts_limit,
    'budget', json_build_object('limit_micro_usd', k.limit_musd, 'reserved_micro_usd', coalesce(m.reserved_musd, 0),
        'spent_micro_usd', coalesce(m.spent_musd, 0))) ORDER BY p.name), '[]'::json)::text
FROM project p
LEFT JOIN cap k ON k.level = 'project' AND k.ref_id = p.id
LEFT JOIN money m ON m.level = 'project' AND m.ref_id = p.id;

-- name: api_project_lock
-- $1 name text
SELECT id FROM project WHERE name = $1 FOR UPDATE;

-- name: api_project_patch
-- $1 project bigint, $2 weight integer or NULL, $3 change the limit? boolean, $4 parts_limit integer or NULL
UPDATE project SET weight = coalesce($2, weight), parts_limit = CASE WHEN $3 THEN $4 ELSE parts_limit END WHERE id = $1;

-- name: api_cap_limit
-- $1 level text, $2 ref bigint, $3 limit bigint or NULL
INSERT INTO cap (level, ref_id, limit_musd) VALUES ($1, $2, $3)
ON CONFLICT (level, ref_id) DO UPDATE SET limit_musd = excluded.limit_musd;

-- A limit of a project or of everything shows to the leader as a newer version of each campaign under it.
-- name: api_limits_touch
-- $1 project bigint or 0: all
UPDATE campaign c SET version = version + 1 FROM campaign_run r
WHERE r.campaign_id = c.id AND r.state NOT IN ('succeeded', 'failed', 'cancelled') AND ($1 = 0 OR c.project_id = $1);

-- name: api_limits
SELECT json_build_object(
    'parts', (SELECT value FROM setting WHERE name = 'parts_limit'),
    'budget', json_build_object(
        'limit_micro_usd', (SELECT limit_musd FROM cap WHERE level = 'global' AND ref_id = 0),
        'reserved_micro_usd', coalesce((SELECT reserved_musd FROM money WHERE level = 'global' AND ref_id = 0), 0),
        'spent_micro_usd', coalesce((SELECT spent_musd FROM money WHERE level = 'global' AND ref_id = 0), 0)),
    'instances', coalesce((SELECT json_object_agg(instance_type, limit_n ORDER BY instance_type) FROM slot_limit
        WHERE market = 'on_demand'), '{}'::json))::text;

-- name: api_setting_put
-- $1 name text, $2 value bigint
INSERT INTO setting (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = clock_timestamp();

-- name: api_setting_drop
-- $1 name text
DELETE FROM setting WHERE name = $1;

-- name: api_slot_limit_put
-- $1 instance type text, $2 instances bigint
INSERT INTO slot_limit (instance_type, limit_n) VALUES ($1, $2)
ON CONFLICT (instance_type, market) DO UPDATE SET limit_n = excluded.limit_n;

-- name: api_slot_limit_drop
-- $1 instance type text
DELETE FROM slot_limit WHERE instance_type = $1 AND market = 'on_demand';

-- name: api_stage_limit
-- $1 campaign bigint, $2 stage name text, $3 parts integer or NULL
UPDATE stage SET parts_limit = $3 WHERE campaign_id = $1 AND name = $2;

-- Stages the breaker holds go on when a person resumes the campaign.
-- name: api_stages_resume
-- The new version makes the leader look. $1 campaign bigint
WITH again AS (
    UPDATE stage g SET resumes = g.resumes + 1 FROM stage_run n
    WHERE n.stage_id = g.id AND n.state = 'held' AND g.campaign_id = $1 RETURNING g.campaign_id)
UPDATE campaign SET version = version + 1 WHERE id IN (SELECT campaign_id FROM again);

-- Warm pools, open ones first, newest first. Relies on pool_open and the primary key.
-- name: api_pools
-- $1 campaign bigint or 0, $2 rows bigint
SELECT coalesce(json_agg(json_build_object('id', p.id, 'campaign', 'c-' || p.campaign_id, 'stage', g.name,
    'state', p.state, 'job_name', a.name, 'instance_type', p.instance_type, 'instances', p.instances,
    'keep_alive_seconds', p.keep_alive_s, 'available_at', p.available_at, 'expires_at', p.expires_at,
    'ended_at', p.ended_at, 'end_reason', nullif(p.end_reason, ''), 'reused_by', t.name,
    'idle_seconds', p.retained_s * p.instances, 'idle_micro_usd', p.musd)
    ORDER BY (p.ended_at IS NOT NULL), p.id DESC), '[]'::json)::text
FROM (SELECT * FROM pool x WHERE $1 = 0 OR x.campaign_id = $1
      ORDER BY (x.ended_at IS NOT NULL), x.id DESC LIMIT $2) p
JOIN attempt a ON a.id = p.attempt_id
JOIN stage g ON g.id = p.stage_id
LEFT JOIN attempt t ON t.id = p.taken_by;

-- What warm pools brought: starts on kept instances, and what idling cost. Relies on pool_campaign.
-- name: api_pools_sum
-- $1 campaign bigint or 0
SELECT json_build_object('pools', count(*), 'reused', count(*) FILTER (WHERE state = 'reused'),
    'open', count(*) FILTER (WHERE ended_at IS NULL),
    'idle_seconds', coalesce(sum(retained_s * instances), 0)::bigint,
    'idle_micro_usd', coalesce(sum(musd), 0)::bigint)::text
FROM pool WHERE $1 = 0 OR campaign_id = $1;
