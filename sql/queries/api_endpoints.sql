-- Endpoints of stages that deploy, as people see and delete them.

-- Those that are there first, then the newest. What one costs so far is told by the clock, and exact once it is gone.
-- name: api_endpoints
-- $1 rows bigint, $2 name text: only this one, NULL: all, $3 projects by commas text, '' for all
SELECT coalesce(json_agg(json_build_object('name', x.name, 'campaign', 'c-' || x.campaign_id, 'stage', x.stage, 'try', x.n,
    'state', x.state, 'reason', x.reason, 'instance_type', x.instance_type, 'instances', x.instances,
    'since', CASE x.state WHEN 'intended' THEN x.intended_at WHEN 'in_service' THEN x.in_service_at
        WHEN 'deleting' THEN x.deleting_at ELSE coalesce(x.ended_at, x.created_at) END,
    'model', CASE WHEN x.made >= 1 THEN x.name END, 'endpoint_config', CASE WHEN x.made >= 2 THEN x.name END,
    'endpoint', CASE WHEN x.made >= 3 THEN x.name END,
    'tested', x.passed, 'tested_at', x.tested_at, 'p95_us', nullif(x.p95_us, 0), 'ttl_seconds', x.ttl_s,
    'idle_seconds', nullif(x.idle_s, 0), 'last_invocation', x.invoked_at, 'delete_asked', x.delete_asked,
    'extend_to', CASE WHEN x.extend_seen IS DISTINCT FROM x.extend_asked THEN x.extend_asked END,
    'extend_refused', CASE WHEN x.extend_seen = x.extend_asked AND x.extend_asked > x.delete_after
        THEN x.extend_asked END,
    'micro_usd_per_hour', x.price_musd_per_hour * x.instances,
    'seconds', CASE WHEN x.ended_at IS NULL THEN x.ran * x.instances ELSE x.billable_s END,
    'cost_micro_usd', CASE WHEN x.ended_at IS NULL THEN (x.ran * x.instances * x.price_musd_per_hour + 1800) / 3600
        ELSE x.cost_musd END,
    'estimated', x.ended_at IS NULL OR x.estimated,
    'overrun_seconds', greatest(0, floor(extract(epoch FROM coalesce(x.off_at, x.ended_at, clock_timestamp()) - x.in_service_at)
        - x.ttl_s))::bigint,
    'reserved_micro_usd', CASE WHEN x.ended_at IS NULL THEN x.reserved_musd ELSE 0 END,
    'intended_at', x.intended_at, 'in_service_at', x.in_service_at, 'delete_after', x.delete_after, 'ended_at', x.ended_at)
    ORDER BY x.ended_at IS NULL DESC, x.id DESC), '[]'::json)::text
FROM (SELECT e.*, g.name AS stage, greatest(0, coalesce(ceil(extract(epoch FROM
            coalesce(e.off_at, clock_timestamp()) - e.in_service_at)), 0))::bigint AS ran
      FROM endpoint e JOIN stage g ON g.id = e.stage_id WHERE ($2::text IS NULL OR e.name = $2)
          AND ($3::text = '' OR EXISTS (SELECT FROM campaign c JOIN project o ON o.id = c.project_id WHERE c.id = e.campaign_id AND o.name = ANY (string_to_array($3::text, ','))))
      ORDER BY e.ended_at IS NULL DESC, e.id DESC LIMIT $1) x;

-- name: api_endpoint_delete
-- Returns a row when it is there. $1 name text
UPDATE endpoint SET delete_asked = true WHERE name = $1 AND ended_at IS NULL RETURNING name;

-- Who asks next for a later end sees this wish.
-- name: api_endpoint_lock
-- $1 name text
SELECT 1 FROM endpoint WHERE name = $1 FOR UPDATE;

-- What a later end of one depends on, and where the least money is left.
-- name: api_endpoint_terms
-- $1 name text
SELECT e.state, e.in_service_at, e.delete_after, CASE WHEN e.extend_seen IS DISTINCT FROM e.extend_asked THEN e.extend_asked END,
    e.delete_asked, e.price_musd_per_hour, e.instances, e.reserved_musd, x.level, x.left_musd
FROM endpoint e JOIN campaign c ON c.id = e.campaign_id CROSS JOIN LATERAL (
    SELECT v.level, coalesce(k.limit_musd, 9223372036854775807) - coalesce(m.reserved_musd + m.spent_musd, 0) AS left_musd
    FROM (VALUES ('global', 0::bigint), ('project', c.project_id), ('campaign', c.id), ('stage', e.stage_id))
        AS v (level, ref_id)
    LEFT JOIN money m ON m.level = v.level AND m.ref_id = v.ref_id
    LEFT JOIN cap k ON k.level = v.level AND k.ref_id = v.ref_id
    ORDER BY left_musd, v.level LIMIT 1) x
WHERE e.name = $1;

-- name: api_endpoint_extend
-- $1 name text, $2 until timestamptz
UPDATE endpoint SET extend_asked = $2 WHERE name = $1;
