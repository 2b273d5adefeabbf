-- API tokens and browser sessions.

-- name: api_token_get
-- $1 id text; projects joined by commas, '' for all
SELECT hash, role, coalesce(array_to_string(projects, ','), ''), name,
    used_at IS NULL OR used_at < clock_timestamp() - interval '1 minute' FROM token
WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp());

-- That a token is used, and a session of it, is noted once a minute. $1 token text, $2 session bigint or 0
-- name: api_token_used
WITH of_session AS (
    UPDATE session SET used_at = clock_timestamp()
    WHERE id = $2::bigint AND (used_at IS NULL OR used_at < clock_timestamp() - interval '1 minute'))
UPDATE token SET used_at = clock_timestamp()
WHERE id = $1 AND (used_at IS NULL OR used_at < clock_timestamp() - interval '1 minute');

-- The token of the token file. One that was revoked stays so.
-- name: api_token_put
-- $1 id text, $2 hash bytea, $3 name text
INSERT INTO token (id, hash, role, name) VALUES ($1, $2, 'admin', $3)
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, role = 'admin';

-- name: api_token_new
-- $1 id text, $2 hash bytea, $3 role text, $4 name text, $5 projects text[] or NULL, $6 seconds it lives bigint or NULL, $7 by text
INSERT INTO token (id, hash, role, name, projects, expires_at, created_by)
VALUES ($1, $2, $3, $4, $5, clock_timestamp() + $6::bigint * interval '1 second', $7);

-- Before If-Match is compared: see api_limits_lock. $1 id text
-- name: api_token_lock
SELECT 1 FROM token WHERE id = $1 FOR NO KEY UPDATE;

-- name: api_token_change
-- $1 id text, $2 revoke? boolean, $3 seconds it lives from now bigint or NULL
UPDATE token SET revoked_at = CASE WHEN $2 THEN coalesce(revoked_at, clock_timestamp()) ELSE revoked_at END,
    expires_at = CASE WHEN $3::bigint IS NULL THEN expires_at ELSE clock_timestamp() + $3::bigint * interval '1 second' END
WHERE id = $1 RETURNING id;

-- name: api_tokens
-- $1 id text or NULL: all, newest first
SELECT coalesce(json_agg(json_build_object('id', t.id, 'name', t.name, 'role', t.role, 'projects', t.projects,
    'state', CASE WHEN t.revoked_at IS NOT NULL THEN 'revoked' WHEN t.expires_at <= clock_timestamp() THEN 'expired' ELSE 'valid' END,
    'created_by', t.created_by, 'created_at', t.created_at, 'expires_at', t.expires_at, 'revoked_at', t.revoked_at, 'used_at', t.used_at)
    ORDER BY t.created_at DESC, t.id), '[]'::json)::text
FROM (SELECT * FROM token WHERE $1::text IS NULL OR id = $1 ORDER BY created_at DESC LIMIT 1000) t;

-- Those of the tokens and sessions ("session 7") that are not valid (any more).
-- name: api_tokens_ended
-- $1 names text[]
SELECT i.name FROM unnest($1::text[]) AS i (name)
WHERE NOT EXISTS (SELECT 1 FROM token t
        WHERE t.id = i.name AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp()))
    AND NOT EXISTS (SELECT 1 FROM session s JOIN token t ON t.id = s.token_id
        WHERE i.name = 'session ' || s.id AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
            AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp()));

-- name: api_session_get
-- $1 hash bytea
SELECT s.id, t.id, t.role, coalesce(array_to_string(t.projects, ','), ''), t.name,
    s.used_at IS NULL OR s.used_at < clock_timestamp() - interval '1 minute'
FROM session s JOIN token t ON t.id = s.token_id
WHERE s.hash = $1 AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
    AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp());

-- name: api_session_new
-- $1 hash bytea, $2 token text, $3 seconds it lives bigint, $4 address text
INSERT INTO session (hash, token_id, expires_at, address)
VALUES ($1, $2, clock_timestamp() + $3::bigint * interval '1 second', $4);

-- Ended a week ago, or older than the newest 32 of a token.
-- name: api_session_trim
-- $1 token text
DELETE FROM session WHERE least(ended_at, expires_at) < clock_timestamp() - interval '7 days'
    OR (token_id = $1 AND id NOT IN (SELECT id FROM session WHERE token_id = $1 ORDER BY id DESC LIMIT 32));

-- name: api_session_end
-- $1 id bigint or 0, $2 hash bytea, $3 token text or NULL: of any
UPDATE session SET ended_at = clock_timestamp()
WHERE ended_at IS NULL AND (id = $1 OR hash = $2) AND ($3::text IS NULL OR token_id = $3) RETURNING id;

-- name: api_sessions
-- $1 token text or NULL: all, $2 the one that asks bigint or 0
SELECT coalesce(json_agg(json_build_object('id', 's-' || s.id, 'token_id', s.token_id, 'name', s.name, 'current', s.id = $2::bigint, 'address', s.address,
    'created_at', s.created_at, 'used_at', s.used_at, 'expires_at', s.expires_at) ORDER BY s.id DESC), '[]'::json)::text
FROM (SELECT o.*, t.name FROM session o JOIN token t ON t.id = o.token_id
    WHERE o.ended_at IS NULL AND o.expires_at > clock_timestamp() AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
        AND ($1::text IS NULL OR o.token_id = $1)
    ORDER BY o.id DESC LIMIT 1000) s;

-- The project of a campaign, or of the campaign of an operation.
-- name: api_project_of
-- $1 campaign bigint or 0, $2 operation bigint or 0, $3 name text or NULL: of an endpoint, a file system, or the job that left a pool
SELECT p.name FROM campaign c JOIN project p ON p.id = c.project_id
WHERE c.id = CASE WHEN $1 > 0 THEN $1 WHEN $2 > 0 THEN coalesce((SELECT campaign_id FROM operation WHERE id = $2),
        (SELECT campaign_id FROM input_listing WHERE id = $2))
    ELSE coalesce((SELECT campaign_id FROM endpoint WHERE name = $3), (SELECT campaign_id FROM filesystem WHERE token = $3),
        (SELECT campaign_id FROM attempt WHERE name = $3 LIMIT 1)) END;
