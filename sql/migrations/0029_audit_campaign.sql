-- additive: rows that an older droverd adds get their campaign as well.
-- Of which campaign a row of the audit is, so that those of one campaign, and of one action, are read without all others.
CREATE FUNCTION audit_campaign(action text, subject text) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT CASE split_part(action, '.', 1)
        WHEN 'campaign' THEN substring(subject FROM '^c-([0-9]{1,18})')::bigint
        WHEN 'parts' THEN substring(subject FROM '^c-([0-9]{1,18})')::bigint
        WHEN 'operation' THEN (SELECT o.campaign_id FROM operation o WHERE o.id = substring(subject FROM '^op-([0-9]{1,18})$')::bigint)
        WHEN 'filesystem' THEN (SELECT f.campaign_id FROM filesystem f WHERE f.token = subject)
        WHEN 'endpoint' THEN (SELECT e.campaign_id FROM endpoint e WHERE e.name = subject)
        WHEN 'pool' THEN (SELECT a.campaign_id FROM attempt a WHERE a.name = subject)
        WHEN 'stray' THEN (SELECT nullif(s.campaign_id, 0) FROM stray s WHERE s.name = subject) END
$$;
ALTER TABLE audit ADD COLUMN campaign_id bigint;     -- a trigger fills it; NULL: of none
CREATE FUNCTION audit_campaign_set() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.campaign_id := audit_campaign(NEW.action, NEW.subject);
    RETURN NEW;
END $$;
CREATE TRIGGER audit_campaign BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_campaign_set();
ALTER TABLE audit DISABLE TRIGGER audit_append_only;
UPDATE audit SET campaign_id = audit_campaign(action, subject) WHERE audit_campaign(action, subject) IS NOT NULL;
ALTER TABLE audit ENABLE TRIGGER audit_append_only;
CREATE INDEX audit_of_campaign ON audit (campaign_id, id) WHERE campaign_id IS NOT NULL;
CREATE INDEX audit_of_action ON audit (action, id);
