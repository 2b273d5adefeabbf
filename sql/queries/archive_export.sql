-- An archive is written to S3 before its rows are deleted: objects of a number of lines, one JSON object a line. The rows of
-- an ended campaign do not change, so that an object written twice has the same bytes.
-- Lines are made row by row, since a manifest may have megabytes: none is read behind the one that makes the object large.
-- OFFSET 0: else a line is made once more for its length.
-- LEFT JOIN: a row without its stage would end the object, and what follows would be deleted without being written.

-- name: archive_export_next
-- None: nothing is to be exported, or all is. $1 campaign bigint
SELECT export_uri, export_kind, export_after, exported FROM archive
WHERE campaign_id = $1::bigint AND archived_at IS NULL AND export_uri <> '' AND exported_at IS NULL

-- name: archive_export_attempts
-- Index attempt_campaign. $1 campaign bigint, $2 after bigint, $3 rows bigint, $4 large enough bytes bigint, $5 attempt states
-- text[], $6 causes text[]
WITH RECURSIVE x (id, line, n, bytes) AS (
    SELECT $2::bigint, '', 0::bigint, 0::bigint
    UNION ALL
    SELECT y.id, y.line, x.n + 1, x.bytes + octet_length(y.line)
    FROM x CROSS JOIN LATERAL (
        SELECT a.id, json_build_object('attempt_id', a.id, 'stage', g.name, 'task_id', a.task_id, 'n', a.n,
            'state', ($5::text[])[a.state + 1], 'cause', ($6::text[])[a.cause + 1], 'job_name', a.name, 'arn', a.arn,
            'instance_type', a.instance_type, 'market', a.market, 'instances', a.instances, 'volume_gb', a.volume_gb,
            'max_runtime_seconds', a.max_runtime_s, 'price_micro_usd_per_hour', a.price_musd_per_hour,
            'cost_micro_usd', a.cost_musd, 'billable_seconds', a.billable_s, 'estimated', a.estimated,
            'warm_micro_usd', a.warm_musd, 'warm_seconds', a.warm_s, 'intended_at', a.intended_at, 'created_at', a.created_at,
            'started_at', a.started_at, 'ended_at', a.ended_at, 'reason', a.reason, 'evidence', a.evidence,
            'manifest', a.manifest)::text || E'\n' AS line
        FROM (SELECT * FROM attempt WHERE campaign_id = $1::bigint AND id > x.id ORDER BY id LIMIT 1) a
        LEFT JOIN stage g ON g.id = a.stage_id OFFSET 0) y
    WHERE x.n < $3::bigint AND x.bytes < $4::bigint)
SELECT coalesce(string_agg(line, '' ORDER BY n), ''), max(id), max(n) FROM x

-- name: archive_export_parts
-- Primary keys of task and task_run; a part that has lost the latter is written without a state. Parameters as
-- archive_export_attempts, with the states of tasks.
WITH RECURSIVE x (id, line, n, bytes) AS (
    SELECT $2::bigint, '', 0::bigint, 0::bigint
    UNION ALL
    SELECT y.id, y.line, x.n + 1, x.bytes + octet_length(y.line)
    FROM x CROSS JOIN LATERAL (
        SELECT t.id, json_build_object('task_id', t.id, 'stage', g.name, 'part', t.seq, 'uri', t.uri, 'size', t.size,
            'vars', t.vars, 'state', ($5::text[])[r.state + 1], 'cause', ($6::text[])[r.cause + 1],
            'attempts', r.attempts)::text || E'\n' AS line
        FROM (SELECT * FROM task WHERE campaign_id = $1::bigint AND id > x.id ORDER BY id LIMIT 1) t
        LEFT JOIN stage g ON g.id = t.stage_id
        LEFT JOIN task_run r ON r.campaign_id = $1::bigint AND r.id = t.id OFFSET 0) y
    WHERE x.n < $3::bigint AND x.bytes < $4::bigint)
SELECT coalesce(string_agg(line, '' ORDER BY n), ''), max(id), max(n) FROM x

-- name: archive_export_metrics
-- The sums of each series. Index metric_series_campaign. $1 campaign bigint, $2 after bigint, $3 rows bigint
SELECT coalesce(string_agg(x.line || E'\n', '' ORDER BY x.id), ''), coalesce(max(x.id), 0)::bigint, count(*)
FROM (SELECT s.id, json_build_object('stage', g.name, 'task_id', s.task_id, 'attempt_id', s.attempt_id, 'name', s.name,
        'points', s.points, 'last_step', s.last_step, 'last_value', nullif(s.last_value, 'NaN'), 'min_value', s.min_value,
        'max_value', s.max_value, 'final_value', s.final_value)::text AS line
    FROM (SELECT * FROM metric_series WHERE campaign_id = $1::bigint AND id > $2::bigint ORDER BY id LIMIT $3::bigint) s
    JOIN stage g ON g.id = s.stage_id) x

-- name: archive_export_summary
-- Written last: where it is, all is. $1 campaign bigint
SELECT json_build_object('campaign', 'c-' || c.id, 'name', c.name, 'state', r.state, 'reason', r.reason,
    'created_at', c.created_at, 'started_at', r.started_at, 'ended_at', r.ended_at, 'objects', h.exported,
    'lines', h.exported_rows, 'cost_micro_usd', coalesce(m.spent_musd, 0), 'seconds', coalesce(m.seconds, 0),
    'stages', (SELECT json_agg(json_build_object('name', g.name, 'state', n.state, 'parts', n.taken, 'done', n.done,
            'failed', n.failed, 'skipped', n.skipped, 'cancelled', n.cancelled, 'rows_in', n.rows_in,
            'successes', n.successes, 'bytes', n.bytes) ORDER BY g.seq)
        FROM stage g JOIN stage_run n ON n.stage_id = g.id WHERE g.campaign_id = c.id),
    'spec', c.spec)::text || E'\n'
FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id JOIN archive h ON h.campaign_id = c.id
LEFT JOIN money m ON m.level = 'campaign' AND m.ref_id = c.id
WHERE c.id = $1::bigint

-- name: archive_export_turn
-- No more rows of this kind. $1 campaign bigint
UPDATE archive SET export_kind = export_kind + 1, export_after = 0 WHERE campaign_id = $1::bigint

-- name: archive_exported
-- An object is written. $1 campaign bigint, $2 its last row bigint, $3 rows bigint, $4 it was the last object? boolean,
-- $5 folder text
UPDATE archive SET export_after = $2::bigint, exported = exported + 1, exported_rows = exported_rows + $3::bigint,
    export_problem = '', exported_at = CASE WHEN $4::boolean THEN clock_timestamp() END
WHERE campaign_id = $1::bigint AND exported_at IS NULL AND export_uri = $5::text

-- name: archive_export_failed
-- $1 campaign bigint, $2 why text
UPDATE archive SET export_problem = $2::text WHERE campaign_id = $1::bigint AND export_problem <> $2::text
