-- additive: an older droverd notes neither when a token was used nor what a value was before it was changed.
ALTER TABLE token ADD COLUMN used_at timestamptz;    -- API: at most a minute older than the last use
ALTER TABLE session ADD COLUMN used_at timestamptz;  -- API: as of tokens
ALTER TABLE audit ADD COLUMN before jsonb;           -- what was there of what was asked for; NULL: nothing, or it was not noted
