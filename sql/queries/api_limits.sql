-- Limits of projects and of the installation, warm pools: what people set and see apart from their campaigns.

-- name: api_projects
-- $1 projects by commas text, '' for all
SELECT coalesce(json_agg(json_build_object('name', p.name, 'weight', p.weight, 'parts', p.parts_limit,
    'budget', json_build_object('limit_micro_usd', k.limit_musd, 'reserved_micro_usd', coalesce(m.reserved_musd, 0),
        'spent_micro_usd', coalesce(m.spent_musd, 0))) ORDER BY p.name), '[]'::json)::text
FROM project p
LEFT JOIN cap k ON k.level = 'project' AND k.ref_id = p.id
LEFT JOIN money m ON m.level = 'project' AND m.ref_id = p.id
WHERE $1::text = '' OR p.name = ANY (string_to_array($1::text, ','));

-- One change of limits and of projects' limits at a time: their ETags are of all of them. It comes before If-Match is
-- compared, in a statement of its own, so that who waits compares with what was committed meanwhile.
-- name: api_limits_lock
SELECT pg_advisory_xact_lock(7247362104);

-- name: api_project_lock
-- $1 name text
SELECT id FROM project WHERE name = $1 FOR NO KEY UPDATE;

-- name: api_project_patch
-- $1 project bigint, $2 weight integer or NULL, $3 change the limit? boolean, $4 parts_limit integer or NULL
UPDATE project SET weight = coalesce($2, weight), parts_limit = CASE WHEN $3 THEN $4 ELSE parts_limit END WHERE id = $1;

-- name: api_cap_limit
-- $1 level text, $2 ref bigint, $3 limit bigint or NULL
INSERT INTO cap (level, ref_id, limit_musd) VALUES ($1, $2, $3)
ON CONFLICT (level, ref_id) DO UPDATE SET limit_musd = excluded.limit_musd;

-- A changed limit of a project or of the installation reaches the leader as a newer version of each campaign below it.
-- name: api_limits_touch
-- $1 project bigint or 0: all
WITH live AS MATERIALIZED (
    SELECT c.id FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id
    WHERE r.state NOT IN ('succeeded', 'failed', 'cancelled') AND ($1 = 0 OR c.project_id = $1)
    ORDER BY c.id FOR NO KEY UPDATE OF c)
UPDATE campaign c SET version = version + 1 FROM live WHERE c.id = live.id;

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

-- What may be changed, without what is spent: for ETags.
-- name: api_limits_tag
SELECT json_build_array((SELECT value FROM setting WHERE name = 'parts_limit'),
    (SELECT limit_musd FROM cap WHERE level = 'global' AND ref_id = 0),
    (SELECT json_object_agg(instance_type || ' ' || market, limit_n ORDER BY instance_type, market) FROM slot_limit))::text;

-- name: api_projects_tag
SELECT json_agg(json_build_array(p.name, p.weight, p.parts_limit, k.limit_musd) ORDER BY p.name)::text
FROM project p LEFT JOIN cap k ON k.level = 'project' AND k.ref_id = p.id;
