-- Strays that are no jobs: see orchestrator/core/leader/resource_strays.h. The row of one that is
-- there again after the end of another of its name is name#2 and so on: no name at AWS has a #, and a row has its entries in the ledger once.

-- name: view_resource_strays
-- Those that are not proven absent, by their name at AWS: one row each. Index stray_there.
SELECT split_part(name, '#', 1), arn, kind, token, status, instance_type, instances, size_gib, price_musd_per_hour, created_at, started_at,
    ended_at, estimated, stop_asked
FROM stray WHERE there ORDER BY name

-- name: resource_stray_put
-- One that was found; people are told when it costs money. A name of which less was thought to be left is whole again, as it
-- goes on to cost. One behind an ended row of its own name gets a row of its own, name#2, made where that ended and so billed
-- from there, also when it comes into service only later. Returns how many were written, none when its name is known otherwise,
-- since when it is billed, and when it was made. Indexes stray_there and the primary key.
WITH past AS MATERIALIZED (
    SELECT count(*) AS n, max(ended_at) FILTER (WHERE NOT there) AS until, count(*) FILTER (WHERE there) AS live, max(name) FILTER (WHERE there) AS key
    FROM stray WHERE name = ANY (SELECT :name::text || CASE g WHEN 1 THEN '' ELSE '#' || g END FROM generate_series(1, 99) g)),
new_stray AS (
    INSERT INTO stray (name, arn, kind, token, why, status, instance_type, instances, size_gib, price_musd_per_hour,
        reserved_musd, holds, there, created_at, started_at)
    SELECT CASE WHEN p.live > 0 THEN p.key WHEN p.n = 0 THEN :name::text ELSE :name::text || '#' || (p.n + 1) END,
        :arn::text, :kind::text, :token::text, 'lost', :status::text, :instance_type::text, :instances::int, :size::bigint,
        :price::bigint, 0, false, true, greatest(:created::timestamptz, p.until),
        CASE WHEN p.until > :started::timestamptz THEN p.until ELSE :started::timestamptz END
    FROM past p WHERE p.n < 99 OR p.live > 0
    ON CONFLICT (name) DO UPDATE SET arn = excluded.arn, kind = excluded.kind, status = excluded.status,
        instance_type = excluded.instance_type, instances = excluded.instances,
        price_musd_per_hour = excluded.price_musd_per_hour, created_at = excluded.created_at,
        started_at = excluded.started_at, ended_at = NULL, estimated = false
        WHERE stray.there AND (excluded.kind = 'endpoint' AND stray.kind IN ('endpoint_config', 'model')
            OR excluded.kind = 'endpoint_config' AND stray.kind = 'model') RETURNING name, kind, started_at, created_at),
new_event AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT 0, 'alert', jsonb_build_object('campaign', 0, 'text', replace(kind, '_', ' ') || ' ' || :name::text
        || ' belongs to no campaign: see drover strays', 'about', 'stray')
    FROM new_stray WHERE kind IN ('endpoint', 'file_system'))
SELECT count(*), max(started_at), max(created_at) FROM new_stray

-- name: resource_stray_seen
-- What is left of it, and since when and until when it is billed. Index stray_there, as of the two below. $1 name text,
-- $2 kind text, $3 status text, $4 started timestamptz, $5 ended timestamptz, $6 estimated boolean, $7 instance type text and
-- $8 price bigint, once they are known
UPDATE stray SET kind = $2::text, status = $3::text, started_at = $4::timestamptz, ended_at = $5::timestamptz,
    estimated = $6::boolean, instance_type = $7::text, price_musd_per_hour = $8::bigint
WHERE split_part(name, '#', 1) = $1::text AND there

-- name: resource_stray_drop
-- A row of ours stands for it by now, which books it. $1 name text
DELETE FROM stray WHERE split_part(name, '#', 1) = $1::text AND there

-- name: resource_stray_end
-- It is proven absent, and booked. Returns how many were there. $1 name text, $2 status text, $3 started timestamptz,
-- $4 ended timestamptz, $5 billable_s bigint, $6 cost bigint, $7 estimated boolean,
-- entries: $8 kinds text[], $9 from text[], $10 to text[], $11 amounts bigint[], $12 seconds bigint[]
WITH over AS (
    UPDATE stray SET there = false, status = $2::text, started_at = $3::timestamptz, ended_at = $4::timestamptz,
        billable_s = $5::bigint, cost_musd = $6::bigint, estimated = $7::boolean
    WHERE split_part(name, '#', 1) = $1::text AND there RETURNING name),
entries AS MATERIALIZED (
    SELECT e.* FROM over, unnest($8::text[], $9::text[], $10::text[], $11::bigint[], $12::bigint[])
        WITH ORDINALITY AS e (entry, from_account, to_account, amount, seconds, rank)),
new_money AS (
    INSERT INTO money AS m (level, ref_id, spent_musd, seconds)
    SELECT 'global', 0, coalesce(sum(amount), 0)::bigint, coalesce(sum(seconds), 0)::bigint
    FROM entries WHERE to_account = 'spent' HAVING count(*) > 0
    ON CONFLICT (level, ref_id) DO UPDATE SET spent_musd = m.spent_musd + excluded.spent_musd,
        seconds = m.seconds + excluded.seconds),
new_entries AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, stray, entry, from_account, to_account, amount_musd, seconds,
        estimated)
    SELECT 0, 0, 0, o.name, e.entry, e.from_account, e.to_account, e.amount, e.seconds,
        e.entry = 'settle' AND $7::boolean FROM over o, entries e ORDER BY e.rank)
SELECT count(*) FROM over
