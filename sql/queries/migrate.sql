-- name: migration_lock
-- One droverd migrates at a time; held until the session ends.
SELECT pg_advisory_lock(7247362101)

-- name: migration_table
CREATE TABLE IF NOT EXISTS schema_migration (
    name text PRIMARY KEY,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp())

-- name: migration_get
-- $1 name text
SELECT sha256 FROM schema_migration WHERE name = $1::text

-- name: migration_unknown
-- Applied migrations this binary does not know. $1 known names text[]
SELECT name FROM schema_migration WHERE name <> ALL ($1::text[]) ORDER BY name LIMIT 1

-- name: migration_add
-- $1 name text, $2 sha256 text
INSERT INTO schema_migration (name, sha256) VALUES ($1::text, $2::text)
