-- additive: an older droverd keeps nothing to undo a retry with, and leaves an undo that is asked for to a newer one.
-- A retry may be undone for the parts that have not started since: how each of them had failed.
CREATE TABLE task_retried (                  -- leader: from a retry until the part starts or ends
    task_id bigint PRIMARY KEY,
    campaign_id bigint NOT NULL,
    stage_id bigint NOT NULL,
    operation_id bigint NOT NULL,            -- the retry
    names smallint NOT NULL,                 -- as in task_run then: another number says that it was tried since
    attempts smallint NOT NULL,
    attempt_id bigint,                       -- this and what follows: its task_failure
    cause smallint NOT NULL,
    signature text NOT NULL,
    message text NOT NULL,
    lost_musd bigint NOT NULL,
    at timestamptz NOT NULL,
    changed boolean NOT NULL,                -- it had a task_change, as follows; else zeros
    instance_type_i integer NOT NULL,
    volume_gb integer NOT NULL,
    max_runtime_s bigint NOT NULL,
    cause_tries jsonb NOT NULL,
    signature_hash bigint NOT NULL,
    same integer NOT NULL);
CREATE INDEX task_retried_operation ON task_retried (operation_id, task_id);

ALTER TABLE operation
    ADD COLUMN undo_asked_at timestamptz,                -- API
    ADD COLUMN undo_asked_by text NOT NULL DEFAULT '',   -- API
    ADD COLUMN undone bigint NOT NULL DEFAULT 0,         -- leader: parts that failed again as they had
    ADD COLUMN undo_ended_at timestamptz;                -- leader
CREATE INDEX operation_undo ON operation (id) WHERE undo_asked_at IS NOT NULL AND undo_ended_at IS NULL;
