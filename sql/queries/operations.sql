-- name: view_operations
-- Those that go on, and those that are being undone, with how many parts their campaign has by now. Indexes operation_open,
-- operation_undo and stage_input_campaign.
SELECT id, campaign_id, kind, selector::text, changes::text, state, total, done, undo_asked_at IS NOT NULL, undone,
    (SELECT least(9223372036854775807, coalesce(sum(i.tasks), 0))::bigint FROM stage_input i WHERE i.campaign_id = operation.campaign_id)
FROM operation WHERE state IN ('accepted', 'running') OR (undo_asked_at IS NOT NULL AND undo_ended_at IS NULL) ORDER BY id

-- name: operation_progress
-- $1 operation bigint, $2 to text, $3 done bigint, $4 terminal boolean
WITH old AS (
    SELECT id, state FROM operation
    WHERE id = $1::bigint AND state IN ('accepted', 'running') FOR UPDATE),
o AS (
    UPDATE operation SET state = $2::text, done = $3::bigint,
        ended_at = CASE WHEN $4::boolean THEN clock_timestamp() END
    FROM old WHERE operation.id = old.id
    RETURNING operation.id, campaign_id, kind, total, old.state AS was),
e AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT campaign_id, 'operation.state', jsonb_build_object('operation', id,
        'campaign', campaign_id, 'operation_kind', kind, 'from', was, 'to', $2::text,
        'done', $3::bigint, 'total', total)
    FROM o)
SELECT id FROM o

-- name: operation_undo
-- It ends where it is; over: nothing is left to undo. $1 operation bigint, $2 undone so far bigint, $3 over boolean
WITH old AS (
    SELECT id, state FROM operation
    WHERE id = $1::bigint AND undo_asked_at IS NOT NULL AND undo_ended_at IS NULL FOR UPDATE),
o AS (
    UPDATE operation SET state = 'cancelled', undone = $2::bigint, ended_at = coalesce(ended_at, clock_timestamp()),
        undo_ended_at = CASE WHEN $3::boolean THEN clock_timestamp() END
    FROM old WHERE operation.id = old.id
    RETURNING operation.id, campaign_id, kind, total, done, old.state AS was),
rest AS (
    DELETE FROM task_retried WHERE $3::boolean AND operation_id = $1::bigint),
e AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT campaign_id, 'operation.state', jsonb_build_object('operation', id,
        'campaign', campaign_id, 'operation_kind', kind, 'from', was, 'to', 'cancelled',
        'done', done, 'total', total, 'undone', $2::bigint)
    FROM o)
SELECT id FROM o
