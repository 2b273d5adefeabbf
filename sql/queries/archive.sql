-- An ended campaign is archived in steps of a number of rows. Each of the deletes returns how many rows it has deleted; the
-- names of the rows to delete come as arrays, so that a plan never reads a whole table for them.

-- name: archive_subject
-- What the campaign is now, and how many jobs of it have not ended. $1 campaign bigint
SELECT r.state, (SELECT coalesce(sum(n.active), 0)::bigint FROM stage_run n WHERE n.campaign_id = r.campaign_id)
FROM campaign_run r WHERE r.campaign_id = $1::bigint

-- name: archive_drop
-- It is no archive while nothing of it is deleted. $1 campaign bigint
DELETE FROM archive WHERE campaign_id = $1::bigint AND phase = 0 AND after_attempt = 0

-- name: archive_phase
-- Its row, locked, and whether it is to be written first; none: nothing is to be done. $1 campaign bigint
SELECT phase, after_attempt, attempts, export_uri <> '' AND exported_at IS NULL FROM archive WHERE campaign_id = $1::bigint AND archived_at IS NULL FOR UPDATE

-- name: archive_phase_next
-- $1 campaign bigint
UPDATE archive SET phase = phase + 1 WHERE campaign_id = $1::bigint

-- name: archive_attempts
-- Attempts with all that hangs on them; their cost by cause and their jobs' names stay. A void attempt's name does not:
-- should its job live, it is a stray. Index attempt_campaign. $1 campaign bigint, $2 rows bigint, $3 after bigint
WITH page AS MATERIALIZED (
    SELECT id FROM attempt WHERE campaign_id = $1::bigint AND id > $3::bigint ORDER BY id LIMIT $2::bigint),
gone AS (
    DELETE FROM attempt WHERE id = ANY (ARRAY(SELECT id FROM page))
    RETURNING id, stage_id, task_id, name, state, cause, billable_s, cost_musd, estimated, intended_at, market, keep_alive_s,
        warm_s, warm_musd, phases),
pools AS (
    DELETE FROM pool WHERE attempt_id = ANY (ARRAY(SELECT id FROM page))),
sources AS (
    DELETE FROM metric_source WHERE attempt_id = ANY (ARRAY(SELECT id FROM page))),
changes AS (
    DELETE FROM task_change WHERE task_id = ANY (ARRAY(SELECT task_id FROM gone))),
costs AS (
    INSERT INTO archive_cost AS x (campaign_id, cause, attempts, seconds, musd, estimated)
    SELECT $1::bigint, cause, count(*), sum(billable_s)::bigint, sum(cost_musd)::bigint, bool_or(estimated)
    FROM gone WHERE cost_musd + billable_s > 0 GROUP BY cause
    ON CONFLICT (campaign_id, cause) DO UPDATE SET attempts = x.attempts + excluded.attempts,
        seconds = x.seconds + excluded.seconds, musd = x.musd + excluded.musd,
        estimated = x.estimated OR excluded.estimated),
stages AS (
    INSERT INTO archive_stage AS x (stage_id, campaign_id, attempts, measured, keeps, job_s, job_musd, warm_s, warm_musd, phases)
    SELECT g.stage_id, $1::bigint, count(*), count(g.phases), bool_or(g.keep_alive_s > 0 OR g.market = 'spot'),
        sum(g.billable_s)::bigint, sum(g.cost_musd)::bigint, sum(g.warm_s)::bigint, sum(g.warm_musd)::bigint,
        ARRAY(SELECT coalesce(sum(h.phases[i]), 0)::bigint FROM generate_series(1, 18) i LEFT JOIN gone h ON h.stage_id = g.stage_id
            GROUP BY i ORDER BY i)
    FROM gone g WHERE g.phases IS NOT NULL OR g.cost_musd + g.billable_s + g.warm_s > 0 GROUP BY g.stage_id
    ON CONFLICT (stage_id) DO UPDATE SET attempts = x.attempts + excluded.attempts, measured = x.measured + excluded.measured,
        keeps = x.keeps OR excluded.keeps, job_s = x.job_s + excluded.job_s, job_musd = x.job_musd + excluded.job_musd,
        warm_s = x.warm_s + excluded.warm_s, warm_musd = x.warm_musd + excluded.warm_musd,
        phases = ARRAY(SELECT x.phases[i] + excluded.phases[i] FROM generate_series(1, 18) i ORDER BY i)),
names AS (
    INSERT INTO archived_job (name_hash) SELECT DISTINCT job_name_hash(name) FROM gone WHERE state <> 12
    ON CONFLICT DO NOTHING),
sums AS (
    SELECT count(*) AS n, max(id) AS last, max(intended_at) AS newest FROM gone),
told AS (
    UPDATE archive SET attempts = attempts + sums.n, after_attempt = greatest(after_attempt, sums.last),
        newest_intent = greatest(newest_intent, sums.newest)
    FROM sums WHERE campaign_id = $1::bigint)
SELECT n FROM sums

-- name: archive_metrics
-- Points of its first series; the series with its buckets when no more are left. Index metric_series_campaign.
-- $1 campaign bigint, $2 rows bigint
WITH series AS MATERIALIZED (
    SELECT id FROM metric_series WHERE campaign_id = $1::bigint ORDER BY id LIMIT 1),
points AS (
    DELETE FROM metric_point WHERE series_id = (SELECT id FROM series) AND seq = ANY (ARRAY(
        SELECT p.seq FROM metric_point p WHERE p.series_id = (SELECT id FROM series) ORDER BY p.seq LIMIT $2::bigint))
    RETURNING 1),
over AS MATERIALIZED (
    SELECT id FROM series WHERE (SELECT count(*) FROM points) < $2::bigint),
buckets AS (
    DELETE FROM metric_bucket WHERE series_id = (SELECT id FROM over)),
gone AS (
    DELETE FROM metric_series WHERE id = (SELECT id FROM over) RETURNING 1)
SELECT (SELECT count(*) FROM points) + (SELECT count(*) FROM gone)

-- name: archive_failures
-- Index task_failure_cause. $1 campaign bigint, $2 rows bigint
WITH gone AS (
    DELETE FROM task_failure WHERE task_id = ANY (ARRAY(
        SELECT task_id FROM task_failure WHERE campaign_id = $1::bigint ORDER BY cause, seq LIMIT $2::bigint))
    RETURNING 1)
SELECT count(*) FROM gone

-- name: archive_changes
-- What a retry changed for tasks without attempts. Ids of tasks are drawn in blocks: few others lie between. Primary
-- keys of task, task_run and task_change. $1 campaign bigint, $2 rows bigint
WITH ends AS MATERIALIZED (
    SELECT min(first) AS first, max(last) AS last FROM (
        SELECT min(id) AS first, max(id) AS last FROM task WHERE campaign_id = $1::bigint
        UNION ALL SELECT min(id), max(id) FROM task_run WHERE campaign_id = $1::bigint) x),
gone AS (
    DELETE FROM task_change WHERE task_id = ANY (ARRAY(
        SELECT c.task_id FROM task_change c
        WHERE c.task_id BETWEEN (SELECT first FROM ends) AND (SELECT last FROM ends) AND c.campaign_id = $1::bigint
        ORDER BY c.task_id LIMIT $2::bigint))
    RETURNING 1)
SELECT count(*) FROM gone

-- name: archive_parts
-- Parts of a campaign without tables of its own; a part that has lost one of its two rows goes, too. Primary keys.
-- $1 campaign bigint, $2 rows bigint
WITH page AS MATERIALIZED (
    (SELECT id FROM task_default WHERE campaign_id = $1::bigint ORDER BY id LIMIT $2::bigint)
    UNION (SELECT id FROM task_run_default WHERE campaign_id = $1::bigint ORDER BY id LIMIT $2::bigint)),
runs AS (
    DELETE FROM task_run_default WHERE campaign_id = $1::bigint AND id = ANY (ARRAY(SELECT id FROM page))),
gone AS (
    DELETE FROM task_default WHERE campaign_id = $1::bigint AND id = ANY (ARRAY(SELECT id FROM page)))
SELECT count(*) FROM page

-- name: archive_tables
-- The tables of its own. $1 campaign bigint
SELECT archive_tables_drop($1::bigint)

-- name: archive_end
-- $1 campaign bigint
WITH released AS (
    DELETE FROM parked WHERE campaign_id = $1::bigint AND kind <> 'operation'),
retried AS (
    DELETE FROM task_retried WHERE operation_id IN (SELECT id FROM operation WHERE campaign_id = $1::bigint))
UPDATE archive SET archived_at = clock_timestamp() WHERE campaign_id = $1::bigint AND archived_at IS NULL
