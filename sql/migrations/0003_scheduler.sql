-- What the scheduler keeps and is told: quotas of every kind, limits and weights that may be edited while a campaign
-- runs, warm pools and their money, what a stage's breaker has seen, promises to tasks of several instances.

-- Wishes. API
ALTER TABLE project
    ADD COLUMN weight integer NOT NULL DEFAULT 100 CHECK (weight BETWEEN 1 AND 10000),
    ADD COLUMN parts_limit integer CHECK (parts_limit >= 0);
ALTER TABLE campaign
    ADD COLUMN weight integer NOT NULL DEFAULT 100 CHECK (weight BETWEEN 1 AND 10000);
ALTER TABLE stage
    ADD COLUMN parts_limit integer CHECK (parts_limit >= 0),
    ADD COLUMN resumes integer NOT NULL DEFAULT 0;   -- grows when a person lets a held stage go on
ALTER TABLE cap                                      -- parts of a million, rising; NULL: nobody is warned
    ADD COLUMN warn_at_ppm bigint[] CHECK (cardinality(warn_at_ppm) <= 8 AND 0 < ALL (warn_at_ppm));

CREATE TABLE setting (                       -- API: of this installation; no row: no limit
    name text PRIMARY KEY CHECK (name IN ('parts_limit')),
    value bigint NOT NULL CHECK (value >= 0),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TABLE slot_limit (                    -- API: how much of a quota drover may use; no row: all of it
    instance_type text NOT NULL,
    market text NOT NULL DEFAULT 'on_demand' CHECK (market IN ('on_demand', 'spot')),
    limit_n bigint NOT NULL CHECK (limit_n >= 0),
    PRIMARY KEY (instance_type, market));

-- What AWS allows over all types. Leader
CREATE TABLE account_quota (
    kind text PRIMARY KEY CHECK (kind IN ('instances', 'spot_instances', 'instances_per_job', 'run_seconds',
        'volume_gb', 'keep_alive_seconds')),
    limit_n bigint NOT NULL CHECK (limit_n >= 0),
    read_at timestamptz NOT NULL DEFAULT clock_timestamp());

-- Instances kept idle by warm pools stand beside those held by attempts; what a refusal taught outlives a leader.
ALTER TABLE slots
    ADD COLUMN warm_idle bigint NOT NULL DEFAULT 0 CHECK (warm_idle >= 0),
    ADD COLUMN foreign_us bigint NOT NULL DEFAULT 0 CHECK (foreign_us >= 0),  -- when foreign_n was learned
    ADD COLUMN refused_limit bigint CHECK (refused_limit >= 0);               -- the limit a refusal named

-- Money: a job's account stays open till its pool has ended.
ALTER TABLE money
    ADD COLUMN warm_musd bigint NOT NULL DEFAULT 0 CHECK (warm_musd >= 0),        -- of spent_musd: idle pools
    ADD COLUMN warm_seconds bigint NOT NULL DEFAULT 0 CHECK (warm_seconds >= 0),  -- of seconds
    ADD COLUMN warned_ppm bigint NOT NULL DEFAULT 0;                              -- highest threshold told
ALTER TABLE ledger DROP CONSTRAINT ledger_entry_check;
ALTER TABLE ledger ADD CONSTRAINT ledger_entry_check
    CHECK (entry IN ('reserve', 'overrun', 'settle', 'release', 'warm_overrun', 'warm', 'warm_release'));

DROP TABLE pool;                             -- never written until now
CREATE TABLE pool (                          -- leader: the instances an attempt leaves behind, from its intent on
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    attempt_id bigint NOT NULL UNIQUE REFERENCES attempt,
    campaign_id bigint NOT NULL,
    stage_id bigint NOT NULL,
    state text NOT NULL DEFAULT 'expected' CHECK (state IN
        ('expected', 'available', 'in_use', 'reused', 'terminated')),
    fingerprint bigint NOT NULL,             -- of all that must match
    instance_type text NOT NULL,
    instances integer NOT NULL CHECK (instances >= 1),
    keep_alive_s bigint NOT NULL CHECK (keep_alive_s > 0),
    taken_by bigint REFERENCES attempt,      -- intended on it: the slots are that attempt's
    end_reason text NOT NULL DEFAULT '',     -- why we asked for its end; '' when we did not
    retained_s bigint NOT NULL DEFAULT 0 CHECK (retained_s >= 0),     -- of one instance; final when it has ended
    musd bigint NOT NULL DEFAULT 0 CHECK (musd >= 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    available_at timestamptz,
    expires_at timestamptz,
    ended_at timestamptz,
    CHECK (taken_by IS NULL OR state IN ('available', 'reused', 'terminated')),
    CHECK ((ended_at IS NOT NULL) = (state IN ('reused', 'terminated'))));
CREATE INDEX pool_open ON pool (id) WHERE ended_at IS NULL;
CREATE INDEX pool_campaign ON pool (campaign_id, id);

ALTER TABLE attempt
    ADD COLUMN instance_type_i integer NOT NULL DEFAULT 0 CHECK (instance_type_i >= 0),  -- rung of the ladder
    ADD COLUMN subnet_i integer NOT NULL DEFAULT -1 CHECK (subnet_i >= -1),              -- -1: all of the stage's
    ADD COLUMN market text NOT NULL DEFAULT 'on_demand' CHECK (market IN ('on_demand', 'spot')),
    ADD COLUMN keep_alive_s bigint NOT NULL DEFAULT 0 CHECK (keep_alive_s >= 0),
    ADD COLUMN pool_id bigint REFERENCES pool,       -- intended on this pool's instances
    ADD COLUMN stop_cause smallint NOT NULL DEFAULT 0 CHECK (stop_cause BETWEEN 0 AND 17),  -- why unwanted; 0: a wish
    ADD COLUMN open_musd bigint NOT NULL DEFAULT 0 CHECK (open_musd >= 0),   -- of reserved_musd: not yet given back
    ADD COLUMN warm_s bigint NOT NULL DEFAULT 0 CHECK (warm_s >= 0),         -- instance-seconds its pool idled
    ADD COLUMN warm_musd bigint NOT NULL DEFAULT 0 CHECK (warm_musd >= 0);
UPDATE attempt SET open_musd = reserved_musd WHERE NOT settled;
CREATE INDEX attempt_stage ON attempt (stage_id, id);

ALTER TABLE stage_run                        -- leader
    ADD COLUMN resumes_taken integer NOT NULL DEFAULT 0,     -- of stage.resumes
    ADD COLUMN breaker_since bigint NOT NULL DEFAULT 0,      -- attempts up to this one say nothing any more
    ADD COLUMN breaker_passed boolean NOT NULL DEFAULT false;  -- an attempt showed that the work can be done

ALTER TABLE task_change                      -- leader: how often it failed in one way, for quarantine
    ADD COLUMN signature_hash bigint NOT NULL DEFAULT 0,
    ADD COLUMN same integer NOT NULL DEFAULT 0;

CREATE TABLE promise (                       -- leader: the reservation of a waiting task of several instances
    stage_id bigint PRIMARY KEY REFERENCES stage,
    campaign_id bigint NOT NULL,
    task_id bigint NOT NULL,
    instances integer NOT NULL CHECK (instances >= 1),
    since_at timestamptz NOT NULL,
    promised_at timestamptz,                 -- P95 start as promised first; never later. NULL: nothing is known
    expected_at timestamptz,                 -- P50 start as computed last
    latest_at timestamptz,                   -- P95
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX promise_campaign ON promise (campaign_id);

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
        FROM ledger l JOIN campaign c ON c.id = l.campaign_id
        CROSS JOIN LATERAL (VALUES ('global', 0::bigint), ('project', c.project_id),
            ('campaign', l.campaign_id), ('stage', l.stage_id)) AS v (level, ref_id)
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
              UNION SELECT instance_type, 'on_demand' FROM pool WHERE state = 'available') AS k
        LEFT JOIN slots s ON s.instance_type = k.instance_type AND s.market = k.market
        CROSS JOIN LATERAL (VALUES
            ('held', coalesce(s.held, 0),
             (SELECT coalesce(sum(a.instances), 0)::bigint FROM attempt a
              WHERE a.holds AND a.instance_type = k.instance_type AND a.market = k.market)),
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
    pools AS (
        SELECT 'pool.musd', p.id, p.musd, a.warm_musd FROM pool p JOIN attempt a ON a.id = p.attempt_id
        UNION ALL
        SELECT 'pool.state of an ended attempt', p.id, 0, 1 FROM pool p JOIN attempt a ON a.id = p.attempt_id
        WHERE p.state IN ('expected', 'in_use') AND NOT a.holds),
    every (what, ref, kept, counted) AS (
        SELECT * FROM tasks UNION ALL SELECT * FROM live UNION ALL SELECT * FROM money_rows
        UNION ALL SELECT * FROM slot_rows UNION ALL SELECT * FROM attempts UNION ALL SELECT * FROM pools)
    SELECT * FROM every WHERE every.kept <> every.counted
$$;
