-- additive: an older droverd shows no deadline and changes none.
ALTER TABLE campaign ADD COLUMN deadline timestamptz;   -- when it should have ended: a wish, nothing is stopped by it; NULL: none
CREATE TABLE deadline_told (                 -- notifier: the deadline of a campaign that people were told of as passed
    campaign_id bigint PRIMARY KEY,
    deadline timestamptz NOT NULL);
