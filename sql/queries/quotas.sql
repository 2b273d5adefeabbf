-- name: quota_put
-- $1 instance type text, $2 market text (on_demand, spot; warm: of warm pools), $3 limit bigint
INSERT INTO quota (instance_type, market, limit_n) VALUES ($1::text, $2::text, $3::bigint)
ON CONFLICT (instance_type, market) DO UPDATE SET limit_n = excluded.limit_n,
    source = excluded.source, read_at = clock_timestamp()

-- name: price_put
-- $1 instance type text, $2 micro-USD an hour bigint, $3 source text
INSERT INTO price (instance_type, musd_per_hour, source)
VALUES ($1::text, $2::bigint, $3::text)
ON CONFLICT (instance_type) DO UPDATE SET musd_per_hour = excluded.musd_per_hour,
    source = excluded.source, read_at = clock_timestamp()
