-- File systems of stages of kind lustre, as people see and delete them.

-- Those that are there first, then the newest. What one costs so far is told by the clock, and exact once it is gone.
-- name: api_filesystems
-- $1 rows bigint, $2 projects by commas text, '' for all
SELECT coalesce(json_agg(json_build_object('name', x.token, 'campaign', 'c-' || x.campaign_id, 'stage', x.stage, 'try', x.n,
    'state', x.state, 'reason', x.reason, 'filesystem', nullif(x.aws_id, ''), 'deployment', x.deployment,
    'size_gib', x.size_gib, 'import', nullif(x.import_from, ''), 'export', x.exports, 'keep', x.keep, 'ready', x.ready,
    'ttl_seconds', x.ttl_s, 'delete_asked', x.delete_asked,
    'micro_usd_per_hour', div(2 * x.price_musd_per_gb_month::numeric * x.size_gib + 730, 1460)::bigint,
    'hours', x.shown_hours,
    'cost_micro_usd', CASE WHEN x.ended_at IS NULL
        THEN div(2 * x.price_musd_per_gb_month::numeric * x.size_gib * x.shown_hours + 730, 1460)::bigint ELSE x.cost_musd END,
    'estimated', x.ended_at IS NULL OR x.estimated,
    'reserved_micro_usd', CASE WHEN x.ended_at IS NULL THEN x.reserved_musd ELSE 0 END,
    'intended_at', x.intended_at, 'created_at', x.created_at, 'available_at', x.available_at,
    'delete_after', x.delete_after, 'ended_at', x.ended_at)
    ORDER BY x.ended_at IS NULL DESC, x.id DESC), '[]'::json)::text
FROM (SELECT f.*, g.name AS stage, CASE WHEN f.ended_at IS NOT NULL THEN f.hours WHEN f.available_at IS NULL THEN 0
          ELSE greatest(1, ceil(extract(epoch FROM coalesce(f.off_at, clock_timestamp()) - f.created_at) / 3600))::bigint
          END AS shown_hours
      FROM filesystem f JOIN stage g ON g.id = f.stage_id
      WHERE ($2::text = '' OR EXISTS (SELECT FROM campaign c JOIN project o ON o.id = c.project_id WHERE c.id = f.campaign_id AND o.name = ANY (string_to_array($2::text, ','))))
      ORDER BY f.ended_at IS NULL DESC, f.id DESC LIMIT $1) x;

-- name: api_filesystem_delete
-- Returns a row when it is there. $1 name text
UPDATE filesystem SET delete_asked = true WHERE token = $1 AND ended_at IS NULL RETURNING token;

-- A stage with failed parts that mounts a file system which is gone, or on its way out: a retry of it cannot run. No row:
-- there is none. $1 campaign bigint, $2 stage bigint or 0: any
-- name: api_filesystem_gone
WITH mounts AS MATERIALIZED (
    SELECT DISTINCT g.id, g.name, c.id AS campaign_id, m->>'lustre_stage' AS volume FROM campaign c
    CROSS JOIN LATERAL jsonb_array_elements(CASE jsonb_typeof(c.spec->'stages') WHEN 'array' THEN c.spec->'stages' END) d
    CROSS JOIN LATERAL jsonb_array_elements(CASE jsonb_typeof(d#>'{training,channels}') WHEN 'array' THEN d#>'{training,channels}' END) m
    JOIN stage g ON g.campaign_id = c.id AND g.name = d->>'name'
    WHERE c.id = $1::bigint AND ($2::bigint = 0 OR g.id = $2::bigint) AND m->>'lustre_stage' IS NOT NULL)
SELECT u.name, u.volume, f.reason FROM mounts u JOIN stage_run n ON n.stage_id = u.id AND n.failed > 0
JOIN stage v ON v.campaign_id = u.campaign_id AND v.name = u.volume
JOIN stage_run r ON r.stage_id = v.id AND r.state = 'succeeded'
CROSS JOIN LATERAL (SELECT x.state, x.reason FROM filesystem x WHERE x.stage_id = v.id ORDER BY x.n DESC LIMIT 1) f
WHERE f.state IN ('exporting', 'deleting', 'deleted', 'failed') ORDER BY u.id, v.id LIMIT 1;
