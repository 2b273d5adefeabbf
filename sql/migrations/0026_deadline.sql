-- additive: an older droverd shows no deadline and changes none.
ALTER TABLE campaign ADD COLUMN deadline timestamptz;   -- when it should have ended: a wish, nothing is stopped by it; NULL: none
