-- additive: two columns of stage_run that only the leader writes.
-- Of a stage that waits for answers about done_if: what came instead of the last one, and when it is asked again.
ALTER TABLE stage_run ADD COLUMN wait_detail text NOT NULL DEFAULT '', ADD COLUMN wait_again_at timestamptz;
