-- additive: an older droverd says in its reason alone that a file system is kept.
ALTER TABLE filesystem ADD COLUMN kept_for_retry boolean NOT NULL DEFAULT false;   -- until its ttl: a retry of its campaign may need it
