-- API tokens.

-- name: api_token_get
-- $1 id text
SELECT hash, role FROM token
WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp());

-- name: api_token_put
-- $1 id text, $2 hash bytea, $3 name text
INSERT INTO token (id, hash, role, name) VALUES ($1, $2, 'admin', $3)
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, role = 'admin', revoked_at = NULL;

-- name: api_tokens_ended
-- $1 ids text[]; those that are not valid (any more). Primary key.
SELECT i.id FROM unnest($1::text[]) AS i (id)
WHERE NOT EXISTS (SELECT 1 FROM token t
    WHERE t.id = i.id AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp()));
