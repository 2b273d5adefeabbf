-- An archive may be written to S3 first, as JSON lines.
ALTER TABLE archive
    ADD COLUMN export_uri text NOT NULL DEFAULT '',          -- API: the folder, ends with /; '': nothing is exported
    ADD COLUMN export_kind smallint NOT NULL DEFAULT 0,      -- leader: of the next object; store/leader/archive_export.c
    ADD COLUMN export_after bigint NOT NULL DEFAULT 0,       -- leader: its rows come behind this one
    ADD COLUMN exported bigint NOT NULL DEFAULT 0,           -- leader: objects written
    ADD COLUMN exported_rows bigint NOT NULL DEFAULT 0,      -- leader: rows in them
    ADD COLUMN exported_at timestamptz,                      -- leader: all are written, only then rows are deleted
    ADD COLUMN export_problem text NOT NULL DEFAULT '';      -- leader: why the last try failed
