-- Archiving an ended campaign: a person asks, the leader deletes.

-- name: api_archive_hindrance
-- Why it cannot be archived now; NULL: it can. $1 campaign bigint
SELECT archive_hindrance($1)

-- Asking again does nothing, unless a droverd that knows no archive has given the operation back, or a folder is named
-- before another one was whole or before anything is deleted. No folder names none: an export that was asked for is never
-- dropped. Told: whether that did anything, and the folder as it is now.
-- name: api_archive_ask
-- $1 campaign bigint, $2 by text, $3 folder in S3 text, '': none
WITH asked AS (
    INSERT INTO archive AS old (campaign_id, asked_by, export_uri) VALUES ($1::bigint, $2::text, $3::text)
    ON CONFLICT (campaign_id) DO UPDATE SET export_uri = excluded.export_uri, export_kind = 0, export_after = 0,
        exported = 0, exported_rows = 0, export_problem = ''
    WHERE excluded.export_uri NOT IN ('', old.export_uri) AND old.exported_at IS NULL
        AND (old.export_uri <> '' OR (old.phase = 0 AND old.after_attempt = 0))
    RETURNING export_uri),
folder AS (
    SELECT coalesce((SELECT export_uri FROM asked),
        (SELECT h.export_uri FROM archive h WHERE h.campaign_id = $1::bigint)) AS uri),
under_way AS (
    UPDATE operation o SET selector = jsonb_build_object('to', asked.export_uri) FROM asked
    WHERE o.campaign_id = $1::bigint AND o.kind = 'archive' AND o.state IN ('accepted', 'running') AND asked.export_uri <> ''),
new_operation AS (
    INSERT INTO operation (campaign_id, kind, selector, total, created_by)
    SELECT $1::bigint, 'archive', CASE WHEN folder.uri <> '' THEN jsonb_build_object('to', folder.uri) ELSE '{}' END,
        greatest(1, (SELECT sum(i.tasks) FROM stage_input i WHERE i.campaign_id = $1::bigint)), $2::text
    FROM folder
    WHERE NOT EXISTS (SELECT FROM archive h WHERE h.campaign_id = $1::bigint AND h.archived_at IS NOT NULL)
        AND NOT EXISTS (SELECT FROM operation o WHERE o.campaign_id = $1::bigint AND o.kind = 'archive'
                        AND o.state IN ('accepted', 'running'))
    RETURNING 1)
SELECT (SELECT count(*) FROM asked) + (SELECT count(*) FROM new_operation), (SELECT uri FROM folder)
