-- name: view_operations
-- Index operation_open.
SELECT id, campaign_id, kind, selector::text, changes::text, state, total, done
FROM operation WHERE state IN ('accepted', 'running') ORDER BY id

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
