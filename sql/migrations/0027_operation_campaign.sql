-- additive: an older droverd looks at every operation for those of one campaign.
CREATE INDEX operation_campaign ON operation (campaign_id, id);
