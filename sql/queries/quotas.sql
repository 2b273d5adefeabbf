-- name: quota_put
-- $1 instance type text, $2 market text (on_demand, spot; warm: of warm pools), $3 limit bigint
INSERT INTO quota (instance_type, market, limit_n) VALUES ($1::text, $2::text, $3::bigint)
ON CONFLICT (instance_type, market) DO UPDATE SET limit_n = excluded.limit_n,
    source = excluded.source, read_at = clock_timestamp()

-- name: create_rate_put
-- $1 millionths of a Create a second bigint
UPDATE lease SET creates_per_s_u = $1::bigint WHERE creates_per_s_u IS DISTINCT FROM $1::bigint

-- name: price_put
-- $1 instance type text, $2 micro-USD an hour bigint, $3 source text
INSERT INTO price (instance_type, musd_per_hour, source)
VALUES ($1::text, $2::bigint, $3::text)
ON CONFLICT (instance_type) DO UPDATE SET musd_per_hour = excluded.musd_per_hour,
    source = excluded.source, read_at = clock_timestamp()

-- name: price_list_put
-- What AWS Pricing lists; what it no longer lists stays with its date.
-- $1 micro-USD by type jsonb
INSERT INTO price_list (instance_type, musd, read_at)
SELECT key, value::bigint, clock_timestamp() FROM jsonb_each_text($1::jsonb)
ON CONFLICT (instance_type) DO UPDATE SET musd = excluded.musd, read_at = excluded.read_at

-- name: price_list_use
-- List prices less the discount become prices, but for what the operator's file names: a deployment of storage is named with
-- each of its throughputs that the file does not name by itself.
-- $1 parts in a million that are paid bigint, $2 source text of the file's prices, $3 types the file names jsonb (array; NULL: it
-- cannot be read, so that all its prices stay)
INSERT INTO price (instance_type, musd_per_hour, source, read_at)
SELECT l.instance_type, coalesce(o.musd_per_hour, div(l.musd::numeric * $1::bigint + 500000, 1000000)::bigint),
    coalesce(o.source, 'aws_pricing'), coalesce(o.read_at, l.read_at)
FROM price_list l
LEFT JOIN price o ON l.instance_type LIKE 'storage:%/%' AND o.instance_type = split_part(l.instance_type, '/', 1)
    AND o.source = $2::text AND ($3::jsonb IS NULL OR $3::jsonb ? o.instance_type)
WHERE NOT EXISTS (SELECT FROM price p WHERE p.instance_type = l.instance_type AND p.source = $2::text
    AND ($3::jsonb IS NULL OR $3::jsonb ? l.instance_type))
ON CONFLICT (instance_type) DO UPDATE SET musd_per_hour = excluded.musd_per_hour,
    source = excluded.source, read_at = excluded.read_at
WHERE (price.musd_per_hour, price.source, price.read_at) IS DISTINCT FROM
    (excluded.musd_per_hour, excluded.source, excluded.read_at)

-- name: price_list_age
-- Microseconds since AWS Pricing was read; -1: never, or only when PostgreSQL's clock was ahead of what it is now.
SELECT CASE WHEN newest IS NULL THEN -1
    ELSE greatest(extract(epoch FROM clock_timestamp() - newest) * 1000000, 0) END::bigint
FROM (SELECT max(read_at) AS newest FROM price_list
    WHERE read_at BETWEEN '1970-01-01Z' AND clock_timestamp() + interval '1 hour') n
