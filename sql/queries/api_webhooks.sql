-- Webhooks and what was sent to them. One whose url is mailto: has the format email; its column format says json, a word that
-- the release before knows.

-- name: api_webhook_new
-- At most 100 webhooks; no row: there are as many.
-- $1 name text, $2 url text, $3 format text, $4 kinds text[], $5 project text or NULL: every one, $6 secret bytea, $7 by text,
-- quiet hours: $8 from bigint or NULL, $9 until bigint or NULL
INSERT INTO webhook (name, url, format, kinds, project_id, secret, created_by, quiet_from, quiet_until)
SELECT $1::text, $2::text, CASE $3::text WHEN 'email' THEN 'json' ELSE $3::text END, $4::text[], (SELECT id FROM project WHERE name = $5::text), $6::bytea, $7::text, $8::bigint, $9::bigint
WHERE (SELECT count(*) FROM webhook) < 100 RETURNING id;

-- Before If-Match is compared: see api_limits_lock. $1 webhook bigint
-- name: api_webhook_lock
SELECT 1 FROM webhook WHERE id = $1::bigint FOR NO KEY UPDATE;

-- name: api_webhook_project
-- The project of a webhook, '' of every one. $1 webhook bigint
SELECT coalesce(p.name, '') FROM webhook w LEFT JOIN project p ON p.id = w.project_id WHERE w.id = $1::bigint;

-- name: api_project_known
-- $1 name text
SELECT EXISTS (SELECT FROM project WHERE name = $1::text);

-- The path of an address for Slack or Teams is a secret: who has it may post there.
-- name: api_webhooks
-- A JSON list, newest first. $1 webhook bigint or 0: all, $2 projects text or '': those of every one, too
SELECT coalesce(json_agg(json_build_object('id', 'w-' || w.id, 'name', w.name,
    'url', CASE w.format WHEN 'json' THEN w.url ELSE substring(w.url FROM '^https?://[^/?]+') || '/...' END,
    'format', CASE WHEN w.url LIKE 'mailto:%' THEN 'email' ELSE w.format END, 'kinds', w.kinds, 'project', p.name, 'quiet', to_char(w.quiet_from * interval '1 minute', 'HH24:MI')
        || '-' || to_char(w.quiet_until * interval '1 minute', 'HH24:MI'), 'created_by', w.created_by, 'created_at', w.created_at,
    'waiting', (SELECT count(*) FROM webhook_delivery d WHERE d.webhook_id = w.id AND d.state = 'waiting'),
    'failed', (SELECT count(*) FROM webhook_delivery d WHERE d.webhook_id = w.id AND d.state = 'failed'),
    'dropped', w.dropped,
    'last', (SELECT CASE WHEN d.state = 'waiting' THEN 'failing' WHEN d.state = 'delivered' AND d.problem <> '' THEN 'partly' ELSE d.state END FROM webhook_delivery d
        WHERE d.webhook_id = w.id AND d.tries > 0 AND (d.state <> 'waiting' OR d.problem <> '') ORDER BY d.id DESC LIMIT 1))
    ORDER BY w.id DESC), '[]'::json)::text
FROM webhook w LEFT JOIN project p ON p.id = w.project_id
WHERE ($1::bigint = 0 OR w.id = $1::bigint)
    AND ($2::text = '' OR p.name = ANY (string_to_array($2::text, ',')));

-- What a change may change, for ETags. $1 webhook bigint
-- name: api_webhook_tag
SELECT json_build_array(name, url, format, kinds, quiet_from, quiet_until)::text FROM webhook WHERE id = $1::bigint;

-- name: api_webhook_change
-- $1 webhook bigint, $2 name text or NULL, $3 url text or NULL, $4 format text or NULL, $5 kinds text[] or NULL,
-- quiet hours: $6 change them? boolean, $7 from bigint or NULL, $8 until bigint or NULL
UPDATE webhook SET name = coalesce($2::text, name), url = coalesce($3::text, url), format = coalesce(CASE $4::text WHEN 'email' THEN 'json' ELSE $4::text END, format),
    kinds = coalesce($5::text[], kinds), quiet_from = CASE WHEN $6::boolean THEN $7::bigint ELSE quiet_from END,
    quiet_until = CASE WHEN $6::boolean THEN $8::bigint ELSE quiet_until END
WHERE id = $1::bigint;

-- name: api_webhook_delete
-- $1 webhook bigint
DELETE FROM webhook WHERE id = $1::bigint RETURNING id;

-- name: api_webhook_test
-- A notice of its own for this webhook, at most 10 that wait. Returns the delivery; no row: as many wait. $1 webhook bigint
WITH made AS (
    INSERT INTO notice (kind, project_id)
    SELECT 'test', w.project_id FROM webhook w WHERE w.id = $1::bigint
        AND (SELECT count(*) FROM webhook_delivery d JOIN notice n ON n.id = d.notice_id
             WHERE d.webhook_id = w.id AND d.state = 'waiting' AND n.kind = 'test') < 10
    RETURNING id)
INSERT INTO webhook_delivery (webhook_id, notice_id) SELECT $1::bigint, id FROM made RETURNING id;

-- name: api_delivery_resend
-- One that has ended is sent once more, from its first try on, under the same id; a mail that some addresses refused to all but those that have it.
-- No row: it has not ended, or is not there.
-- $1 webhook bigint, $2 delivery bigint
UPDATE webhook_delivery SET state = 'waiting', tries = 0, next_at = clock_timestamp(), ended_at = NULL, status = 0, problem = '',
    addresses = CASE WHEN problem = '' THEN '{}' ELSE (SELECT coalesce(jsonb_object_agg(a.key, a.value), '{}') FROM jsonb_each(addresses) a WHERE a.value = '""') END
WHERE webhook_id = $1::bigint AND id = $2::bigint AND state <> 'waiting' RETURNING id;

-- name: api_deliveries
-- A JSON list, newest first. $1 webhook bigint, $2 delivery bigint or 0: all, $3 rows bigint
SELECT coalesce(json_agg(json_build_object('id', 'd-' || d.id, 'message_id', d.message_id, 'kind', d.kind,
    'campaign', CASE WHEN d.campaign_id > 0 THEN 'c-' || d.campaign_id END, 'state', d.state, 'tries', d.tries,
    'status', nullif(d.status, 0), 'problem', nullif(d.problem, ''), 'took_microseconds', d.took_us, 'at', d.at, 'tried_at', d.tried_at,
    'next_at', CASE WHEN d.state = 'waiting' THEN d.next_at END, 'ended_at', d.ended_at) ORDER BY d.id DESC), '[]'::json)::text
FROM (SELECT v.*, n.message_id, n.kind, n.campaign_id, n.at FROM webhook_delivery v JOIN notice n ON n.id = v.notice_id
    WHERE v.webhook_id = $1::bigint AND ($2::bigint = 0 OR v.id = $2::bigint) ORDER BY v.id DESC LIMIT $3::bigint) d;
