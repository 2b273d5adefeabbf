-- Money and time of a campaign as curves of few points, its attempts as bars, and the bill of a month.

-- What was spent and reserved, summed up at most $2 times over the life of its ledger. Relies on ledger_campaign.
-- name: api_burn
-- $1 campaign bigint, $2 points bigint
WITH span AS MATERIALIZED (
    SELECT f.at AS first, z.at AS last,
        greatest(1, ceil(extract(epoch FROM z.at - f.at) * 1000000 / $2))::bigint AS step_us
    FROM (SELECT at FROM ledger WHERE campaign_id = $1 ORDER BY id LIMIT 1) f,
        (SELECT at FROM ledger WHERE campaign_id = $1 ORDER BY id DESC LIMIT 1) z),
sums AS (
    SELECT x.k, sum(x.spent) AS spent, sum(x.reserved) AS reserved
    FROM (SELECT least($2 - 1, greatest(0, (date_part('epoch', l.at - s.first) * 1000000)::bigint / s.step_us)) AS k,
            CASE WHEN l.to_account = 'spent' THEN l.amount_musd WHEN l.from_account = 'spent' THEN -l.amount_musd
                ELSE 0 END AS spent,
            CASE WHEN l.to_account = 'reserved' THEN l.amount_musd WHEN l.from_account = 'reserved' THEN -l.amount_musd
                ELSE 0 END AS reserved
        FROM span s JOIN ledger l ON l.campaign_id = $1 OFFSET 0) x   -- as a fence: the groups are few, no sort is needed
    GROUP BY x.k),
points AS (
    SELECT k, sum(spent) OVER (ORDER BY k) AS spent, sum(reserved) OVER (ORDER BY k) AS reserved FROM sums)
SELECT json_build_object('first_at', s.first, 'points', coalesce((SELECT json_agg(json_build_object(
        'at', least(s.last, s.first + (p.k + 1) * s.step_us * interval '1 microsecond'),
        'spent_micro_usd', p.spent::bigint, 'reserved_micro_usd', greatest(p.reserved, 0)::bigint) ORDER BY p.k) FROM points p),
    '[]'::json))::text
FROM campaign c LEFT JOIN span s ON true WHERE c.id = $1;

-- By instance type, and file systems by deployment. Relies on attempt_campaign, endpoint_campaign and filesystem_campaign.
-- name: api_cost_by_type
-- $1 campaign bigint
SELECT coalesce(json_agg(json_build_object('instance_type', x.instance_type, 'market', x.market, 'attempts', x.n,
    'seconds', x.seconds, 'micro_usd', x.musd, 'idle_micro_usd', x.idle, 'estimated', x.estimated)
    ORDER BY x.musd + x.idle DESC, x.instance_type, x.market), '[]'::json)::text
FROM (SELECT instance_type, market, count(*) AS n, sum(billable_s)::bigint AS seconds, sum(cost_musd)::bigint AS musd,
        sum(warm_musd)::bigint AS idle, bool_or(estimated) AS estimated
        FROM attempt WHERE campaign_id = $1 AND cost_musd + billable_s + warm_musd > 0 GROUP BY 1, 2
    UNION ALL SELECT instance_type, 'hosting', count(*), sum(billable_s)::bigint, sum(cost_musd)::bigint, 0, bool_or(estimated)
        FROM endpoint WHERE campaign_id = $1 AND cost_musd + billable_s > 0 GROUP BY 1
    UNION ALL SELECT deployment, 'storage', count(*), 0, sum(cost_musd)::bigint, 0, bool_or(estimated)
        FROM filesystem WHERE campaign_id = $1 AND cost_musd > 0 GROUP BY 1) x;

-- The newest attempts of a stage, void ones left out, by type and begin. An attempt has its slot from its intent on.
-- Relies on attempt_stage and task_run's primary key.
-- name: api_timeline
-- $1 campaign bigint, $2 stage bigint, $3 rows bigint
SELECT t.seq, a.n, a.state, a.cause, a.instance_type, a.market, a.pool_id IS NOT NULL, a.intended_at, a.started_at,
    CASE WHEN a.state >= 8 THEN coalesce(a.ended_at, a.started_at, a.intended_at) END
FROM (SELECT * FROM attempt WHERE stage_id = $2 AND state <> 12 ORDER BY id DESC LIMIT $3) a
CROSS JOIN LATERAL (SELECT seq FROM task_run x WHERE x.campaign_id = $1 AND x.id = a.task_id LIMIT 1) t
ORDER BY a.instance_type, a.market, a.intended_at, a.id;

-- Parts that were done and tries that failed, by spans of equal length, at most $2 of them. Relies on attempt_stage.
-- name: api_throughput
-- $1 stage bigint, $2 points bigint
WITH ends AS MATERIALIZED (
    SELECT floor(date_part('epoch', least(min(intended_at), min(ended_at))))::bigint AS first,
        floor(date_part('epoch', max(ended_at)))::bigint AS last
    FROM attempt WHERE stage_id = $1 AND state IN (8, 9) AND ended_at IS NOT NULL),
span AS MATERIALIZED (
    SELECT first, last, greatest(1, (last - first + $2) / $2) AS step FROM ends WHERE last IS NOT NULL),
spans AS (
    SELECT k, p.first + k * p.step AS at, least(p.step, p.last + 1 - (p.first + k * p.step)) AS wide
    FROM span p CROSS JOIN LATERAL generate_series(0, (p.last - p.first) / p.step) k),
sums AS (
    SELECT e.k, count(*) FILTER (WHERE e.state = 8) AS done, count(*) FILTER (WHERE e.state = 9) AS failed
    FROM (SELECT (floor(date_part('epoch', a.ended_at))::bigint - p.first) / p.step AS k, a.state
        FROM span p JOIN attempt a ON a.stage_id = $1 AND a.state IN (8, 9) AND a.ended_at IS NOT NULL OFFSET 0) e   -- the same fence
    GROUP BY e.k)
SELECT coalesce(json_agg(json_build_object('at', to_timestamp(x.at), 'seconds', x.wide, 'done', coalesce(y.done, 0)::bigint,
    'failed', coalesce(y.failed, 0)::bigint, 'parts_per_hour', round(coalesce(y.done, 0) * 3600.0 / x.wide, 3)) ORDER BY x.k),
    '[]'::json)::text
FROM spans x LEFT JOIN sums y ON y.k = x.k;

-- Rows that were kept, by ranges of parts, from the manifests of every $3rd part. Relies on task_seq and attempt's
-- (task_id, n).
-- name: api_yield
-- $1 campaign bigint, $2 stage bigint, $3 every bigint, $4 parts of a range bigint, $5 parts bigint
WITH seen AS MATERIALIZED (
    SELECT q.seq, (x.m->>'rows_in')::numeric AS rows, (x.m->>'successes')::numeric AS kept
    FROM generate_series(0, $5 - 1, $3) q (seq)
    CROSS JOIN LATERAL (SELECT id FROM task t WHERE t.campaign_id = $1 AND t.stage_id = $2 AND t.seq = q.seq::integer LIMIT 1) k
    CROSS JOIN LATERAL (SELECT manifest AS m FROM attempt a WHERE a.task_id = k.id AND a.state = 8 ORDER BY a.n DESC LIMIT 1) x
    WHERE jsonb_typeof(x.m->'rows_in') = 'number' AND jsonb_typeof(x.m->'successes') = 'number'
        AND (x.m->>'rows_in')::numeric BETWEEN 1 AND 1e15 AND (x.m->>'successes')::numeric BETWEEN 0 AND (x.m->>'rows_in')::numeric)
SELECT json_build_object('points', coalesce((SELECT json_agg(json_build_object('first', b.r * $4,
        'last', least($5, (b.r + 1) * $4) - 1, 'parts', b.n, 'rows', b.rows, 'successes', b.kept,
        'ratio', round(b.kept::numeric / b.rows, 6)) ORDER BY b.r)
    FROM (SELECT seq / $4 AS r, count(*) AS n, sum(rows)::bigint AS rows, sum(kept)::bigint AS kept FROM seen GROUP BY 1) b),
    '[]'::json), 'lowest', coalesce((SELECT json_agg(json_build_object('part', w.seq, 'rows', w.rows::bigint,
        'successes', w.kept::bigint, 'ratio', round(w.kept / w.rows, 6)) ORDER BY w.kept / w.rows, w.seq)
    FROM (SELECT * FROM seen ORDER BY kept / rows, seq LIMIT 10) w), '[]'::json))::text;

-- What was booked in a month by project, or by the value of a tag, and by campaign; the month is UTC's. Money of jobs without a
-- known campaign, and of campaigns without the tag, has the name NULL. By the time of the line, since a campaign may have ended long
-- before: a late bill, the end of a warm pool that nobody saw. Relies on ledger_at.
-- name: api_bill
-- $1 month as 2026-11 text, '' the present one, $2 projects by commas text, '' for all, $3 campaigns of a group bigint,
-- $4 key of a tag text, '' by project
WITH month AS MATERIALIZED (
    SELECT m.first AT TIME ZONE 'UTC' AS first, (m.first + interval '1 month') AT TIME ZONE 'UTC' AS ends, to_char(m.first, 'YYYY-MM') AS name
    FROM (SELECT CASE WHEN $1 = '' THEN date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC')
        ELSE ($1 || '-01')::timestamp END AS first) m),
booked AS MATERIALIZED (
    SELECT l.campaign_id, sum(CASE WHEN l.to_account = 'spent' THEN l.amount_musd ELSE -l.amount_musd END) AS musd,
        sum(CASE WHEN l.to_account = 'spent' THEN l.seconds ELSE -l.seconds END) AS seconds,
        sum(CASE WHEN l.entry = 'warm' THEN l.amount_musd ELSE 0 END) AS idle,
        sum(CASE WHEN l.endpoint_id IS NOT NULL THEN l.amount_musd ELSE 0 END) AS hosting,
        sum(CASE WHEN l.filesystem_id IS NOT NULL THEN l.amount_musd ELSE 0 END) AS storage
    FROM month m JOIN ledger l ON l.at >= m.first AND l.at < m.ends AND 'spent' IN (l.from_account, l.to_account)
    GROUP BY l.campaign_id),
campaigns AS MATERIALIZED (
    SELECT coalesce(c.id, 0) AS id, p.name AS project, c.name, CASE WHEN $4::text = '' THEN p.name ELSE (SELECT x->>1
            FROM jsonb_array_elements(CASE jsonb_typeof(c.spec->'tags') WHEN 'array' THEN c.spec->'tags' END) x WHERE x->>0 = $4 LIMIT 1) END AS of,
        b.musd, b.seconds, b.idle, b.hosting, b.storage
    FROM booked b LEFT JOIN campaign c ON c.id = b.campaign_id LEFT JOIN project p ON p.id = c.project_id
    WHERE $2::text = '' OR p.name = ANY (string_to_array($2::text, ','))),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY of ORDER BY musd DESC, id) AS nth FROM campaigns),
tags AS (
    SELECT DISTINCT x->>0 AS key FROM campaigns b JOIN campaign c ON c.id = b.id
    CROSS JOIN LATERAL jsonb_array_elements(CASE jsonb_typeof(c.spec->'tags') WHEN 'array' THEN c.spec->'tags' END) x ORDER BY 1 LIMIT 50)
SELECT json_build_object('month', m.name, 'from_at', m.first, 'to_at', m.ends, 'tag', nullif($4, ''),
    'tags', coalesce((SELECT json_agg(key ORDER BY key) FROM tags), '[]'::json),
    'micro_usd', coalesce((SELECT sum(musd) FROM campaigns), 0)::bigint, 'groups', coalesce((
    SELECT json_agg(json_build_object('name', x.of, 'micro_usd', x.musd, 'jobs_micro_usd', x.musd - x.idle - x.hosting - x.storage,
        'idle_micro_usd', x.idle, 'hosting_micro_usd', x.hosting, 'storage_micro_usd', x.storage, 'seconds', x.seconds,
        'campaigns_total', x.n, 'campaigns', x.rows) ORDER BY x.musd DESC, x.of)
    FROM (SELECT r.of, sum(r.musd)::bigint AS musd, sum(r.idle)::bigint AS idle, sum(r.hosting)::bigint AS hosting,
            sum(r.storage)::bigint AS storage, sum(r.seconds)::bigint AS seconds, count(*) FILTER (WHERE r.id > 0) AS n,
            coalesce(json_agg(json_build_object('campaign', 'c-' || r.id, 'name', r.name, 'project', r.project,
                'micro_usd', r.musd::bigint, 'seconds', r.seconds::bigint) ORDER BY r.nth)
                FILTER (WHERE r.nth <= $3 AND r.id > 0), '[]'::json) AS rows
        FROM ranked r GROUP BY r.of) x), '[]'::json))::text
FROM month m;
