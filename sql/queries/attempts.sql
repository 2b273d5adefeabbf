-- name: attempt_ids
-- $1 how many integer
SELECT nextval(pg_get_serial_sequence('attempt', 'id')) FROM generate_series(1, $1::int)

-- name: intend_rows
-- The rows of money and slots that a batch of intents will lock. Its campaigns are locked here: who changes a cap has locked
-- its campaign, and an intent that waited for that would read the cap as it was before.
-- $1 campaigns bigint[], $2 stages bigint[], $3 instance types text[], $4 markets text[]
WITH batch AS (
    SELECT b.campaign_id, b.stage_id, c.project_id
    FROM (SELECT DISTINCT * FROM unnest($1::bigint[], $2::bigint[])) AS b (campaign_id, stage_id)
    JOIN campaign c ON c.id = b.campaign_id ORDER BY c.id FOR SHARE OF c),
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
-- the pool is ours, available and not taken. A stray may have this very name, when it was found while its campaign could
-- not be read or had ended: its job is booked as the stray's, so nothing starts while it lives, and then the number is
-- passed over. Returns the check that refused, '' when all passed; the id of the pool that this attempt will leave; what
-- earlier attempts of the task have cost or hold reserved.
-- :now in microseconds; :keep_alive_s 0: no pool; :pool_taken 0: none; :rung, :subnet: where on its ladder;
-- :slot_limit of ours, others' use taken off; :part: its seq; :fingerprint: of the pool it will leave.
WITH want AS MATERIALIZED (
    SELECT c.id, c.project_id FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id
    WHERE c.id = :campaign::bigint AND c.wanted = 'run' AND r.state = 'running' FOR SHARE OF c),
room AS MATERIALIZED (
    SELECT m.level, m.ref_id,
        :reserve::bigint <= coalesce(k.limit_musd, 9223372036854775807)
            - m.reserved_musd - m.spent_musd AS fits
    FROM want w CROSS JOIN LATERAL (VALUES (1, 'global', 0::bigint), (2, 'project', w.project_id),
        (3, 'campaign', w.id), (4, 'stage', :stage::bigint)) AS v (rank, level, ref_id)
    JOIN money m ON m.level = v.level AND m.ref_id = v.ref_id
    LEFT JOIN cap k ON k.level = v.level AND k.ref_id = v.ref_id
    ORDER BY v.rank FOR UPDATE OF m),
task_room AS MATERIALIZED (
    SELECT p.spent, :reserve::bigint <= coalesce(
            (SELECT per_task_musd FROM cap WHERE level = 'stage' AND ref_id = :stage::bigint),
            9223372036854775807) - p.spent AS fits
    FROM (SELECT coalesce(sum(cost_musd + warm_musd + open_musd), 0)::bigint AS spent
          FROM attempt WHERE task_id = :task::bigint) p),
free_task AS MATERIALIZED (
    SELECT id FROM task_run
    WHERE campaign_id = :campaign::bigint AND id = :task::bigint AND stage_id = :stage::bigint
      AND state = 0 AND names = :n::int - 1
      AND NOT EXISTS (SELECT FROM stray x WHERE x.task_id = :task::bigint AND x.holds)
      AND NOT EXISTS (SELECT FROM stray x WHERE x.name = :name::text) FOR UPDATE),
free_pool AS MATERIALIZED (
    SELECT p.id FROM pool p JOIN attempt a ON a.id = p.attempt_id
    WHERE p.id = :pool_taken::bigint AND p.state = 'available' AND p.taken_by IS NULL
      AND a.instance_type = :instance_type::text AND a.instances = :instances::int FOR UPDATE OF p),
free_slots AS MATERIALIZED (
    SELECT instance_type FROM slots
    WHERE instance_type = :instance_type::text AND market = :market::text AND :slot_limit::bigint >= 0
      AND (:pool_taken::bigint > 0 OR held + warm_idle + :instances::int <= :slot_limit::bigint) FOR UPDATE),
refused AS MATERIALIZED (
    SELECT CASE WHEN NOT EXISTS (SELECT FROM want) THEN 'campaign'
        WHEN NOT (SELECT count(*) = 4 AND bool_and(fits) FROM room) THEN 'money'
        WHEN NOT (SELECT fits FROM task_room) THEN 'part_money'
        WHEN NOT EXISTS (SELECT FROM free_task) THEN 'task'
        WHEN :pool_taken::bigint > 0 AND NOT EXISTS (SELECT FROM free_pool) THEN 'pool'
        WHEN NOT EXISTS (SELECT FROM free_slots) THEN 'slots' ELSE '' END AS why),
ok AS MATERIALIZED (SELECT FROM refused WHERE why = ''),
new_money AS (
    UPDATE money m SET reserved_musd = m.reserved_musd + :reserve::bigint
    FROM ok, room WHERE m.level = room.level AND m.ref_id = room.ref_id),
new_task AS (
    UPDATE task_run SET state = 1, cause = 0, names = :n::int, not_before_us = 0,
        updated_us = :now::bigint
    FROM ok WHERE campaign_id = :campaign::bigint AND id = :task::bigint),
passed_over AS (
    UPDATE task_run t SET names = :n::int FROM refused f, stray x
    WHERE f.why = 'task' AND x.name = :name::text AND NOT x.holds AND t.campaign_id = :campaign::bigint
      AND t.id = :task::bigint AND t.state = 0 AND t.names = :n::int - 1),
starts AS (
    DELETE FROM task_retried x USING ok WHERE x.task_id = :task::bigint),
new_slots AS (
    UPDATE slots SET held = held + :instances::int,
        warm_idle = warm_idle - CASE WHEN :pool_taken::bigint > 0 THEN :instances::int ELSE 0 END
    FROM ok WHERE instance_type = :instance_type::text AND market = :market::text),
taken_pool AS (
    UPDATE pool SET taken_by = :attempt::bigint FROM ok WHERE pool.id = :pool_taken::bigint),
new_counters AS (
    UPDATE stage_run SET waiting = waiting - 1, active = active + 1
    FROM ok WHERE stage_id = :stage::bigint),
new_attempt AS (
    INSERT INTO attempt (id, campaign_id, stage_id, task_id, n, epoch, name, request,
        request_sha256, identity_hash, instance_type, instances, volume_gb, max_runtime_s,
        price_musd_per_hour, reserved_musd, open_musd, market, keep_alive_s, instance_type_i,
        subnet_i, pool_id, collects, reason, intended_at)
    OVERRIDING SYSTEM VALUE
    SELECT :attempt::bigint, :campaign::bigint, :stage::bigint, :task::bigint, :n::int,
        :epoch::bigint, :name::text, :request::bytea, :request_sha256::bytea,
        :identity_hash::text, :instance_type::text, :instances::int, :volume_gb::int,
        :max_runtime_s::bigint, :price::bigint,
        :reserve::bigint, :reserve::bigint, :market::text, :keep_alive_s::bigint, :rung::int, :subnet::int,
        nullif(:pool_taken::bigint, 0), :collects::boolean, :reason::text, timestamptz 'epoch' + :now::bigint * interval '1 microsecond'
    FROM ok),
new_pool AS (
    INSERT INTO pool (attempt_id, campaign_id, stage_id, fingerprint, instance_type, instances,
        keep_alive_s)
    SELECT :attempt::bigint, :campaign::bigint, :stage::bigint, :fingerprint::bigint,
        :instance_type::text, :instances::int, :keep_alive_s::bigint
    FROM ok WHERE :keep_alive_s::bigint > 0 RETURNING id),
new_entry AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, attempt_id, entry, from_account,
        to_account, amount_musd)
    SELECT :campaign::bigint, :stage::bigint, :task::bigint, :attempt::bigint, 'reserve', 'budget', 'reserved',
        :reserve::bigint FROM ok),
new_events AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT :campaign::bigint, e.kind, e.detail FROM ok CROSS JOIN LATERAL (VALUES
        (1, 'part.state', jsonb_build_object('campaign', :campaign::bigint, 'stage', :stage::bigint,
            'from', 'waiting', 'to', 'active', 'first_part', :part::int, 'last_part', :part::int,
            'n', 1, 'cause', '')),
        (2, 'attempt.state', jsonb_build_object('campaign', :campaign::bigint, 'stage', :stage::bigint,
            'part', :part::int, 'attempt', :n::int, 'attempt_id', :attempt::bigint, 'job', :name::text,
            'from', '', 'to', 'intended', 'cause', '', 'cost_micro_usd', 0)))
        AS e (rank, kind, detail) ORDER BY e.rank)
SELECT why, (SELECT id FROM new_pool), (SELECT spent FROM task_room) FROM refused

-- name: record
-- One transition of an attempt and its consequences, only if it is still in state :from_state. Slots are
-- released once (attempt.holds), money is settled once (attempt.settled) by the given entries. Its warm
-- pool moves with it; a pool that it was intended on and did not take is free again. A pool has the
-- instances of the attempt that left it, whatever its own row says. Returns
-- attempts changed, tasks changed, ended without its money settled.
-- :terminal it has ended; :release its slots are free, :money_back what is reserved too; :settle its job is paid for
-- by :billable_s, :cost, :estimated and the entries (:entry_kinds .. :entry_seconds, side by side); :left_open stays
-- reserved. :task_moves to :task_to; :counts it uses up an attempt; :change_.. what retries changed, :pool_to what
-- becomes of its pool or NULL, :freed_pool (0: none) that the job which took its pool was intended on: free again;
-- :failed_as 0: as before; :artifacts NULL: as before, until it ends; :evidence is added to what is there; :phases {}: as before. Names of states and causes are for the event.
WITH old AS MATERIALIZED (
    SELECT a.*, c.project_id,
        :money_back::boolean AND NOT a.settled AS pays,
        CASE WHEN :settle::boolean AND NOT a.settled THEN :cost::bigint ELSE 0 END AS charge
    FROM attempt a JOIN campaign c ON c.id = a.campaign_id
    WHERE a.id = :attempt::bigint AND a.state = :from_state::smallint FOR UPDATE OF a),
entries AS MATERIALIZED (
    SELECT * FROM unnest(:entry_kinds::text[], :entry_from::text[], :entry_to::text[],
            :entry_amounts::bigint[], :entry_seconds::bigint[])
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
        warm_musd = m.warm_musd + :warm_cost::bigint, warm_seconds = m.warm_seconds + :warm_s::bigint
    FROM sums, old CROSS JOIN LATERAL (VALUES ('global', 0::bigint), ('project', old.project_id),
        ('campaign', old.campaign_id), ('stage', old.stage_id)) AS v (level, ref_id)
    WHERE old.pays AND m.level = v.level AND m.ref_id = v.ref_id),
new_task AS (
    UPDATE task_run r SET state = CASE WHEN :task_moves::boolean THEN :task_to::smallint ELSE r.state END,
        cause = CASE WHEN :task_moves::boolean THEN :cause::smallint ELSE r.cause END,
        attempts = r.attempts + :counts::boolean::int,
        not_before_us = CASE WHEN :task_moves::boolean THEN :not_before::bigint ELSE r.not_before_us END,
        updated_us = :now::bigint
    FROM old WHERE r.campaign_id = old.campaign_id AND r.id = old.task_id
      AND (:task_moves::boolean OR :counts::boolean) AND r.state = 1
    RETURNING r.id, r.stage_id, r.seq),
new_pool AS (
    UPDATE pool p SET state = :pool_to::text, retained_s = :retained_s::bigint, musd = :warm_cost::bigint,
        available_at = CASE WHEN :pool_to::text = 'available'
            THEN timestamptz 'epoch' + :now::bigint * interval '1 microsecond' END,
        expires_at = :expires::timestamptz,
        ended_at = CASE WHEN :pool_to::text IN ('reused', 'terminated') THEN clock_timestamp() END
    FROM old WHERE p.attempt_id = old.id AND :pool_to::text IS NOT NULL AND p.ended_at IS NULL
    RETURNING p.id, p.state),
not_taken AS (
    UPDATE pool p SET taken_by = NULL
    FROM old WHERE :release::boolean AND old.holds AND p.state = 'available'
      AND (p.id = old.pool_id AND p.taken_by = old.id
           OR p.id = :freed_pool::bigint AND p.taken_by IS NOT NULL)
    RETURNING (SELECT a.instances FROM attempt a WHERE a.id = p.attempt_id) AS instances),
new_slots AS (
    UPDATE slots s SET held = s.held - CASE WHEN :release::boolean AND old.holds THEN old.instances ELSE 0 END,
        warm_idle = s.warm_idle + coalesce((SELECT sum(instances)::int FROM not_taken), 0)
            + CASE WHEN EXISTS (SELECT FROM new_pool WHERE state = 'available') THEN old.instances ELSE 0 END
    FROM old WHERE (:release::boolean AND old.holds OR :pool_to::text = 'available')
      AND s.instance_type = old.instance_type AND s.market = old.market),
new_counters AS (
    UPDATE stage_run s SET active = s.active - 1,
        waiting = s.waiting + (:task_to::smallint = 0)::int, held = s.held + (:task_to::smallint = 2)::int,
        done = s.done + (:task_to::smallint = 3)::int, failed = s.failed + (:task_to::smallint = 4)::int,
        skipped = s.skipped + (:task_to::smallint = 5)::int,
        cancelled = s.cancelled + (:task_to::smallint = 6)::int,
        rows_in = s.rows_in + :rows_in::bigint * (:task_to::smallint = 3)::int,
        successes = s.successes + :successes::bigint * (:task_to::smallint = 3)::int,
        failed_to_download = s.failed_to_download + :failed_to_download::bigint * (:task_to::smallint = 3)::int,
        failed_to_resize = s.failed_to_resize + :failed_to_resize::bigint * (:task_to::smallint = 3)::int,
        bytes = s.bytes + :bytes::bigint * (:task_to::smallint = 3)::int,
        run_seconds = s.run_seconds + :run_seconds::bigint * (:task_to::smallint = 3)::int
    FROM new_task WHERE :task_moves::boolean AND s.stage_id = new_task.stage_id),
new_attempt AS (
    UPDATE attempt a SET state = :to_state::smallint,
        cause = CASE WHEN :cause::smallint = 0 THEN a.cause ELSE :cause::smallint END,
        reason = CASE WHEN :reason::text = '' AND a.revived THEN a.reason -- why a void one has succeeded
            ELSE coalesce(:reason::text, a.reason) END,
        arn = coalesce(:arn::text, a.arn),
        created_at = coalesce(:created::timestamptz, a.created_at),
        started_at = coalesce(:started::timestamptz, a.started_at),
        ended_at = coalesce(:ended::timestamptz, a.ended_at),
        observed_at = clock_timestamp(),
        request = CASE WHEN :terminal::boolean THEN NULL ELSE a.request END,
        holds = a.holds AND NOT :release::boolean,
        settled = a.settled OR (:money_back::boolean AND EXISTS (SELECT FROM entries)),
        open_musd = CASE WHEN old.pays AND EXISTS (SELECT FROM entries) THEN :left_open::bigint ELSE a.open_musd END,
        warm_s = CASE WHEN old.pays THEN :warm_s::bigint ELSE a.warm_s END,
        warm_musd = CASE WHEN old.pays THEN :warm_cost::bigint ELSE a.warm_musd END,
        cost_musd = a.cost_musd + old.charge,
        billable_s = CASE WHEN old.pays AND :settle::boolean THEN :billable_s::bigint ELSE a.billable_s END,
        estimated = CASE WHEN old.pays AND :settle::boolean THEN :estimated::boolean ELSE a.estimated END,
        manifest = coalesce(:manifest::jsonb, a.manifest),
        artifacts = CASE WHEN NOT :terminal::boolean THEN coalesce(:artifacts::text, a.artifacts) END,
        failed_as = CASE WHEN :failed_as::smallint = 0 THEN a.failed_as ELSE :failed_as::smallint END,
        evidence = coalesce(a.evidence || :evidence::jsonb, :evidence::jsonb, a.evidence), phases = coalesce(nullif(:phases::bigint[], '{}'), a.phases)
    FROM old WHERE a.id = old.id RETURNING a.id, :terminal::boolean AND NOT a.settled AS unsettled),
new_entries AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, attempt_id, entry, from_account,
        to_account, amount_musd, seconds, estimated, again)
    SELECT old.campaign_id, old.stage_id, old.task_id, old.id, e.entry, e.from_account,
        e.to_account, e.amount, e.seconds, e.entry = 'settle' AND :estimated::boolean, old.revived
    FROM old, entries e WHERE old.pays ORDER BY e.rank),
new_failure AS (
    INSERT INTO task_failure AS f (task_id, campaign_id, stage_id, seq, attempt_id, cause, final,
        signature, message, lost_musd)
    SELECT old.task_id, old.campaign_id, old.stage_id, new_task.seq, old.id, :cause::smallint,
        :task_to::smallint = 4, :signature::text, coalesce(:reason::text, old.reason), old.cost_musd + old.charge
    FROM old, new_task WHERE :task_moves::boolean AND :signature::text IS NOT NULL AND :cause::smallint <> 0
    ON CONFLICT (task_id) DO UPDATE SET attempt_id = excluded.attempt_id, cause = excluded.cause,
        final = excluded.final, signature = excluded.signature, message = excluded.message,
        lost_musd = f.lost_musd + excluded.lost_musd, at = clock_timestamp()),
no_failure AS (
    DELETE FROM task_failure f USING new_task
    WHERE f.task_id = new_task.id AND :task_moves::boolean AND :task_to::smallint = 3),
new_change AS (
    INSERT INTO task_change (task_id, campaign_id, instance_type_i, volume_gb, max_runtime_s,
        cause_tries, signature_hash, same)
    SELECT old.task_id, old.campaign_id, :change_rung::int, :change_volume_gb::int, :change_max_runtime_s::bigint, :change_tries::jsonb, :change_signature::bigint,
        :change_same::int
    FROM old WHERE :change_tries::jsonb IS NOT NULL
    ON CONFLICT (task_id) DO UPDATE SET instance_type_i = excluded.instance_type_i,
        volume_gb = excluded.volume_gb, max_runtime_s = excluded.max_runtime_s,
        cause_tries = excluded.cause_tries, signature_hash = excluded.signature_hash,
        same = excluded.same),
new_events AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT old.campaign_id, e.kind, e.detail
    FROM old JOIN task_run r ON r.campaign_id = old.campaign_id AND r.id = old.task_id
    CROSS JOIN LATERAL (VALUES
        (1, :from_state::smallint <> :to_state::smallint, 'attempt.state', jsonb_build_object(
            'campaign', old.campaign_id, 'stage', old.stage_id, 'part', r.seq, 'attempt', old.n,
            'attempt_id', old.id, 'job', old.name, 'from', :from_name::text, 'to', :to_name::text,
            'cause', :cause_name::text, 'cost_micro_usd', old.cost_musd + old.charge)),
        (3, :pool_to::text IS NOT NULL AND EXISTS (SELECT FROM new_pool), 'pool.state', jsonb_build_object(
            'campaign', old.campaign_id, 'stage', old.stage_id, 'attempt_id', old.id,
            'job', old.name, 'pool', (SELECT id FROM new_pool), 'to', :pool_to::text,
            'cost_micro_usd', :warm_cost::bigint)),
        (2, :task_moves::boolean AND EXISTS (SELECT FROM new_task), 'part.state', jsonb_build_object(
            'campaign', old.campaign_id, 'stage', old.stage_id, 'from', 'active', 'to', :task_to_name::text,
            'first_part', r.seq, 'last_part', r.seq, 'n', 1, 'cause', :cause_name::text)))
        AS e (rank, applies, kind, detail)
    WHERE e.applies ORDER BY e.rank)
SELECT (SELECT count(*) FROM new_attempt), (SELECT count(*) FROM new_task),
    coalesce((SELECT unsettled FROM new_attempt), false),
    (SELECT coalesce(sum(instances), 0)::bigint FROM not_taken)

-- name: record_move
-- A transition of an attempt that moves neither its task, nor money, slots or a pool: what `record` does
-- for it, at a sixth of its cost, since most records are such. Returns as `record`.
WITH moved AS (
    UPDATE attempt SET state = :to_state::smallint,
        cause = CASE WHEN :cause::smallint = 0 THEN cause ELSE :cause::smallint END,
        reason = coalesce(:reason::text, reason), arn = coalesce(:arn::text, arn),
        created_at = coalesce(:created::timestamptz, created_at),
        started_at = coalesce(:started::timestamptz, started_at),
        ended_at = coalesce(:ended::timestamptz, ended_at),
        observed_at = clock_timestamp(), manifest = coalesce(:manifest::jsonb, manifest)
    WHERE id = :attempt::bigint AND state = :from_state::smallint
    RETURNING id, campaign_id, stage_id, task_id, n, name, cost_musd),
new_event AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT m.campaign_id, 'attempt.state', jsonb_build_object(
        'campaign', m.campaign_id, 'stage', m.stage_id, 'part', r.seq, 'attempt', m.n,
        'attempt_id', m.id, 'job', m.name, 'from', :from_name::text, 'to', :to_name::text,
        'cause', :cause_name::text, 'cost_micro_usd', m.cost_musd)
    FROM moved m JOIN task_run r ON r.campaign_id = m.campaign_id AND r.id = m.task_id
    WHERE :from_state::smallint <> :to_state::smallint)
SELECT (SELECT count(*) FROM moved), 0::bigint, false, 0::bigint

-- name: attempts_unwant
-- No attempt of a campaign is wanted any more: paused or cancelled. Index attempt_open.
-- $1 campaign bigint
UPDATE attempt SET unwanted = true WHERE campaign_id = $1::bigint AND state < 8 AND NOT unwanted

-- name: attempt_hung
-- A hung attempt: stop it and retry its task for this cause. $1 attempt bigint,
-- $2 cause smallint, $3 reason text
UPDATE attempt SET unwanted = true, stop_cause = $2::smallint, reason = $3::text
WHERE id = $1::bigint AND state < 8 AND NOT unwanted
