-- Archiving an ended campaign: a person asks, the leader deletes.

-- name: api_archive_hindrance
-- Why it cannot be archived now; NULL: it can. $1 campaign bigint
SELECT archive_hindrance($1)

-- Asking again does nothing, unless a droverd that knows no archive has given the operation back.
-- name: api_archive_ask
-- $1 campaign bigint, $2 by text
WITH asked AS (
    INSERT INTO archive (campaign_id, asked_by) VALUES ($1::bigint, $2::text) ON CONFLICT DO NOTHING)
INSERT INTO operation (campaign_id, kind, selector, total, created_by)
SELECT $1::bigint, 'archive', '{}', greatest(1, (SELECT sum(i.tasks) FROM stage_input i WHERE i.campaign_id = $1::bigint)), $2::text
WHERE NOT EXISTS (SELECT FROM archive h WHERE h.campaign_id = $1::bigint AND h.archived_at IS NOT NULL)
    AND NOT EXISTS (SELECT FROM operation o WHERE o.campaign_id = $1::bigint AND o.kind = 'archive'
                    AND o.state IN ('accepted', 'running'))
