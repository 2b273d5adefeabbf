-- A campaign that gets 100,000 parts or more at once has partitions of its own: they are filled while nobody else
-- sees them, indexed, then attached, and can be dropped whole. Called by API handlers inside their transaction.
CREATE FUNCTION partition_create(campaign bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF to_regclass(format('task_c%s', campaign)) IS NOT NULL
       OR EXISTS (SELECT 1 FROM task_default WHERE campaign_id = campaign) THEN
        RETURN false;                        -- has rows elsewhere already: more of them go the ordinary way
    END IF;
    EXECUTE format('CREATE TABLE task_c%s (LIKE task INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', campaign);
    EXECUTE format('CREATE TABLE task_run_c%s (LIKE task_run INCLUDING DEFAULTS INCLUDING CONSTRAINTS)'
        ' WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,'
        ' autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off)', campaign);
    -- Checked row by row on the way in, so that attaching does not have to read them again.
    EXECUTE format('ALTER TABLE task_c%s ADD CONSTRAINT own_campaign CHECK (campaign_id = %s)', campaign, campaign);
    EXECUTE format('ALTER TABLE task_run_c%s ADD CONSTRAINT own_campaign CHECK (campaign_id = %s)', campaign, campaign);
    RETURN true;
END $$;

CREATE FUNCTION partition_attach(campaign bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['task', 'task_run'] LOOP
        EXECUTE format('ALTER TABLE %s_c%s ADD PRIMARY KEY (campaign_id, id)', t, campaign);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['task', 'task_run'] LOOP
        EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s_c%s FOR VALUES IN (%s)', t, t, campaign, campaign);
    END LOOP;
END $$;
