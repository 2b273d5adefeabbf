-- Logins by a provider of OpenID Connect, and the tokens that stand for its people.

-- Those that have expired go. No row: too many are under way, of all or of this address.
-- name: api_login_begin
-- $1 browser bytea, $2 return to text, $3 address text, $4 seconds it lives bigint, $5 most of all bigint, $6 most of an address bigint
WITH old AS (
    DELETE FROM login WHERE expires_at <= clock_timestamp()),
live AS MATERIALIZED (
    SELECT address FROM login WHERE expires_at > clock_timestamp() LIMIT $5::bigint)
INSERT INTO login (browser, return_to, address, expires_at)
SELECT $1, $2, $3, clock_timestamp() + $4::bigint * interval '1 second'
WHERE (SELECT count(*) FROM live) < $5::bigint AND (SELECT count(*) FROM live WHERE address = $3::text) < $6::bigint
RETURNING 1;

-- Ends it, once.
-- name: api_login_end
-- $1 browser bytea
DELETE FROM login WHERE browser = $1 RETURNING return_to, expires_at > clock_timestamp();

-- The token that a person's sessions are of; nobody has its secret. Its rights are those of the last login. No row: it was revoked
-- or has expired. When the rights are others than before, sessions of the old ones end.
-- name: api_person_put
-- $1 id text, $2 hash bytea, $3 role text, $4 name text, $5 projects text[] or NULL, $6 by text
WITH ended AS (
    UPDATE session s SET ended_at = clock_timestamp() FROM token t
    WHERE t.id = $1 AND (t.role <> $3 OR t.projects IS DISTINCT FROM $5::text[]) AND s.token_id = t.id AND s.ended_at IS NULL)
INSERT INTO token (id, hash, role, name, projects, created_by) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET role = excluded.role, name = excluded.name, projects = excluded.projects
WHERE token.revoked_at IS NULL AND (token.expires_at IS NULL OR token.expires_at > clock_timestamp())
RETURNING id;
