-- Idempotency keys of requests and the first answer of each. A key expires after 7 days; keys_expire deletes it.

-- name: api_key_get
-- $1 token text, $2 key text
SELECT body_hash, status, answer, location FROM idempotency_key
WHERE token_id = $1 AND key = $2 AND created_at >= now() - interval '7 days';

-- Takes the place of an expired one. No row: it is in use.
-- name: api_key_put
-- $1 token text, $2 key text, $3 hash bytea, $4 status integer, $5 answer text, $6 location text
INSERT INTO idempotency_key AS old (token_id, key, body_hash, status, answer, location) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (token_id, key) DO UPDATE SET body_hash = EXCLUDED.body_hash, status = EXCLUDED.status,
    answer = EXCLUDED.answer, location = EXCLUDED.location, created_at = EXCLUDED.created_at
WHERE old.created_at < now() - interval '7 days'
RETURNING 1;

-- Held by the session while a request with a key is carried out, so the same key in flight elsewhere is noticed. A
-- session that holds one and says nothing for $3 belongs to a process that stands still: the server ends it.
-- name: api_key_lock
-- $1 token text, $2 key text, $3 a time
SELECT l.locked, set_config('idle_session_timeout', CASE WHEN l.locked THEN $3::text ELSE '0' END, false)
FROM (SELECT pg_try_advisory_lock(hashtext($1), hashtext($2)) AS locked OFFSET 0) l;

-- name: api_key_unlock
-- $1 token text, $2 key text
SELECT pg_advisory_unlock(hashtext($1), hashtext($2)), set_config('idle_session_timeout', '0', false);
