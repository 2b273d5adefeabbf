-- The end of an endpoint may be put off, and one that nobody asks is deleted: what people want of it, and what is known of its
-- invocations.
ALTER TABLE endpoint
    ADD COLUMN extend_asked timestamptz,                 -- API: a later end
    ADD COLUMN extend_seen timestamptz,                  -- the last of these that was taken or refused
    ADD COLUMN idle_s bigint NOT NULL DEFAULT 0 CHECK (idle_s >= 0),           -- deleted after so long without one; 0: never
    ADD COLUMN tested_at timestamptz,                    -- its smoke test was passed
    ADD COLUMN tested_n integer NOT NULL DEFAULT 0 CHECK (tested_n >= 0),      -- invocations of its own for that
    ADD COLUMN invoked_at timestamptz;                   -- end of the last minute in which it was invoked

-- Each later end reserves more, in a line of its own.
ALTER TABLE ledger DROP CONSTRAINT ledger_entry_check;
ALTER TABLE ledger ADD CONSTRAINT ledger_entry_check
    CHECK (entry IN ('reserve', 'extend', 'overrun', 'settle', 'release', 'warm_overrun', 'warm', 'warm_release'));
DROP INDEX ledger_endpoint_once;
CREATE UNIQUE INDEX ledger_endpoint_once ON ledger (endpoint_id, entry) WHERE endpoint_id IS NOT NULL AND entry <> 'extend';
