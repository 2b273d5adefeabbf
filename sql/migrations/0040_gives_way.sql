-- additive: functions alone; an older droverd calls the first two as before.
-- Attaching locks the default partitions for itself, and whoever waits for that holds up all who come after it: the
-- leader, too. So nothing is read or built meanwhile, and a try waits a moment, gives everything back, and comes again.

-- True: the rows of the campaign go into tables of its own, which are not attached yet. Nobody keeps a lock on the
-- default partition while he fills them: two who load would wait for each other.
CREATE OR REPLACE FUNCTION partition_create(campaign bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    elsewhere boolean;
BEGIN
    IF to_regclass(format('task_c%s', campaign)) IS NOT NULL THEN
        RETURN NOT (SELECT relispartition FROM pg_class WHERE oid = to_regclass(format('task_c%s', campaign)));
    END IF;
    BEGIN
        elsewhere := EXISTS (SELECT FROM task_default WHERE campaign_id = campaign);
        RAISE EXCEPTION USING ERRCODE = 'DR001';     -- gives the lock back
    EXCEPTION WHEN SQLSTATE 'DR001' THEN
        NULL;
    END;
    IF elsewhere THEN
        RETURN false;                                -- more of them go the ordinary way
    END IF;
    -- Checked row by row on the way in, so that attaching does not have to read them again.
    EXECUTE format('CREATE TABLE task_c%1$s (LIKE task INCLUDING DEFAULTS INCLUDING CONSTRAINTS,'
        ' CONSTRAINT own_campaign CHECK (campaign_id = %1$s))', campaign);
    EXECUTE format('CREATE TABLE task_run_c%1$s (LIKE task_run INCLUDING DEFAULTS INCLUDING CONSTRAINTS,'
        ' CONSTRAINT own_campaign CHECK (campaign_id = %1$s)) WITH (fillfactor = 45,'
        ' autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,'
        ' autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off)', campaign);
    RETURN true;
END $$;

-- Nothing to do without tables of its own that wait. Call it last in a transaction: its locks are held until the end.
CREATE OR REPLACE FUNCTION partition_attach(campaign bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t text;
    patience text := current_setting('lock_timeout');
    until timestamptz;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass(format('task_c%s', campaign)) AND NOT relispartition) THEN
        RETURN;
    END IF;
    FOREACH t IN ARRAY ARRAY['task', 'task_run'] LOOP
        EXECUTE format('ALTER TABLE %s_c%s ADD PRIMARY KEY (campaign_id, id)', t, campaign);
    END LOOP;
    EXECUTE format('CREATE UNIQUE INDEX ON task_c%s (campaign_id, stage_id, seq)', campaign);
    until := clock_timestamp() + interval '2 minutes';
    LOOP
        BEGIN
            PERFORM set_config('lock_timeout', '200ms', true);
            -- Before the tables, as the leader takes them: see api_campaign_takes.
            PERFORM FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id WHERE c.id = campaign FOR SHARE OF c, r;
            FOREACH t IN ARRAY ARRAY['task', 'task_run'] LOOP
                EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s_c%s FOR VALUES IN (%s)', t, t, campaign, campaign);
            END LOOP;
            PERFORM set_config('lock_timeout', patience, true);
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF clock_timestamp() > until THEN
                RAISE EXCEPTION 'a transaction, maybe a backup, reads the parts of all campaigns for minutes: try again later'
                    USING ERRCODE = 'lock_not_available';
            END IF;
        END;
        PERFORM pg_sleep(0.4);                       -- the others go on
    END LOOP;
END $$;

-- A day of events gets its partition, in a statement of its own: what else of the maintenance fails does not undo it. A day
-- whose first events already lie in the default partition stays there.
CREATE FUNCTION event_day_make(ahead integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    today date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    part text := 'event_' || to_char(today + ahead, 'YYYYMMDD');
    from_at timestamptz := (today + ahead)::timestamp AT TIME ZONE 'UTC';
BEGIN
    IF to_regclass(part) IS NULL AND NOT EXISTS (
        SELECT FROM event_default WHERE at >= from_at AND at < from_at + interval '24 hours') THEN
        EXECUTE format('CREATE TABLE %I PARTITION OF event FOR VALUES FROM (%L) TO (%L)',
                       part, from_at, from_at + interval '24 hours');
    END IF;
END $$;
