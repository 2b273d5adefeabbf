-- name: view_pools
-- Pools whose end is not known, with what their account still reserves. Whose it is and what it consists of, its attempt
-- says, which holds the slots. Index pool_open.
-- $1 campaign bigint or 0: all
SELECT p.id, p.attempt_id, a.campaign_id, a.stage_id, a.task_id, p.state, p.fingerprint, a.instance_type, a.instances,
    p.keep_alive_s, coalesce(p.taken_by, 0), p.end_reason, p.available_at, p.expires_at, a.name, a.price_musd_per_hour,
    a.open_musd, a.cost_musd, a.intended_at
FROM pool p JOIN attempt a ON a.id = p.attempt_id
WHERE p.ended_at IS NULL AND ($1::bigint = 0 OR a.campaign_id = $1::bigint) ORDER BY p.id

-- name: view_pool_ends
-- Those that people want to end. Index pool_open.
SELECT id FROM pool WHERE ended_at IS NULL AND end_asked ORDER BY id

-- name: pool_note
-- Update what is known about an available pool. $1 pool bigint, $2 expires timestamptz (NULL: keeps), $3 why it is ended text
-- (NULL: keeps)
UPDATE pool SET expires_at = coalesce($2::timestamptz, expires_at), end_reason = coalesce($3::text, end_reason)
WHERE id = $1::bigint AND ended_at IS NULL

-- name: pool_swap
-- Two available pools swap the jobs that took them. Returns the number of pools changed. $1 pool bigint, $2 other pool bigint
WITH pair AS MATERIALIZED (
    SELECT p.id, o.taken_by FROM pool p JOIN pool o ON o.id <> p.id
    WHERE p.id IN ($1::bigint, $2::bigint) AND o.id IN ($1::bigint, $2::bigint)
      AND p.state = 'available' AND o.state = 'available' FOR UPDATE OF p),
new_pool AS (
    UPDATE pool p SET taken_by = pair.taken_by FROM pair WHERE p.id = pair.id RETURNING p.id, p.taken_by),
new_attempt AS (
    UPDATE attempt a SET pool_id = n.id FROM new_pool n WHERE a.id = n.taken_by)
SELECT count(*) FROM pair

-- name: pool_end
-- An available pool has ended: its cost is booked by the given entries and its attempt's account closed, once;
-- its instances are released unless they were handed over. Returns the number of pools changed.
-- $1 pool bigint, $2 to text, $3 retained_s bigint, $4 idle instance-seconds bigint, $5 their cost bigint,
-- entries: $6 kinds text[], $7 from text[], $8 to text[], $9 amounts bigint[], $10 seconds bigint[],
-- $11 open before bigint
WITH old AS MATERIALIZED (
    SELECT p.id, p.taken_by, a.instances, a.instance_type, a.id AS attempt_id, a.campaign_id, a.stage_id, a.task_id,
        a.name, a.market, a.revived, c.project_id
    FROM pool p JOIN attempt a ON a.id = p.attempt_id JOIN campaign c ON c.id = a.campaign_id
    WHERE p.id = $1::bigint AND p.state = 'available' AND a.settled AND a.open_musd = $11::bigint FOR UPDATE OF p, a),
entries AS MATERIALIZED (
    SELECT * FROM unnest($6::text[], $7::text[], $8::text[], $9::bigint[], $10::bigint[])
        WITH ORDINALITY AS e (entry, from_account, to_account, amount, seconds, rank)),
sums AS MATERIALIZED (
    SELECT coalesce(sum(CASE WHEN to_account = 'reserved' THEN amount
            WHEN from_account = 'reserved' THEN -amount END), 0)::bigint AS reserved,
        coalesce(sum(CASE WHEN to_account = 'spent' THEN amount END), 0)::bigint AS spent
    FROM entries),
new_money AS (
    UPDATE money m SET reserved_musd = m.reserved_musd + sums.reserved, spent_musd = m.spent_musd + sums.spent,
        seconds = m.seconds + $4::bigint, warm_musd = m.warm_musd + $5::bigint, warm_seconds = m.warm_seconds + $4::bigint
    FROM sums, old CROSS JOIN LATERAL (VALUES ('global', 0::bigint), ('project', old.project_id),
        ('campaign', old.campaign_id), ('stage', old.stage_id)) AS v (level, ref_id)
    WHERE m.level = v.level AND m.ref_id = v.ref_id),
new_pool AS (
    UPDATE pool p SET state = $2::text, retained_s = $3::bigint, musd = $5::bigint, ended_at = clock_timestamp()
    FROM old WHERE p.id = old.id),
new_slots AS (
    UPDATE slots s SET warm_idle = s.warm_idle - old.instances
    FROM old WHERE old.taken_by IS NULL AND s.instance_type = old.instance_type AND s.market = old.market),
new_attempt AS (
    UPDATE attempt a SET warm_s = $4::bigint, warm_musd = $5::bigint, open_musd = 0
    FROM old WHERE a.id = old.attempt_id),
new_entries AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, attempt_id, entry, from_account, to_account, amount_musd, seconds,
        again)
    SELECT old.campaign_id, old.stage_id, old.task_id, old.attempt_id, e.entry, e.from_account, e.to_account, e.amount,
        e.seconds, old.revived
    FROM old, entries e ORDER BY e.rank),
new_event AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT campaign_id, 'pool.state', jsonb_build_object('campaign', campaign_id, 'stage', stage_id,
        'attempt_id', attempt_id, 'job', name, 'pool', id, 'to', $2::text, 'cost_micro_usd', $5::bigint)
    FROM old)
SELECT count(*) FROM old
