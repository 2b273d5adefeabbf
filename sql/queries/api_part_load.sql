-- Loading parts in bulk.

-- A bulk load may take longer than a handler's statement.
-- name: api_bulk_timeout
SELECT set_config('statement_timeout', '300s', true), set_config('lock_timeout', '30s', true),
    set_config('maintenance_work_mem', '128MB', true);

-- Many parts make tables of their campaign, as long as none of it are elsewhere: meanwhile nothing else loads for any stage
-- of it. Batches that are small do not wait for each other.
-- name: api_load_lock
-- $1 campaign bigint, $2 many? boolean
SELECT CASE WHEN $2::boolean THEN pg_advisory_xact_lock(hashtextextended('parts of campaign ' || $1::bigint, 0))
    ELSE pg_advisory_xact_lock_shared(hashtextextended('parts of campaign ' || $1::bigint, 0)) END;

-- Batches of a stage are serialised by a lock on its row.
-- name: api_stage_lock
-- $1 stage bigint
SELECT i.tasks, i.closed, r.state FROM stage_input i JOIN campaign_run r ON r.campaign_id = i.campaign_id
WHERE i.stage_id = $1 FOR UPDATE OF i;

-- name: api_stage_grow
-- $1 stage bigint, $2 by bigint, $3 close? boolean
UPDATE stage_input SET tasks = tasks + $2, closed = closed OR $3 WHERE stage_id = $1;

-- Two sessions must not take the same block: the lock is held for these three statements only.
-- name: api_ids_lock
SELECT pg_advisory_lock(7311, 1);

-- name: api_ids_take
-- $1 how many bigint
SELECT setval('task_id', nextval('task_id') + $1 - 1) - $1 + 1;

-- name: api_ids_unlock
SELECT pg_advisory_unlock(7311, 1);

-- Whether the parts go into tables of their campaign that are not attached yet: many begin such, and further stages of
-- the same submit go on with them.
-- name: api_partition_create
-- $1 campaign bigint, $2 many? boolean
SELECT CASE WHEN $2::boolean OR to_regclass('task_c' || $1::bigint) IS NOT NULL THEN partition_create($1) ELSE false END;

-- name: api_partition_attach
-- $1 campaign bigint
SELECT partition_attach($1);

-- Once all is loaded, which may take minutes: whether the campaign still takes it. It neither ends nor is it cancelled until
-- the transaction ends.
-- name: api_campaign_takes
-- $1 campaign bigint
SELECT r.state, c.wanted FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id WHERE c.id = $1 FOR SHARE OF c, r;
