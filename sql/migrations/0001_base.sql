-- The tables of drover. Who writes what: "API" rows come from request handlers in one transaction a request;
-- "leader" rows only from the leading droverd, behind its lease check. A column has one writer.
-- State columns of task_run, attempt and task_failure hold the enum's number (orchestrator/core/*.def, in order);
-- all others hold names. Money is micro-USD, spans are seconds or microseconds as the name says.

CREATE TABLE install (                       -- written by the migration, once
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp());
INSERT INTO install DEFAULT VALUES;

CREATE TABLE lease (                         -- leader: one row; its epoch fences every transaction
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    epoch bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    holder text NOT NULL DEFAULT '',
    backend_pid integer NOT NULL DEFAULT 0,
    length_us bigint NOT NULL DEFAULT 10000000 CHECK (length_us > 0),
    renewals bigint NOT NULL DEFAULT 0,      -- a standby watches it grow by its own clock
    renewed_at timestamptz NOT NULL DEFAULT clock_timestamp()) WITH (fillfactor = 10);
INSERT INTO lease DEFAULT VALUES;

CREATE TABLE project (                       -- API
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp());
INSERT INTO project (name) VALUES ('default');

CREATE TABLE token (                         -- API
    id text PRIMARY KEY,
    hash bytea NOT NULL CHECK (length(hash) = 32),
    role text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    name text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    revoked_at timestamptz);

CREATE TABLE idempotency_key (               -- API
    token_id text NOT NULL,
    key text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    body_hash bytea NOT NULL CHECK (length(body_hash) = 32),
    status integer NOT NULL,
    answer text NOT NULL,
    location text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (token_id, key));

CREATE TABLE audit (                         -- API; append-only
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    token_id text NOT NULL,
    role text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    detail jsonb NOT NULL DEFAULT '{}',
    request_id text NOT NULL);

CREATE TABLE source (                        -- API inserts, leader fills uploaded_at
    sha256 text PRIMARY KEY CHECK (length(sha256) = 64),
    size bigint NOT NULL CHECK (size >= 0),
    body bytea,
    uri text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    uploaded_at timestamptz);

CREATE TABLE campaign (                      -- API
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id bigint NOT NULL REFERENCES project,
    name text NOT NULL CHECK (name <> ''),
    spec_text text NOT NULL,                 -- as sent
    spec jsonb NOT NULL,                     -- as spec_to_json writes it
    wanted text NOT NULL DEFAULT 'run' CHECK (wanted IN ('run', 'drain', 'pause', 'cancel')),
    priority integer NOT NULL DEFAULT 50 CHECK (priority BETWEEN 0 AND 100),
    parts_limit integer CHECK (parts_limit >= 0),
    version bigint NOT NULL DEFAULT 1,       -- grows with every change of what is wanted
    created_by text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX campaign_newest ON campaign (created_at DESC, id DESC);

CREATE TABLE campaign_run (                  -- API inserts, leader updates
    campaign_id bigint PRIMARY KEY REFERENCES campaign,
    state text NOT NULL DEFAULT 'planned' CHECK (state IN
        ('planned', 'running', 'draining', 'paused', 'held', 'succeeded', 'failed', 'cancelled')),
    reason text NOT NULL DEFAULT '',
    taken_version bigint NOT NULL DEFAULT 0,
    started_at timestamptz,
    ended_at timestamptz);
CREATE INDEX campaign_run_live ON campaign_run (campaign_id) WHERE state NOT IN ('succeeded', 'failed', 'cancelled');

CREATE TABLE stage (                         -- API
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    campaign_id bigint NOT NULL REFERENCES campaign,
    seq integer NOT NULL CHECK (seq >= 0),
    name text NOT NULL,
    kind text NOT NULL DEFAULT 'jobs' CHECK (kind IN ('jobs', 'lustre', 'endpoint')),
    UNIQUE (campaign_id, seq), UNIQUE (campaign_id, name));

CREATE TABLE stage_input (                   -- API (row lock orders the batches)
    stage_id bigint PRIMARY KEY REFERENCES stage,
    campaign_id bigint NOT NULL,
    tasks bigint NOT NULL DEFAULT 0 CHECK (tasks >= 0),  -- seq 0 .. tasks-1 exist
    closed boolean NOT NULL DEFAULT false);
CREATE INDEX stage_input_campaign ON stage_input (campaign_id);

CREATE TABLE stage_run (                     -- API inserts, leader updates; the counters of a stage
    stage_id bigint PRIMARY KEY REFERENCES stage,
    campaign_id bigint NOT NULL,
    state text NOT NULL DEFAULT 'blocked' CHECK (state IN
        ('blocked', 'running', 'held', 'succeeded', 'failed', 'skipped', 'cancelled')),
    reason text NOT NULL DEFAULT '',
    taken bigint NOT NULL DEFAULT 0,         -- tasks counted so far; the sum of the seven below
    waiting bigint NOT NULL DEFAULT 0 CHECK (waiting >= 0),
    active bigint NOT NULL DEFAULT 0 CHECK (active >= 0),
    held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
    done bigint NOT NULL DEFAULT 0 CHECK (done >= 0),
    failed bigint NOT NULL DEFAULT 0 CHECK (failed >= 0),
    skipped bigint NOT NULL DEFAULT 0 CHECK (skipped >= 0),
    cancelled bigint NOT NULL DEFAULT 0 CHECK (cancelled >= 0),
    rows_in bigint NOT NULL DEFAULT 0,       -- from manifests of parts done
    successes bigint NOT NULL DEFAULT 0,
    failed_to_download bigint NOT NULL DEFAULT 0,
    failed_to_resize bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    run_seconds bigint NOT NULL DEFAULT 0,   -- of parts done, for rate and ETA
    wait_reason text NOT NULL DEFAULT 'new', -- why the first waiting task waits, as of the last change
    started_at timestamptz,
    ended_at timestamptz,
    CHECK (taken = waiting + active + held + done + failed + skipped + cancelled)) WITH (fillfactor = 10);
CREATE INDEX stage_run_campaign ON stage_run (campaign_id);

CREATE SEQUENCE task_id;                     -- blocks are taken by setval under stage_input's row lock

-- Immutable once written. A campaign of 100,000 parts or more gets partitions of its own.
CREATE TABLE task (                          -- API
    campaign_id bigint NOT NULL,
    id bigint NOT NULL,
    stage_id bigint NOT NULL,
    seq integer NOT NULL CHECK (seq >= 0),   -- place in its stage: the part number
    size bigint NOT NULL DEFAULT 0,          -- of the input, bytes; 0 unknown
    uri text NOT NULL DEFAULT '',
    vars jsonb,
    PRIMARY KEY (campaign_id, id)) PARTITION BY LIST (campaign_id);
CREATE UNIQUE INDEX task_seq ON task (campaign_id, stage_id, seq);   -- a part number exists once
CREATE TABLE task_default PARTITION OF task DEFAULT;

-- Narrow and hot: no index on a column that changes, so every transition is a HOT update.
CREATE TABLE task_run (                      -- API inserts, leader updates
    campaign_id bigint NOT NULL,
    id bigint NOT NULL,
    stage_id bigint NOT NULL,
    seq integer NOT NULL,
    state smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 6),
    cause smallint NOT NULL DEFAULT 0 CHECK (cause BETWEEN 0 AND 17),
    attempts smallint NOT NULL DEFAULT 0,    -- that count
    names smallint NOT NULL DEFAULT 0,       -- newest attempt number given out, void ones included
    not_before_us bigint NOT NULL DEFAULT 0, -- back-off, microseconds since the epoch
    updated_us bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (campaign_id, id)) PARTITION BY LIST (campaign_id);
CREATE TABLE task_run_default PARTITION OF task_run DEFAULT WITH (fillfactor = 45,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off);

CREATE TABLE task_change (                   -- leader: what retries changed for a task
    task_id bigint PRIMARY KEY,
    campaign_id bigint NOT NULL,
    instance_type_i integer NOT NULL DEFAULT 0,  -- rung of the ladder
    volume_gb integer NOT NULL DEFAULT 0,        -- 0: as the stage says
    max_runtime_s bigint NOT NULL DEFAULT 0,
    cause_tries jsonb NOT NULL DEFAULT '{}');    -- {"disk_full":1}: retries used by cause

CREATE TABLE attempt (                       -- leader
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    campaign_id bigint NOT NULL,
    stage_id bigint NOT NULL,
    task_id bigint NOT NULL,
    n integer NOT NULL CHECK (n >= 1),
    state smallint NOT NULL DEFAULT 0 CHECK (state BETWEEN 0 AND 12),
    cause smallint NOT NULL DEFAULT 0 CHECK (cause BETWEEN 0 AND 17),
    epoch bigint NOT NULL,
    name text NOT NULL UNIQUE CHECK (name ~ '^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$'),
    request bytea,                           -- exact bytes, until the end
    request_sha256 bytea NOT NULL CHECK (length(request_sha256) = 32),
    identity_hash text NOT NULL CHECK (length(identity_hash) = 64),  -- DROVER_REQUEST in the job's environment
    arn text NOT NULL DEFAULT '',
    instance_type text NOT NULL,
    instances integer NOT NULL CHECK (instances >= 1),
    volume_gb integer NOT NULL DEFAULT 0,
    max_runtime_s bigint NOT NULL,
    price_musd_per_hour bigint NOT NULL CHECK (price_musd_per_hour >= 0),
    reserved_musd bigint NOT NULL CHECK (reserved_musd >= 0),
    cost_musd bigint NOT NULL DEFAULT 0 CHECK (cost_musd >= 0),
    billable_s bigint NOT NULL DEFAULT 0 CHECK (billable_s >= 0),  -- instance-seconds
    estimated boolean NOT NULL DEFAULT false,
    holds boolean NOT NULL DEFAULT true,     -- its slots; false from release on
    unwanted boolean NOT NULL DEFAULT false, -- drover wants it no more: written before any stop is sent
    settled boolean NOT NULL DEFAULT false,  -- its money: reservation returned and cost, if any, booked
    intended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at timestamptz,                  -- SageMaker's CreationTime
    started_at timestamptz,
    ended_at timestamptz,
    observed_at timestamptz,                 -- when AWS last confirmed it
    reason text NOT NULL DEFAULT '',         -- FailureReason or what refused it, <= 1024 characters
    manifest jsonb,                          -- of an accepted output
    UNIQUE (task_id, n));
CREATE UNIQUE INDEX attempt_live ON attempt (task_id) WHERE state < 8;   -- at most one live attempt a task
CREATE INDEX attempt_campaign ON attempt (campaign_id, id);
CREATE INDEX attempt_open ON attempt (id) WHERE state < 8;

CREATE TABLE task_failure (                  -- leader: present while the failure stands (deleted at retry)
    task_id bigint PRIMARY KEY,
    campaign_id bigint NOT NULL,
    stage_id bigint NOT NULL,
    seq integer NOT NULL,
    attempt_id bigint,
    cause smallint NOT NULL,
    final boolean NOT NULL,                  -- false: it backs off and will be tried again
    signature text NOT NULL,                 -- the reason without what differs from part to part
    message text NOT NULL,
    lost_musd bigint NOT NULL DEFAULT 0,
    at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX task_failure_cause ON task_failure (campaign_id, cause, seq);
CREATE INDEX task_failure_task ON task_failure (campaign_id, task_id);

CREATE TABLE quota (                         -- leader: what AWS says
    instance_type text NOT NULL,
    market text NOT NULL DEFAULT 'on_demand' CHECK (market IN ('on_demand', 'spot', 'warm')),
    limit_n bigint NOT NULL CHECK (limit_n >= 0),
    source text NOT NULL DEFAULT 'service_quotas',
    read_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (instance_type, market));

CREATE TABLE slots (                         -- leader: instances from intent to release
    instance_type text NOT NULL,
    market text NOT NULL DEFAULT 'on_demand' CHECK (market IN ('on_demand', 'spot', 'warm')),
    held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
    foreign_n bigint NOT NULL DEFAULT 0 CHECK (foreign_n >= 0),   -- others' use, learned from refusals
    PRIMARY KEY (instance_type, market)) WITH (fillfactor = 10);

CREATE TABLE price (                         -- leader: from the price file
    instance_type text PRIMARY KEY,
    musd_per_hour bigint NOT NULL CHECK (musd_per_hour >= 0),
    source text NOT NULL,
    read_at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TABLE cap (                           -- API: limits of money; no row or NULL: no cap
    level text NOT NULL CHECK (level IN ('global', 'project', 'campaign', 'stage')),
    ref_id bigint NOT NULL,
    limit_musd bigint CHECK (limit_musd >= 0),
    per_task_musd bigint CHECK (per_task_musd >= 0),
    at_limit text NOT NULL DEFAULT 'drain' CHECK (at_limit IN ('drain', 'stop', 'hold')),
    PRIMARY KEY (level, ref_id));

CREATE TABLE money (                         -- leader: what is reserved and spent against each level
    level text NOT NULL CHECK (level IN ('global', 'project', 'campaign', 'stage')),
    ref_id bigint NOT NULL,
    reserved_musd bigint NOT NULL DEFAULT 0 CHECK (reserved_musd >= 0),
    spent_musd bigint NOT NULL DEFAULT 0 CHECK (spent_musd >= 0),
    seconds bigint NOT NULL DEFAULT 0 CHECK (seconds >= 0),
    PRIMARY KEY (level, ref_id)) WITH (fillfactor = 10);

CREATE TABLE ledger (                        -- leader; append-only double entry: amount moves from one account to the other
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    campaign_id bigint NOT NULL,
    stage_id bigint NOT NULL,
    task_id bigint NOT NULL,
    attempt_id bigint NOT NULL REFERENCES attempt,
    entry text NOT NULL CHECK (entry IN ('reserve', 'overrun', 'settle', 'release')),
    from_account text NOT NULL CHECK (from_account IN ('budget', 'reserved', 'spent')),
    to_account text NOT NULL CHECK (to_account IN ('budget', 'reserved', 'spent') AND to_account <> from_account),
    amount_musd bigint NOT NULL CHECK (amount_musd >= 0),
    seconds bigint NOT NULL DEFAULT 0 CHECK (seconds >= 0),
    estimated boolean NOT NULL DEFAULT false);
CREATE UNIQUE INDEX ledger_once ON ledger (attempt_id, entry);   -- each reserved, settled and released once
CREATE INDEX ledger_campaign ON ledger (campaign_id, id);

CREATE TABLE pool (                          -- leader
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    attempt_id bigint NOT NULL REFERENCES attempt,
    state text NOT NULL CHECK (state IN ('expected', 'available', 'in_use', 'reused', 'terminated')),
    instance_type text NOT NULL,
    instances integer NOT NULL,
    retained_s bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TABLE filesystem (                    -- leader
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stage_id bigint NOT NULL REFERENCES stage,
    state text NOT NULL CHECK (state IN
        ('intended', 'creating', 'available', 'exporting', 'deleting', 'deleted', 'failed', 'misconfigured')),
    token text NOT NULL UNIQUE,
    aws_id text NOT NULL DEFAULT '',
    size_gb bigint NOT NULL,
    delete_after timestamptz NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TABLE endpoint (                      -- leader
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stage_id bigint NOT NULL REFERENCES stage,
    state text NOT NULL CHECK (state IN
        ('intended', 'creating', 'in_service', 'updating', 'deleting', 'deleted', 'failed')),
    name text NOT NULL UNIQUE,
    delete_after timestamptz NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TABLE operation (                     -- API inserts, leader updates state, done, result
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    campaign_id bigint NOT NULL REFERENCES campaign,
    kind text NOT NULL CHECK (kind IN ('retry', 'skip', 'cancel')),
    selector jsonb NOT NULL,                 -- {"stage":..,"state":..,"cause":[..],"parts":[..]}
    changes jsonb NOT NULL DEFAULT '{}',     -- {"volume_gb":450,"instance_type":"..."}
    total bigint NOT NULL DEFAULT 0,         -- as previewed
    state text NOT NULL DEFAULT 'accepted' CHECK (state IN ('accepted', 'running', 'done', 'cancelled')),
    done bigint NOT NULL DEFAULT 0,
    created_by text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz);
CREATE INDEX operation_open ON operation (id) WHERE state IN ('accepted', 'running');

CREATE TABLE event (                         -- leader, on one connection: id order is commit order
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    campaign_id bigint NOT NULL,
    kind text NOT NULL,                      -- part.state, attempt.state, campaign.state, stage.state, operation.state, alert
    detail jsonb NOT NULL,
    PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE event_default PARTITION OF event DEFAULT;
CREATE INDEX event_campaign ON event (campaign_id, id);

-- A campaign of many parts gets tables of its own: made bare, filled by COPY, then indexed and
-- attached; dropped whole one day. Call both in one transaction, before the campaign has any task.
CREATE FUNCTION campaign_tables_make(campaign bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE task_c%1$s (LIKE task INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
        CONSTRAINT own CHECK (campaign_id = %1$s))', campaign);
    EXECUTE format('CREATE TABLE task_run_c%1$s (LIKE task_run INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
        CONSTRAINT own CHECK (campaign_id = %1$s)) WITH (fillfactor = 45,
        autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off)', campaign);
END $$;
CREATE FUNCTION campaign_tables_attach(campaign bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE task_c%s ADD PRIMARY KEY (campaign_id, id)', campaign);
    EXECUTE format('CREATE UNIQUE INDEX ON task_c%s (campaign_id, stage_id, seq)', campaign);
    EXECUTE format('ALTER TABLE task_run_c%s ADD PRIMARY KEY (campaign_id, id)', campaign);
    EXECUTE format('ALTER TABLE task ATTACH PARTITION task_c%1$s FOR VALUES IN (%1$s)', campaign);
    EXECUTE format('ALTER TABLE task_run ATTACH PARTITION task_run_c%1$s FOR VALUES IN (%1$s)', campaign);
    EXECUTE format('ALTER TABLE task_c%s DROP CONSTRAINT own', campaign);
    EXECUTE format('ALTER TABLE task_run_c%s DROP CONSTRAINT own', campaign);
END $$;

-- Daily partitions of event: today and the next two exist, those older than 14 days go. A day whose
-- first events already lie in the default partition stays there and is deleted from it in its turn.
CREATE FUNCTION events_maintain() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    today date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    part text;
    from_at timestamptz;
BEGIN
    FOR i IN 0..2 LOOP
        part := 'event_' || to_char(today + i, 'YYYYMMDD');
        from_at := (today + i)::timestamp AT TIME ZONE 'UTC';
        CONTINUE WHEN to_regclass(part) IS NOT NULL;
        CONTINUE WHEN EXISTS (SELECT 1 FROM event_default
                              WHERE at >= from_at AND at < from_at + interval '24 hours');
        EXECUTE format('CREATE TABLE %I PARTITION OF event FOR VALUES FROM (%L) TO (%L)',
                       part, from_at, from_at + interval '24 hours');
    END LOOP;
    FOR part IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                WHERE i.inhparent = 'event'::regclass AND c.relname ~ '^event_[0-9]{8}$'
                  AND to_date(right(c.relname, 8), 'YYYYMMDD') < today - 14 LOOP
        EXECUTE format('DROP TABLE %I', part);
    END LOOP;
    DELETE FROM event_default WHERE at < clock_timestamp() - interval '14 days';
END $$;

-- Everything that is kept as a sum, counted again: no rows when all is well. For tests and audits.
CREATE FUNCTION check_counters() RETURNS TABLE (what text, ref bigint, kept bigint, counted bigint)
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
            sum(CASE WHEN l.entry = 'settle' THEN l.seconds ELSE 0 END)::bigint AS seconds
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
            ('seconds', coalesce(m.seconds, 0), coalesce(e.seconds, 0))) AS v (name, kept, counted)),
    slot_rows AS (
        SELECT 'slots.held ' || coalesce(s.instance_type, a.instance_type), 0::bigint,
            coalesce(s.held, 0), coalesce(a.n, 0)
        FROM slots s FULL JOIN (SELECT instance_type, sum(instances)::bigint AS n FROM attempt
                                WHERE holds GROUP BY 1) a ON a.instance_type = s.instance_type
        WHERE s.market IS NULL OR s.market = 'on_demand'),
    attempts AS (
        SELECT 'attempt.cost', a.id, a.cost_musd,
            (SELECT coalesce(sum(l.amount_musd), 0)::bigint FROM ledger l
             WHERE l.attempt_id = a.id AND l.entry = 'settle')
        FROM attempt a),
    every (what, ref, kept, counted) AS (
        SELECT * FROM tasks UNION ALL SELECT * FROM live UNION ALL SELECT * FROM money_rows
        UNION ALL SELECT * FROM slot_rows UNION ALL SELECT * FROM attempts)
    SELECT * FROM every WHERE every.kept <> every.counted
$$;

-- Append-only tables refuse change from anybody, us included.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$;
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
