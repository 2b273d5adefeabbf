-- Quotas, prices and use by instance type.

-- Quotas with our use, idle pools included, and foreign use, what a refusal or an admin's limit leaves; prices alone only of the operator's file, since AWS Pricing lists every type.
-- name: api_quotas
SELECT coalesce(json_agg(json_build_object('instance_type', t.instance_type, 'market', t.market,
    'limit', q.limit_n, 'held', u.held, 'foreign', coalesce(s.foreign_n, 0),
    'free', CASE WHEN q.limit_n IS NULL THEN 0
        ELSE greatest(least(least(q.limit_n, s.refused_limit) - u.held - coalesce(s.foreign_n, 0), o.limit_n - u.held), 0) END,
    'price_micro_usd_per_hour', p.musd_per_hour, 'requested', a.value, 'requested_at', a.asked_at, 'source', q.source, 'read_at', q.read_at)
    ORDER BY t.instance_type, t.market), '[]'::json)::text
FROM (SELECT instance_type, market FROM quota UNION SELECT instance_type, market FROM slots
      UNION SELECT instance_type, 'on_demand' FROM price WHERE instance_type NOT LIKE '%:%' AND source <> 'aws_pricing') t
LEFT JOIN quota q ON q.instance_type = t.instance_type AND q.market = t.market
LEFT JOIN slots s ON s.instance_type = t.instance_type AND s.market = t.market
LEFT JOIN slot_limit o ON o.instance_type = t.instance_type AND o.market = t.market
CROSS JOIN LATERAL (SELECT coalesce(s.held, 0) + coalesce(s.warm_idle, 0) AS held) u
LEFT JOIN price p ON p.instance_type = t.instance_type
LEFT JOIN LATERAL (SELECT value, asked_at FROM quota_request r WHERE r.instance_type = t.instance_type AND r.market = t.market
    ORDER BY asked_at DESC LIMIT 1) a ON a.value > coalesce(q.limit_n, 0);

-- What AWS was asked for.
-- name: api_quota_request_put
-- $1 id text, $2 instance type text, $3 market text, $4 value bigint
INSERT INTO quota_request (id, instance_type, market, value) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO NOTHING;

-- Every price, instances first. Relies on the primary key.
-- name: api_prices
SELECT coalesce(json_agg(json_build_object('instance_type', split_part(p.instance_type, ':', 1 + (p.instance_type LIKE '%:%')::int),
    'use', CASE WHEN p.instance_type LIKE '%:%' THEN split_part(p.instance_type, ':', 1) ELSE 'training' END,
    'micro_usd', p.musd_per_hour, 'per', CASE WHEN p.instance_type LIKE 'storage:%' THEN 'gb_month' ELSE 'hour' END,
    'list_micro_usd', l.musd, 'source', CASE p.source WHEN 'aws_pricing' THEN p.source ELSE 'file' END, 'read_at', p.read_at)
    ORDER BY split_part(p.instance_type, ':', 2) <> '', p.instance_type COLLATE "C"), '[]'::json)::text
FROM price p LEFT JOIN price_list l ON l.instance_type = p.instance_type;

-- Price, quota and use of one instance type; NULL where nothing is known.
-- name: api_rate
-- $1 instance type text
SELECT (SELECT musd_per_hour FROM price WHERE instance_type = $1),
    (SELECT limit_n FROM quota WHERE instance_type = $1 AND market = 'on_demand'),
    coalesce((SELECT held + warm_idle FROM slots WHERE instance_type = $1 AND market = 'on_demand'), 0),
    coalesce((SELECT foreign_n FROM slots WHERE instance_type = $1 AND market = 'on_demand'), 0);

-- name: api_slot_limit_put
-- $1 instance type text, $2 instances bigint
INSERT INTO slot_limit (instance_type, limit_n) VALUES ($1, $2)
ON CONFLICT (instance_type, market) DO UPDATE SET limit_n = excluded.limit_n;

-- name: api_slot_limit_drop
-- $1 instance type text
DELETE FROM slot_limit WHERE instance_type = $1 AND market = 'on_demand';
