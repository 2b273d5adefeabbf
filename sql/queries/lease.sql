-- name: lease_read
SELECT epoch, renewals, length_us, backend_pid, holder FROM lease

-- name: lease_try_lock
-- The leader's advisory lock, on its session.
SELECT pg_try_advisory_lock(7247362102)

-- name: lease_lock
-- As above, but waits up to lock_timeout.
SELECT pg_advisory_lock(7247362102)

-- name: lease_unlock
SELECT pg_advisory_unlock(7247362102)

-- name: lease_take
-- A new epoch: no transaction of an older one commits after this. The length that stays is the longest of any lease that
-- may last, until a renewal shortens it. $1 holder text, $2 length_us bigint
UPDATE lease SET epoch = epoch + 1, holder = $1::text, length_us = greatest(length_us, $2::bigint),
    backend_pid = pg_backend_pid(), renewals = CASE renewals WHEN 9223372036854775807 THEN 0 ELSE renewals + 1 END, renewed_at = clock_timestamp()
RETURNING epoch, length_us

-- name: lease_take_seen
-- The same, only if the lease was neither renewed nor taken since it was read.
-- $1 holder text, $2 length_us bigint, $3 epoch bigint, $4 renewals bigint
UPDATE lease SET epoch = epoch + 1, holder = $1::text, length_us = greatest(length_us, $2::bigint),
    backend_pid = pg_backend_pid(), renewals = CASE renewals WHEN 9223372036854775807 THEN 0 ELSE renewals + 1 END, renewed_at = clock_timestamp()
WHERE epoch = $3::bigint AND renewals = $4::bigint
RETURNING epoch, length_us

-- name: lease_evict
-- End the session that holds the leader's lock (never our own).
SELECT count(pg_terminate_backend(pid)) FROM pg_locks
WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (classid::bigint << 32 | objid::bigint) = 7247362102 AND objsubid = 1

-- name: lease_renew
-- $1 epoch bigint, $2 length_us bigint
UPDATE lease SET renewals = CASE renewals WHEN 9223372036854775807 THEN 0 ELSE renewals + 1 END, renewed_at = clock_timestamp(), length_us = $2::bigint
WHERE epoch = $1::bigint

-- name: lease_check
-- First statement of every transaction of the leader; the row lock delays a takeover until it
-- ends. $1 epoch bigint
SELECT true FROM lease WHERE epoch = $1::bigint FOR SHARE

-- name: durability
-- The settings that make a commit durable.
SELECT current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('synchronous_commit'), pg_is_in_recovery(),
    current_setting('transaction_read_only')

-- name: install_id
SELECT id::text FROM install
