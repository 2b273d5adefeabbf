-- additive: an older droverd asks nobody where the output of a job is that its predecessor saw end.
-- A job's end is seen once, and its output may be looked at by a later leader.
ALTER TABLE attempt ADD COLUMN artifacts text;   -- verifying: where SageMaker put what it made, as a Describe told
