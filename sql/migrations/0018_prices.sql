-- Prices of AWS Pricing, as it lists them: what `price` takes for types that the operator's file does not name.

CREATE TABLE price_list (                    -- leader: of AWS Pricing, without the discount
    instance_type text PRIMARY KEY,          -- as in price
    musd bigint NOT NULL CHECK (musd > 0),   -- an hour; of storage:... a GB and month
    read_at timestamptz NOT NULL);
