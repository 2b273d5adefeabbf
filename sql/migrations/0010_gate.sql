-- A person may let a stage succeed whatever its gate says.
ALTER TABLE stage
    ADD COLUMN gate_override boolean NOT NULL DEFAULT false;   -- API
