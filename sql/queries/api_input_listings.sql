-- Listings of inputs that go on after their submit was answered. Run by the listing thread of the leading droverd; two at
-- once do no harm: the parts are written behind the lock of the row, once.

-- name: api_input_listing_insert
-- $1 stage bigint, $2 campaign bigint, $3 uri text, $4 per part integer, $5 by text
INSERT INTO input_listing (stage_id, campaign_id, uri, per_part, created_by) VALUES ($1, $2, $3, $4, $5);

-- Those that go on, and whether their campaign still wants them. Index input_listing_running.
-- name: api_input_listings
-- $1 rows bigint
SELECT l.stage_id, l.campaign_id, l.uri, l.per_part,
    c.wanted <> 'cancel' AND r.state NOT IN ('succeeded', 'failed', 'cancelled')
FROM input_listing l JOIN campaign c ON c.id = l.campaign_id JOIN campaign_run r ON r.campaign_id = l.campaign_id
WHERE l.state = 'running' ORDER BY l.id LIMIT $1;

-- No row: another one has ended it.
-- name: api_input_listing_lock
-- $1 stage bigint
SELECT stage_id FROM input_listing WHERE stage_id = $1 AND state = 'running' FOR UPDATE;

-- name: api_input_listing_progress
-- $1 stage bigint, $2 pages bigint, $3 objects bigint, $4 refused bigint, $5 problem text
UPDATE input_listing SET pages = $2, objects = $3, refused = $4, problem = $5 WHERE stage_id = $1 AND state = 'running';

-- name: api_input_listing_end
-- $1 stage bigint, $2 state text, $3 problem text, $4 objects bigint or NULL
UPDATE input_listing SET state = $2, problem = $3, objects = coalesce($4, objects), ended_at = clock_timestamp()
WHERE stage_id = $1 AND state = 'running';

-- Of which campaign a number of an operation is the listing. $1 id bigint
-- name: api_input_listing_campaign
SELECT campaign_id FROM input_listing WHERE id = $1;
