-- name: tasks_move_run
-- The hot path: move tasks first..last from one state to another, with their counters and their event.
-- Primary key of task_run; HOT. Returns the number moved.
-- $1 campaign bigint, $2 stage bigint, $3 first bigint, $4 last bigint, $5 from smallint,
-- $6 to smallint, $7 cause smallint, $8 now bigint, $9 from name text, $10 to name text,
-- $11 cause name text
WITH t AS (
    UPDATE task_run SET state = $6::smallint, cause = $7::smallint, updated_us = $8::bigint
    WHERE campaign_id = $1::bigint AND id BETWEEN $3::bigint AND $4::bigint
      AND state = $5::smallint AND stage_id = $2::bigint
    RETURNING 1),
m AS MATERIALIZED (SELECT count(*) AS n FROM t),
s AS (
    UPDATE stage_run SET
        waiting = waiting + m.n * (($6::smallint = 0)::int - ($5::smallint = 0)::int),
        active = active + m.n * (($6::smallint = 1)::int - ($5::smallint = 1)::int),
        held = held + m.n * (($6::smallint = 2)::int - ($5::smallint = 2)::int),
        done = done + m.n * (($6::smallint = 3)::int - ($5::smallint = 3)::int),
        failed = failed + m.n * (($6::smallint = 4)::int - ($5::smallint = 4)::int),
        skipped = skipped + m.n * (($6::smallint = 5)::int - ($5::smallint = 5)::int),
        cancelled = cancelled + m.n * (($6::smallint = 6)::int - ($5::smallint = 6)::int)
    FROM m WHERE stage_id = $2::bigint AND m.n > 0),
e AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT $1::bigint, 'part.state', jsonb_build_object('campaign', $1::bigint,
        'stage', $2::bigint, 'from', $9::text, 'to', $10::text, 'first_part',
        (SELECT seq FROM task_run WHERE campaign_id = $1::bigint AND id = $3::bigint),
        'last_part', (SELECT seq FROM task_run WHERE campaign_id = $1::bigint AND id = $4::bigint),
        'n', m.n, 'cause', $11::text)
    FROM m WHERE m.n > 0)
SELECT n FROM m

-- name: tasks_move
-- The same for a list of tasks, returning those that moved, in order; tasks_moved must follow.
-- $1 campaign bigint, $2 stage bigint, $3 ids bigint[], $4 from smallint, $5 to smallint,
-- $6 cause smallint, $7 now bigint
WITH t AS (
    UPDATE task_run SET state = $5::smallint, cause = $6::smallint, updated_us = $7::bigint
    WHERE campaign_id = $1::bigint AND id = ANY ($3::bigint[]) AND state = $4::smallint
      AND stage_id = $2::bigint
    RETURNING id)
SELECT id FROM t ORDER BY id

-- name: tasks_moved
-- The counters and the one event of a moved batch.
-- $1 stage bigint, $2 from smallint, $3 to smallint, $4 n bigint, $5 from name text,
-- $6 to name text, $7 first task bigint, $8 last task bigint, $9 cause name text, $10 by an undo? boolean
WITH s AS (
    UPDATE stage_run SET
        waiting = waiting + $4::bigint * (($3::smallint = 0)::int - ($2::smallint = 0)::int),
        active = active + $4::bigint * (($3::smallint = 1)::int - ($2::smallint = 1)::int),
        held = held + $4::bigint * (($3::smallint = 2)::int - ($2::smallint = 2)::int),
        done = done + $4::bigint * (($3::smallint = 3)::int - ($2::smallint = 3)::int),
        failed = failed + $4::bigint * (($3::smallint = 4)::int - ($2::smallint = 4)::int),
        skipped = skipped + $4::bigint * (($3::smallint = 5)::int - ($2::smallint = 5)::int),
        cancelled = cancelled + $4::bigint * (($3::smallint = 6)::int - ($2::smallint = 6)::int)
    WHERE stage_id = $1::bigint RETURNING campaign_id, stage_id)
INSERT INTO event (campaign_id, kind, detail)
SELECT campaign_id, 'part.state', jsonb_build_object('campaign', campaign_id, 'stage', stage_id,
    'from', $5::text, 'to', $6::text,
    'first_part', (SELECT seq FROM task_run t WHERE t.campaign_id = s.campaign_id AND id = $7::bigint),
    'last_part', (SELECT seq FROM task_run t WHERE t.campaign_id = s.campaign_id AND id = $8::bigint),
    'n', $4::bigint, 'cause', $9::text) || CASE WHEN $10::boolean THEN '{"undone": true}'::jsonb ELSE '{}' END
FROM s

-- name: tasks_fail
-- waiting -> failed without an attempt, each with its final failure; an earlier one gives what it had lost; tasks_moved
-- must follow. Returns those that moved, in order. $1 campaign bigint, $2 stage bigint, $3 ids bigint[], $4 cause smallint,
-- $5 message text, $6 now bigint
WITH t AS (
    UPDATE task_run SET state = 4, cause = $4::smallint, not_before_us = 0, updated_us = $6::bigint
    WHERE campaign_id = $1::bigint AND id = ANY ($3::bigint[]) AND state = 0 AND stage_id = $2::bigint
    RETURNING id, seq),
failures AS (
    INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, cause, final, signature, message)
    SELECT id, $1::bigint, $2::bigint, seq, $4::smallint, true, $5::text, $5::text FROM t
    ON CONFLICT (task_id) DO UPDATE SET cause = excluded.cause, final = true, signature = excluded.signature,
        message = excluded.message, at = clock_timestamp())
SELECT id FROM t ORDER BY id

-- name: tasks_failures_drop
-- $1 ids bigint[]
DELETE FROM task_failure WHERE task_id = ANY ($1::bigint[])

-- name: tasks_retried_drop
-- $1 ids bigint[]
DELETE FROM task_retried WHERE task_id = ANY ($1::bigint[])

-- name: tasks_retry_keep
-- Before tasks_retry: how they have failed, for an undo. Primary keys, a row at a time (OFFSET 0): a join of the two arrays
-- took more than a second for 1,000 parts. $1 campaign bigint, $2 stage bigint, $3 ids bigint[],
-- $4 operation bigint
INSERT INTO task_retried (task_id, campaign_id, stage_id, operation_id, names, attempts, attempt_id, cause, signature,
    message, lost_musd, at, changed, instance_type_i, volume_gb, max_runtime_s, cause_tries, signature_hash, same)
SELECT r.id, r.campaign_id, r.stage_id, $4::bigint, r.names, r.attempts, f.attempt_id, f.cause, f.signature,
    f.message, f.lost_musd, f.at, h.task_id IS NOT NULL, coalesce(h.instance_type_i, 0), coalesce(h.volume_gb, 0),
    coalesce(h.max_runtime_s, 0), coalesce(h.cause_tries, '{}'), coalesce(h.signature_hash, 0), coalesce(h.same, 0)
FROM task_failure f
CROSS JOIN LATERAL (SELECT * FROM task_run t WHERE t.campaign_id = $1::bigint AND t.id = f.task_id OFFSET 0) r
LEFT JOIN LATERAL (SELECT * FROM task_change c WHERE c.task_id = f.task_id OFFSET 0) h ON true
WHERE f.task_id = ANY ($3::bigint[]) AND f.final AND r.state = 4 AND r.stage_id = $2::bigint
ON CONFLICT (task_id) DO UPDATE SET operation_id = excluded.operation_id, names = excluded.names,
    attempts = excluded.attempts, attempt_id = excluded.attempt_id, cause = excluded.cause,
    signature = excluded.signature, message = excluded.message, lost_musd = excluded.lost_musd, at = excluded.at,
    changed = excluded.changed, instance_type_i = excluded.instance_type_i, volume_gb = excluded.volume_gb,
    max_runtime_s = excluded.max_runtime_s, cause_tries = excluded.cause_tries,
    signature_hash = excluded.signature_hash, same = excluded.same

-- name: tasks_retry
-- failed -> waiting with a fresh count of attempts. $1 campaign bigint, $2 stage bigint,
-- $3 ids bigint[], $4 now bigint
UPDATE task_run SET state = 0, cause = 0, attempts = 0, not_before_us = 0, updated_us = $4::bigint
WHERE campaign_id = $1::bigint AND id = ANY ($3::bigint[]) AND state = 4 AND stage_id = $2::bigint
RETURNING id

-- name: tasks_retry_change
-- What an operator changed for them; the retries used by cause restart at 0.
-- $1 campaign bigint, $2 ids bigint[], $3 volume_gb integer (0: as before),
-- $4 rung of the ladder integer (-1: as before), $5 max_runtime_s bigint (0: as before)
INSERT INTO task_change AS h (task_id, campaign_id, volume_gb, instance_type_i, max_runtime_s)
SELECT id, $1::bigint, $3::int, greatest(0, $4::int), $5::bigint FROM unnest($2::bigint[]) AS id
WHERE $3::int > 0 OR $4::int >= 0 OR $5::bigint > 0 OR EXISTS (SELECT FROM task_change x WHERE x.task_id = id)
ON CONFLICT (task_id) DO UPDATE SET cause_tries = '{}', same = 0,
    volume_gb = CASE WHEN excluded.volume_gb > 0 THEN excluded.volume_gb ELSE h.volume_gb END,
    instance_type_i = CASE WHEN $4::int >= 0 THEN excluded.instance_type_i ELSE h.instance_type_i END,
    max_runtime_s = CASE WHEN $5::bigint > 0 THEN excluded.max_runtime_s ELSE h.max_runtime_s END

-- name: stage_take
-- Tasks [taken, upto) enter the counters, if the last of them exists. $1 stage bigint, $2 upto bigint. Index task_seq.
WITH old AS (
    SELECT r.stage_id, r.campaign_id, r.taken
    FROM stage_run r JOIN stage_input i ON i.stage_id = r.stage_id
    WHERE r.stage_id = $1::bigint AND r.taken < $2::bigint AND i.tasks >= $2::bigint
      AND EXISTS (SELECT FROM task t WHERE t.campaign_id = r.campaign_id AND t.stage_id = r.stage_id
          AND t.seq = $2::bigint - 1)
    FOR UPDATE OF r),
new AS (
    UPDATE stage_run r SET waiting = r.waiting + $2::bigint - old.taken, taken = $2::bigint
    FROM old WHERE r.stage_id = old.stage_id)
INSERT INTO event (campaign_id, kind, detail)
SELECT campaign_id, 'part.state', jsonb_build_object('campaign', campaign_id, 'stage', stage_id,
    'from', '', 'to', 'waiting', 'first_part', taken, 'last_part', $2::bigint - 1,
    'n', $2::bigint - taken, 'cause', '')
FROM old

-- name: operation_page_failed
-- The next failed tasks of a selector, by id, from the current failures: the same rows that a
-- preview counts, without those that have failed since. Index task_failure_task. Parameters as
-- operation_page, without the state; $7 operation bigint.
SELECT r.id, r.stage_id, r.seq, r.attempts, r.names, r.state, r.not_before_us,
    coalesce((SELECT k.size FROM task k WHERE k.campaign_id = $1::bigint AND k.id = r.id), 0)
FROM task_failure f JOIN task_run r ON r.campaign_id = f.campaign_id AND r.id = f.task_id
WHERE f.campaign_id = $1::bigint AND r.campaign_id = $1::bigint AND f.final AND r.state = 4
  AND f.task_id > $2::bigint
  AND ($4::text IS NULL OR f.stage_id = (SELECT s.id FROM stage s
                                         WHERE s.campaign_id = $1::bigint AND s.name = $4::text))
  AND ($5::smallint[] IS NULL OR f.cause = ANY ($5::smallint[]))
  AND ($6::int[] IS NULL OR f.seq = ANY ($6::int[]))
  AND f.at <= (SELECT o.created_at FROM operation o WHERE o.id = $7::bigint)
ORDER BY f.task_id LIMIT $3::int

-- name: operation_page
-- The next tasks of a selector, by id. Primary key of task_run.
-- $1 campaign bigint, $2 state smallint, $3 after id bigint, $4 page integer, $5 stage text,
-- $6 causes smallint[], $7 parts integer[]; NULL: any
SELECT r.id, r.stage_id, r.seq, r.attempts, r.names, r.state, r.not_before_us,
    coalesce((SELECT k.size FROM task k WHERE k.campaign_id = $1::bigint AND k.id = r.id), 0)
FROM task_run r
WHERE r.campaign_id = $1::bigint AND r.id > $3::bigint AND r.state = $2::smallint
  AND ($5::text IS NULL OR r.stage_id = (SELECT s.id FROM stage s
                                         WHERE s.campaign_id = $1::bigint AND s.name = $5::text))
  AND ($6::smallint[] IS NULL OR r.cause = ANY ($6::smallint[]))
  AND ($7::int[] IS NULL OR r.seq = ANY ($7::int[]))
  AND r.seq < (SELECT u.taken FROM stage_run u WHERE u.stage_id = r.stage_id)
ORDER BY r.id LIMIT $4::int

-- name: undo_page
-- The next parts that a retry moved, by id; most of them have not started since. Index task_retried_operation, primary key
-- of task_run; a part that has lost its row has ended. $1 operation bigint, $2 page integer
SELECT h.task_id, h.stage_id, h.instance_type_i, h.volume_gb, h.max_runtime_s,
    coalesce((SELECT r.state FROM task_run r WHERE r.campaign_id = h.campaign_id AND r.id = h.task_id), 6)
FROM task_retried h WHERE h.operation_id = $1::bigint ORDER BY h.operation_id, h.task_id LIMIT $2::int

-- name: tasks_undo
-- waiting or held -> failed as they had failed before operation $4, and all of them are forgotten as retried; tasks_moved
-- must follow. Parts of no attempt stay: they may be asked about just now (done_if). Primary keys; nothing is joined but x with
-- task_run, since the planner does not know how many are moved. $1 campaign bigint, $2 stage bigint, $3 ids bigint[],
-- $4 operation bigint, $5 now bigint, $6 from smallint
WITH x AS MATERIALIZED (
    SELECT * FROM task_retried WHERE task_id = ANY ($3::bigint[])),
back AS (
    UPDATE task_run r SET state = 4, cause = x.cause, attempts = x.attempts, not_before_us = 0, updated_us = $5::bigint
    FROM x
    WHERE r.campaign_id = $1::bigint AND r.id = x.task_id AND x.operation_id = $4::bigint AND r.stage_id = $2::bigint
      AND r.state = $6::smallint AND $6::smallint IN (0, 2) AND r.names = x.names AND r.names > 0
    RETURNING r.seq, x.*),
failures AS (
    INSERT INTO task_failure (task_id, campaign_id, stage_id, seq, attempt_id, cause, final, signature, message, lost_musd, at)
    SELECT task_id, campaign_id, stage_id, seq, attempt_id, cause, true, signature, message, lost_musd, at FROM back),
new_changes AS (
    DELETE FROM task_change WHERE task_id = ANY (ARRAY(SELECT task_id FROM back WHERE NOT changed))),
old_changes AS (
    INSERT INTO task_change (task_id, campaign_id, instance_type_i, volume_gb, max_runtime_s, cause_tries, signature_hash, same)
    SELECT task_id, campaign_id, instance_type_i, volume_gb, max_runtime_s, cause_tries, signature_hash, same
    FROM back WHERE changed
    ON CONFLICT (task_id) DO UPDATE SET instance_type_i = excluded.instance_type_i, volume_gb = excluded.volume_gb,
        max_runtime_s = excluded.max_runtime_s, cause_tries = excluded.cause_tries,
        signature_hash = excluded.signature_hash, same = excluded.same),
gone AS (
    DELETE FROM task_retried WHERE task_id = ANY (ARRAY(SELECT task_id FROM x WHERE operation_id = $4::bigint)))
SELECT task_id FROM back ORDER BY task_id
