-- name: view_slot_limits
SELECT instance_type, market, limit_n FROM slot_limit

-- name: view_durations
-- The newest attempts of a stage that succeeded: size of the part, how long SageMaker ran it. Index attempt_stage.
-- $1 campaign bigint, $2 stage bigint, $3 how many integer
SELECT t.size, (extract(epoch FROM a.ended_at - a.started_at) * 1000000)::bigint
FROM (SELECT task_id, started_at, ended_at FROM attempt
      WHERE stage_id = $2::bigint AND state = 8 AND started_at IS NOT NULL AND ended_at > started_at
      ORDER BY id DESC LIMIT $3::int) AS a
JOIN task t ON t.campaign_id = $1::bigint AND t.id = a.task_id

-- name: view_breaker
-- The input of a stage's breaker: its first and last ended attempts, oldest first, and whether a job that failed had run.
-- Index attempt_stage.
-- $1 stage bigint, $2 after attempt bigint, $3 how many of each integer
SELECT id, state, cause, reason, state = 9 AND cause <> 0 AND (started_at IS NOT NULL OR billable_s > 0) FROM (
    (SELECT id, state, cause, reason, started_at, billable_s FROM attempt
     WHERE stage_id = $1::bigint AND id > $2::bigint AND state >= 8 ORDER BY id LIMIT $3::int)
    UNION
    (SELECT id, state, cause, reason, started_at, billable_s FROM attempt
     WHERE stage_id = $1::bigint AND id > $2::bigint AND state >= 8 ORDER BY id DESC LIMIT $3::int)) AS ends
ORDER BY id

-- name: view_promises
-- Index promise_campaign. $1 campaign bigint
SELECT stage_id, task_id, instances, since_at, promised_at, expected_at, latest_at
FROM promise WHERE campaign_id = $1::bigint

-- name: account_quota_put
-- $1 kind text, $2 limit bigint (NULL: not listed, no such limit)
WITH gone AS (DELETE FROM account_quota WHERE kind = $1::text AND $2::bigint IS NULL)
INSERT INTO account_quota (kind, limit_n) SELECT $1::text, $2::bigint WHERE $2::bigint IS NOT NULL
ON CONFLICT (kind) DO UPDATE SET limit_n = excluded.limit_n, read_at = clock_timestamp()

-- name: slots_correct
-- A type's row says at least what attempts, strays and idle pools hold: one that is gone or says less is somebody's mistake. It
-- would count as free what is not, and none of it could be returned. Figures that no job has are left out. Indexes attempt_open,
-- stray_open, pool_open.
WITH holds (instance_type, market, held, idle) AS (
    SELECT instance_type, market, instances, 0 FROM attempt WHERE state < 8 AND holds
    UNION ALL SELECT instance_type, market, instances, 0 FROM stray WHERE holds
    UNION ALL SELECT a.instance_type, a.market, 0, a.instances FROM pool p JOIN attempt a ON a.id = p.attempt_id
        WHERE p.ended_at IS NULL AND p.state = 'available' AND p.taken_by IS NULL),
sums AS (
    SELECT instance_type, market, sum(held)::bigint AS held, sum(idle)::bigint AS idle FROM holds
    WHERE held + idle BETWEEN 1 AND 1000000 AND market IN ('on_demand', 'spot') GROUP BY instance_type, market)
INSERT INTO slots (instance_type, market, held, warm_idle)
SELECT instance_type, market, held, idle FROM sums n
WHERE NOT EXISTS (SELECT FROM slots s WHERE s.instance_type = n.instance_type AND s.market = n.market
                  AND s.held >= n.held AND s.warm_idle >= n.idle)
ON CONFLICT (instance_type, market) DO UPDATE SET held = greatest(slots.held, excluded.held),
    warm_idle = greatest(slots.warm_idle, excluded.warm_idle)

-- name: slots_learned
-- Foreign use as learned from a refusal, an accepted job or the passing of time.
-- $1 instance type text, $2 market text, $3 others' instances bigint, $4 since bigint, $5 limit a refusal named bigint
INSERT INTO slots (instance_type, market, foreign_n, foreign_us, refused_limit)
VALUES ($1::text, $2::text, $3::bigint, $4::bigint, $5::bigint)
ON CONFLICT (instance_type, market) DO UPDATE SET foreign_n = excluded.foreign_n,
    foreign_us = excluded.foreign_us, refused_limit = excluded.refused_limit

-- name: stage_breaker
-- $1 stage bigint, $2 since attempt bigint, $3 passed boolean, $4 resumes taken integer
UPDATE stage_run SET breaker_since = $2::bigint, breaker_passed = $3::boolean, resumes_taken = $4::int
WHERE stage_id = $1::bigint

-- name: attempt_ids_past
-- Ids up to this one are never used again. $1 attempt bigint
SELECT setval(pg_get_serial_sequence('attempt', 'id'), greatest($1::bigint, nextval(pg_get_serial_sequence('attempt', 'id'))))

-- name: newest_intent
-- The commit time of the newest known intent, archived ones included. Index attempt_pkey.
SELECT x.at FROM (
    (SELECT intended_at AS at FROM attempt ORDER BY id DESC LIMIT 1)
    UNION ALL SELECT max(newest_intent) FROM archive) x
WHERE x.at IS NOT NULL ORDER BY x.at DESC LIMIT 1

-- name: void_intent
-- The oldest of the void attempts among the last 1,000 that is at most $1 (bigint, microseconds) older than the newest
-- attempt. Index attempt_pkey.
WITH recent AS MATERIALIZED (SELECT state, intended_at FROM attempt ORDER BY id DESC LIMIT 1000)
SELECT intended_at FROM recent
WHERE state = 12 AND intended_at >= (SELECT max(intended_at) FROM recent) - $1::bigint * interval '1 microsecond'
ORDER BY intended_at LIMIT 1

-- name: stage_last_attempt
-- Index attempt_stage. $1 stage bigint
SELECT coalesce(max(id), 0)::bigint FROM attempt WHERE stage_id = $1::bigint

-- name: promise_put
-- $1 stage bigint, $2 campaign bigint, $3 task bigint, $4 instances integer, $5 since timestamptz,
-- $6 promised timestamptz, $7 expected timestamptz, $8 latest timestamptz
INSERT INTO promise (stage_id, campaign_id, task_id, instances, since_at, promised_at, expected_at, latest_at)
VALUES ($1::bigint, $2::bigint, $3::bigint, $4::int, $5::timestamptz, $6::timestamptz, $7::timestamptz, $8::timestamptz)
ON CONFLICT (stage_id) DO UPDATE SET task_id = excluded.task_id, instances = excluded.instances,
    since_at = excluded.since_at, promised_at = excluded.promised_at, expected_at = excluded.expected_at,
    latest_at = excluded.latest_at, updated_at = clock_timestamp()

-- name: promise_drop
-- $1 stage bigint
DELETE FROM promise WHERE stage_id = $1::bigint

-- name: money_warned
-- The highest threshold of a cap that was reported. $1 level text, $2 ref bigint, $3 ppm bigint
INSERT INTO money (level, ref_id, warned_ppm) VALUES ($1::text, $2::bigint, $3::bigint)
ON CONFLICT (level, ref_id) DO UPDATE SET warned_ppm = excluded.warned_ppm

-- name: attempt_adopt
-- A job found at AWS under our name whose row a failed-over database lost: its task exists and waits, and the
-- number is the next one. It is recorded as an attempt of unknown outcome that holds slots and money. Returns the
-- attempt, or no row when something does not match. All attempts of the task must have ended.
-- :request is never sent, :request_sha256 is its hash; :now in microseconds, :created as the job says. It counts as
-- intended no later than what was known before: newest_intent does not move, so that a leader after this one still looks
-- for the rest of what was lost.
WITH free_task AS MATERIALIZED (
    SELECT r.id, c.project_id FROM task t
    JOIN task_run r ON r.campaign_id = t.campaign_id AND r.id = t.id
    JOIN campaign c ON c.id = t.campaign_id
    JOIN stage_run s ON s.stage_id = t.stage_id
    WHERE t.campaign_id = :campaign::bigint AND t.stage_id = :stage::bigint AND t.seq = :seq::int AND r.state = 0
      AND r.names < :n::int AND t.seq < s.taken
      AND NOT EXISTS (SELECT FROM attempt a WHERE a.id = :attempt::bigint OR a.name = :name::text) FOR UPDATE OF r),
new_money AS (
    INSERT INTO money AS m (level, ref_id, reserved_musd)
    SELECT v.level, v.ref_id, :reserve::bigint FROM free_task f CROSS JOIN LATERAL (VALUES ('global', 0::bigint),
        ('project', f.project_id), ('campaign', :campaign::bigint), ('stage', :stage::bigint)) AS v (level, ref_id)
    ON CONFLICT (level, ref_id) DO UPDATE SET reserved_musd = m.reserved_musd + excluded.reserved_musd),
new_task AS (
    UPDATE task_run r SET state = 1, cause = 0, names = :n::int, not_before_us = 0, updated_us = :now::bigint
    FROM free_task f WHERE r.campaign_id = :campaign::bigint AND r.id = f.id),
starts AS (
    DELETE FROM task_retried x USING free_task f WHERE x.task_id = f.id),
new_slots AS (
    INSERT INTO slots AS s (instance_type, market, held) SELECT :instance_type::text, :market::text, :instances::int FROM free_task
    ON CONFLICT (instance_type, market) DO UPDATE SET held = s.held + excluded.held),
new_counters AS (
    UPDATE stage_run SET waiting = waiting - 1, active = active + 1
    FROM free_task WHERE stage_id = :stage::bigint),
new_attempt AS (
    INSERT INTO attempt (id, campaign_id, stage_id, task_id, n, state, epoch, name, request, request_sha256,
        identity_hash, instance_type, instances, volume_gb, max_runtime_s, price_musd_per_hour, reserved_musd,
        open_musd, keep_alive_s, created_at, intended_at, reason, collects, market)
    OVERRIDING SYSTEM VALUE
    SELECT :attempt::bigint, :campaign::bigint, :stage::bigint, f.id, :n::int, 1, :epoch::bigint, :name::text, :request::bytea, :request_sha256::bytea,
        :identity_hash::text, :instance_type::text, :instances::int, :volume_gb::int, :max_runtime_s::bigint, :price::bigint, :reserve::bigint, :reserve::bigint, :keep_alive_s::bigint,
        :created::timestamptz, least(:created::timestamptz, (SELECT b.intended_at FROM attempt b ORDER BY b.id DESC LIMIT 1)),
        'found at AWS without a row',
        EXISTS (
            SELECT FROM campaign c JOIN stage g ON g.id = :stage::bigint CROSS JOIN LATERAL
                jsonb_array_elements(CASE jsonb_typeof(c.spec->'stages') WHEN 'array' THEN c.spec->'stages' END) x
            WHERE c.id = :campaign::bigint AND x->>'name' = g.name AND coalesce(x->'training'->>'metrics', '[]') <> '[]'),
        :market::text FROM free_task f),
new_pool AS (
    INSERT INTO pool (attempt_id, campaign_id, stage_id, fingerprint, instance_type, instances, keep_alive_s)
    SELECT :attempt::bigint, :campaign::bigint, :stage::bigint, 0, :instance_type::text, :instances::int, :keep_alive_s::bigint FROM free_task
    WHERE :keep_alive_s::bigint > 0),
new_entry AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, attempt_id, entry, from_account, to_account, amount_musd)
    SELECT :campaign::bigint, :stage::bigint, f.id, :attempt::bigint, 'reserve', 'budget', 'reserved', :reserve::bigint FROM free_task f),
new_events AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT :campaign::bigint, e.kind, e.detail FROM free_task CROSS JOIN LATERAL (VALUES
        (1, 'part.state', jsonb_build_object('campaign', :campaign::bigint, 'stage', :stage::bigint, 'from', 'waiting',
            'to', 'active', 'first_part', :seq::int, 'last_part', :seq::int, 'n', 1, 'cause', '')),
        (2, 'attempt.state', jsonb_build_object('campaign', :campaign::bigint, 'stage', :stage::bigint, 'part', :seq::int,
            'attempt', :n::int, 'attempt_id', :attempt::bigint, 'job', :name::text, 'from', '', 'to', 'unknown',
            'cause', '', 'cost_micro_usd', 0)))
        AS e (rank, kind, detail) ORDER BY e.rank)
SELECT id FROM free_task

-- name: task_by_seq
-- Index task_seq. $1 campaign bigint, $2 stage bigint, $3 part integer
SELECT id FROM task WHERE campaign_id = $1::bigint AND stage_id = $2::bigint AND seq = $3::int
