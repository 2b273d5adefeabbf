-- Training runs as scaling tables and comparisons need them.

-- Each stage of a campaign with its newest attempt that succeeded. Relies on attempt_stage.
-- name: api_runs
-- $1 campaign bigint
SELECT g.name, i.tasks, coalesce(t.seq, 0), coalesce(a.id, 0), coalesce(a.n, 0), coalesce(a.instances, 0),
    coalesce(a.instance_type, ''), coalesce(a.volume_gb, 0), coalesce(a.price_musd_per_hour, 0), coalesce(a.cost_musd, 0),
    coalesce(a.billable_s, 0), coalesce((extract(epoch FROM a.started_at) * 1000000)::bigint, 0),
    coalesce((extract(epoch FROM a.ended_at) * 1000000)::bigint, 0), coalesce(a.phases[7] + a.phases[10], 0),
    coalesce(a.phases[13], 0), coalesce(a.state, 0) = 8
FROM stage g JOIN stage_input i ON i.stage_id = g.id
LEFT JOIN LATERAL (SELECT * FROM attempt x WHERE x.stage_id = g.id AND x.state = 8 ORDER BY x.id DESC LIMIT 1) a ON true
LEFT JOIN LATERAL (SELECT seq FROM task x WHERE x.campaign_id = g.campaign_id AND x.id = a.task_id LIMIT 1) t ON true
WHERE g.campaign_id = $1 ORDER BY g.seq;

-- One attempt of a part in the same columns: n, else the newest that succeeded, else the newest.
-- name: api_run
-- $1 task bigint, $2 n integer or 0
SELECT g.name, 1::bigint, t.seq, a.id, a.n, a.instances, a.instance_type, a.volume_gb, a.price_musd_per_hour, a.cost_musd,
    a.billable_s, coalesce((extract(epoch FROM a.started_at) * 1000000)::bigint, 0),
    coalesce((extract(epoch FROM a.ended_at) * 1000000)::bigint, 0), coalesce(a.phases[7] + a.phases[10], 0),
    coalesce(a.phases[13], 0), a.state = 8
FROM attempt a JOIN stage g ON g.id = a.stage_id
CROSS JOIN LATERAL (SELECT seq FROM task x WHERE x.campaign_id = a.campaign_id AND x.id = a.task_id LIMIT 1) t
WHERE a.task_id = $1 AND ($2 = 0 OR a.n = $2) ORDER BY a.state = 8 DESC, a.n DESC LIMIT 1;

-- Points of a series, several in one: (step, time, mean). Relies on the primary key.
-- name: api_run_points
-- $1 series bigint, $2 points in one bigint
SELECT max(step), max(at_us), avg(value)::float8 FROM metric_point WHERE series_id = $1 GROUP BY seq / $2 ORDER BY seq / $2;

-- The same of buckets. Relies on the primary key.
-- name: api_run_buckets
-- $1 series bigint, $2 buckets in one bigint, $3 width bigint
SELECT max(last_step), max(last_us), sum(sum_value) / sum(n)::float8 FROM metric_bucket WHERE series_id = $1 AND width = $3
GROUP BY bucket / $2 ORDER BY bucket / $2;
