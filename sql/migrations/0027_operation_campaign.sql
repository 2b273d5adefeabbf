-- additive
CREATE INDEX operation_campaign ON operation (campaign_id, id);   -- the operations of one campaign, a page at a time
