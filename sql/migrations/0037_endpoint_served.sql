-- additive: an older droverd bills an endpoint whose Deleting it did not see until its end was decided.
-- An endpoint whose deletion is refused serves on: it is billed at least until it was last seen.
ALTER TABLE endpoint ADD COLUMN served_at timestamptz;   -- while it is deleted: last seen to serve, or its Delete was taken
