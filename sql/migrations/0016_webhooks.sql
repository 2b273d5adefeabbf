-- additive: new tables and a function; an older droverd makes no notices of them.
-- Notices: what people are told of by webhooks. A notice is made of events, or of what is looked at from time to time;
-- one that is told has a delivery for each webhook that asked for its kind.
CREATE TABLE webhook (                       -- API; the notifier of the leading droverd: busy_until, dropped
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL CHECK (name <> ''),
    url text NOT NULL,
    format text NOT NULL CHECK (format IN ('json', 'slack', 'teams')),
    kinds text[] NOT NULL CHECK (cardinality(kinds) > 0
        AND kinds <@ ARRAY['held', 'budget', 'failed', 'done', 'stuck', 'lost']),
    project_id bigint REFERENCES project,    -- NULL: every project
    secret bytea NOT NULL CHECK (length(secret) = 32),
    quiet_from integer CHECK (quiet_from BETWEEN 0 AND 1439),     -- minutes of the day, UTC: what is told in quiet hours
    quiet_until integer CHECK (quiet_until BETWEEN 0 AND 1439),   -- is sent at their end; NULL: there are none
    created_by text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    busy_until timestamptz,                  -- a delivery is under way; one of a droverd that died is taken over then
    dropped bigint NOT NULL DEFAULT 0,       -- notices that found its queue full
    CHECK ((quiet_from IS NULL) = (quiet_until IS NULL) AND quiet_from <> quiet_until));

CREATE TABLE notice (                        -- notifier; API inserts those of kind test
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id text NOT NULL UNIQUE DEFAULT 'msg_' || replace(gen_random_uuid()::text, '-', ''),
    kind text NOT NULL CHECK (kind IN ('test', 'held', 'budget', 'failed', 'done', 'stuck', 'lost')),
    project_id bigint,                       -- NULL: of none
    campaign_id bigint NOT NULL DEFAULT 0,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),   -- when it began
    due_at timestamptz,                      -- collects what else happens until then; NULL: told
    first_event bigint NOT NULL DEFAULT 0,
    last_event bigint NOT NULL DEFAULT 0,
    facts jsonb NOT NULL DEFAULT '{}');
CREATE UNIQUE INDEX notice_open ON notice (campaign_id, kind) WHERE due_at IS NOT NULL AND first_event > 0;
CREATE INDEX notice_due ON notice (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX notice_at ON notice (at);

CREATE TABLE webhook_delivery (              -- notifier; API inserts those of tests
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id bigint NOT NULL REFERENCES webhook ON DELETE CASCADE,
    notice_id bigint NOT NULL REFERENCES notice ON DELETE CASCADE,
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'failed')),
    tries integer NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    tried_at timestamptz,
    ended_at timestamptz,
    took_us bigint NOT NULL DEFAULT 0,       -- of the last try
    status integer NOT NULL DEFAULT 0,       -- of its answer; 0: none came
    problem text NOT NULL DEFAULT '',
    UNIQUE (webhook_id, notice_id));
CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook_id, next_at, id) WHERE state = 'waiting';
CREATE INDEX webhook_delivery_newest ON webhook_delivery (webhook_id, id DESC);
CREATE INDEX webhook_delivery_notice ON webhook_delivery (notice_id);

CREATE TABLE notice_cursor (                 -- notifier: one row; events up to here are looked at
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    event_id bigint NOT NULL DEFAULT 0 CHECK (event_id >= 0));
INSERT INTO notice_cursor DEFAULT VALUES;

CREATE TABLE notice_watch (                  -- notifier: what was told of a budget or of a campaign that is stuck
    what text NOT NULL CHECK (what IN ('global', 'project', 'campaign', 'stuck')),
    ref_id bigint NOT NULL,
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    told_ppm bigint NOT NULL DEFAULT 0,      -- of a budget: the highest threshold; of a stuck one 1: told
    over boolean NOT NULL DEFAULT false,     -- ended and booked: not looked at again
    PRIMARY KEY (what, ref_id));

-- When something told at `now` is sent to a webhook with these quiet hours.
CREATE FUNCTION after_quiet_hours(now timestamptz, quiet_from integer, quiet_until integer) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN quiet_from IS NULL THEN now
        WHEN quiet_from < quiet_until AND m >= quiet_from AND m < quiet_until THEN day + quiet_until * interval '1 minute'
        WHEN quiet_from > quiet_until AND m < quiet_until THEN day + quiet_until * interval '1 minute'
        WHEN quiet_from > quiet_until AND m >= quiet_from THEN day + (quiet_until + 1440) * interval '1 minute'
        ELSE now END
    FROM (SELECT (extract(hour FROM u) * 60 + extract(minute FROM u))::integer AS m, date_trunc('day', u) AT TIME ZONE 'UTC' AS day
          FROM (SELECT now AT TIME ZONE 'UTC' AS u) x) y
$$;
