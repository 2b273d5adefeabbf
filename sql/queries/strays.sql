-- Jobs of this installation that no attempt stands for. See orchestrator/core/leader/strays.h.

-- name: names_unknown
-- Of these jobs, those that no attempt stands for or stood for until it was archived, and those of void attempts, in
-- their order; strays are known. Indexes attempt_name_key, archived_job_pkey, stray_pkey. $1 names text[]
SELECT j.job, a.id IS NOT NULL FROM unnest($1::text[]) WITH ORDINALITY j (job, at)
LEFT JOIN attempt a ON a.name = j.job
WHERE (a.id IS NULL OR a.state = 12) AND NOT EXISTS (SELECT FROM stray x WHERE x.name = j.job)
  AND NOT EXISTS (SELECT FROM archived_job y WHERE y.name_hash = job_name_hash(j.job))
ORDER BY j.at

-- name: view_strays
-- Those that hold slots and money. Index stray_open.
SELECT name, arn, campaign_id, task_id, why, instance_type, market, instances, keep_alive_s,
    price_musd_per_hour, reserved_musd, status, created_at, started_at, stop_asked OR why = 'void'
FROM stray WHERE holds ORDER BY name

-- name: stray_put
-- A stray, with its slots and money; the number of its name is not given out again. Nothing when an attempt stands for
-- it by now. Returns how many were written. :task 0: none.
WITH fresh AS MATERIALIZED (
    SELECT WHERE NOT EXISTS (SELECT FROM attempt WHERE name = :name::text AND state <> 12)
      AND NOT EXISTS (SELECT FROM stray WHERE name = :name::text)),
new_stray AS (
    INSERT INTO stray (name, arn, campaign_id, task_id, why, instance_type, market, instances, keep_alive_s,
        price_musd_per_hour, reserved_musd, status, created_at, started_at)
    SELECT :name::text, :arn::text, :campaign::bigint, :task::bigint, :why::text, :instance_type::text, :market::text, :instances::int, :keep_alive_s::bigint, :price::bigint,
        :reserve::bigint, :status::text, :created::timestamptz, :started::timestamptz FROM fresh RETURNING name),
new_task AS (
    UPDATE task_run SET names = greatest(names, :n::int) FROM fresh
    WHERE campaign_id = :campaign::bigint AND id = :task::bigint AND names < :n::int),
new_money AS (
    INSERT INTO money AS m (level, ref_id, reserved_musd) SELECT 'global', 0, :reserve::bigint FROM fresh
    ON CONFLICT (level, ref_id) DO UPDATE SET reserved_musd = m.reserved_musd + excluded.reserved_musd),
new_slots AS (
    INSERT INTO slots AS s (instance_type, market, held) SELECT :instance_type::text, :market::text, :instances::int FROM fresh
    ON CONFLICT (instance_type, market) DO UPDATE SET held = s.held + excluded.held),
new_entry AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, stray, entry, from_account, to_account, amount_musd)
    SELECT 0, 0, 0, name, 'reserve', 'budget', 'reserved', :reserve::bigint FROM new_stray),
new_event AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT :campaign::bigint, 'alert', jsonb_build_object('campaign', :campaign::bigint, 'text',
        'job ' || name || ' runs without an attempt: see drover strays', 'about', 'stray') FROM new_stray)
SELECT count(*) FROM new_stray

-- name: stray_end
-- Its end is booked, its slots and money are free. Returns how many were open. $1 name text, $2 status text,
-- $3 started timestamptz, $4 ended timestamptz, $5 billable_s bigint, $6 cost bigint, $7 estimated boolean,
-- entries: $8 kinds text[], $9 from text[], $10 to text[], $11 amounts bigint[], $12 seconds bigint[]
WITH over AS (
    UPDATE stray SET holds = false, status = $2::text, started_at = $3::timestamptz, ended_at = $4::timestamptz,
        billable_s = $5::bigint, cost_musd = $6::bigint, estimated = $7::boolean
    WHERE name = $1::text AND holds RETURNING name, instance_type, market, instances),
entries AS MATERIALIZED (
    SELECT e.* FROM over, unnest($8::text[], $9::text[], $10::text[], $11::bigint[], $12::bigint[])
        WITH ORDINALITY AS e (entry, from_account, to_account, amount, seconds, rank)),
new_money AS (
    UPDATE money m SET reserved_musd = m.reserved_musd + x.reserved, spent_musd = m.spent_musd + x.spent,
        seconds = m.seconds + x.seconds
    FROM (SELECT coalesce(sum(CASE WHEN to_account = 'reserved' THEN amount
            WHEN from_account = 'reserved' THEN -amount END), 0)::bigint AS reserved,
        coalesce(sum(CASE WHEN to_account = 'spent' THEN amount END), 0)::bigint AS spent,
        coalesce(sum(seconds), 0)::bigint AS seconds FROM entries) x
    WHERE m.level = 'global' AND m.ref_id = 0),
new_slots AS (
    UPDATE slots s SET held = s.held - o.instances FROM over o
    WHERE s.instance_type = o.instance_type AND s.market = o.market),
new_entries AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, stray, entry, from_account, to_account, amount_musd, seconds,
        estimated)
    SELECT 0, 0, 0, $1::text, e.entry, e.from_account, e.to_account, e.amount, e.seconds,
        e.entry = 'settle' AND $7::boolean FROM entries e ORDER BY e.rank)
SELECT count(*) FROM over

-- name: stray_seen
-- For people: what a Describe says while it lives; and the price, once it is known, with what is reserved by it, once.
-- $1 name text, $2 status text, $3 started timestamptz, $4 price bigint, $5 reserved bigint
WITH old AS MATERIALIZED (
    SELECT name, CASE WHEN price_musd_per_hour = 0 AND $4::bigint > 0 THEN greatest(0, $5::bigint - reserved_musd)
        ELSE 0 END AS more
    FROM stray
    WHERE name = $1::text AND holds AND (status <> $2::text OR started_at IS DISTINCT FROM $3::timestamptz
        OR price_musd_per_hour <> $4::bigint) FOR UPDATE),
new_money AS (
    UPDATE money m SET reserved_musd = m.reserved_musd + o.more
    FROM old o WHERE o.more > 0 AND m.level = 'global' AND m.ref_id = 0),
new_entry AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, stray, entry, from_account, to_account, amount_musd)
    SELECT 0, 0, 0, o.name, 'extend', 'budget', 'reserved', o.more FROM old o WHERE o.more > 0)
UPDATE stray s SET status = $2::text, started_at = $3::timestamptz, price_musd_per_hour = $4::bigint,
    reserved_musd = s.reserved_musd + o.more
FROM old o WHERE s.name = o.name

-- name: attempt_revive
-- The job of a void attempt is alive and nothing has replaced it: the attempt goes on, of unknown outcome, with slots
-- and money held again; its log is read when its stage says what is to be found in it. Returns the attempt, or no row when its task has gone another way or a campaign is not run.
-- $1 name text, $2 identity hash text ('': the job does not say, its name is believed), $3 epoch bigint,
-- $4 reserve bigint, $5 now bigint
WITH back AS MATERIALIZED (
    SELECT a.id, a.campaign_id, a.stage_id, a.task_id, a.n, a.instance_type, a.market, a.instances, r.seq, c.project_id
    FROM attempt a JOIN campaign c ON c.id = a.campaign_id
    JOIN campaign_run cr ON cr.campaign_id = a.campaign_id AND cr.state NOT IN ('succeeded', 'failed', 'cancelled')
    JOIN stage_run s ON s.stage_id = a.stage_id AND s.state = 'running'
    JOIN task_run r ON r.campaign_id = a.campaign_id AND r.id = a.task_id
    WHERE a.name = $1::text AND a.state = 12 AND $2::text IN ('', a.identity_hash) AND NOT a.revived AND r.state = 0
      AND r.names = a.n FOR UPDATE OF a, r),
new_money AS (
    UPDATE money m SET reserved_musd = m.reserved_musd + $4::bigint
    FROM back b CROSS JOIN LATERAL (VALUES ('global', 0::bigint), ('project', b.project_id),
        ('campaign', b.campaign_id), ('stage', b.stage_id)) AS v (level, ref_id)
    WHERE m.level = v.level AND m.ref_id = v.ref_id),
new_task AS (
    UPDATE task_run r SET state = 1, cause = 0, not_before_us = 0, updated_us = $5::bigint
    FROM back b WHERE r.campaign_id = b.campaign_id AND r.id = b.task_id),
starts AS (
    DELETE FROM task_retried x USING back b WHERE x.task_id = b.task_id),
new_slots AS (
    UPDATE slots s SET held = s.held + b.instances FROM back b
    WHERE s.instance_type = b.instance_type AND s.market = b.market),
new_counters AS (
    UPDATE stage_run s SET waiting = waiting - 1, active = active + 1 FROM back b WHERE s.stage_id = b.stage_id),
new_attempt AS (
    UPDATE attempt a SET state = 1, cause = 0, epoch = $3::bigint, request = '{}', reserved_musd = $4::bigint,
        open_musd = $4::bigint, holds = true, settled = false, unwanted = false, stop_cause = 0, pool_id = NULL,
        revived = true, reason = 'given up as void, then seen alive',
        collects = EXISTS (
            SELECT FROM campaign c JOIN stage g ON g.id = b.stage_id CROSS JOIN LATERAL
                jsonb_array_elements(CASE jsonb_typeof(c.spec->'stages') WHEN 'array' THEN c.spec->'stages' END) x
            WHERE c.id = b.campaign_id AND x->>'name' = g.name AND coalesce(x->'training'->>'metrics', '[]') <> '[]')
    FROM back b WHERE a.id = b.id),
new_log AS (
    DELETE FROM metric_source m USING back b WHERE m.attempt_id = b.id),
new_pool AS (
    UPDATE pool p SET state = 'expected', ended_at = NULL, available_at = NULL, taken_by = NULL, retained_s = 0, musd = 0
    FROM back b WHERE p.attempt_id = b.id AND p.ended_at IS NOT NULL),
new_entry AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, attempt_id, entry, from_account, to_account, amount_musd, again)
    SELECT b.campaign_id, b.stage_id, b.task_id, b.id, 'reserve', 'budget', 'reserved', $4::bigint, true FROM back b),
new_events AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT b.campaign_id, e.kind, e.detail FROM back b CROSS JOIN LATERAL (VALUES
        (1, 'part.state', jsonb_build_object('campaign', b.campaign_id, 'stage', b.stage_id, 'from', 'waiting',
            'to', 'active', 'first_part', b.seq, 'last_part', b.seq, 'n', 1, 'cause', '')),
        (2, 'attempt.state', jsonb_build_object('campaign', b.campaign_id, 'stage', b.stage_id, 'part', b.seq,
            'attempt', b.n, 'attempt_id', b.id, 'job', $1::text, 'from', 'void', 'to', 'unknown',
            'cause', '', 'cost_micro_usd', 0)))
        AS e (rank, kind, detail) ORDER BY e.rank)
SELECT id FROM back

-- name: attempt_recast
-- The job under the name of a live attempt is ours, of an intent that was lost: the attempt is that job.
-- What is reserved stays; a dearer job is booked with an overrun. The bytes of its own intent are never sent any more.
-- The pool that it was intended on, which may be of another type, stands alone again.
-- Returns how many. The row of slots exists.
-- $1 attempt bigint, $2 identity hash text, $3 instance type text, $4 market text, $5 instances integer,
-- $6 volume_gb integer, $7 max_runtime_s bigint, $8 keep_alive_s bigint, $9 price bigint
WITH old AS MATERIALIZED (
    SELECT id, campaign_id, stage_id, instance_type, market, instances, pool_id FROM attempt
    WHERE id = $1::bigint AND state BETWEEN 0 AND 6 AND holds FOR UPDATE),
not_taken AS (
    UPDATE pool p SET taken_by = NULL FROM old, attempt a
    WHERE p.id = old.pool_id AND p.taken_by = old.id AND p.state = 'available' AND a.id = p.attempt_id
    RETURNING a.instance_type, a.market, a.instances),
moves AS MATERIALIZED (
    SELECT instance_type, market, sum(held)::bigint AS held, sum(idle)::bigint AS idle
    FROM (SELECT instance_type, market, -instances AS held, 0 AS idle FROM old
          UNION ALL SELECT $3::text, $4::text, $5::int, 0 FROM old
          UNION ALL SELECT instance_type, market, 0, instances FROM not_taken) x GROUP BY 1, 2),
new_slots AS (
    UPDATE slots s SET held = s.held + m.held, warm_idle = s.warm_idle + m.idle
    FROM moves m WHERE s.instance_type = m.instance_type AND s.market = m.market),
new_pool AS (
    INSERT INTO pool (attempt_id, campaign_id, stage_id, fingerprint, instance_type, instances, keep_alive_s)
    SELECT id, campaign_id, stage_id, 0, $3::text, $5::int, $8::bigint FROM old WHERE $8::bigint > 0
    ON CONFLICT (attempt_id) DO UPDATE SET instance_type = excluded.instance_type, instances = excluded.instances,
        keep_alive_s = excluded.keep_alive_s),
new_attempt AS (
    UPDATE attempt a SET request = '{}', identity_hash = $2::text, instance_type = $3::text, market = $4::text, instances = $5::int,
        volume_gb = $6::int, max_runtime_s = $7::bigint, keep_alive_s = $8::bigint, price_musd_per_hour = $9::bigint,
        pool_id = NULL, reason = 'found at AWS under its name, from a row that was lost'
    FROM old WHERE a.id = old.id RETURNING a.id)
SELECT count(*) FROM new_attempt

-- name: attempt_priced
-- The price of an attempt that was made of its job before one was known, and what is reserved by it, on every level. A
-- recast may take the price back once: what the next one reserves more is a second line of its own (ledger_once).
-- Returns how many: none when it has a price or has ended. $1 attempt bigint, $2 price bigint, $3 more reserved bigint
WITH old AS MATERIALIZED (
    SELECT a.id, a.campaign_id, a.stage_id, a.task_id, c.project_id FROM attempt a JOIN campaign c ON c.id = a.campaign_id
    WHERE a.id = $1::bigint AND a.holds AND NOT a.settled AND a.price_musd_per_hour = 0 FOR UPDATE OF a),
new_money AS (
    UPDATE money m SET reserved_musd = m.reserved_musd + $3::bigint
    FROM old o CROSS JOIN LATERAL (VALUES ('global', 0::bigint), ('project', o.project_id),
        ('campaign', o.campaign_id), ('stage', o.stage_id)) AS v (level, ref_id)
    WHERE $3::bigint > 0 AND m.level = v.level AND m.ref_id = v.ref_id),
new_entry AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, attempt_id, entry, from_account, to_account, amount_musd, again)
    SELECT o.campaign_id, o.stage_id, o.task_id, o.id, 'extend', 'budget', 'reserved', $3::bigint,
        EXISTS (SELECT FROM ledger l WHERE l.attempt_id = o.id AND l.entry = 'extend') FROM old o
    WHERE $3::bigint > 0),
new_attempt AS (
    UPDATE attempt a SET price_musd_per_hour = $2::bigint, reserved_musd = a.reserved_musd + $3::bigint,
        open_musd = a.open_musd + $3::bigint
    FROM old o WHERE a.id = o.id RETURNING a.id)
SELECT count(*) FROM new_attempt

-- name: slots_row
-- $1 instance type text, $2 market text
INSERT INTO slots (instance_type, market) VALUES ($1::text, $2::text) ON CONFLICT DO NOTHING
