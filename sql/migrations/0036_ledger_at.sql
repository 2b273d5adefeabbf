-- additive: an older droverd does not ask by it.
-- The bill of a month asks for what was spent in it, whenever its campaign ended. Lines are appended as time goes, so that
-- the ends of each range of pages say enough.
CREATE INDEX ledger_at ON ledger USING brin (at);
