-- additive: an older droverd leaves a pool to its keep-alive, whoever asked for its end.
-- Warm pools that people end before their time.
ALTER TABLE pool ADD COLUMN end_asked boolean NOT NULL DEFAULT false;   -- API
