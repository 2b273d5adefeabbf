-- additive: an older droverd does not know holds and releases of parts; it ends them as cancelled, with an alert.
ALTER TABLE operation DROP CONSTRAINT operation_kind_check;
ALTER TABLE operation
    ADD CONSTRAINT operation_kind_check CHECK (kind IN ('retry', 'skip', 'hold', 'release', 'cancel', 'archive'));
