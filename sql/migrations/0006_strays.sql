-- Jobs of this installation that no row of an attempt knows, since a failover or a restore has lost it: strays. And
-- names that a restored database does not use again.
ALTER TABLE campaign
    ADD COLUMN nonce text NOT NULL DEFAULT '';   -- API: random, in the names of its jobs; '' of older campaigns

CREATE TABLE stray (                         -- leader
    name text PRIMARY KEY,
    arn text NOT NULL DEFAULT '',
    campaign_id bigint NOT NULL DEFAULT 0,   -- 0: of none that is known
    task_id bigint NOT NULL DEFAULT 0,       -- no attempt of it is intended while the stray lives
    why text NOT NULL CHECK (why IN ('lost', 'unplaced', 'void')),
    instance_type text NOT NULL,
    market text NOT NULL DEFAULT 'on_demand' CHECK (market IN ('on_demand', 'spot')),
    instances integer NOT NULL CHECK (instances >= 1),
    keep_alive_s bigint NOT NULL DEFAULT 0 CHECK (keep_alive_s >= 0),
    price_musd_per_hour bigint NOT NULL CHECK (price_musd_per_hour >= 0),
    reserved_musd bigint NOT NULL CHECK (reserved_musd >= 0),
    cost_musd bigint NOT NULL DEFAULT 0 CHECK (cost_musd >= 0),
    billable_s bigint NOT NULL DEFAULT 0 CHECK (billable_s >= 0),  -- instance-seconds
    estimated boolean NOT NULL DEFAULT false,
    status text NOT NULL DEFAULT '',         -- in SageMaker's words
    holds boolean NOT NULL DEFAULT true,     -- its slots and money, until a Describe shows its end
    stop_asked boolean NOT NULL DEFAULT false,   -- API
    found_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at timestamptz,
    started_at timestamptz,
    ended_at timestamptz);
CREATE INDEX stray_open ON stray (task_id) WHERE holds;

-- The job of a void attempt may show up alive: the attempt goes on, and its money is reserved a second time.
ALTER TABLE attempt
    ADD COLUMN revived boolean NOT NULL DEFAULT false;
ALTER TABLE ledger
    ALTER COLUMN attempt_id DROP NOT NULL,
    ADD COLUMN stray text REFERENCES stray,
    ADD COLUMN again boolean NOT NULL DEFAULT false,   -- of a revived attempt
    ADD CHECK ((attempt_id IS NULL) = (stray IS NOT NULL));
DROP INDEX ledger_once;
CREATE UNIQUE INDEX ledger_once ON ledger (attempt_id, entry, again);
CREATE UNIQUE INDEX ledger_stray_once ON ledger (stray, entry) WHERE stray IS NOT NULL;

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
        LEFT JOIN runs r ON r.stage_id = s.stage_id AND r.state = v.state),
    live AS (
        SELECT 'stage_run.active attempts', s.stage_id, s.active,
            (SELECT count(*) FROM attempt a WHERE a.stage_id = s.stage_id AND a.state < 8)
        FROM stage_run s),
    entries AS (
        SELECT v.level, v.ref_id,
            sum(CASE WHEN l.to_account = 'reserved' THEN l.amount_musd
                     WHEN l.from_account = 'reserved' THEN -l.amount_musd ELSE 0 END)::bigint AS reserved,
            sum(CASE WHEN l.to_account = 'spent' THEN l.amount_musd ELSE 0 END)::bigint AS spent,
            sum(CASE WHEN l.entry IN ('settle', 'warm') THEN l.seconds ELSE 0 END)::bigint AS seconds,
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
            SELECT coalesce(sum(CASE WHEN l.entry = 'settle' THEN l.amount_musd ELSE 0 END), 0)::bigint AS cost,
                coalesce(sum(CASE WHEN l.entry = 'warm' THEN l.amount_musd ELSE 0 END), 0)::bigint AS warm,
                coalesce(sum(CASE WHEN l.to_account = 'reserved' THEN l.amount_musd
                    WHEN l.from_account = 'reserved' THEN -l.amount_musd ELSE 0 END), 0)::bigint AS open
            FROM ledger l WHERE l.attempt_id = a.id) AS e
        CROSS JOIN LATERAL (VALUES ('cost', a.cost_musd, e.cost), ('warm', a.warm_musd, e.warm),
            ('open', a.open_musd, e.open)) AS v (name, kept, counted)),
    strays AS (
        SELECT 'stray.cost ' || x.name, 0::bigint, x.cost_musd,
            coalesce((SELECT sum(l.amount_musd) FROM ledger l WHERE l.stray = x.name AND l.entry = 'settle'), 0)::bigint
        FROM stray x),
    pools AS (
        SELECT 'pool.musd', p.id, p.musd, a.warm_musd FROM pool p JOIN attempt a ON a.id = p.attempt_id
        UNION ALL
        SELECT 'pool.state of an ended attempt', p.id, 0, 1 FROM pool p JOIN attempt a ON a.id = p.attempt_id
        WHERE p.state IN ('expected', 'in_use') AND NOT a.holds),
    every (what, ref, kept, counted) AS (
        SELECT * FROM tasks UNION ALL SELECT * FROM live UNION ALL SELECT * FROM money_rows
        UNION ALL SELECT * FROM slot_rows UNION ALL SELECT * FROM attempts UNION ALL SELECT * FROM pools UNION ALL SELECT * FROM strays)
    SELECT * FROM every WHERE every.kept <> every.counted
$$;
