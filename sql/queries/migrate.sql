-- name: migration_lock
-- One droverd migrates at a time; held until the session ends.
SELECT pg_try_advisory_lock(7247362101)

-- name: migration_lock_holder
SELECT a.pid, a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (l.classid::bigint << 32 | l.objid::bigint) = 7247362101 AND l.objsubid = 1

-- name: migration_table
CREATE TABLE IF NOT EXISTS schema_migration (
    name text PRIMARY KEY,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    additive boolean NOT NULL DEFAULT false)

-- name: migration_column_missing
-- True of a table that an older droverd made.
SELECT NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'schema_migration'::regclass AND attname = 'additive' AND NOT attisdropped)

-- name: migration_column
ALTER TABLE schema_migration ADD COLUMN IF NOT EXISTS additive boolean NOT NULL DEFAULT false

-- name: migration_blocker
-- Whom a migration that got no lock in time waits for: of the transactions that hold a lock on a table whose name is in
-- the migration's text, the oldest. $1 the migration text
SELECT a.pid, a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) JOIN pg_class c ON c.oid = l.relation
WHERE l.granted AND l.locktype = 'relation' AND l.pid <> pg_backend_pid()
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    AND c.relname = ANY (regexp_split_to_array($1::text, '[^a-z0-9_]+'))
ORDER BY a.xact_start LIMIT 1

-- name: migration_get
-- $1 name text
SELECT sha256 FROM schema_migration WHERE name = $1::text

-- name: migration_unknown
-- Applied migrations this binary does not know: how many, the newest, the first one that is not additive.
-- $1 known names text[]
SELECT count(*), max(name), min(name) FILTER (WHERE NOT additive) FROM schema_migration WHERE name <> ALL ($1::text[])

-- name: migration_add
-- $1 name text, $2 sha256 text, $3 additive boolean
INSERT INTO schema_migration (name, sha256, additive) VALUES ($1::text, $2::text, $3::boolean)
