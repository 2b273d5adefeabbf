-- What people are told of, and its way to their webhooks. Run by the notifier of the leading droverd; several at once do no
-- harm: notices are made behind a lock, a webhook is delivered to by who has its row.

-- name: notice_lock
-- Until the transaction ends; a lock of a row would write to disk at every look.
SELECT pg_try_advisory_xact_lock(7247362103)

-- name: notice_begin
-- Where to go on, and since when there are webhooks, NULL: there are none. In a statement after the lock's.
SELECT event_id, (SELECT min(created_at) FROM webhook) FROM notice_cursor

-- name: notice_events
-- A notice for what has happened, or it joins one that is still collecting. Returns how many events were read, the last
-- one's id, and the campaigns whose state changed. Relies on the primary key of event, notice_open.
-- $1 after bigint, $2 since timestamptz, $3 rows bigint, $4 microseconds that failures are collected bigint
WITH seen AS MATERIALIZED (
    SELECT id, at, campaign_id, kind, detail FROM event
    WHERE id > $1::bigint AND at >= $2::timestamptz ORDER BY id LIMIT $3::bigint),
happened AS (
    SELECT s.id, s.at, s.campaign_id, CASE
        WHEN s.kind = 'part.state' AND s.detail->>'to' = 'failed' AND NOT s.detail ? 'undone' THEN 'failed'
        WHEN s.kind = 'campaign.state' AND s.detail->>'to' = 'held' THEN 'held'
        WHEN s.kind = 'stage.state' AND s.detail->>'to' = 'held' THEN 'held'
        WHEN s.kind = 'campaign.state' AND s.detail->>'to' IN ('succeeded', 'failed', 'cancelled') THEN 'done'
        WHEN s.kind = 'alert' AND s.detail->>'about' = 'stray' THEN 'lost'
        WHEN s.kind = 'alert' AND s.detail->>'about' = 'parked' THEN 'stuck' END AS what
    FROM seen s),
opened AS (
    INSERT INTO notice (kind, project_id, campaign_id, at, due_at, first_event)
    SELECT h.what, c.project_id, h.campaign_id, min(h.at), clock_timestamp() + CASE WHEN h.what IN ('failed', 'lost')
        THEN $4::bigint ELSE least($4::bigint, 1000000) END * interval '1 microsecond', min(h.id)
    FROM happened h LEFT JOIN campaign c ON c.id = h.campaign_id
    WHERE h.what IS NOT NULL GROUP BY h.what, c.project_id, h.campaign_id ORDER BY min(h.id)
    ON CONFLICT (campaign_id, kind) WHERE due_at IS NOT NULL AND first_event > 0 DO NOTHING)
SELECT count(*), coalesce(max(id), $1::bigint),
    coalesce(string_agg(campaign_id::text, ',') FILTER (WHERE kind = 'campaign.state'), '') FROM seen

-- name: notice_budgets
-- A notice for each budget of which more is spent than was told; returns how many. 100 % is used up: spent, or the
-- campaign is held for it. Relies on the primary keys, campaign_run_live. $1 campaigns that ended since the last look text
WITH campaigns AS MATERIALIZED (
    SELECT campaign_id AS id FROM campaign_run WHERE state NOT IN ('succeeded', 'failed', 'cancelled')
    UNION SELECT ref_id FROM notice_watch WHERE what = 'campaign' AND NOT over
    UNION SELECT unnest(string_to_array(nullif($1::text, ''), ','))::bigint),
budgets AS (
    SELECT 'campaign' AS what, c.id AS ref_id, c.id AS campaign_id, c.project_id, r.state = 'held' AND r.reason = 'budget' AS held,
        r.state IN ('succeeded', 'failed', 'cancelled') AS ended
    FROM campaigns x JOIN campaign c ON c.id = x.id JOIN campaign_run r ON r.campaign_id = c.id
    UNION ALL SELECT 'project', p.id, 0, p.id, false, false FROM project p
    UNION ALL SELECT 'global', 0, 0, NULL, false, false),
now AS MATERIALIZED (
    SELECT b.what, b.ref_id, b.campaign_id, b.project_id, k.limit_musd, coalesce(m.spent_musd, 0) AS spent,
        b.ended AND coalesce(m.reserved_musd, 0) = 0 AS over,
        CASE WHEN b.held THEN 1000000 ELSE coalesce((SELECT max(t) FROM unnest(array_append(coalesce(k.warn_at_ppm,
                ARRAY[500000, 800000]::bigint[]), 1000000::bigint)) t
            WHERE m.spent_musd::numeric * 1000000 >= k.limit_musd::numeric * t), 0) END AS ppm
    FROM budgets b JOIN cap k ON k.level = b.what AND k.ref_id = b.ref_id AND k.limit_musd > 0
    LEFT JOIN money m ON m.level = b.what AND m.ref_id = b.ref_id),
changed AS MATERIALIZED (
    SELECT n.*, coalesce(w.told_ppm, 0) AS told FROM now n
    LEFT JOIN notice_watch w ON w.what = n.what AND w.ref_id = n.ref_id
    WHERE w.ref_id IS NULL OR w.told_ppm <> n.ppm OR w.over <> n.over),
kept AS (
    INSERT INTO notice_watch (what, ref_id, told_ppm, over) SELECT what, ref_id, ppm, over FROM changed
    ON CONFLICT (what, ref_id) DO UPDATE SET told_ppm = excluded.told_ppm, over = excluded.over, since = clock_timestamp()),
made AS (
    INSERT INTO notice (kind, project_id, campaign_id, due_at, facts)
    SELECT 'budget', c.project_id, c.campaign_id, clock_timestamp(), jsonb_build_object('budget', jsonb_build_object(
        'of', c.what, 'percent', trim_scale(c.ppm::numeric / 10000), 'limit_micro_usd', c.limit_musd, 'spent_micro_usd', c.spent))
    FROM changed c WHERE c.ppm > c.told ORDER BY c.what, c.ref_id RETURNING id)
SELECT count(*) FROM made

-- name: notice_stuck
-- Which campaigns have something to start and nothing that runs, for a reason that time alone does not mend, and since
-- when. $1 wait reasons that end by themselves text[]
WITH stuck AS MATERIALIZED (
    SELECT r.campaign_id AS id FROM campaign_run r
    CROSS JOIN LATERAL (SELECT coalesce(sum(n.active), 0) AS active,
            bool_or(n.state = 'running' AND (i.tasks - n.taken + n.waiting > 0 OR (g.kind <> 'jobs' AND n.wait_reason <> 'none')) AND n.wait_reason <> ALL ($1::text[])) AS waits
        FROM stage_run n JOIN stage_input i ON i.stage_id = n.stage_id JOIN stage g ON g.id = n.stage_id
        WHERE n.campaign_id = r.campaign_id) s
    WHERE r.state = 'running' AND s.active = 0 AND s.waits),
gone AS (
    DELETE FROM notice_watch w WHERE w.what = 'stuck' AND w.ref_id NOT IN (SELECT id FROM stuck)),
kept AS (
    INSERT INTO notice_watch (what, ref_id) SELECT 'stuck', id FROM stuck ON CONFLICT (what, ref_id) DO NOTHING)
SELECT count(*) FROM stuck

-- name: notice_stuck_long
-- A notice for those that are so for long, once; returns how many. $1 microseconds bigint
WITH long AS (
    UPDATE notice_watch SET told_ppm = 1
    WHERE what = 'stuck' AND told_ppm = 0 AND since < clock_timestamp() - $1::bigint * interval '1 microsecond'
    RETURNING ref_id, since),
made AS (
    INSERT INTO notice (kind, project_id, campaign_id, due_at, facts)
    SELECT 'stuck', c.project_id, c.id, clock_timestamp(), jsonb_build_object('since',
        to_char(l.since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
    FROM long l JOIN campaign c ON c.id = l.ref_id ORDER BY c.id RETURNING id)
SELECT count(*) FROM made

-- name: notice_late
-- A notice for each campaign that has not ended by its deadline, once for each deadline; returns how many. It is of kind stuck, which an
-- older droverd knows. Relies on campaign_run_live.
WITH late AS MATERIALIZED (
    SELECT c.id, c.project_id, c.deadline FROM campaign_run r JOIN campaign c ON c.id = r.campaign_id
    WHERE r.state NOT IN ('succeeded', 'failed', 'cancelled') AND c.deadline < clock_timestamp()),
told AS (
    INSERT INTO deadline_told AS d (campaign_id, deadline) SELECT id, deadline FROM late
    ON CONFLICT (campaign_id) DO UPDATE SET deadline = excluded.deadline WHERE d.deadline <> excluded.deadline RETURNING campaign_id),
made AS (
    INSERT INTO notice (kind, project_id, campaign_id, due_at, facts)
    SELECT 'stuck', l.project_id, l.id, clock_timestamp(), jsonb_build_object('late_since',
        to_char(l.deadline AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
    FROM late l JOIN told t ON t.campaign_id = l.id ORDER BY l.id RETURNING id)
SELECT count(*) FROM made

-- name: notice_due
-- Those that have collected what they collect, with what is known of their campaign now. $1 events looked at bigint
SELECT n.id, n.kind, n.campaign_id, (n.facts || CASE WHEN c.id IS NULL THEN '{}'::jsonb ELSE jsonb_build_object(
        'campaign', 'c-' || c.id, 'name', c.name, 'state', r.state, 'reason', r.reason,
        'parts', (SELECT jsonb_build_object('done', coalesce(sum(s.done + s.skipped), 0), 'failed', coalesce(sum(s.failed), 0),
                'waiting', coalesce(sum(s.waiting + s.held), 0), 'active', coalesce(sum(s.active), 0),
                'cancelled', coalesce(sum(s.cancelled), 0)) FROM stage_run s WHERE s.campaign_id = c.id),
        'spent_micro_usd', coalesce(m.spent_musd, 0)) END
    || CASE WHEN p.name IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('project', p.name) END
    || CASE n.kind WHEN 'failed' THEN (SELECT jsonb_build_object('failed', coalesce(sum(f.n), 0), 'causes',
                coalesce(jsonb_agg(jsonb_build_object('cause', f.cause, 'parts', f.n) ORDER BY f.n DESC, f.cause), '[]'))
            FROM (SELECT e.detail->>'cause' AS cause, sum((e.detail->>'n')::bigint) AS n FROM event e
                WHERE e.campaign_id = n.campaign_id AND e.id BETWEEN n.first_event AND $1::bigint
                  AND e.kind = 'part.state' AND e.detail->>'to' = 'failed' AND NOT e.detail ? 'undone' GROUP BY 1) f)
        WHEN 'done' THEN jsonb_build_object('kept', (SELECT jsonb_agg(jsonb_build_object('name', f.token,
                'until', to_char(f.delete_after AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) ORDER BY f.id)
            FROM filesystem f WHERE f.campaign_id = n.campaign_id AND f.state = 'available' AND f.kept_for_retry))
        WHEN 'lost' THEN (SELECT jsonb_build_object('lost', count(*), 'texts', coalesce((array_agg(e.detail->'text' ORDER BY e.id))[1:3], '{}'))
            FROM event e WHERE e.campaign_id = n.campaign_id AND e.id BETWEEN n.first_event AND $1::bigint
              AND e.kind = 'alert' AND e.detail->>'about' = 'stray')
        WHEN 'stuck' THEN (SELECT jsonb_build_object('texts', coalesce((array_agg(e.detail->'text' ORDER BY e.id))[1:3], '{}'))
            FROM event e WHERE n.first_event > 0 AND e.campaign_id = n.campaign_id AND e.id BETWEEN n.first_event AND $1::bigint
              AND e.kind = 'alert' AND e.detail->>'about' = 'parked')
        ELSE '{}'::jsonb END)::text
FROM notice n
LEFT JOIN campaign c ON c.id = n.campaign_id
LEFT JOIN campaign_run r ON r.campaign_id = c.id
LEFT JOIN project p ON p.id = n.project_id
LEFT JOIN money m ON m.level = 'campaign' AND m.ref_id = c.id
WHERE n.due_at <= clock_timestamp() ORDER BY n.due_at, n.id LIMIT 20

-- name: notice_tell
-- It is told: a delivery for each webhook that wants it and was there when it began, after its quiet hours. A webhook with a full queue counts it
-- as dropped. $1 notice bigint, $2 events looked at bigint, $3 facts jsonb, $4 deliveries that may wait for a webhook bigint
WITH told AS (
    UPDATE notice SET due_at = NULL, last_event = $2::bigint, facts = $3::jsonb WHERE id = $1::bigint AND due_at IS NOT NULL
    RETURNING id, kind, project_id, at),
wanted AS MATERIALIZED (
    SELECT w.id, t.id AS notice_id, after_quiet_hours(clock_timestamp(), w.quiet_from, w.quiet_until) AS next_at,
        (SELECT count(*) FROM webhook_delivery d WHERE d.webhook_id = w.id AND d.state = 'waiting') >= $4::bigint AS is_full
    FROM told t JOIN webhook w ON t.kind = ANY (w.kinds) AND w.created_at <= t.at
        AND (w.project_id IS NULL OR w.project_id = t.project_id)),
dropped AS (
    UPDATE webhook w SET dropped = w.dropped + 1 FROM wanted x WHERE x.is_full AND w.id = x.id)
INSERT INTO webhook_delivery (webhook_id, notice_id, next_at) SELECT id, notice_id, next_at FROM wanted WHERE NOT is_full

-- name: notice_go_on
-- $1 event bigint
UPDATE notice_cursor SET event_id = greatest(event_id, $1::bigint) WHERE event_id < $1::bigint

-- name: notice_forget
-- Notices of more than 14 days ago, with their deliveries. And what waits for longer than anything is made to (a webhook that is tried again after a week) was
-- written while PostgreSQL's clock was ahead: it waits no more.
WITH due AS (
    UPDATE notice SET due_at = clock_timestamp() WHERE due_at > clock_timestamp() + interval '8 days'),
next AS (
    UPDATE webhook_delivery SET next_at = clock_timestamp() WHERE state = 'waiting' AND next_at > clock_timestamp() + interval '8 days'),
busy AS (
    UPDATE webhook SET busy_until = NULL WHERE busy_until > clock_timestamp() + interval '8 days')
DELETE FROM notice WHERE id IN (SELECT id FROM notice WHERE at < clock_timestamp() - interval '14 days' ORDER BY at LIMIT 1000)

-- name: delivery_take
-- The next delivery of each webhook that has one due and none under way. Who takes it has it for so long.
-- $1 webhooks bigint, $2 microseconds bigint
WITH free AS MATERIALIZED (
    SELECT w.id FROM webhook w
    WHERE (w.busy_until IS NULL OR w.busy_until < clock_timestamp())
      AND EXISTS (SELECT FROM webhook_delivery d WHERE d.webhook_id = w.id AND d.state = 'waiting' AND d.next_at <= clock_timestamp())
    ORDER BY w.id LIMIT $1::bigint FOR UPDATE SKIP LOCKED),
next AS MATERIALIZED (
    SELECT f.id AS webhook_id, d.id FROM free f CROSS JOIN LATERAL (
        SELECT d.id FROM webhook_delivery d
        WHERE d.webhook_id = f.id AND d.state = 'waiting' AND d.next_at <= clock_timestamp() ORDER BY d.next_at, d.id LIMIT 1) d),
busy AS (
    UPDATE webhook w SET busy_until = clock_timestamp() + $2::bigint * interval '1 microsecond'
    FROM next WHERE w.id = next.webhook_id RETURNING w.id, w.url, w.format, w.secret)
UPDATE webhook_delivery d SET tries = d.tries + 1, tried_at = clock_timestamp()
FROM next JOIN busy w ON w.id = next.webhook_id, notice n
WHERE d.id = next.id AND n.id = d.notice_id
RETURNING d.id, d.tries, w.url, CASE WHEN w.url LIKE 'mailto:%' THEN 'email' ELSE w.format END, w.secret, n.message_id, n.kind, n.at, n.facts::text, d.addresses::text

-- name: delivery_done
-- What came of that try; nothing when it is another's by now. :again microseconds until the next try of one that waits.
WITH d AS (
    UPDATE webhook_delivery SET state = :state::text, status = :status::int, problem = :problem::text, took_us = :took_us::bigint,
        addresses = coalesce(:addresses::jsonb, addresses),
        next_at = clock_timestamp() + :again::bigint * interval '1 microsecond',
        ended_at = CASE WHEN :state::text <> 'waiting' THEN clock_timestamp() END
    WHERE id = :id::bigint AND tries = :tries::int AND state = 'waiting' RETURNING webhook_id)
UPDATE webhook w SET busy_until = NULL FROM d WHERE w.id = d.webhook_id
