-- Metrics of training runs as the API shows them.

-- Series behind an id, in order of id, as rows of (id, JSON). Relies on metric_series_campaign.
-- name: api_metric_series
-- $1 campaign bigint, $2 stage bigint or 0, $3 after bigint, $4 rows bigint
SELECT s.id, json_build_object('part', 'c-' || s.campaign_id || '/' || t.seq, 'stage', g.name, 'seq', t.seq,
    'attempt', a.n, 'instances', a.instances, 'name', s.name, 'points', s.points,
    'last_step', CASE WHEN s.points > 0 THEN s.last_step END, 'last', nullif(s.last_value, 'NaN'), 'min', s.min_value,
    'max', s.max_value, 'mean', CASE WHEN s.points > 0 THEN s.sum_value / s.points END, 'final', s.final_value,
    'complete', NOT a.collects, 'note', nullif(m.note, ''))::text
FROM (SELECT * FROM metric_series x WHERE x.campaign_id = $1 AND x.id > $3 AND ($2 = 0 OR x.stage_id = $2)
      ORDER BY x.id LIMIT $4) s
JOIN stage g ON g.id = s.stage_id
JOIN attempt a ON a.id = s.attempt_id
LEFT JOIN metric_source m ON m.attempt_id = s.attempt_id
JOIN task t ON t.campaign_id = s.campaign_id AND t.id = s.task_id
ORDER BY s.id;

-- The attempt whose metrics are asked for: (id, n, still read?, note, does its stage define any?).
-- name: api_metric_attempt
-- $1 task bigint, $2 n integer or 0: the newest
SELECT a.id, a.n, a.collects, coalesce(m.note, ''), EXISTS (
    SELECT FROM campaign c JOIN stage g ON g.id = a.stage_id
        CROSS JOIN LATERAL jsonb_array_elements(CASE jsonb_typeof(c.spec->'stages') WHEN 'array' THEN c.spec->'stages' END) d
    WHERE c.id = a.campaign_id AND d->>'name' = g.name AND d->'training'->'metrics'->0 IS NOT NULL)
FROM attempt a LEFT JOIN metric_source m ON m.attempt_id = a.id
WHERE a.task_id = $1 AND ($2 = 0 OR a.n = $2) ORDER BY a.n DESC LIMIT 1;

-- Its series, by name. Relies on metric_series_attempt_id_name_key.
-- name: api_metric_of_attempt
-- $1 attempt bigint, $2 name text or NULL: all
SELECT s.id, s.name, s.points, s.first_us, s.last_us, CASE WHEN s.points > 0 THEN s.last_step END,
    nullif(s.last_value, 'NaN'), s.min_value, s.max_value, CASE WHEN s.points > 0 THEN s.sum_value / s.points END, s.final_value
FROM metric_series s WHERE s.attempt_id = $1 AND ($2::text IS NULL OR s.name = $2) ORDER BY s.name LIMIT 40;

-- Points put together, several in one. Relies on the primary key.
-- name: api_metric_chart_points
-- $1 series bigint, $2 points in one bigint, $3 first time bigint
SELECT coalesce(json_agg(json_build_object('step', b.step, 'seconds', (b.at_us - $3) / 1000000.0::float8,
    'mean', b.mean, 'min', b.low, 'max', b.high) ORDER BY b.k), '[]'::json)::text
FROM (SELECT seq / $2 AS k, max(step) AS step, max(at_us) AS at_us, avg(value) AS mean, min(value) AS low,
        max(value) AS high
    FROM metric_point WHERE series_id = $1 GROUP BY 1) b;

-- The same of buckets. Relies on the primary key.
-- name: api_metric_chart_buckets
-- $1 series bigint, $2 buckets in one bigint, $3 first time bigint, $4 width bigint
SELECT coalesce(json_agg(json_build_object('step', b.step, 'seconds', (b.at_us - $3) / 1000000.0::float8,
    'mean', b.mean, 'min', b.low, 'max', b.high) ORDER BY b.k), '[]'::json)::text
FROM (SELECT bucket / $2 AS k, max(last_step) AS step, max(last_us) AS at_us, sum(sum_value) / sum(n)::float8 AS mean,
        min(min_value) AS low, max(max_value) AS high
    FROM metric_bucket WHERE series_id = $1 AND width = $4 GROUP BY 1) b;

-- A page of the points themselves. Relies on the primary key.
-- name: api_metric_points
-- $1 series bigint, $2 after bigint, $3 rows bigint
SELECT coalesce(json_agg(json_build_object('seq', p.seq, 'step', p.step, 'at', to_timestamp(p.at_us / 1000000.0),
    'value', p.value) ORDER BY p.seq), '[]'::json)::text, count(*), coalesce(max(p.seq), -1)
FROM (SELECT * FROM metric_point WHERE series_id = $1 AND seq > $2 ORDER BY seq LIMIT $3) p;
