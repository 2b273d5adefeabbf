-- additive: an older droverd sees a stage that still takes parts; a newer one lists what is left.
-- The listing of a stage's input that took longer than a submit waits: its objects become the stage's parts at once, when all
-- are known. It is shown as an operation, so it has a number of that sequence.
CREATE TABLE input_listing (                 -- API: a submit inserts, the listing thread of the leading droverd updates
    stage_id bigint PRIMARY KEY REFERENCES stage,
    id bigint NOT NULL UNIQUE DEFAULT nextval('operation_id_seq'),
    campaign_id bigint NOT NULL,
    uri text NOT NULL,                       -- s3://bucket/pattern
    per_part integer NOT NULL CHECK (per_part >= 1),
    state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'failed', 'cancelled')),
    pages bigint NOT NULL DEFAULT 0,         -- of the try that goes on
    objects bigint NOT NULL DEFAULT 0,       -- that match, so far
    refused bigint NOT NULL DEFAULT 0,       -- pages that were asked for again
    problem text NOT NULL DEFAULT '',        -- the last refusal; of a failed one: why, and what to do
    created_by text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz);
CREATE INDEX input_listing_running ON input_listing (id) WHERE state = 'running';
CREATE INDEX input_listing_campaign ON input_listing (campaign_id);

-- As the API shows it, with its stage and as an operation.
CREATE FUNCTION input_listing_json(l input_listing) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_build_object('operation', 'op-' || l.id, 'state', l.state, 'uri', l.uri, 'pages', l.pages, 'objects', l.objects,
        'refused', l.refused, 'problem', l.problem, 'began_at', l.created_at, 'ended_at', l.ended_at,
        'elapsed_seconds', greatest(0, extract(epoch FROM coalesce(l.ended_at, clock_timestamp()) - l.created_at))::bigint)
$$;
-- What a campaign waits for while its input is listed; NULL: it is not.
CREATE FUNCTION input_listing_told(campaign bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT 'the input of stage ' || g.name || ' is listed: ' || l.objects || ' objects in ' || l.pages || ' pages so far'
        || CASE WHEN l.problem <> '' THEN '; ' || l.problem ELSE '' END
    FROM input_listing l JOIN stage g ON g.id = l.stage_id
    WHERE l.campaign_id = $1 AND l.state = 'running' ORDER BY l.id LIMIT 1
$$;
