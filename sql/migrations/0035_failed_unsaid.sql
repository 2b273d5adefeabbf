-- additive: rows and a function; an older droverd still leaves parts whose file system is gone without their failure.
-- Those failed without a row of task_failure, by which alone retry, skip and `drover failures` find a part. Parts of an
-- archived campaign go soon.
INSERT INTO task_failure AS f (task_id, campaign_id, stage_id, seq, cause, final, signature, message)
SELECT r.id, r.campaign_id, r.stage_id, r.seq, r.cause, true, w.text, w.text
FROM stage_run s
JOIN task_run r ON r.campaign_id = s.campaign_id AND r.stage_id = s.stage_id AND r.state = 4
CROSS JOIN (VALUES ('a file system that it mounts is gone: its time was over, or somebody deleted it')) w (text)
WHERE s.failed > 0 AND NOT EXISTS (SELECT FROM archive h WHERE h.campaign_id = s.campaign_id)
  AND NOT EXISTS (SELECT FROM task_failure x WHERE x.task_id = r.id AND x.final)
ON CONFLICT (task_id) DO UPDATE SET cause = excluded.cause, final = true, signature = excluded.signature,
    message = excluded.message, at = clock_timestamp();

-- Everything that is kept as a sum, counted again: no rows when all is well. For tests and audits.
CREATE OR REPLACE FUNCTION check_counters() RETURNS TABLE (what text, ref bigint, kept bigint, counted bigint)
LANGUAGE sql STABLE AS $$
    WITH runs AS (
        SELECT s.stage_id, t.state, count(*) AS n
        FROM stage_run s JOIN task_run t
          ON t.campaign_id = s.campaign_id AND t.stage_id = s.stage_id AND t.seq < s.taken
        GROUP BY 1, 2),
    tasks AS (
        SELECT 'stage_run.' || v.name, s.stage_id, v.kept, coalesce(r.n, 0)
        FROM stage_run s
        CROSS JOIN LATERAL (VALUES (0, 'waiting', s.waiting), (1, 'active', s.active), (2, 'held', s.held),
            (3, 'done', s.done), (4, 'failed', s.failed), (5, 'skipped', s.skipped),
            (6, 'cancelled', s.cancelled)) AS v (state, name, kept)
        LEFT JOIN runs r ON r.stage_id = s.stage_id AND r.state = v.state
        WHERE NOT EXISTS (SELECT FROM archive h WHERE h.campaign_id = s.campaign_id)),
    live AS (
        SELECT 'stage_run.active attempts', s.stage_id, s.active,
            (SELECT count(*) FROM attempt a WHERE a.stage_id = s.stage_id AND a.state < 8)
        FROM stage_run s),
    entries AS (
        SELECT v.level, v.ref_id,
            sum(CASE WHEN l.to_account = 'reserved' THEN l.amount_musd
                     WHEN l.from_account = 'reserved' THEN -l.amount_musd ELSE 0 END)::bigint AS reserved,
            sum(CASE WHEN l.to_account = 'spent' THEN l.amount_musd
                     WHEN l.from_account = 'spent' THEN -l.amount_musd ELSE 0 END)::bigint AS spent,
            sum(CASE WHEN l.entry IN ('settle', 'warm') OR l.entry = 'correct' AND l.to_account = 'spent' THEN l.seconds
                     WHEN l.entry = 'correct' THEN -l.seconds ELSE 0 END)::bigint AS seconds,
            sum(CASE WHEN l.entry = 'warm' THEN l.amount_musd ELSE 0 END)::bigint AS warm,
            sum(CASE WHEN l.entry = 'warm' THEN l.seconds ELSE 0 END)::bigint AS warm_seconds
        FROM ledger l LEFT JOIN campaign c ON c.id = l.campaign_id
        CROSS JOIN LATERAL (VALUES ('global', 0::bigint), ('project', c.project_id),
            ('campaign', c.id), ('stage', CASE WHEN c.id IS NOT NULL THEN l.stage_id END)) AS v (level, ref_id)
        WHERE v.ref_id IS NOT NULL
        GROUP BY 1, 2),
    money_rows AS (
        SELECT 'money.' || v.name || ' ' || coalesce(m.level, e.level), coalesce(m.ref_id, e.ref_id),
            v.kept, v.counted
        FROM money m FULL JOIN entries e ON e.level = m.level AND e.ref_id = m.ref_id
        CROSS JOIN LATERAL (VALUES
            ('reserved', coalesce(m.reserved_musd, 0), coalesce(e.reserved, 0)),
            ('spent', coalesce(m.spent_musd, 0), coalesce(e.spent, 0)),
            ('seconds', coalesce(m.seconds, 0), coalesce(e.seconds, 0)),
            ('warm', coalesce(m.warm_musd, 0), coalesce(e.warm, 0)),
            ('warm_seconds', coalesce(m.warm_seconds, 0), coalesce(e.warm_seconds, 0))) AS v (name, kept, counted)),
    slot_rows AS (
        SELECT 'slots.' || v.name || ' ' || k.market || ' ' || k.instance_type, 0::bigint, v.kept, v.counted
        FROM (SELECT instance_type, market FROM slots
              UNION SELECT instance_type, market FROM attempt WHERE holds
              UNION SELECT instance_type, market FROM stray WHERE holds
              UNION SELECT instance_type, 'on_demand' FROM pool WHERE state = 'available') AS k
        LEFT JOIN slots s ON s.instance_type = k.instance_type AND s.market = k.market
        CROSS JOIN LATERAL (VALUES
            ('held', coalesce(s.held, 0),
             (SELECT coalesce(sum(a.instances), 0)::bigint FROM attempt a
              WHERE a.holds AND a.instance_type = k.instance_type AND a.market = k.market)
             + (SELECT coalesce(sum(x.instances), 0)::bigint FROM stray x
                WHERE x.holds AND x.instance_type = k.instance_type AND x.market = k.market)),
            ('warm_idle', coalesce(s.warm_idle, 0),
             (SELECT coalesce(sum(p.instances), 0)::bigint FROM pool p
              WHERE p.state = 'available' AND p.taken_by IS NULL AND p.instance_type = k.instance_type
                AND k.market = 'on_demand'))) AS v (name, kept, counted)),
    attempts AS (
        SELECT 'attempt.' || v.name, a.id, v.kept, v.counted
        FROM attempt a CROSS JOIN LATERAL (
            SELECT coalesce(sum(CASE WHEN l.entry = 'settle' OR l.entry = 'correct' AND l.to_account = 'spent'
                    THEN l.amount_musd WHEN l.entry = 'correct' THEN -l.amount_musd ELSE 0 END), 0)::bigint AS cost,
                coalesce(sum(CASE WHEN l.entry = 'warm' THEN l.amount_musd ELSE 0 END), 0)::bigint AS warm,
                coalesce(sum(CASE WHEN l.to_account = 'reserved' THEN l.amount_musd
                    WHEN l.from_account = 'reserved' THEN -l.amount_musd ELSE 0 END), 0)::bigint AS open
            FROM ledger l WHERE l.attempt_id = a.id) AS e
        CROSS JOIN LATERAL (VALUES ('cost', a.cost_musd, e.cost), ('warm', a.warm_musd, e.warm),
            ('open', a.open_musd, e.open)) AS v (name, kept, counted)),
    strays AS (
        SELECT 'stray.cost ' || x.name, 0::bigint, x.cost_musd,
            coalesce((SELECT sum(CASE WHEN l.to_account = 'spent' THEN l.amount_musd ELSE -l.amount_musd END)
                FROM ledger l WHERE l.stray = x.name AND l.entry IN ('settle', 'correct')), 0)::bigint
        FROM stray x),
    pools AS (
        SELECT 'pool.musd', p.id, p.musd, a.warm_musd FROM pool p JOIN attempt a ON a.id = p.attempt_id
        UNION ALL
        SELECT 'pool.state of an ended attempt', p.id, 0, 1 FROM pool p JOIN attempt a ON a.id = p.attempt_id
        WHERE p.state IN ('expected', 'in_use') AND NOT a.holds),
    lines AS (
        SELECT 'ledger line of no attempt', l.id, 0::bigint, 1::bigint FROM ledger l
        WHERE l.attempt_id IS NOT NULL AND NOT EXISTS (SELECT FROM attempt a WHERE a.id = l.attempt_id)
          AND NOT EXISTS (SELECT FROM archive h WHERE h.campaign_id = l.campaign_id)),
    archives AS (
        SELECT 'archive.cost', h.campaign_id,
            (SELECT coalesce(sum(x.musd), 0)::bigint FROM archive_cost x WHERE x.campaign_id = h.campaign_id)
            + (SELECT coalesce(sum(a.cost_musd), 0)::bigint FROM attempt a WHERE a.campaign_id = h.campaign_id),
            (SELECT coalesce(sum(CASE WHEN l.to_account = 'spent' THEN l.amount_musd ELSE -l.amount_musd END), 0)::bigint
             FROM ledger l
             WHERE l.campaign_id = h.campaign_id AND l.entry IN ('settle', 'correct') AND l.endpoint_id IS NULL
               AND l.filesystem_id IS NULL)
        FROM archive h),
    endpoints AS (
        SELECT 'endpoint.' || v.name, e.id, v.kept, v.counted
        FROM endpoint e CROSS JOIN LATERAL (
            SELECT coalesce(sum(CASE WHEN l.entry = 'settle' THEN l.amount_musd ELSE 0 END), 0)::bigint AS cost,
                coalesce(sum(CASE WHEN l.to_account = 'reserved' THEN l.amount_musd
                    WHEN l.from_account = 'reserved' THEN -l.amount_musd ELSE 0 END), 0)::bigint AS open
            FROM ledger l WHERE l.endpoint_id = e.id) AS s
        CROSS JOIN LATERAL (VALUES ('cost', e.cost_musd, s.cost),
            ('open', CASE WHEN e.state IN ('deleted', 'failed') THEN 0 ELSE e.reserved_musd END, s.open))
            AS v (name, kept, counted)),
    filesystems AS (
        SELECT 'filesystem.' || v.name, f.id, v.kept, v.counted
        FROM filesystem f CROSS JOIN LATERAL (
            SELECT coalesce(sum(CASE WHEN l.entry = 'settle' THEN l.amount_musd ELSE 0 END), 0)::bigint AS cost,
                coalesce(sum(CASE WHEN l.to_account = 'reserved' THEN l.amount_musd
                    WHEN l.from_account = 'reserved' THEN -l.amount_musd ELSE 0 END), 0)::bigint AS open
            FROM ledger l WHERE l.filesystem_id = f.id) AS s
        CROSS JOIN LATERAL (VALUES ('cost', f.cost_musd, s.cost),
            ('open', CASE WHEN f.state IN ('deleted', 'failed') THEN 0 ELSE f.reserved_musd END, s.open))
            AS v (name, kept, counted)),
    failures AS (
        SELECT 'stage_run.failed with a final failure', s.stage_id, s.failed,
            (SELECT count(*) FROM task_failure f JOIN task_run t ON t.campaign_id = f.campaign_id AND t.id = f.task_id
             WHERE f.campaign_id = s.campaign_id AND f.stage_id = s.stage_id AND f.final AND t.state = 4)
        FROM stage_run s
        WHERE NOT EXISTS (SELECT FROM archive h WHERE h.campaign_id = s.campaign_id)),
    every (what, ref, kept, counted) AS (
        SELECT * FROM tasks UNION ALL SELECT * FROM live UNION ALL SELECT * FROM money_rows
        UNION ALL SELECT * FROM slot_rows UNION ALL SELECT * FROM attempts UNION ALL SELECT * FROM pools UNION ALL SELECT * FROM strays
        UNION ALL SELECT * FROM lines UNION ALL SELECT * FROM archives UNION ALL SELECT * FROM endpoints
        UNION ALL SELECT * FROM filesystems UNION ALL SELECT * FROM failures)
    SELECT * FROM every WHERE every.kept <> every.counted
$$;
