-- Bulk changes that a person asks for.

-- Failed parts of a selector that no open retry or skip already names. Locked after the campaign's row.
-- name: api_retry_count
-- $1 campaign bigint, $2 stage bigint or 0, $3 causes smallint[], $4 parts integer[], $5 names of causes text[], $6 by cause? $7 by part? boolean
SELECT count(*), coalesce(to_json((array_agg(f.seq ORDER BY f.seq))[1:20]), '[]'::json)::text, coalesce(sum(f.lost_musd), 0)::bigint
FROM task_failure f JOIN stage g ON g.id = f.stage_id
WHERE f.campaign_id = $1 AND f.final AND ($2 = 0 OR f.stage_id = $2) AND (NOT $6 OR f.cause = ANY ($3))
    AND (NOT $7 OR f.seq = ANY ($4))
    AND NOT EXISTS (SELECT 1 FROM operation o
        WHERE o.campaign_id = $1 AND o.kind IN ('retry', 'skip') AND o.state IN ('accepted', 'running')
            AND (o.selector->>'stage' IS NULL OR o.selector->>'stage' = g.name)
            AND (o.selector->'cause' IS NULL OR o.selector->'cause' ? ($5::text[])[f.cause + 1])
            AND (o.selector->'parts' IS NULL OR o.selector->'parts' @> to_jsonb(f.seq)));

-- name: api_operation_insert
-- $1 campaign bigint, $2 kind text, $3 selector jsonb, $4 changes jsonb, $5 total bigint, $6 by text
INSERT INTO operation (campaign_id, kind, selector, changes, total, created_by, state, ended_at)
VALUES ($1, $2, $3, $4, $5::bigint, $6, CASE WHEN $5::bigint = 0 THEN 'done' ELSE 'accepted' END,
    CASE WHEN $5 = 0 THEN clock_timestamp() END)
RETURNING id;

-- name: api_operations
-- $1 id bigint or 0: all, $2 before bigint, $3 rows bigint, $4 campaign bigint or 0
SELECT o.id, json_build_object('id', 'op-' || o.id, 'campaign', 'c-' || o.campaign_id, 'kind', o.kind,
    'selector', o.selector, 'changes', o.changes, 'parts', o.total, 'done', o.done, 'state', o.state,
    'created_by', o.created_by, 'created_at', o.created_at, 'ended_at', o.ended_at)::text
FROM operation o
WHERE ($1 = 0 OR o.id = $1) AND o.id < $2 AND ($4 = 0 OR o.campaign_id = $4) ORDER BY o.id DESC LIMIT $3;
