-- Jobs of this installation that have no attempt, as people see and stop them.

-- Those that run first, then the newest. What one costs so far is told by the clock, and exact once it has ended.
-- name: api_strays
-- $1 rows bigint
SELECT coalesce(json_agg(json_build_object('job_name', x.name, 'campaign', CASE WHEN x.campaign_id > 0 THEN
        'c-' || x.campaign_id END, 'why', x.why, 'status', x.status, 'running', x.holds,
    'instance_type', x.instance_type, 'market', x.market, 'instances', x.instances,
    'reserved_micro_usd', CASE WHEN x.holds THEN x.reserved_musd ELSE 0 END,
    'seconds', CASE WHEN x.holds THEN x.ran * x.instances ELSE x.billable_s END,
    'cost_micro_usd', CASE WHEN x.holds THEN (x.ran * x.instances * x.price_musd_per_hour + 1800) / 3600
        ELSE x.cost_musd END,
    'estimated', x.holds OR x.estimated, 'stop_asked', x.stop_asked OR x.why = 'void',
    'found_at', x.found_at, 'created_at', x.created_at, 'started_at', x.started_at, 'ended_at', x.ended_at)
    ORDER BY x.holds DESC, x.found_at DESC, x.name), '[]'::json)::text
FROM (SELECT s.*, greatest(0, coalesce(ceil(extract(epoch FROM clock_timestamp() - s.started_at)), 0))::bigint AS ran
      FROM stray s ORDER BY s.holds DESC, s.found_at DESC, s.name LIMIT $1) x;

-- The line of the ledger that belongs to no campaign.
-- name: api_strays_sum
SELECT json_build_object('running', count(*) FILTER (WHERE holds), 'seconds', coalesce(sum(billable_s), 0)::bigint,
    'micro_usd', coalesce(sum(cost_musd), 0)::bigint)::text FROM stray;

-- name: api_stray_stop
-- Returns a row when it runs. $1 name text
UPDATE stray SET stop_asked = true WHERE name = $1 AND holds RETURNING name;
