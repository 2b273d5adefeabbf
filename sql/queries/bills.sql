-- Bills of ended jobs that were settled by an estimate. See orchestrator/core/leader/bills.h.

-- name: view_bills
-- Those that are still asked for: attempts, by id, and strays (0), by name. One that was found before the price of its
-- type was known has the one that is known now, or 0. Indexes attempt_bill, stray_bill.
-- $1 how many of each bigint
(SELECT a.id, a.campaign_id, c.project_id, a.stage_id, a.task_id, a.name, a.instances,
    coalesce(nullif(a.price_musd_per_hour, 0), (SELECT musd_per_hour FROM price p WHERE p.instance_type = a.instance_type), 0),
    a.billable_s, a.cost_musd, CASE WHEN array_ndims(a.phases) = 1 AND array_position(a.phases, NULL) IS NULL THEN a.phases END
FROM attempt a JOIN campaign c ON c.id = a.campaign_id
WHERE a.estimated AND NOT a.bill_given_up AND a.settled ORDER BY a.id LIMIT $1::bigint)
UNION ALL
(SELECT 0, 0, 0, 0, 0, x.name, x.instances,
    coalesce(nullif(x.price_musd_per_hour, 0), (SELECT musd_per_hour FROM price p WHERE p.instance_type = x.instance_type), 0), x.billable_s, x.cost_musd, '{}'::bigint[]
FROM stray x
WHERE x.estimated AND NOT x.bill_given_up AND x.kind = 'job' AND NOT x.holds ORDER BY x.name LIMIT $1::bigint)

-- name: bill_correct
-- The bill has come: its difference to what is booked is booked, once, at every level; a failure that stands has cost as
-- much less, if this attempt is one of those it sums up. Returns how many: 0 when it is no longer that estimate, or archived.
-- :was_s, :was what is booked; :phases {}, :rules NULL: as before.
WITH old AS MATERIALIZED (
    SELECT a.id, a.campaign_id, a.stage_id, a.task_id, a.revived, c.project_id,
        CASE WHEN :to_account::text = 'spent' THEN 1 ELSE -1 END AS sign
    FROM attempt a JOIN campaign c ON c.id = a.campaign_id
    WHERE a.id = :attempt::bigint AND a.settled AND a.estimated AND NOT a.bill_given_up
      AND a.billable_s = :was_s::bigint AND a.cost_musd = :was::bigint FOR UPDATE OF a),
new_money AS (
    UPDATE money m SET spent_musd = m.spent_musd + old.sign * :amount::bigint,
        seconds = m.seconds + old.sign * :seconds::bigint
    FROM old CROSS JOIN LATERAL (VALUES ('global', 0::bigint), ('project', old.project_id),
        ('campaign', old.campaign_id), ('stage', old.stage_id)) AS v (level, ref_id)
    WHERE m.level = v.level AND m.ref_id = v.ref_id),
new_failure AS (
    UPDATE task_failure f SET lost_musd = f.lost_musd + old.sign * :amount::bigint
    FROM old WHERE f.task_id = old.task_id AND f.attempt_id >= old.id
      AND f.lost_musd >= (SELECT sum(x.cost_musd) FROM attempt x
                          WHERE x.task_id = old.task_id AND x.id BETWEEN old.id AND f.attempt_id)),
new_attempt AS (
    UPDATE attempt a SET billable_s = :billable_s::bigint, cost_musd = :cost::bigint, estimated = false,
        phases = coalesce(nullif(:phases::bigint[], '{}'), a.phases),
        evidence = CASE WHEN :rules::jsonb IS NULL THEN a.evidence
            ELSE coalesce(a.evidence, '{}') || jsonb_build_object('rules', :rules::jsonb) END
    FROM old WHERE a.id = old.id),
new_entry AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, attempt_id, entry, from_account, to_account, amount_musd, seconds,
        again)
    SELECT campaign_id, stage_id, task_id, id, 'correct', :from_account::text, :to_account::text, :amount::bigint,
        :seconds::bigint, revived FROM old)
SELECT count(*) FROM old

-- name: bill_give_up
-- It stays an estimate. $1 attempt bigint
UPDATE attempt SET bill_given_up = true WHERE id = $1::bigint AND estimated

-- name: stray_bill_correct
-- The same of a stray, which counts in the sum of everything alone. $1 name text, $2 seconds and $3 cost that are booked
-- bigint, $4 billable_s bigint, $5 cost bigint, the entry: $6 from text, $7 to text, $8 amount bigint, $9 seconds bigint
WITH old AS MATERIALIZED (
    SELECT name, CASE WHEN $7::text = 'spent' THEN 1 ELSE -1 END AS sign FROM stray
    WHERE name = $1::text AND kind = 'job' AND NOT holds AND estimated AND NOT bill_given_up
      AND billable_s = $2::bigint AND cost_musd = $3::bigint FOR UPDATE),
new_money AS (
    UPDATE money m SET spent_musd = m.spent_musd + old.sign * $8::bigint, seconds = m.seconds + old.sign * $9::bigint
    FROM old WHERE m.level = 'global' AND m.ref_id = 0),
new_stray AS (
    UPDATE stray x SET billable_s = $4::bigint, cost_musd = $5::bigint, estimated = false FROM old WHERE x.name = old.name),
new_entry AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, stray, entry, from_account, to_account, amount_musd, seconds)
    SELECT 0, 0, 0, name, 'correct', $6::text, $7::text, $8::bigint, $9::bigint FROM old)
SELECT count(*) FROM old

-- name: stray_bill_give_up
-- $1 name text
UPDATE stray SET bill_given_up = true WHERE name = $1::text AND estimated AND NOT holds
