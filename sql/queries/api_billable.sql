-- What costs money at this moment.

-- The dearest first. Jobs of one stage and type are one row; a spot price is the most it may be. One that has ended and whose
-- output is still being checked holds nothing, and what it left is the pool. Relies on attempt_open.
-- name: api_billable
-- $1 rows bigint
WITH burning AS MATERIALIZED (
    SELECT 'job' AS kind, a.campaign_id, a.stage_id, NULL AS name, a.instance_type, a.market, count(*) AS n, sum(a.instances)::bigint AS instances,
            min(a.started_at) AS since, NULL::timestamptz AS until, sum(a.price_musd_per_hour * a.instances)::bigint AS musd
        FROM attempt a WHERE a.state < 8 AND a.holds AND a.started_at IS NOT NULL GROUP BY 2, 3, 5, 6
    UNION ALL SELECT 'warm_pool', p.campaign_id, p.stage_id, NULL, p.instance_type, 'on_demand', count(*), sum(p.instances)::bigint,
            min(p.available_at), max(p.expires_at), sum(a.price_musd_per_hour * p.instances)::bigint
        FROM pool p JOIN attempt a ON a.id = p.attempt_id
        WHERE p.ended_at IS NULL AND p.state = 'available' GROUP BY 2, 3, 5
    UNION ALL SELECT 'endpoint', e.campaign_id, e.stage_id, e.name, e.instance_type, 'hosting', 1, e.instances, e.in_service_at, e.delete_after,
            e.price_musd_per_hour * e.instances
        FROM endpoint e WHERE e.ended_at IS NULL AND e.in_service_at IS NOT NULL AND e.off_at IS NULL
    UNION ALL SELECT 'file_system', f.campaign_id, f.stage_id, f.token, f.deployment, 'storage', 1, 0, f.created_at, f.delete_after,
            div(2 * f.price_musd_per_gb_month::numeric * f.size_gib + 730, 1460)::bigint
        FROM filesystem f WHERE f.ended_at IS NULL AND f.available_at IS NOT NULL AND f.off_at IS NULL
    UNION ALL SELECT 'stray', nullif(s.campaign_id, 0), NULL, s.name, s.instance_type, s.market, 1, s.instances, s.started_at, NULL,
            s.price_musd_per_hour * s.instances
        FROM stray s WHERE s.holds AND s.started_at IS NOT NULL
    UNION ALL SELECT 'stray', NULL, NULL, split_part(s.name, '#', 1), s.instance_type, CASE s.kind WHEN 'file_system' THEN 'storage' ELSE 'hosting' END, 1,
            CASE s.kind WHEN 'file_system' THEN 0 ELSE s.instances END, s.started_at, NULL,
            CASE s.kind WHEN 'file_system' THEN div(2 * s.price_musd_per_hour::numeric * s.size_gib + 730, 1460)::bigint
                ELSE s.price_musd_per_hour * s.instances END
        FROM stray s WHERE s.there AND s.started_at IS NOT NULL AND s.ended_at IS NULL),
rows AS (SELECT b.*, g.name AS stage FROM burning b LEFT JOIN stage g ON g.id = b.stage_id ORDER BY b.musd DESC, b.kind, b.since LIMIT $1)
SELECT json_build_object('micro_usd_per_hour', coalesce((SELECT sum(musd) FROM burning), 0)::bigint,
    'total', (SELECT count(*) FROM burning), 'billable', coalesce(json_agg(json_build_object('kind', x.kind,
    'campaign', 'c-' || x.campaign_id, 'stage', x.stage, 'name', x.name, 'instance_type', x.instance_type, 'market', x.market,
    'count', x.n, 'instances', x.instances, 'since', x.since, 'until', x.until, 'micro_usd_per_hour', x.musd)
    ORDER BY x.musd DESC, x.kind, x.since), '[]'::json))::text FROM rows x;
