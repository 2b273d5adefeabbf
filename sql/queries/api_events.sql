-- Events as the API streams them.

-- name: api_events_after
-- $1 after bigint, $2 campaign bigint or 0, $3 rows bigint
SELECT id, campaign_id, kind,
    json_build_object('id', id, 'at', at, 'campaign', 'c-' || campaign_id, 'kind', kind, 'detail', detail)::text
FROM event WHERE id > $1 AND ($2 = 0 OR campaign_id = $2) ORDER BY id LIMIT $3;

-- name: api_events_ends
SELECT coalesce((SELECT id FROM event ORDER BY id LIMIT 1), 0), coalesce((SELECT id FROM event ORDER BY id DESC LIMIT 1), 0);
