-- additive: an older droverd reads prices from its file alone, and asks AWS for no quota.
-- Prices of AWS Pricing, as it lists them: what `price` takes for types that the operator's file does not name.

CREATE TABLE price_list (                    -- leader: of AWS Pricing, without the discount
    instance_type text PRIMARY KEY,          -- as in price
    musd bigint NOT NULL CHECK (musd > 0),   -- an hour; of storage:... a GB and month
    read_at timestamptz NOT NULL);

CREATE TABLE quota_request (                 -- API: a higher quota that AWS was asked for
    id text PRIMARY KEY,                     -- AWS' own
    instance_type text NOT NULL,
    market text NOT NULL CHECK (market IN ('on_demand', 'spot', 'warm')),
    value bigint NOT NULL CHECK (value > 0),
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX quota_request_type ON quota_request (instance_type, market, asked_at);
