-- Endpoints of stages that deploy, as people see and delete them.

-- Those that are there first, then the newest. What one costs so far is told by the clock, and exact once it is gone.
-- name: api_endpoints
-- $1 rows bigint
SELECT coalesce(json_agg(json_build_object('name', x.name, 'campaign', 'c-' || x.campaign_id, 'stage', x.stage, 'try', x.n,
    'state', x.state, 'reason', x.reason, 'instance_type', x.instance_type, 'instances', x.instances,
    'tested', x.passed, 'p95_us', nullif(x.p95_us, 0), 'ttl_seconds', x.ttl_s, 'delete_asked', x.delete_asked,
    'micro_usd_per_hour', x.price_musd_per_hour * x.instances,
    'seconds', CASE WHEN x.ended_at IS NULL THEN x.ran * x.instances ELSE x.billable_s END,
    'cost_micro_usd', CASE WHEN x.ended_at IS NULL THEN (x.ran * x.instances * x.price_musd_per_hour + 1800) / 3600
        ELSE x.cost_musd END,
    'estimated', x.ended_at IS NULL OR x.estimated,
    'reserved_micro_usd', CASE WHEN x.ended_at IS NULL THEN x.reserved_musd ELSE 0 END,
    'intended_at', x.intended_at, 'in_service_at', x.in_service_at, 'delete_after', x.delete_after, 'ended_at', x.ended_at)
    ORDER BY x.ended_at IS NULL DESC, x.id DESC), '[]'::json)::text
FROM (SELECT e.*, g.name AS stage, greatest(0, coalesce(ceil(extract(epoch FROM
            coalesce(e.off_at, clock_timestamp()) - e.in_service_at)), 0))::bigint AS ran
      FROM endpoint e JOIN stage g ON g.id = e.stage_id ORDER BY e.ended_at IS NULL DESC, e.id DESC LIMIT $1) x;

-- name: api_endpoint_delete
-- Returns a row when it is there. $1 name text
UPDATE endpoint SET delete_asked = true WHERE name = $1 AND ended_at IS NULL RETURNING name;
