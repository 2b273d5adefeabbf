-- What of this installation runs at AWS without a row: jobs that have no attempt, endpoints and what is left of them,
-- file systems; as people see and stop it.

-- Those that run first, then the newest. What one costs so far is told by the clock, and exact once it has ended.
-- name: api_strays
-- A file system is billed by begun hours; a cost is null while the price is not known. $1 rows bigint
SELECT coalesce(json_agg(json_build_object('job_name', split_part(x.name, '#', 1), 'kind', x.kind, 'campaign', CASE WHEN x.campaign_id > 0 THEN
        'c-' || x.campaign_id END, 'why', x.why, 'status', x.status, 'running', x.lives,
    'instance_type', nullif(x.instance_type, ''), 'market', CASE x.kind WHEN 'job' THEN x.market WHEN 'file_system' THEN 'storage'
        ELSE 'hosting' END, 'instances', x.n,
    'reserved_micro_usd', CASE WHEN x.holds THEN x.reserved_musd ELSE 0 END,
    'seconds', CASE WHEN x.lives THEN x.ran * x.n ELSE x.billable_s END,
    'cost_micro_usd', CASE WHEN NOT x.lives THEN x.cost_musd WHEN x.started_at IS NOT NULL AND x.price_musd_per_hour = 0 THEN NULL
        WHEN x.kind = 'file_system' THEN div(2 * x.price_musd_per_hour::numeric * x.size_gib * ((x.ran + 3599) / 3600) + 730, 1460)::bigint
        ELSE (x.ran * x.n * x.price_musd_per_hour + 1800) / 3600 END,
    'estimated', x.lives OR x.estimated, 'stop_asked', x.stop_asked OR x.why = 'void',
    'found_at', x.found_at, 'created_at', x.created_at, 'started_at', x.started_at, 'ended_at', x.ended_at)
    ORDER BY x.lives DESC, x.found_at DESC, x.name), '[]'::json)::text
FROM (SELECT s.*, s.holds OR s.there AS lives, CASE s.kind WHEN 'file_system' THEN 0 ELSE s.instances END AS n,
          greatest(0, coalesce(ceil(extract(epoch FROM coalesce(s.ended_at, clock_timestamp()) - s.started_at)), 0))::bigint AS ran
      FROM stray s ORDER BY s.holds OR s.there DESC, s.found_at DESC, s.name LIMIT $1) x;

-- The line of the ledger that belongs to no campaign.
-- name: api_strays_sum
SELECT json_build_object('running', count(*) FILTER (WHERE holds OR there), 'seconds', coalesce(sum(billable_s), 0)::bigint,
    'micro_usd', coalesce(sum(cost_musd), 0)::bigint)::text FROM stray;

-- name: api_stray_stop
-- Returns a row when it runs. $1 name text
UPDATE stray SET stop_asked = true WHERE name = $1 AND holds OR split_part(name, '#', 1) = $1 AND there RETURNING name;
