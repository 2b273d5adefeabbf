-- additive: an older droverd shows strays that are no jobs as ended ones, and does nothing about them.
-- Endpoints, endpoint configs, models and file systems of this installation at AWS that no row stands for. They hold no
-- slots and no reserved money: what one has cost is booked at its end.
ALTER TABLE stray
    ADD COLUMN kind text NOT NULL DEFAULT 'job' CHECK (kind IN ('job', 'endpoint', 'endpoint_config', 'model', 'file_system')),
    ADD COLUMN there boolean NOT NULL DEFAULT false,                         -- it is no job and not proven absent
    ADD COLUMN token text NOT NULL DEFAULT '',                               -- of a file system: its tag drover-token
    ADD COLUMN size_gib bigint NOT NULL DEFAULT 0 CHECK (size_gib >= 0);     -- of a file system, whose price is a GB's and month's
CREATE INDEX stray_there ON stray (name) WHERE there;
