-- Where the jobs of campaigns that have not ended run.

-- Subnets by commas, 40 at most; '': none of them is in a VPC.
-- name: api_subnets
SELECT coalesce(string_agg(x.id, ','), '') FROM (
    SELECT DISTINCT n.id FROM campaign_run r JOIN campaign c ON c.id = r.campaign_id,
        jsonb_array_elements(CASE jsonb_typeof(c.spec -> 'stages') WHEN 'array' THEN c.spec -> 'stages' END) s, jsonb_array_elements_text(CASE jsonb_typeof(s -> 'subnets') WHEN 'array' THEN s -> 'subnets' END) n(id)
    WHERE r.state NOT IN ('succeeded', 'failed', 'cancelled') ORDER BY n.id LIMIT 40) x;
