-- name: migration_lock
-- One droverd migrates at a time; held until the session ends.
SELECT pg_advisory_lock(7247362101)

-- name: migration_table
CREATE TABLE IF NOT EXISTS schema_migration (
    name text PRIMARY KEY,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp())

-- name: migration_blocker
-- Whom a migration that got no lock in time most likely waits for: the oldest other transaction of this database that
-- holds a lock on one of our tables.
SELECT a.pid, a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.granted AND l.locktype = 'relation' AND l.pid <> pg_backend_pid()
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.relation IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
ORDER BY a.xact_start LIMIT 1

-- name: migration_get
-- $1 name text
SELECT sha256 FROM schema_migration WHERE name = $1::text

-- name: migration_unknown
-- Applied migrations this binary does not know. $1 known names text[]
SELECT name FROM schema_migration WHERE name <> ALL ($1::text[]) ORDER BY name LIMIT 1

-- name: migration_add
-- $1 name text, $2 sha256 text
INSERT INTO schema_migration (name, sha256) VALUES ($1::text, $2::text)
