-- What a failed job's log said of why it failed, when its FailureReason did not.
ALTER TABLE attempt
    ADD COLUMN failed_as smallint NOT NULL DEFAULT 0 CHECK (failed_as BETWEEN 0 AND 17),  -- verifying: its log is being read
    ADD COLUMN evidence jsonb;               -- {"host", "text", "cause"}: the line that decided
