-- What was set aside because the database or this droverd refuses one of its values. The leader inserts; a person's
-- unpark (API) or the leader's own success deletes. No foreign key: a row must be writable whatever it is about.
CREATE TABLE parked (
    kind text NOT NULL CHECK (kind IN ('campaign', 'part', 'attempt', 'operation')),
    ref_id bigint NOT NULL,                  -- campaign, task, attempt or operation
    campaign_id bigint NOT NULL,             -- 0: of none that is known
    reason text NOT NULL,
    times integer NOT NULL DEFAULT 1,
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    tried_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (kind, ref_id));
CREATE INDEX parked_campaign ON parked (campaign_id);
