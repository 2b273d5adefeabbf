-- Metrics of training jobs: written by the leader from their logs. See orchestrator/controller/metric_collect.h.

-- name: view_metric_sources
-- Attempts whose log is still read, with what their stage says is to be found in it. Index attempt_collects.
SELECT a.id, a.campaign_id, a.name, coalesce(m.stream, ''), coalesce(m.token, ''), coalesce(m.token_lines, 0),
    coalesce(m.lines, 0), coalesce(m.step, -1), coalesce(x.metrics, '[]')
FROM attempt a
JOIN stage g ON g.id = a.stage_id
JOIN campaign c ON c.id = a.campaign_id
LEFT JOIN metric_source m ON m.attempt_id = a.id
LEFT JOIN LATERAL (SELECT s->'training'->>'metrics' AS metrics
    FROM jsonb_array_elements(CASE jsonb_typeof(c.spec->'stages') WHEN 'array' THEN c.spec->'stages' END) s
    WHERE s->>'name' = g.name) x ON true
WHERE a.collects ORDER BY a.id

-- name: metric_series_put
-- $1 attempt bigint, $2 names text[]
INSERT INTO metric_series (campaign_id, stage_id, task_id, attempt_id, name)
SELECT a.campaign_id, a.stage_id, a.task_id, a.id, u.name FROM attempt a CROSS JOIN unnest($2::text[]) AS u (name)
WHERE a.id = $1::bigint ON CONFLICT (attempt_id, name) DO NOTHING

-- name: metric_points_put
-- Points behind those that their series have, and the buckets that hold them. Series exist.
-- :which: of :names, from 1; :steps -1: the line had none. The arrays lie side by side. NaN is no point: a series that ends
-- with it has it as its last value.
WITH p AS MATERIALIZED (
    SELECT s.id AS series_id, u.place, u.at_us, u.step, u.value,
        s.points + count(*) FILTER (WHERE u.value <> 'NaN') OVER (PARTITION BY s.id ORDER BY u.place) - 1 AS seq
    FROM unnest(:which::bigint[], :times::bigint[], :steps::bigint[], :points::float8[])
        WITH ORDINALITY AS u (which, at_us, step, value, place)
    JOIN metric_series s ON s.attempt_id = :attempt::bigint AND s.name = (:names::text[])[u.which]),
q AS MATERIALIZED (
    SELECT series_id, seq, at_us, CASE WHEN step < 0 THEN seq ELSE step END AS step, value FROM p WHERE value <> 'NaN'),
new_points AS (
    INSERT INTO metric_point (series_id, seq, at_us, step, value) SELECT * FROM q),
new_buckets AS (
    INSERT INTO metric_bucket AS b (series_id, width, bucket, n, first_us, last_us, first_step, last_step, min_value,
        max_value, sum_value)
    SELECT series_id, w, seq / w, count(*), min(at_us), max(at_us), min(step), max(step), min(value), max(value),
        sum(value)
    FROM q CROSS JOIN (VALUES (8::bigint), (64), (512), (4096), (32768)) AS v (w) GROUP BY 1, 2, 3
    ON CONFLICT (series_id, width, bucket) DO UPDATE SET n = b.n + excluded.n,
        first_us = least(b.first_us, excluded.first_us), last_us = greatest(b.last_us, excluded.last_us),
        first_step = least(b.first_step, excluded.first_step), last_step = greatest(b.last_step, excluded.last_step),
        min_value = least(b.min_value, excluded.min_value), max_value = greatest(b.max_value, excluded.max_value),
        sum_value = b.sum_value + excluded.sum_value)
UPDATE metric_series s SET points = s.points + coalesce(x.n, 0), last_us = coalesce(x.last_us, s.last_us),
    last_step = y.last_step, first_us = CASE WHEN s.points = 0 THEN coalesce(x.first_us, 0) ELSE s.first_us END,
    last_value = y.last_value, min_value = least(s.min_value, x.min_value),
    max_value = greatest(s.max_value, x.max_value), sum_value = s.sum_value + coalesce(x.sum_value, 0)
FROM (SELECT DISTINCT ON (series_id) series_id, CASE WHEN step < 0 THEN seq ELSE step END AS last_step, value AS last_value
    FROM p ORDER BY series_id, place DESC) y
LEFT JOIN (SELECT series_id, count(*) AS n, (array_agg(at_us ORDER BY seq))[1] AS first_us,
        (array_agg(at_us ORDER BY seq DESC))[1] AS last_us, min(value) AS min_value, max(value) AS max_value,
        sum(value) AS sum_value
    FROM q GROUP BY series_id) x ON x.series_id = y.series_id
WHERE s.id = y.series_id

-- name: metric_source_put
-- $1 attempt bigint, $2 stream text, $3 token text, $4 token's lines bigint, $5 lines bigint, $6 step bigint, $7 note text
INSERT INTO metric_source AS m (attempt_id, stream, token, token_lines, lines, step, note)
VALUES ($1::bigint, $2::text, $3::text, $4::bigint, $5::bigint, $6::bigint, $7::text)
ON CONFLICT (attempt_id) DO UPDATE SET stream = excluded.stream, token = excluded.token,
    token_lines = excluded.token_lines, lines = excluded.lines, step = excluded.step,
    note = CASE WHEN excluded.note <> '' THEN excluded.note ELSE m.note END

-- name: metric_close
-- The log was read to its end: what SageMaker says is final comes to the series. A metric that the log did not show gets
-- a series without points. $1 attempt bigint, $2 names text[], $3 values float8[]
WITH f AS (
    INSERT INTO metric_series AS s (campaign_id, stage_id, task_id, attempt_id, name, final_value)
    SELECT a.campaign_id, a.stage_id, a.task_id, a.id, u.name, u.value
    FROM attempt a CROSS JOIN unnest($2::text[], $3::float8[]) AS u (name, value) WHERE a.id = $1::bigint
    ON CONFLICT (attempt_id, name) DO UPDATE SET final_value = excluded.final_value)
UPDATE attempt SET collects = false WHERE id = $1::bigint

-- name: view_gate_values
-- The last value of a metric that each run of a stage has, by its newest good attempt; still read? Of a log that was not
-- read to its end the last value read is not the last one: SageMaker's own counts. A run whose rows are gone counts, too.
-- Index attempt_stage.
-- $1 stage bigint, $2 metric text, $3 rows bigint
SELECT coalesce(t.seq, r.seq, 0), a.collects, CASE WHEN m.note <> '' THEN s.final_value ELSE coalesce(s.last_value, s.final_value) END,
    CASE WHEN m.note <> '' THEN -1 ELSE coalesce(s.last_step, -1) END, coalesce(m.note <> '', false)
FROM (SELECT DISTINCT ON (task_id) id, campaign_id, task_id, collects FROM attempt
      WHERE stage_id = $1::bigint AND state = 8 ORDER BY task_id, n DESC) a
LEFT JOIN task t ON t.campaign_id = a.campaign_id AND t.id = a.task_id
LEFT JOIN task_run r ON r.campaign_id = a.campaign_id AND r.id = a.task_id
LEFT JOIN metric_source m ON m.attempt_id = a.id
LEFT JOIN metric_series s ON s.attempt_id = a.id AND s.name = $2::text
ORDER BY 1 LIMIT $3::bigint
