-- name: attempt_ids
-- $1 how many integer
SELECT nextval(pg_get_serial_sequence('attempt', 'id')) FROM generate_series(1, $1::int)

-- name: intend_rows
-- The rows of money and slots that a batch of intents will lock.
-- $1 campaigns bigint[], $2 stages bigint[], $3 instance types text[], $4 markets text[]
WITH batch AS (
    SELECT b.campaign_id, b.stage_id, c.project_id
    FROM (SELECT DISTINCT * FROM unnest($1::bigint[], $2::bigint[])) AS b (campaign_id, stage_id)
    JOIN campaign c ON c.id = b.campaign_id),
levels AS (
    SELECT DISTINCT v.level, v.ref_id FROM batch b
    CROSS JOIN LATERAL (VALUES ('global', 0::bigint), ('project', b.project_id),
        ('campaign', b.campaign_id), ('stage', b.stage_id)) AS v (level, ref_id)),
new_slots AS (
    INSERT INTO slots (instance_type, market)
    SELECT DISTINCT * FROM unnest($3::text[], $4::text[]) AS t (instance_type, market)
    ON CONFLICT DO NOTHING)
INSERT INTO money (level, ref_id) SELECT level, ref_id FROM levels ON CONFLICT DO NOTHING

-- name: intend
-- One intent, all or nothing: every check is repeated here, on locked rows. Locks in the order
-- campaign, money by level, task_run, pool, slots. Instances of a warm pool are moved, not added:
-- the pool is ours, available and not taken. Returns the check that refused, '' when all passed; the
-- id of the pool that this attempt will leave.
-- $1 campaign bigint, $2 stage bigint, $3 task bigint, $4 n integer, $5 attempt id bigint,
-- $6 job name text, $7 request bytea, $8 its sha256 bytea, $9 identity hash text,
-- $10 instance type text, $11 instances integer, $12 volume_gb integer, $13 max_runtime_s bigint,
-- $14 price bigint, $15 reserve bigint, $16 slot limit bigint, $17 epoch bigint, $18 now bigint,
-- $19 part integer, $20 market text, $21 keep_alive_s bigint (0: no pool), $22 rung integer,
-- $23 subnet integer, $24 pool taken bigint (0: none), $25 fingerprint bigint
WITH want AS MATERIALIZED (
    SELECT c.id, c.project_id FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id
    WHERE c.id = $1::bigint AND c.wanted = 'run' AND r.state = 'running' FOR SHARE OF c),
room AS MATERIALIZED (
    SELECT m.level, m.ref_id,
        $15::bigint <= coalesce(k.limit_musd, 9223372036854775807)
            - m.reserved_musd - m.spent_musd AS fits
    FROM want w CROSS JOIN LATERAL (VALUES (1, 'global', 0::bigint), (2, 'project', w.project_id),
        (3, 'campaign', w.id), (4, 'stage', $2::bigint)) AS v (rank, level, ref_id)
    JOIN money m ON m.level = v.level AND m.ref_id = v.ref_id
    LEFT JOIN cap k ON k.level = v.level AND k.ref_id = v.ref_id
    ORDER BY v.rank FOR UPDATE OF m),
task_room AS MATERIALIZED (
    SELECT $15::bigint <= coalesce(
            (SELECT per_task_musd FROM cap WHERE level = 'stage' AND ref_id = $2::bigint),
            9223372036854775807)
        - (SELECT coalesce(sum(cost_musd + warm_musd + open_musd), 0)::bigint
           FROM attempt WHERE task_id = $3::bigint) AS fits),
free_task AS MATERIALIZED (
    SELECT id FROM task_run
    WHERE campaign_id = $1::bigint AND id = $3::bigint AND stage_id = $2::bigint
      AND state = 0 AND names = $4::int - 1
      AND NOT EXISTS (SELECT FROM stray x WHERE x.task_id = $3::bigint AND x.holds) FOR UPDATE),
free_pool AS MATERIALIZED (
    SELECT id FROM pool
    WHERE id = $24::bigint AND state = 'available' AND taken_by IS NULL
      AND instance_type = $10::text AND instances = $11::int FOR UPDATE),
free_slots AS MATERIALIZED (
    SELECT instance_type FROM slots
    WHERE instance_type = $10::text AND market = $20::text AND $16::bigint >= 0
      AND ($24::bigint > 0 OR held + warm_idle + $11::int <= $16::bigint) FOR UPDATE),
refused AS MATERIALIZED (
    SELECT CASE WHEN NOT EXISTS (SELECT FROM want) THEN 'campaign'
        WHEN NOT (SELECT count(*) = 4 AND bool_and(fits) FROM room)
          OR NOT (SELECT fits FROM task_room) THEN 'money'
        WHEN NOT EXISTS (SELECT FROM free_task) THEN 'task'
        WHEN $24::bigint > 0 AND NOT EXISTS (SELECT FROM free_pool) THEN 'pool'
        WHEN NOT EXISTS (SELECT FROM free_slots) THEN 'slots' ELSE '' END AS why),
ok AS MATERIALIZED (SELECT FROM refused WHERE why = ''),
new_money AS (
    UPDATE money m SET reserved_musd = m.reserved_musd + $15::bigint
    FROM ok, room WHERE m.level = room.level AND m.ref_id = room.ref_id),
new_task AS (
    UPDATE task_run SET state = 1, cause = 0, names = $4::int, not_before_us = 0,
        updated_us = $18::bigint
    FROM ok WHERE campaign_id = $1::bigint AND id = $3::bigint),
new_slots AS (
    UPDATE slots SET held = held + $11::int,
        warm_idle = warm_idle - CASE WHEN $24::bigint > 0 THEN $11::int ELSE 0 END
    FROM ok WHERE instance_type = $10::text AND market = $20::text),
taken_pool AS (
    UPDATE pool SET taken_by = $5::bigint FROM ok WHERE pool.id = $24::bigint),
new_counters AS (
    UPDATE stage_run SET waiting = waiting - 1, active = active + 1
    FROM ok WHERE stage_id = $2::bigint),
new_attempt AS (
    INSERT INTO attempt (id, campaign_id, stage_id, task_id, n, epoch, name, request,
        request_sha256, identity_hash, instance_type, instances, volume_gb, max_runtime_s,
        price_musd_per_hour, reserved_musd, open_musd, market, keep_alive_s, instance_type_i,
        subnet_i, pool_id, intended_at)
    OVERRIDING SYSTEM VALUE
    SELECT $5::bigint, $1::bigint, $2::bigint, $3::bigint, $4::int, $17::bigint, $6::text,
        $7::bytea, $8::bytea, $9::text, $10::text, $11::int, $12::int, $13::bigint, $14::bigint,
        $15::bigint, $15::bigint, $20::text, $21::bigint, $22::int, $23::int,
        nullif($24::bigint, 0), timestamptz 'epoch' + $18::bigint * interval '1 microsecond'
    FROM ok),
new_pool AS (
    INSERT INTO pool (attempt_id, campaign_id, stage_id, fingerprint, instance_type, instances,
        keep_alive_s)
    SELECT $5::bigint, $1::bigint, $2::bigint, $25::bigint, $10::text, $11::int, $21::bigint
    FROM ok WHERE $21::bigint > 0 RETURNING id),
new_entry AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, attempt_id, entry, from_account,
        to_account, amount_musd)
    SELECT $1::bigint, $2::bigint, $3::bigint, $5::bigint, 'reserve', 'budget', 'reserved',
        $15::bigint FROM ok),
new_events AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT $1::bigint, e.kind, e.detail FROM ok CROSS JOIN LATERAL (VALUES
        (1, 'part.state', jsonb_build_object('campaign', $1::bigint, 'stage', $2::bigint,
            'from', 'waiting', 'to', 'active', 'first_part', $19::int, 'last_part', $19::int,
            'n', 1, 'cause', '')),
        (2, 'attempt.state', jsonb_build_object('campaign', $1::bigint, 'stage', $2::bigint,
            'part', $19::int, 'attempt', $4::int, 'attempt_id', $5::bigint, 'job', $6::text,
            'from', '', 'to', 'intended', 'cause', '', 'cost_micro_usd', 0)))
        AS e (rank, kind, detail) ORDER BY e.rank)
SELECT why, (SELECT id FROM new_pool) FROM refused

-- name: record
-- One transition of an attempt and its consequences, only if it is still in state $2. Slots are
-- released once (attempt.holds), money is settled once (attempt.settled) by the given entries. Its warm
-- pool moves with it; a pool that it was intended on and did not take is free again. Returns
-- attempts changed, tasks changed, ended without its money settled.
-- $1 attempt bigint, $2 from smallint, $3 to smallint, $4 from name text, $5 to name text,
-- $6 cause smallint, $7 cause name text, $8 reason text, $9 arn text, $10 created timestamptz,
-- $11 started timestamptz, $12 ended timestamptz, $13 terminal boolean, $14 slots back boolean,
-- $15 money back boolean, $16 settle boolean, $17 billable_s bigint, $18 cost bigint,
-- $19 estimated boolean, $20 manifest jsonb, $21 task moves boolean, $22 task to smallint,
-- $23 task to name text, $24 counts boolean, $25 not before bigint, $26 now bigint,
-- $27 rows_in bigint, $28 successes bigint, $29 failed_to_download bigint,
-- $30 failed_to_resize bigint, $31 bytes bigint, $32 run_seconds bigint, $33 signature text,
-- $34 change: rung integer, $35 volume_gb integer, $36 max_runtime_s bigint, $37 tries jsonb,
-- entries: $38 kinds text[], $39 from text[], $40 to text[], $41 amounts bigint[],
-- $42 seconds bigint[]; $43 left open bigint, $44 its pool moves to text or NULL,
-- $45 retained_s bigint, $46 expires timestamptz, $47 idle instance-seconds bigint,
-- $48 their cost bigint, $49 change: signature bigint, $50 failures with it integer,
-- $51 another pool bigint (0: none) that the job which took its pool was intended on: free again,
-- $52 failed as smallint (0: as before), $53 evidence jsonb
WITH old AS MATERIALIZED (
    SELECT a.*, c.project_id,
        $15::boolean AND NOT a.settled AS pays,
        CASE WHEN $16::boolean AND NOT a.settled THEN $18::bigint ELSE 0 END AS charge
    FROM attempt a JOIN campaign c ON c.id = a.campaign_id
    WHERE a.id = $1::bigint AND a.state = $2::smallint FOR UPDATE OF a),
entries AS MATERIALIZED (
    SELECT * FROM unnest($38::text[], $39::text[], $40::text[], $41::bigint[], $42::bigint[])
        WITH ORDINALITY AS e (entry, from_account, to_account, amount, seconds, rank)),
sums AS MATERIALIZED (
    SELECT coalesce(sum(CASE WHEN to_account = 'reserved' THEN amount
            WHEN from_account = 'reserved' THEN -amount END), 0)::bigint AS reserved,
        coalesce(sum(CASE WHEN to_account = 'spent' THEN amount END), 0)::bigint AS spent,
        coalesce(sum(seconds), 0)::bigint AS seconds
    FROM entries),
new_money AS (
    UPDATE money m SET reserved_musd = m.reserved_musd + sums.reserved,
        spent_musd = m.spent_musd + sums.spent, seconds = m.seconds + sums.seconds,
        warm_musd = m.warm_musd + $48::bigint, warm_seconds = m.warm_seconds + $47::bigint
    FROM sums, old CROSS JOIN LATERAL (VALUES ('global', 0::bigint), ('project', old.project_id),
        ('campaign', old.campaign_id), ('stage', old.stage_id)) AS v (level, ref_id)
    WHERE old.pays AND m.level = v.level AND m.ref_id = v.ref_id),
new_task AS (
    UPDATE task_run r SET state = CASE WHEN $21::boolean THEN $22::smallint ELSE r.state END,
        cause = CASE WHEN $21::boolean THEN $6::smallint ELSE r.cause END,
        attempts = r.attempts + $24::boolean::int,
        not_before_us = CASE WHEN $21::boolean THEN $25::bigint ELSE r.not_before_us END,
        updated_us = $26::bigint
    FROM old WHERE r.campaign_id = old.campaign_id AND r.id = old.task_id
      AND ($21::boolean OR $24::boolean) AND r.state = 1
    RETURNING r.id, r.stage_id, r.seq),
new_pool AS (
    UPDATE pool p SET state = $44::text, retained_s = $45::bigint, musd = $48::bigint,
        available_at = CASE WHEN $44::text = 'available'
            THEN timestamptz 'epoch' + $26::bigint * interval '1 microsecond' END,
        expires_at = $46::timestamptz,
        ended_at = CASE WHEN $44::text IN ('reused', 'terminated') THEN clock_timestamp() END
    FROM old WHERE p.attempt_id = old.id AND $44::text IS NOT NULL AND p.ended_at IS NULL
    RETURNING p.id, p.state, p.instances),
not_taken AS (
    UPDATE pool p SET taken_by = NULL
    FROM old WHERE $14::boolean AND old.holds AND p.state = 'available'
      AND (p.id = old.pool_id AND p.taken_by = old.id
           OR p.id = $51::bigint AND p.taken_by IS NOT NULL)
    RETURNING p.instances),
new_slots AS (
    UPDATE slots s SET held = s.held - CASE WHEN $14::boolean AND old.holds THEN old.instances ELSE 0 END,
        warm_idle = s.warm_idle + coalesce((SELECT sum(instances)::int FROM not_taken), 0)
            + coalesce((SELECT instances FROM new_pool WHERE state = 'available'), 0)
    FROM old WHERE ($14::boolean AND old.holds OR $44::text = 'available')
      AND s.instance_type = old.instance_type AND s.market = old.market),
new_counters AS (
    UPDATE stage_run s SET active = s.active - 1,
        waiting = s.waiting + ($22::smallint = 0)::int, held = s.held + ($22::smallint = 2)::int,
        done = s.done + ($22::smallint = 3)::int, failed = s.failed + ($22::smallint = 4)::int,
        skipped = s.skipped + ($22::smallint = 5)::int,
        cancelled = s.cancelled + ($22::smallint = 6)::int,
        rows_in = s.rows_in + $27::bigint * ($22::smallint = 3)::int,
        successes = s.successes + $28::bigint * ($22::smallint = 3)::int,
        failed_to_download = s.failed_to_download + $29::bigint * ($22::smallint = 3)::int,
        failed_to_resize = s.failed_to_resize + $30::bigint * ($22::smallint = 3)::int,
        bytes = s.bytes + $31::bigint * ($22::smallint = 3)::int,
        run_seconds = s.run_seconds + $32::bigint * ($22::smallint = 3)::int
    FROM new_task WHERE $21::boolean AND s.stage_id = new_task.stage_id),
new_attempt AS (
    UPDATE attempt a SET state = $3::smallint,
        cause = CASE WHEN $6::smallint = 0 THEN a.cause ELSE $6::smallint END,
        reason = coalesce($8::text, a.reason), arn = coalesce($9::text, a.arn),
        created_at = coalesce($10::timestamptz, a.created_at),
        started_at = coalesce($11::timestamptz, a.started_at),
        ended_at = coalesce($12::timestamptz, a.ended_at),
        observed_at = clock_timestamp(),
        request = CASE WHEN $13::boolean THEN NULL ELSE a.request END,
        holds = a.holds AND NOT $14::boolean,
        settled = a.settled OR ($15::boolean AND EXISTS (SELECT FROM entries)),
        open_musd = CASE WHEN old.pays AND EXISTS (SELECT FROM entries) THEN $43::bigint ELSE a.open_musd END,
        warm_s = CASE WHEN old.pays THEN $47::bigint ELSE a.warm_s END,
        warm_musd = CASE WHEN old.pays THEN $48::bigint ELSE a.warm_musd END,
        cost_musd = a.cost_musd + old.charge,
        billable_s = CASE WHEN old.pays AND $16::boolean THEN $17::bigint ELSE a.billable_s END,
        estimated = CASE WHEN old.pays AND $16::boolean THEN $19::boolean ELSE a.estimated END,
        manifest = coalesce($20::jsonb, a.manifest),
        failed_as = CASE WHEN $52::smallint = 0 THEN a.failed_as ELSE $52::smallint END,
        evidence = coalesce($53::jsonb, a.evidence)
    FROM old WHERE a.id = old.id RETURNING a.id, $13::boolean AND NOT a.settled AS unsettled),
new_entries AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, attempt_id, entry, from_account,
        to_account, amount_musd, seconds, estimated, again)
    SELECT old.campaign_id, old.stage_id, old.task_id, old.id, e.entry, e.from_account,
        e.to_account, e.amount, e.seconds, e.entry = 'settle' AND $19::boolean, old.revived
    FROM old, entries e WHERE old.pays ORDER BY e.rank),
new_failure AS (
    INSERT INTO task_failure AS f (task_id, campaign_id, stage_id, seq, attempt_id, cause, final,
        signature, message, lost_musd)
    SELECT old.task_id, old.campaign_id, old.stage_id, new_task.seq, old.id, $6::smallint,
        $22::smallint = 4, $33::text, coalesce($8::text, old.reason), old.cost_musd + old.charge
    FROM old, new_task WHERE $21::boolean AND $33::text IS NOT NULL AND $6::smallint <> 0
    ON CONFLICT (task_id) DO UPDATE SET attempt_id = excluded.attempt_id, cause = excluded.cause,
        final = excluded.final, signature = excluded.signature, message = excluded.message,
        lost_musd = f.lost_musd + excluded.lost_musd, at = clock_timestamp()),
no_failure AS (
    DELETE FROM task_failure f USING new_task
    WHERE f.task_id = new_task.id AND $21::boolean AND $22::smallint = 3),
new_change AS (
    INSERT INTO task_change (task_id, campaign_id, instance_type_i, volume_gb, max_runtime_s,
        cause_tries, signature_hash, same)
    SELECT old.task_id, old.campaign_id, $34::int, $35::int, $36::bigint, $37::jsonb, $49::bigint,
        $50::int
    FROM old WHERE $37::jsonb IS NOT NULL
    ON CONFLICT (task_id) DO UPDATE SET instance_type_i = excluded.instance_type_i,
        volume_gb = excluded.volume_gb, max_runtime_s = excluded.max_runtime_s,
        cause_tries = excluded.cause_tries, signature_hash = excluded.signature_hash,
        same = excluded.same),
new_events AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT old.campaign_id, e.kind, e.detail
    FROM old JOIN task_run r ON r.campaign_id = old.campaign_id AND r.id = old.task_id
    CROSS JOIN LATERAL (VALUES
        (1, $2::smallint <> $3::smallint, 'attempt.state', jsonb_build_object(
            'campaign', old.campaign_id, 'stage', old.stage_id, 'part', r.seq, 'attempt', old.n,
            'attempt_id', old.id, 'job', old.name, 'from', $4::text, 'to', $5::text,
            'cause', $7::text, 'cost_micro_usd', old.cost_musd + old.charge)),
        (3, $44::text IS NOT NULL AND EXISTS (SELECT FROM new_pool), 'pool.state', jsonb_build_object(
            'campaign', old.campaign_id, 'stage', old.stage_id, 'attempt_id', old.id,
            'job', old.name, 'pool', (SELECT id FROM new_pool), 'to', $44::text,
            'cost_micro_usd', $48::bigint)),
        (2, $21::boolean AND EXISTS (SELECT FROM new_task), 'part.state', jsonb_build_object(
            'campaign', old.campaign_id, 'stage', old.stage_id, 'from', 'active', 'to', $23::text,
            'first_part', r.seq, 'last_part', r.seq, 'n', 1, 'cause', $7::text)))
        AS e (rank, applies, kind, detail)
    WHERE e.applies ORDER BY e.rank)
SELECT (SELECT count(*) FROM new_attempt), (SELECT count(*) FROM new_task),
    coalesce((SELECT unsettled FROM new_attempt), false)

-- name: record_move
-- A transition of an attempt that moves neither its task, nor money, slots or a pool: what `record` does
-- for it, at a sixth of its cost, since most records are such. Returns as `record`.
-- $1 attempt bigint, $2 from smallint, $3 to smallint, $4 from name text, $5 to name text,
-- $6 cause smallint, $7 cause name text, $8 reason text, $9 arn text, $10 created timestamptz,
-- $11 started timestamptz, $12 ended timestamptz, $13 manifest jsonb
WITH moved AS (
    UPDATE attempt SET state = $3::smallint,
        cause = CASE WHEN $6::smallint = 0 THEN cause ELSE $6::smallint END,
        reason = coalesce($8::text, reason), arn = coalesce($9::text, arn),
        created_at = coalesce($10::timestamptz, created_at),
        started_at = coalesce($11::timestamptz, started_at),
        ended_at = coalesce($12::timestamptz, ended_at),
        observed_at = clock_timestamp(), manifest = coalesce($13::jsonb, manifest)
    WHERE id = $1::bigint AND state = $2::smallint
    RETURNING id, campaign_id, stage_id, task_id, n, name, cost_musd),
new_event AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT m.campaign_id, 'attempt.state', jsonb_build_object(
        'campaign', m.campaign_id, 'stage', m.stage_id, 'part', r.seq, 'attempt', m.n,
        'attempt_id', m.id, 'job', m.name, 'from', $4::text, 'to', $5::text,
        'cause', $7::text, 'cost_micro_usd', m.cost_musd)
    FROM moved m JOIN task_run r ON r.campaign_id = m.campaign_id AND r.id = m.task_id
    WHERE $2::smallint <> $3::smallint)
SELECT (SELECT count(*) FROM moved), 0::bigint, false

-- name: attempts_unwant
-- No attempt of a campaign is wanted any more: paused or cancelled. Index attempt_open.
-- $1 campaign bigint
UPDATE attempt SET unwanted = true WHERE campaign_id = $1::bigint AND state < 8 AND NOT unwanted

-- name: attempt_hung
-- A hung attempt: stop it and retry its task for this cause. $1 attempt bigint,
-- $2 cause smallint, $3 reason text
UPDATE attempt SET unwanted = true, stop_cause = $2::smallint, reason = $3::text
WHERE id = $1::bigint AND state < 8 AND NOT unwanted
