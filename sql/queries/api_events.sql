-- Events as the API streams them.

-- name: api_events_after
-- $1 after bigint, $2 campaign bigint or 0, $3 rows bigint
SELECT e.id, e.campaign_id, e.kind,
    json_build_object('id', e.id, 'at', e.at, 'campaign', 'c-' || e.campaign_id, 'kind', e.kind, 'detail', e.detail)::text,
    coalesce((SELECT p.name FROM campaign c JOIN project p ON p.id = c.project_id WHERE c.id = e.campaign_id), '')
FROM event e WHERE e.id > $1 AND ($2 = 0 OR e.campaign_id = $2) ORDER BY e.id LIMIT $3;

-- name: api_events_ends
SELECT coalesce((SELECT id FROM event ORDER BY id LIMIT 1), 0), coalesce((SELECT id FROM event ORDER BY id DESC LIMIT 1), 0);
