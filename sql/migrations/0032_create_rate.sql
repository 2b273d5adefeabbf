-- additive: an older droverd that leads leaves what stands there, and forecasts by its own setting.
-- The rate at which the leader sends CreateTrainingJob, in millionths a second: what those that do not lead forecast with.
ALTER TABLE lease ADD COLUMN creates_per_s_u bigint CHECK (creates_per_s_u > 0);
