-- Bulk changes that a person asks for.

-- Failed parts of a selector that no open retry or skip already names. Locked after the campaign's row.
-- name: api_retry_count
-- $1 campaign bigint, $2 stage bigint or 0, $3 causes smallint[], $4 parts integer[], $5 names of causes text[], $6 by cause? $7 by part? boolean
WITH open AS MATERIALIZED (
    SELECT (SELECT g.id FROM stage g WHERE g.campaign_id = $1 AND g.name = o.selector->>'stage') AS stage_id, o.selector
    FROM operation o WHERE o.campaign_id = $1 AND o.kind IN ('retry', 'skip') AND o.state IN ('accepted', 'running')),
found AS NOT MATERIALIZED (
    SELECT f.task_id, f.seq, f.lost_musd FROM task_failure f
    WHERE f.campaign_id = $1 AND f.final AND ($2 = 0 OR f.stage_id = $2) AND (NOT $6 OR f.cause = ANY ($3))
        AND (NOT $7 OR f.seq = ANY ($4)) AND ((SELECT count(*) = 0 FROM open) OR NOT EXISTS (SELECT 1 FROM open o
            WHERE (o.selector->>'stage' IS NULL OR o.stage_id = f.stage_id)
                AND (o.selector->'cause' IS NULL OR o.selector->'cause' ? ($5::text[])[f.cause + 1])
                AND (o.selector->'parts' IS NULL OR o.selector->'parts' @> to_jsonb(f.seq)))))
SELECT count(*), (SELECT coalesce(json_agg(seq), '[]'::json)::text FROM (SELECT seq FROM found ORDER BY task_id LIMIT 20) first),
    coalesce(sum(lost_musd), 0)::bigint FROM found;

-- The same parts by stage, with the mean size of some of them, and the idle warm pools that a job of this type and volume
-- would not match. Relies on task_failure_cause or task_failure_task, and on pool_campaign.
-- name: api_retry_stages
-- $1 campaign bigint, $2 stage bigint or 0, $3 causes smallint[], $4 parts integer[], $5 by cause? $6 by part? boolean,
-- $7 instance type text or '', $8 volume integer or 0
WITH found AS MATERIALIZED (
    SELECT f.task_id, f.stage_id FROM task_failure f
    WHERE f.campaign_id = $1 AND f.final AND ($2 = 0 OR f.stage_id = $2) AND (NOT $5 OR f.cause = ANY ($3)) AND (NOT $6 OR f.seq = ANY ($4)))
SELECT f.stage_id, count(*), (SELECT coalesce(avg(k.size), 0)::bigint FROM (SELECT task_id FROM found x WHERE x.stage_id = f.stage_id LIMIT 200) s
        JOIN LATERAL (SELECT size FROM task t WHERE t.campaign_id = $1 AND t.id = s.task_id LIMIT 1) k ON true),
    (SELECT count(*) FROM pool p JOIN attempt a ON a.id = p.attempt_id
     WHERE p.campaign_id = $1 AND p.stage_id = f.stage_id AND p.state = 'available' AND p.ended_at IS NULL
        AND (($7::text <> '' AND p.instance_type <> $7::text) OR ($8::int > 0 AND a.volume_gb <> $8::int)))
FROM found f GROUP BY f.stage_id ORDER BY f.stage_id;

-- Waiting or held parts. Without numbers the counters know how many, and none is named. Parts that the leader has not read yet
-- wait: it reads them before it holds any. Relies on stage_run_campaign, task_seq and task_run's primary key.
-- name: api_hold_count
-- $1 campaign bigint, $2 stage bigint or 0, $3 state smallint, 0 or 2, $4 parts integer[] or NULL
WITH n AS MATERIALIZED (
    SELECT r.stage_id, i.tasks, CASE WHEN $3::smallint = 0 THEN i.tasks - r.taken + r.waiting ELSE r.held END AS parts
    FROM stage_run r JOIN stage_input i ON i.stage_id = r.stage_id WHERE r.campaign_id = $1 AND ($2 = 0 OR r.stage_id = $2)),
named AS MATERIALIZED (
    SELECT k.id, k.seq FROM n
    CROSS JOIN (SELECT DISTINCT seq FROM unnest($4::int[]) seq) p
    CROSS JOIN LATERAL (SELECT x.id, x.seq FROM task x WHERE x.campaign_id = $1 AND x.stage_id = n.stage_id AND x.seq = p.seq LIMIT 1) k
    CROSS JOIN LATERAL (SELECT x.state FROM task_run x WHERE x.campaign_id = $1 AND x.id = k.id LIMIT 1) r
    WHERE k.seq < n.tasks AND r.state = $3::smallint)
SELECT CASE WHEN $4::int[] IS NULL THEN (SELECT coalesce(sum(parts), 0)::bigint FROM n) ELSE (SELECT count(*) FROM named) END,
    (SELECT coalesce(json_agg(seq), '[]'::json)::text FROM (SELECT seq FROM named ORDER BY id LIMIT 20) first);

-- name: api_operation_insert
-- $1 campaign bigint, $2 kind text, $3 selector jsonb, $4 changes jsonb, $5 total bigint, $6 by text
INSERT INTO operation (campaign_id, kind, selector, changes, total, created_by, state, ended_at)
VALUES ($1, $2, $3, $4, $5::bigint, $6, CASE WHEN $5::bigint = 0 THEN 'done' ELSE 'accepted' END,
    CASE WHEN $5 = 0 THEN clock_timestamp() END)
RETURNING id;

-- Those of both kinds: bulk changes, and listings of inputs, which have numbers of the same sequence.
-- name: api_operations
-- Index operation_campaign.
-- $1 id bigint or 0: all, $2 behind bigint, $3 rows bigint, $4 campaign bigint or 0, $5 newest first? boolean
SELECT x.id, x.told FROM (
    (SELECT o.id, json_build_object('id', 'op-' || o.id, 'campaign', 'c-' || o.campaign_id, 'kind', o.kind,
        'selector', o.selector, 'changes', o.changes, 'parts', o.total, 'done', o.done, 'state', o.state, 'listing', NULL,
        'undo', CASE
            WHEN o.undo_asked_at IS NOT NULL THEN json_build_object('asked_by', o.undo_asked_by, 'by', coalesce((SELECT name FROM token WHERE id = o.undo_asked_by), o.undo_asked_by), 'asked_at', o.undo_asked_at,
                'ended_at', o.undo_ended_at, 'undone', o.undone, 'went_on', CASE WHEN o.undo_ended_at IS NOT NULL THEN o.done - o.undone END)
            END,
        'undoable', o.undo_asked_at IS NULL AND (o.kind IN ('retry', 'skip', 'hold', 'release') AND o.state IN ('accepted', 'running')
            OR o.kind = 'retry' AND EXISTS (SELECT FROM task_retried x WHERE x.operation_id = o.id)),
        'created_by', o.created_by, 'by', coalesce((SELECT name FROM token WHERE id = o.created_by), o.created_by),
        'created_at', o.created_at, 'ended_at', o.ended_at)::text AS told
    FROM ((SELECT id FROM operation WHERE id = $1)
        UNION ALL
          (SELECT id FROM operation WHERE $1 = 0 AND $4 = 0 AND $5 AND id < $2 ORDER BY id DESC LIMIT $3)
        UNION ALL
          (SELECT id FROM operation WHERE $1 = 0 AND $4 = 0 AND NOT $5 AND id > $2 ORDER BY id LIMIT $3)
        UNION ALL
          (SELECT id FROM operation WHERE $1 = 0 AND $4 > 0 AND $5 AND campaign_id = $4 AND id < $2 ORDER BY campaign_id DESC, id DESC LIMIT $3)
        UNION ALL
          (SELECT id FROM operation WHERE $1 = 0 AND $4 > 0 AND NOT $5 AND campaign_id = $4 AND id > $2 ORDER BY campaign_id, id LIMIT $3)) w
    JOIN operation o ON o.id = w.id)
    UNION ALL
    (SELECT l.id, json_build_object('id', 'op-' || l.id, 'campaign', 'c-' || l.campaign_id, 'kind', 'list',
        'selector', json_build_object('stage', g.name), 'changes', json_build_object(),
        'parts', (l.objects + l.per_part - 1) / l.per_part,
        'done', CASE WHEN l.state = 'done' THEN (l.objects + l.per_part - 1) / l.per_part ELSE 0 END,
        'state', CASE WHEN l.state = 'failed' THEN 'cancelled' ELSE l.state END, 'listing', input_listing_json(l),
        'undo', NULL, 'undoable', false,
        'created_by', l.created_by, 'by', coalesce((SELECT name FROM token WHERE id = l.created_by), l.created_by),
        'created_at', l.created_at, 'ended_at', l.ended_at)::text
    FROM ((SELECT id FROM input_listing WHERE $5 AND ($1 = 0 OR id = $1) AND id < $2 AND ($4 = 0 OR campaign_id = $4) ORDER BY id DESC LIMIT $3)
        UNION ALL
          (SELECT id FROM input_listing WHERE NOT $5 AND ($1 = 0 OR id = $1) AND id > $2 AND ($4 = 0 OR campaign_id = $4) ORDER BY id LIMIT $3)) w
    JOIN input_listing l ON l.id = w.id JOIN stage g ON g.id = l.stage_id)) x
ORDER BY CASE WHEN NOT $5 THEN x.id END, x.id DESC LIMIT $3;

-- Asks for the undo of one that can be undone: it goes on, or parts of it have not started. Index task_retried_operation.
-- name: api_operation_undo
-- $1 operation bigint, $2 by text
WITH o AS MATERIALIZED (
    SELECT id, campaign_id, kind, state IN ('accepted', 'running') AS goes_on, undo_asked_at IS NOT NULL AS asked,
        undo_ended_at IS NOT NULL AS over, EXISTS (SELECT FROM task_retried x WHERE x.operation_id = operation.id) AS waits
    FROM operation WHERE id = $1::bigint FOR UPDATE),
asked AS (
    UPDATE operation SET undo_asked_at = clock_timestamp(), undo_asked_by = $2::text
    FROM o WHERE operation.id = o.id AND NOT o.asked AND (o.kind IN ('retry', 'skip', 'hold', 'release') AND o.goes_on OR o.kind = 'retry' AND o.waits)
    RETURNING 1)
SELECT campaign_id, kind, asked, over, (SELECT count(*) FROM asked) FROM o;
