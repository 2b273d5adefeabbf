-- Cost, operations and events as the API shows them.

-- name: api_cost_total
-- $1 campaign bigint
SELECT json_build_object('reserved_micro_usd', coalesce(m.reserved_musd, 0),
    'metered', json_build_object('seconds', coalesce(m.seconds, 0), 'micro_usd', coalesce(m.spent_musd, 0)),
    'limit_micro_usd', k.limit_musd, 'at_limit', k.at_limit)::text
FROM campaign c
LEFT JOIN money m ON m.level = 'campaign' AND m.ref_id = c.id
LEFT JOIN cap k ON k.level = 'campaign' AND k.ref_id = c.id
WHERE c.id = $1;

-- name: api_cost_by_stage
-- $1 campaign bigint
SELECT coalesce(json_agg(json_build_object('stage', g.name, 'seconds', coalesce(m.seconds, 0),
    'micro_usd', coalesce(m.spent_musd, 0), 'reserved_micro_usd', coalesce(m.reserved_musd, 0),
    'limit_micro_usd', k.limit_musd) ORDER BY g.seq), '[]'::json)::text
FROM stage g
LEFT JOIN money m ON m.level = 'stage' AND m.ref_id = g.id
LEFT JOIN cap k ON k.level = 'stage' AND k.ref_id = g.id
WHERE g.campaign_id = $1;

-- Relies on attempt_campaign.
-- name: api_cost_by_cause
-- $1 campaign bigint, $2 causes text[]
SELECT coalesce(json_agg(json_build_object('cause', ($2::text[])[x.cause + 1], 'attempts', x.n, 'seconds', x.seconds,
    'micro_usd', x.musd, 'estimated', x.estimated) ORDER BY x.cause), '[]'::json)::text
FROM (SELECT cause, count(*) AS n, sum(billable_s)::bigint AS seconds, sum(cost_musd)::bigint AS musd,
        bool_or(estimated) AS estimated
    FROM attempt WHERE campaign_id = $1 AND cost_musd + billable_s > 0 GROUP BY cause) x;

-- Failed parts a selector names that no open retry names already. Locked behind the campaign's row.
-- name: api_retry_count
-- $1 campaign bigint, $2 stage bigint or 0, $3 causes smallint[], $4 parts integer[], $5 names of causes text[], $6 by cause? $7 by part? boolean
SELECT count(*), coalesce(to_json((array_agg(f.seq ORDER BY f.seq))[1:20]), '[]'::json)::text, coalesce(sum(f.lost_musd), 0)::bigint
FROM task_failure f JOIN stage g ON g.id = f.stage_id
WHERE f.campaign_id = $1 AND f.final AND ($2 = 0 OR f.stage_id = $2) AND (NOT $6 OR f.cause = ANY ($3))
    AND (NOT $7 OR f.seq = ANY ($4))
    AND NOT EXISTS (SELECT 1 FROM operation o
        WHERE o.campaign_id = $1 AND o.kind = 'retry' AND o.state IN ('accepted', 'running')
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

-- name: api_events_after
-- $1 after bigint, $2 campaign bigint or 0, $3 rows bigint
SELECT id, campaign_id, kind,
    json_build_object('id', id, 'at', at, 'campaign', 'c-' || campaign_id, 'kind', kind, 'detail', detail)::text
FROM event WHERE id > $1 AND ($2 = 0 OR campaign_id = $2) ORDER BY id LIMIT $3;

-- name: api_events_ends
SELECT coalesce((SELECT id FROM event ORDER BY id LIMIT 1), 0), coalesce((SELECT id FROM event ORDER BY id DESC LIMIT 1), 0);

-- What the newest attempts of a stage that ended tell of the next ones: 0 done, 1 lost (its cause counts as a try),
-- 2 neither; size; run and start in microseconds, NULL when it never ran. The states that end an attempt begin with
-- success. Relies on attempt_campaign.
-- name: api_stage_history
-- $1 campaign bigint, $2 stage bigint, $3 state of success smallint, $4 causes that count smallint[], $5 rows bigint
SELECT CASE WHEN a.state = $3 THEN 0 WHEN a.cause = ANY ($4) THEN 1 ELSE 2 END, coalesce(t.size, 0),
    greatest(extract(epoch FROM a.ended_at - a.started_at) * 1000000, 1)::bigint,
    greatest(extract(epoch FROM a.started_at - a.intended_at) * 1000000, 0)::bigint
FROM (SELECT task_id, state, cause, intended_at, started_at, ended_at FROM attempt
      WHERE campaign_id = $1 AND stage_id = $2 AND state >= $3 ORDER BY id DESC LIMIT $5) a
LEFT JOIN task t ON t.campaign_id = $1 AND t.id = a.task_id;
