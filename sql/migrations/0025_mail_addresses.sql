-- additive: an older droverd sends a mail again to everybody of it.
-- Of a mail: the addresses that need no further try. '' has it; else what the server refused it with.
ALTER TABLE webhook_delivery ADD COLUMN addresses jsonb NOT NULL DEFAULT '{}';
