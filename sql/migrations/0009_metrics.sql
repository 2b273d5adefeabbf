-- Figures that training jobs print, as series: one for each metric of an attempt.
ALTER TABLE attempt
    ADD COLUMN collects boolean NOT NULL DEFAULT false;   -- its log is read for metrics, until its end was read
CREATE INDEX attempt_collects ON attempt (id) WHERE collects;

CREATE TABLE metric_source (                 -- leader: how far the log of an attempt was read
    attempt_id bigint PRIMARY KEY,
    stream text NOT NULL DEFAULT '',
    token text NOT NULL DEFAULT '',
    token_lines bigint NOT NULL DEFAULT 0 CHECK (token_lines >= 0),  -- of the stream, before the token
    lines bigint NOT NULL DEFAULT 0 CHECK (lines >= token_lines),    -- of the stream, taken
    step bigint NOT NULL DEFAULT -1,         -- of the last line that had one
    note text NOT NULL DEFAULT '');          -- why the series are not whole

CREATE TABLE metric_series (                 -- leader
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    campaign_id bigint NOT NULL,
    stage_id bigint NOT NULL,
    task_id bigint NOT NULL,
    attempt_id bigint NOT NULL,
    name text NOT NULL,
    points bigint NOT NULL DEFAULT 0 CHECK (points >= 0),
    first_us bigint NOT NULL DEFAULT 0,      -- of the lines, microseconds since the epoch
    last_us bigint NOT NULL DEFAULT 0,
    last_step bigint NOT NULL DEFAULT -1,
    last_value double precision,
    min_value double precision,
    max_value double precision,
    sum_value double precision NOT NULL DEFAULT 0,
    final_value double precision,            -- as SageMaker's FinalMetricDataList has it
    UNIQUE (attempt_id, name)) WITH (fillfactor = 50);
CREATE INDEX metric_series_campaign ON metric_series (campaign_id, id);

CREATE TABLE metric_point (                  -- leader; append-only
    series_id bigint NOT NULL,
    seq bigint NOT NULL,                     -- place in its series, from 0
    at_us bigint NOT NULL,
    step bigint NOT NULL,                    -- seq where the job prints no step
    value double precision NOT NULL,
    PRIMARY KEY (series_id, seq));

-- Points of a series put together by 8, 64, 512, 4,096 and 32,768, so that a chart reads few rows of many points.
CREATE TABLE metric_bucket (                 -- leader
    series_id bigint NOT NULL,
    width bigint NOT NULL,
    bucket bigint NOT NULL,                  -- points [bucket * width, (bucket + 1) * width)
    n bigint NOT NULL,
    first_us bigint NOT NULL,
    last_us bigint NOT NULL,
    first_step bigint NOT NULL,
    last_step bigint NOT NULL,
    min_value double precision NOT NULL,
    max_value double precision NOT NULL,
    sum_value double precision NOT NULL,
    PRIMARY KEY (series_id, width, bucket)) WITH (fillfactor = 90);
