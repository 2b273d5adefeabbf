-- What the maintenance connection of the leader does now and then.

-- name: events_expire
-- The first ones of the default partition, as far as they are old: ids follow time, and no index is by time alone.
-- $1 how many bigint
WITH page AS MATERIALIZED (
    SELECT ctid AS place, at FROM event_default ORDER BY id LIMIT $1::bigint)
DELETE FROM event_default
WHERE ctid = ANY (ARRAY(SELECT place FROM page WHERE at < clock_timestamp() - interval '14 days'))

-- name: keys_expire
-- The oldest idempotency keys that have expired. Index idempotency_key_age. $1 how many bigint
DELETE FROM idempotency_key WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM idempotency_key WHERE created_at < now() - interval '7 days'
    ORDER BY created_at LIMIT $1::bigint FOR UPDATE SKIP LOCKED))

-- The policy by age, in two statements of one transaction: campaigns that ended before a time are locked, then judged.
-- A retry that was accepted while the first one waited or counted is seen by the second alone.
-- name: archive_due
-- $1 before timestamptz, $2 how many bigint
SELECT c.id FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id
WHERE r.ended_at < $1::timestamptz AND NOT EXISTS (SELECT FROM archive h WHERE h.campaign_id = c.id)
    AND archive_hindrance(c.id) IS NULL
ORDER BY c.id LIMIT $2::bigint FOR UPDATE OF c SKIP LOCKED

-- name: archive_locked
-- Those that nothing hinders are archived as if a person had asked. $1 locked bigint[]
WITH due AS MATERIALIZED (
    SELECT c.id FROM campaign c
    WHERE c.id = ANY ($1::bigint[]) AND NOT EXISTS (SELECT FROM archive h WHERE h.campaign_id = c.id)
        AND archive_hindrance(c.id) IS NULL),
new_archive AS (
    INSERT INTO archive (campaign_id, asked_by) SELECT id, 'policy' FROM due),
new_audit AS (
    INSERT INTO audit (token_id, role, action, subject, request_id)
    SELECT 'policy', 'policy', 'campaign.archive', 'c-' || id, '' FROM due)
INSERT INTO operation (campaign_id, kind, selector, total, created_by)
SELECT id, 'archive', '{}', greatest(1, (SELECT sum(i.tasks) FROM stage_input i WHERE i.campaign_id = id)), 'policy' FROM due
