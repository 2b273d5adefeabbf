-- File systems: the tries of stages of kind lustre, written by the leader.

-- name: view_filesystems
-- Those that are open, and of campaigns that are all tries of stages that are, or whose own row is gone. Indexes filesystem_open,
-- campaign_run_live, filesystem_campaign: what has ended is not read.
SELECT f.id, c.project_id, f.campaign_id, f.stage_id, f.n, f.state, f.token, f.aws_id, f.mount, f.link_id, f.deployment,
    f.size_gib, f.ttl_s, f.keep, f.exports, f.import_from, f.ready, f.delete_asked, f.failed, f.cause,
    f.price_musd_per_gb_month, f.reserved_musd, f.intended_at, f.created_at, f.available_at, f.ending_at, f.off_at,
    f.ended_at, f.reason, f.kept_for_retry
FROM filesystem f JOIN campaign c ON c.id = f.campaign_id LEFT JOIN stage_run s ON s.stage_id = f.stage_id
WHERE f.id IN (SELECT id FROM filesystem WHERE state NOT IN ('deleted', 'failed')
        UNION SELECT x.id FROM campaign_run r JOIN filesystem x ON x.campaign_id = r.campaign_id WHERE r.state NOT IN ('succeeded', 'failed', 'cancelled'))
    AND (f.state NOT IN ('deleted', 'failed') OR coalesce(s.state, '') NOT IN ('succeeded', 'failed', 'skipped', 'cancelled'))
ORDER BY f.id

-- name: filesystem_id
SELECT nextval(pg_get_serial_sequence('filesystem', 'id'))

-- name: filesystem_money_rows
-- The rows of money that an intent will lock, and the lock of the campaign: see intend_rows.
-- $1 campaign bigint, $2 stage bigint
INSERT INTO money (level, ref_id)
SELECT v.level, v.ref_id FROM campaign c CROSS JOIN LATERAL (VALUES ('global', 0::bigint), ('project', c.project_id),
    ('campaign', c.id), ('stage', $2::bigint)) AS v (level, ref_id)
WHERE c.id = $1::bigint FOR SHARE OF c ON CONFLICT DO NOTHING

-- name: filesystem_intend
-- One intent, all or nothing, on locked rows: campaign, then money by level. Returns the check that refused: '' when
-- all passed. :now and :until are times; the request is exact bytes.
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
new_filesystem AS (
    INSERT INTO filesystem (id, stage_id, campaign_id, n, state, token, size_gib, deployment, ttl_s, keep, exports,
        import_from, request, price_musd_per_gb_month, reserved_musd, intended_at, delete_after)
    OVERRIDING SYSTEM VALUE
    SELECT :id::bigint, :stage::bigint, :campaign::bigint, :n::int, 'intended', :token::text, :size::bigint,
        :deployment::text, :ttl_s::bigint, :keep::boolean, :exports::boolean, :import::text, :request::bytea,
        :price::bigint, :reserve::bigint, :now::timestamptz, :until::timestamptz FROM ok),
new_entry AS (
    INSERT INTO ledger (campaign_id, stage_id, task_id, filesystem_id, entry, from_account, to_account, amount_musd)
    SELECT :campaign::bigint, :stage::bigint, 0, :id::bigint, 'reserve', 'budget', 'reserved', :reserve::bigint FROM ok),
new_event AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT :campaign::bigint, 'filesystem.state', jsonb_build_object('campaign', :campaign::bigint, 'stage', :stage::bigint,
        'filesystem', :token::text, 'from', '', 'to', 'intended', 'reason', '') FROM ok)
SELECT why FROM refused

-- name: filesystem_move
-- Its row as it is now, but for what people write of it. Returns how many: none when it was in another state. :from and
-- :to are states.
WITH old AS MATERIALIZED (
    SELECT id, campaign_id, stage_id, token FROM filesystem
    WHERE id = :id::bigint AND state = :from::text FOR UPDATE),
moved AS (
    UPDATE filesystem f SET state = :to::text, aws_id = :aws_id::text, mount = :mount::text, link_id = :link::text,
        ready = :ready::boolean, failed = :failed::boolean, cause = :cause::smallint, reason = :reason::text,
        kept_for_retry = :kept::boolean, created_at = :created::timestamptz, available_at = :available::timestamptz,
        ending_at = :ending::timestamptz, off_at = :off::timestamptz, delete_after = :until::timestamptz, updated_at = clock_timestamp()
    FROM old WHERE f.id = old.id),
new_event AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT old.campaign_id, 'filesystem.state', jsonb_build_object('campaign', old.campaign_id, 'stage', old.stage_id,
        'filesystem', old.token, 'from', :from::text, 'to', :to::text, 'reason', :reason::text)
    FROM old WHERE :from::text <> :to::text)
SELECT count(*) FROM old

-- name: filesystem_end
-- It is proven absent: what it cost is booked and the rest of its reservation released. Returns how many: none
-- when that has happened before.
-- $1 id bigint, $2 state text, $3 ended timestamptz, $4 hours bigint, $5 cost bigint, $6 estimated boolean,
-- entries: $7 kinds text[], $8 from text[], $9 to text[], $10 amounts bigint[], $11 seconds bigint[]
WITH over AS (
    UPDATE filesystem SET state = $2::text, ended_at = $3::timestamptz, hours = $4::bigint,
        cost_musd = $5::bigint, estimated = $6::boolean, request = NULL,
        updated_at = clock_timestamp()
    WHERE id = $1::bigint AND state = 'deleting' RETURNING id, campaign_id, stage_id, token, reason),
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
    INSERT INTO ledger (campaign_id, stage_id, task_id, filesystem_id, entry, from_account, to_account, amount_musd,
        seconds, estimated)
    SELECT o.campaign_id, o.stage_id, 0, o.id, e.entry, e.from_account, e.to_account, e.amount, e.seconds,
        e.entry = 'settle' AND $6::boolean FROM over o, entries e ORDER BY e.rank),
new_event AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT campaign_id, 'filesystem.state', jsonb_build_object('campaign', campaign_id, 'stage', stage_id,
        'filesystem', token, 'from', 'deleting', 'to', $2::text, 'reason', reason, 'cost_micro_usd', $5::bigint)
    FROM over)
SELECT count(*) FROM over

-- name: filesystem_request
-- $1 id bigint
SELECT request FROM filesystem WHERE id = $1::bigint
