-- Endpoints: the tries of stages of kind endpoint, written by the leader.

-- name: view_endpoints
-- Those that are open, and of campaigns that are all tries of stages that are, or whose own row is gone. Indexes endpoint_open,
-- campaign_run_live, endpoint_campaign: what has ended is not read.
SELECT e.id, c.project_id, e.campaign_id, e.stage_id, e.n, e.state, e.name, e.instance_type, e.instances, e.ttl_s,
    e.made, e.passed, e.delete_asked, e.failed, e.cause, e.p95_us, e.price_musd_per_hour, e.reserved_musd,
    e.intended_at, e.created_at, e.in_service_at, e.deleting_at, e.off_at, e.ended_at, e.reason,
    CASE WHEN e.extend_asked BETWEEN '1970-01-01Z' AND '9999-12-31Z' THEN e.extend_asked END,
    e.extend_seen, e.idle_s, e.tested_at, e.tested_n, e.invoked_at, e.served_at
FROM endpoint e JOIN campaign c ON c.id = e.campaign_id LEFT JOIN stage_run s ON s.stage_id = e.stage_id
WHERE e.id IN (SELECT id FROM endpoint WHERE state NOT IN ('deleted', 'failed')
        UNION SELECT x.id FROM campaign_run r JOIN endpoint x ON x.campaign_id = r.campaign_id WHERE r.state NOT IN ('succeeded', 'failed', 'cancelled'))
    AND (e.state NOT IN ('deleted', 'failed') OR coalesce(s.state, '') NOT IN ('succeeded', 'failed', 'skipped', 'cancelled'))
ORDER BY e.id

-- name: endpoint_id
SELECT nextval(pg_get_serial_sequence('endpoint', 'id'))

-- name: endpoint_money_rows
-- The rows of money that an intent or a later end will lock, and the lock of the campaign: see intend_rows.
-- $1 campaign bigint, $2 stage bigint
INSERT INTO money (level, ref_id)
SELECT v.level, v.ref_id FROM campaign c CROSS JOIN LATERAL (VALUES ('global', 0::bigint), ('project', c.project_id),
    ('campaign', c.id), ('stage', $2::bigint)) AS v (level, ref_id)
WHERE c.id = $1::bigint FOR SHARE OF c ON CONFLICT DO NOTHING

-- name: endpoint_intend
-- One intent, all or nothing, on locked rows: campaign, then money by level. Returns the check that refused: '' when
-- all passed. :now and :until are times; requests are exact bytes.
WITH want AS MATERIALIZED (
    SELECT c.id, c.project_id FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id
    JOIN stage_run s ON s.campaign_id = c.id AND s.stage_id = :stage::bigint
    WHERE c.id = :campaign::bigint AND c.wanted = 'run' AND r.state = 'running' AND s.state = 'running' FOR SHARE OF c),
room AS MATERIALIZED (
    SELECT m.level, m.ref_id,
        :reserve::bigint <= coalesce(k.limit_musd, 9223372036854775807) - m.reserved_musd - m.spent_musd AS fits
    FROM want w CROSS JOIN LATERAL (VALUES (1, 'global', 0::bigint), (2, 'project', w.project_id),
        (3, 'campaign', w.id), (4, 'stage', :stage::bigint)) AS v (rank, level, ref_id)
    JOIN money m ON m.level = v.level AND m.ref_id = v.ref_id
    LEFT JOIN cap k ON k.level = v.level AND k.ref_id = v.ref_id
    ORDER BY v.rank FOR UPDATE OF m),
refused AS MATERIALIZED (
    SELECT CASE WHEN NOT EXISTS (SELECT FROM want) THEN 'campaign'
        WHEN NOT (SELECT count(*) = 4 AND bool_and(fits) FROM room) THEN 'money' ELSE '' END AS why),
ok AS MATERIALIZED (SELECT FROM refused WHERE why = ''),
new_money AS (
    UPDATE money m SET reserved_musd = m.reserved_musd + :reserve::bigint
    FROM ok, room WHERE m.level = room.level AND m.ref_id = room.ref_id),
new_endpoint AS (
    INSERT INTO endpoint (id, stage_id, campaign_id, n, state, name, instance_type, instances, ttl_s, idle_s, model_request,
        config_request, endpoint_request, price_musd_per_hour, reserved_musd, intended_at, delete_after)
    OVERRIDING SYSTEM VALUE
    SELECT :id::bigint, :stage::bigint, :campaign::bigint, :n::int, 'intended', :name::text, :instance_type::text,
        :instances::int, :ttl_s::bigint, :idle_s::bigint, :model_request::bytea, :config_request::bytea, :endpoint_request::bytea,
        :price::bigint, :reserve::bigint, :now::timestamptz, :until::timestamptz FROM ok),
new_entry AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, endpoint_id, entry, from_account, to_account, amount_musd)
    SELECT :campaign::bigint, :stage::bigint, 0, :id::bigint, 'reserve', 'budget', 'reserved', :reserve::bigint FROM ok),
new_event AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT :campaign::bigint, 'endpoint.state', jsonb_build_object('campaign', :campaign::bigint, 'stage', :stage::bigint,
        'endpoint', :name::text, 'from', '', 'to', 'intended', 'reason', '') FROM ok)
SELECT why FROM refused

-- name: endpoint_move
-- What is known of one now. Returns how many: none when it is in another state, or is to be deleted while people want a
-- later end than the leader knows of, :wish. :from and :to are states.
WITH old AS MATERIALIZED (
    SELECT id, campaign_id, stage_id, name FROM endpoint
    WHERE id = :id::bigint AND state = :from::text
      AND (:to::text <> 'deleting' OR :wish::timestamptz IS NOT DISTINCT FROM
          CASE WHEN extend_asked BETWEEN '1970-01-01Z' AND '9999-12-31Z' THEN extend_asked END) FOR UPDATE),
moved AS (
    UPDATE endpoint e SET state = :to::text, made = :made::int, passed = :passed::boolean, failed = :failed::boolean,
        cause = :cause::smallint, p95_us = :p95_us::bigint, reason = :reason::text, created_at = :created::timestamptz,
        in_service_at = :in_service::timestamptz, deleting_at = :deleting::timestamptz, off_at = :off::timestamptz,
        delete_after = :until::timestamptz, tested_at = :tested::timestamptz, tested_n = :tested_n::int,
        invoked_at = :invoked::timestamptz, served_at = :served::timestamptz, updated_at = clock_timestamp()
    FROM old WHERE e.id = old.id),
new_event AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT old.campaign_id, 'endpoint.state', jsonb_build_object('campaign', old.campaign_id, 'stage', old.stage_id,
        'endpoint', old.name, 'from', :from::text, 'to', :to::text, 'reason', :reason::text)
    FROM old WHERE :from::text <> :to::text)
SELECT count(*) FROM old

-- name: endpoint_extend
-- People want a later end: taken, or refused when a cap leaves no room for what it reserves more. On locked rows: the
-- endpoint, then money by level; endpoint_money_rows has locked the campaign. Returns what refused, money or state: '' when it was taken.
-- $1 id bigint, $2 wish timestamptz, $3 ttl_s bigint, $4 reserved bigint, $5 until timestamptz
WITH old AS MATERIALIZED (
    SELECT e.id, e.campaign_id, e.stage_id, e.name, c.project_id, $4::bigint - e.reserved_musd AS more
    FROM endpoint e JOIN campaign c ON c.id = e.campaign_id
    WHERE e.id = $1::bigint AND e.state = 'in_service' AND e.extend_asked = $2::timestamptz FOR UPDATE OF e),
room AS MATERIALIZED (
    SELECT m.level, m.ref_id,
        o.more <= coalesce(k.limit_musd, 9223372036854775807) - m.reserved_musd - m.spent_musd AS fits
    FROM old o CROSS JOIN LATERAL (VALUES (1, 'global', 0::bigint), (2, 'project', o.project_id),
        (3, 'campaign', o.campaign_id), (4, 'stage', o.stage_id)) AS v (rank, level, ref_id)
    JOIN money m ON m.level = v.level AND m.ref_id = v.ref_id
    LEFT JOIN cap k ON k.level = v.level AND k.ref_id = v.ref_id
    ORDER BY v.rank FOR UPDATE OF m),
refused AS MATERIALIZED (
    SELECT CASE WHEN NOT EXISTS (SELECT FROM old) THEN 'state'
        WHEN NOT (SELECT count(*) = 4 AND bool_and(fits) FROM room) THEN 'money' ELSE '' END AS why),
answered AS (
    UPDATE endpoint e SET extend_seen = $2::timestamptz, updated_at = clock_timestamp(),
        ttl_s = CASE r.why WHEN '' THEN $3::bigint ELSE e.ttl_s END,
        reserved_musd = CASE r.why WHEN '' THEN $4::bigint ELSE e.reserved_musd END,
        delete_after = CASE r.why WHEN '' THEN $5::timestamptz ELSE e.delete_after END
    FROM refused r, old WHERE e.id = old.id),
new_money AS (
    UPDATE money m SET reserved_musd = m.reserved_musd + o.more
    FROM refused r, old o, room WHERE r.why = '' AND m.level = room.level AND m.ref_id = room.ref_id),
new_entry AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, endpoint_id, entry, from_account, to_account, amount_musd)
    SELECT o.campaign_id, o.stage_id, 0, o.id, 'extend', 'budget', 'reserved', o.more
    FROM refused r, old o WHERE r.why = '' AND o.more > 0),
new_event AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT o.campaign_id, 'endpoint.extend', jsonb_build_object('campaign', o.campaign_id, 'stage', o.stage_id,
        'endpoint', o.name, 'until', $2::timestamptz, 'refused', r.why) FROM refused r, old o)
SELECT why FROM refused

-- name: endpoint_end
-- All three are proven absent: what it cost is booked and the rest of its reservation released. Returns how many: none
-- when that has happened before.
-- $1 id bigint, $2 state text, $3 ended timestamptz, $4 billable_s bigint, $5 cost bigint, $6 estimated boolean,
-- entries: $7 kinds text[], $8 from text[], $9 to text[], $10 amounts bigint[], $11 seconds bigint[]
WITH over AS (
    UPDATE endpoint SET state = $2::text, ended_at = $3::timestamptz, billable_s = $4::bigint,
        cost_musd = $5::bigint, estimated = $6::boolean, model_request = NULL, config_request = NULL,
        endpoint_request = NULL, updated_at = clock_timestamp()
    WHERE id = $1::bigint AND state = 'deleting' RETURNING id, campaign_id, stage_id, name, reason),
entries AS MATERIALIZED (
    SELECT e.* FROM over, unnest($7::text[], $8::text[], $9::text[], $10::bigint[], $11::bigint[])
        WITH ORDINALITY AS e (entry, from_account, to_account, amount, seconds, rank)),
new_money AS (
    UPDATE money m SET reserved_musd = m.reserved_musd + x.reserved, spent_musd = m.spent_musd + x.spent,
        seconds = m.seconds + x.seconds
    FROM (SELECT coalesce(sum(CASE WHEN to_account = 'reserved' THEN amount
            WHEN from_account = 'reserved' THEN -amount END), 0)::bigint AS reserved,
        coalesce(sum(CASE WHEN to_account = 'spent' THEN amount END), 0)::bigint AS spent,
        coalesce(sum(seconds), 0)::bigint AS seconds FROM entries) x,
        over o JOIN campaign c ON c.id = o.campaign_id CROSS JOIN LATERAL (VALUES ('global', 0::bigint),
            ('project', c.project_id), ('campaign', c.id), ('stage', o.stage_id)) AS v (level, ref_id)
    WHERE m.level = v.level AND m.ref_id = v.ref_id),
new_entries AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, endpoint_id, entry, from_account, to_account, amount_musd,
        seconds, estimated)
    SELECT o.campaign_id, o.stage_id, 0, o.id, e.entry, e.from_account, e.to_account, e.amount, e.seconds,
        e.entry = 'settle' AND $6::boolean FROM over o, entries e ORDER BY e.rank),
new_event AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT campaign_id, 'endpoint.state', jsonb_build_object('campaign', campaign_id, 'stage', stage_id,
        'endpoint', name, 'from', 'deleting', 'to', $2::text, 'reason', reason, 'cost_micro_usd', $5::bigint)
    FROM over)
SELECT count(*) FROM over

-- name: endpoint_requests
-- $1 id bigint
SELECT model_request, config_request, endpoint_request FROM endpoint WHERE id = $1::bigint

-- name: endpoint_model_job
-- The newest job of a stage's parts that ended well: its model is served. $1 stage bigint
SELECT a.name FROM attempt a WHERE a.stage_id = $1::bigint AND a.state = 8 ORDER BY a.id DESC LIMIT 1
