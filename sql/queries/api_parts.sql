-- Parts of a stage as the API lists and loads them. Pages are keyed; a query filters task_run by state only over a
-- bounded range of ids.

-- name: api_stage_find
-- $1 campaign bigint, $2 name text or NULL: the first with parts, else the first
SELECT g.id, g.name, i.tasks, i.closed, n.taken, n.waiting, n.active, n.held, n.done, n.failed, n.skipped, n.cancelled,
    n.state, coalesce(n.wait_reason, ''), EXISTS (SELECT FROM archive h WHERE h.campaign_id = $1)
FROM stage g JOIN stage_input i ON i.stage_id = g.id JOIN stage_run n ON n.stage_id = g.id
WHERE g.campaign_id = $1 AND ($2::text IS NULL OR g.name = $2)
ORDER BY i.tasks = 0, g.seq LIMIT 1;

-- Of the $4 ids after a cursor those that fit, in order, at most $7; in each row the last of all that were looked at and
-- how many these are. One row at least. Relies on task_run's primary key.
-- name: api_parts_scan
-- $1 campaign bigint, $2 stage bigint or 0, $3 after bigint, $4 look at bigint, $5 state integer or -1,
-- $6 attempts at least integer, $7 rows bigint, $8 downwards? boolean
WITH seen AS MATERIALIZED (
    (SELECT id, stage_id, state, attempts FROM task_run WHERE NOT $8 AND campaign_id = $1 AND id > $3 ORDER BY id LIMIT $4)
    UNION ALL
    (SELECT id, stage_id, state, attempts FROM task_run WHERE $8 AND campaign_id = $1 AND id < $3 ORDER BY id DESC LIMIT $4))
SELECT f.id, e.last, e.n
FROM (SELECT CASE WHEN $8 THEN min(id) ELSE max(id) END AS last, count(*) AS n FROM seen) e
LEFT JOIN (SELECT id FROM seen WHERE ($2 = 0 OR stage_id = $2) AND ($5 < 0 OR state = $5) AND attempts >= $6
    ORDER BY CASE WHEN $8 THEN -id ELSE id END LIMIT $7) f ON true
ORDER BY CASE WHEN $8 THEN -f.id ELSE f.id END;

-- Of these ids those that fit what no index has, in their order.
-- name: api_parts_match
-- $1 campaign bigint, $2 ids bigint[], $3 text or NULL: in the address or the reason, $4 micro-USD at least bigint,
-- $5 updated from, $6 before, microseconds bigint, $7 rows bigint
SELECT w.id FROM unnest($2::bigint[]) WITH ORDINALITY w (id, i)
WHERE EXISTS (SELECT FROM task_run x WHERE x.campaign_id = $1 AND x.id = w.id AND x.updated_us >= $5 AND x.updated_us < $6)
    AND ($3::text IS NULL
        OR EXISTS (SELECT FROM task x WHERE x.campaign_id = $1 AND x.id = w.id AND strpos(lower(x.uri), lower($3)) > 0)
        OR EXISTS (SELECT FROM task_failure x WHERE x.task_id = w.id AND strpos(lower(x.message), lower($3)) > 0))
    AND ($4 = 0 OR (SELECT sum(x.cost_musd) FROM attempt x WHERE x.task_id = w.id) >= $4)
ORDER BY w.i LIMIT $7;

-- Whether any part is in this state, by the counters. Relies on stage_run_campaign.
-- name: api_parts_any
-- $1 campaign bigint, $2 stage bigint or 0, $3 state integer
SELECT EXISTS (SELECT FROM stage_run n JOIN stage_input i ON i.stage_id = n.stage_id
    WHERE n.campaign_id = $1 AND ($2 = 0 OR n.stage_id = $2)
        AND (ARRAY[i.tasks - n.taken + n.waiting, n.active, n.held, n.done, n.failed, n.skipped, n.cancelled])[$3 + 1] > 0);

-- The next id that fits, however far it is; id + 0, since walking the index costs twice as much as reading the table.
-- name: api_parts_seek
-- $1 campaign bigint, $2 stage bigint or 0, $3 after bigint, $4 state integer or -1, $5 attempts at least integer, $6 downwards? boolean
SELECT CASE WHEN $6
    THEN (SELECT max(id + 0) FROM task_run WHERE campaign_id = $1 AND id < $3 AND ($2 = 0 OR stage_id = $2) AND ($4 < 0 OR state = $4) AND attempts >= $5)
    ELSE (SELECT min(id + 0) FROM task_run WHERE campaign_id = $1 AND id > $3 AND ($2 = 0 OR stage_id = $2) AND ($4 < 0 OR state = $4) AND attempts >= $5) END;

-- Which ids a campaign has. Relies on task_run's primary key.
-- name: api_parts_range
-- $1 campaign bigint
SELECT (SELECT id FROM task_run WHERE campaign_id = $1 ORDER BY id LIMIT 1), (SELECT id FROM task_run WHERE campaign_id = $1 ORDER BY id DESC LIMIT 1);

-- Of ranges of $3 ids from $2 on: which states occur (bit 0: the first one), and the most attempts.
-- name: api_parts_map
-- $1 campaign bigint, $2 first id bigint, $3 ids a range bigint, $4 stage bigint or 0
SELECT (id - $2) / $3, bit_or(1 << state), max(attempts) FROM task_run
WHERE campaign_id = $1 AND ($4 = 0 OR stage_id = $4) AND id >= $2 GROUP BY 1;

-- Failed parts by (cause, seq, id): of each cause from the cursor's on a range of its own, so that other causes are not
-- passed by. Relies on task_failure_cause.
-- name: api_parts_failed
-- $1 campaign bigint, $2 stage bigint or 0, $3 causes smallint[], $4 $5 $6 behind (cause, seq, id), $7 rows bigint,
-- $8 final only? boolean, $9 downwards? boolean
SELECT f.task_id, f.cause, f.seq
FROM unnest($3::smallint[]) c (cause)
CROSS JOIN LATERAL (
    (SELECT task_id, cause, seq FROM task_failure
     WHERE NOT $9 AND c.cause >= $4 AND campaign_id = $1 AND cause = c.cause AND (final OR NOT $8) AND ($2 = 0 OR stage_id = $2)
         AND (seq, task_id) > (CASE WHEN c.cause = $4 THEN $5 ELSE -1 END, CASE WHEN c.cause = $4 THEN $6 ELSE -1 END)
     ORDER BY seq, task_id LIMIT $7)
    UNION ALL
    (SELECT task_id, cause, seq FROM task_failure
     WHERE $9 AND c.cause <= $4 AND campaign_id = $1 AND cause = c.cause AND (final OR NOT $8) AND ($2 = 0 OR stage_id = $2)
         AND (seq, task_id) < (CASE WHEN c.cause = $4 THEN $5 ELSE 2147483647 END, CASE WHEN c.cause = $4 THEN $6 ELSE 9223372036854775807 END)
     ORDER BY seq DESC, task_id DESC LIMIT $7)) f
ORDER BY CASE WHEN $9 THEN -f.cause ELSE f.cause END, CASE WHEN $9 THEN -f.seq ELSE f.seq END,
    CASE WHEN $9 THEN -f.task_id ELSE f.task_id END LIMIT $7;

-- Parts with a live attempt. Relies on attempt_live.
-- name: api_parts_live
-- $1 campaign bigint, $2 stage bigint or 0, $3 after bigint, $4 rows bigint, $5 downwards? boolean
SELECT task_id FROM (
    (SELECT task_id FROM attempt
     WHERE NOT $5 AND state < 8 AND campaign_id = $1 AND ($2 = 0 OR stage_id = $2) AND task_id > $3 ORDER BY task_id LIMIT $4)
    UNION ALL
    (SELECT task_id FROM attempt
     WHERE $5 AND state < 8 AND campaign_id = $1 AND ($2 = 0 OR stage_id = $2) AND task_id < $3 ORDER BY task_id DESC LIMIT $4)) a
ORDER BY CASE WHEN $5 THEN -task_id ELSE task_id END;

-- The part of a number. task_run has no index on it, task has. Relies on task_seq.
-- name: api_part_id
-- $1 campaign bigint, $2 stage bigint, $3 seq integer
SELECT id FROM task WHERE campaign_id = $1 AND stage_id = $2 AND seq = $3 LIMIT 1;

-- Rows for ids, in their order. LIMIT 1 keeps it at one index lookup per part, independent of the planner's statistics. What a
-- stage that is blocked waits for is read once, if any of them is of such a stage.
-- name: api_parts_rows
-- $1 campaign bigint, $2 ids bigint[], $3 task states text[], $4 attempt states text[], $5 causes text[], $6 now bigint,
-- $7 wait reasons text[], $8 their texts text[]
WITH blocked AS MATERIALIZED (SELECT * FROM stage_needs_told($1))
SELECT coalesce(json_agg(json_build_object('id', 'c-' || t.campaign_id || '/' || t.seq, 'seq', t.seq, 'stage', g.name,
    'state', ($3::text[])[t.state + 1],
    'phase', CASE WHEN t.state = 0 AND t.not_before_us > $6 THEN 'backing_off'
        WHEN t.state = 1 AND a.state <= 1 THEN 'submitting' WHEN t.state = 1 AND a.state = 2 THEN 'starting'
        WHEN t.state = 1 AND a.state < 8 THEN ($4::text[])[a.state + 1]
        ELSE ($3::text[])[t.state + 1] END,
    'cause', CASE WHEN f.task_id IS NOT NULL THEN ($5::text[])[f.cause + 1] END,
    'attempts', t.attempts, 'uri', k.uri, 'size', k.size, 'vars', k.vars,
    'job_name', a.name, 'attempt', a.n, 'reason', coalesce(f.message, nullif(a.reason, '')),
    'wait_reason', CASE WHEN t.state = 0 AND t.not_before_us > $6 THEN 'backoff'
        WHEN t.state = 0 THEN CASE WHEN n.state = 'skipped' THEN 'stage_blocked' ELSE n.wait_reason END END,
    'wait_text', CASE WHEN t.state = 0 AND t.not_before_us > $6 THEN ($8::text[])[array_position($7::text[], 'backoff')]
        WHEN t.state = 0 AND n.state = 'skipped' THEN 'its stage was skipped' || coalesce(': ' || nullif(n.reason, ''), '')
            || coalesce(' (' || (SELECT b.told FROM blocked b WHERE b.stage_id = t.stage_id) || ')', '')
        WHEN t.state = 0 AND n.wait_reason = 'stage_blocked' AND (SELECT true FROM blocked b WHERE b.stage_id = t.stage_id)
            THEN 'its stage waits for ' || (SELECT b.told FROM blocked b WHERE b.stage_id = t.stage_id)
        WHEN t.state = 0 THEN ($8::text[])[array_position($7::text[], n.wait_reason)] || coalesce(': ' || nullif(n.wait_detail, ''), '') END,
    'not_before', CASE WHEN t.state = 0 AND t.not_before_us > $6 THEN to_timestamp(t.not_before_us / 1000000.0)
        WHEN t.state = 0 AND n.wait_again_at > to_timestamp($6 / 1000000.0) THEN n.wait_again_at END,
    'updated_at', CASE WHEN t.updated_us > 0 THEN to_timestamp(t.updated_us / 1000000.0) END,
    'observed_at', a.observed_at, 'cost_micro_usd', coalesce(m.cost, 0)) ORDER BY w.i), '[]'::json)::text
FROM unnest($2::bigint[]) WITH ORDINALITY w (id, i)
CROSS JOIN LATERAL (SELECT * FROM task_run x WHERE x.campaign_id = $1 AND x.id = w.id LIMIT 1) t
CROSS JOIN LATERAL (SELECT * FROM task x WHERE x.campaign_id = $1 AND x.id = w.id LIMIT 1) k
JOIN stage g ON g.id = t.stage_id
JOIN stage_run n ON n.stage_id = t.stage_id
LEFT JOIN LATERAL (SELECT * FROM task_failure x WHERE x.task_id = w.id LIMIT 1) f ON true
LEFT JOIN LATERAL (SELECT * FROM attempt x WHERE x.task_id = w.id ORDER BY x.n DESC LIMIT 1) a ON true
LEFT JOIN LATERAL (SELECT sum(x.cost_musd)::bigint AS cost FROM attempt x WHERE x.task_id = w.id) m ON true;

-- Who skipped a part: the bulk skip that names it and went on at the time of its change, by droverd's clock and the database's, a
-- minute apart at most. They go on one after the other. Without any, a part of no attempt was done before (done_if). No row: it is
-- not skipped. Index operation_campaign.
-- name: api_part_skipped
-- $1 campaign bigint, $2 task bigint, $3 causes text[]
WITH t AS MATERIALIZED (
    SELECT r.seq, g.name AS stage, CASE WHEN r.updated_us > 0 THEN to_timestamp(r.updated_us / 1000000.0) END AS at, r.names, a.cause
    FROM task_run r JOIN stage g ON g.id = r.stage_id
    LEFT JOIN LATERAL (SELECT nullif(x.cause, 0) AS cause FROM attempt x WHERE x.task_id = r.id ORDER BY x.n DESC LIMIT 1) a ON true
    WHERE r.campaign_id = $1 AND r.id = $2 AND r.state = 5),
named AS MATERIALIZED (
    SELECT o.id, coalesce(k.name, o.created_by) AS created_by, t.names > 0 OR o.selector->'parts' IS NOT NULL AS sure, coalesce(o.created_at <= t.at + interval '1 minute' AND (o.ended_at IS NULL OR o.ended_at >= t.at - interval '1 minute'), false) AS near,
        o.created_at <= t.at AND (o.ended_at IS NULL OR o.ended_at >= t.at) AS within
    FROM t JOIN operation o ON o.campaign_id = $1 AND o.kind = 'skip' AND (o.done > 0 OR o.ended_at IS NULL)
        AND (o.selector->>'stage' IS NULL OR o.selector->>'stage' = t.stage)
        AND (o.selector->'cause' IS NULL OR t.cause IS NULL OR o.selector->'cause' ? ($3::text[])[t.cause + 1])
        AND (o.selector->'parts' IS NULL OR o.selector->'parts' @> to_jsonb(t.seq))
    LEFT JOIN token k ON k.id = o.created_by),
o AS (SELECT id, created_by, sure FROM named WHERE near ORDER BY sure DESC, within DESC, id LIMIT 1)
SELECT json_build_object('operation', CASE WHEN o.sure THEN 'op-' || o.id END, 'by', CASE WHEN o.sure THEN nullif(o.created_by, '') END, 'at', t.at, 'text',
    CASE WHEN t.names = 0 AND NOT EXISTS (SELECT FROM named WHERE sure) THEN 'skipped: its output was there before it started (done_if)'
            || coalesce(', or by ' || coalesce(nullif(o.created_by, ''), 'hand') || ' (drover ops op-' || o.id || ')', '')
        ELSE 'skipped' || coalesce(' by ' || nullif(o.created_by, ''), '') || coalesce(' at ' || to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC', '')
            || coalesce(' (drover ops op-' || o.id || ')', '') END)::text
FROM t LEFT JOIN o ON true;

-- Every attempt of one part, first to last.
-- name: api_part_attempts
-- $1 task bigint, $2 attempt states text[], $3 causes text[], $4 phases text[]
SELECT coalesce(json_agg(json_build_object('n', a.n, 'state', ($2::text[])[a.state + 1],
    'cause', CASE WHEN a.cause > 0 THEN ($3::text[])[a.cause + 1] END, 'job_name', a.name, 'arn', nullif(a.arn, ''),
    'console_url', CASE WHEN split_part(a.arn, ':', 3) = 'sagemaker' THEN format('https://%1$s.%2$s/sagemaker/home?region=%1$s#/jobs/%3$s', split_part(a.arn, ':', 4),
        CASE split_part(a.arn, ':', 2) WHEN 'aws-cn' THEN 'console.amazonaws.cn' WHEN 'aws-us-gov' THEN 'console.amazonaws-us-gov.com'
            ELSE 'console.aws.amazon.com' END, a.name) END,
    'instance_type', a.instance_type, 'instances', a.instances, 'volume_gb', a.volume_gb,
    'max_runtime_seconds', a.max_runtime_s, 'reason', nullif(a.reason, ''),
    'reserved_micro_usd', CASE WHEN a.holds THEN a.reserved_musd ELSE 0 END, 'cost_micro_usd', a.cost_musd,
    'billable_seconds', a.billable_s, 'estimated', a.estimated, 'intended_at', a.intended_at,
    'created_at', a.created_at, 'started_at', a.started_at, 'ended_at', a.ended_at, 'observed_at', a.observed_at,
    'phases', CASE WHEN a.phases IS NOT NULL THEN (SELECT json_agg(json_build_object('phase', p.phase, 'elapsed_seconds',
            (a.phases[3 * p.i - 2] / 1000.0)::float8, 'seconds', a.phases[3 * p.i - 1], 'micro_usd', a.phases[3 * p.i]) ORDER BY p.i)
        FROM unnest($4::text[]) WITH ORDINALITY p (phase, i) WHERE p.i <= 6) END,
    'evidence', a.evidence, 'manifest', a.manifest) ORDER BY a.n), '[]'::json)::text
FROM (SELECT * FROM attempt WHERE task_id = $1 ORDER BY n DESC LIMIT 200) a;

-- name: api_attempt_name
-- $1 task bigint, $2 n integer or 0: the newest
SELECT name, state FROM attempt WHERE task_id = $1 AND ($2 = 0 OR n = $2) ORDER BY n DESC LIMIT 1;

-- A part's input with one attempt of it, all of whose columns are NULL when there is none. The request's bytes are
-- kept until the attempt's end.
-- name: api_attempt_request
-- $1 campaign bigint, $2 task bigint, $3 n integer or 0: the newest
SELECT t.seq, t.uri, t.size, t.vars::text, a.n, a.id, a.name, convert_from(a.request, 'UTF8'), a.instance_type,
    a.volume_gb, a.max_runtime_s, g.name
FROM task t JOIN stage g ON g.id = t.stage_id LEFT JOIN LATERAL (SELECT * FROM attempt x WHERE x.task_id = t.id AND ($3 = 0 OR x.n = $3)
    ORDER BY x.n DESC LIMIT 1) a ON true
WHERE t.campaign_id = $1 AND t.id = $2;

-- States by tile of $3 parts.
-- name: api_tiles
-- $1 campaign bigint, $2 stage bigint, $3 parts a tile integer, $4 first $5 last integer
SELECT (seq - $4) / $3 AS tile, state, count(*) FROM task_run
WHERE campaign_id = $1 AND stage_id = $2 AND seq BETWEEN $4 AND $5 GROUP BY 1, 2;
