-- Money and seconds of a campaign.

-- name: api_cost_total
-- $1 campaign bigint
SELECT json_build_object('reserved_micro_usd', coalesce(m.reserved_musd, 0),
    'metered', json_build_object('seconds', coalesce(m.seconds, 0), 'micro_usd', coalesce(m.spent_musd, 0)),
    'limit_micro_usd', k.limit_musd, 'at_limit', k.at_limit)::text
FROM campaign c
LEFT JOIN money m ON m.level = 'campaign' AND m.ref_id = c.id
LEFT JOIN cap k ON k.level = 'campaign' AND k.ref_id = c.id
WHERE c.id = $1;

-- name: api_cost_by_stage
-- $1 campaign bigint
SELECT coalesce(json_agg(json_build_object('stage', g.name, 'seconds', coalesce(m.seconds, 0),
    'micro_usd', coalesce(m.spent_musd, 0), 'reserved_micro_usd', coalesce(m.reserved_musd, 0),
    'limit_micro_usd', k.limit_musd) ORDER BY g.seq), '[]'::json)::text
FROM stage g
LEFT JOIN money m ON m.level = 'stage' AND m.ref_id = g.id
LEFT JOIN cap k ON k.level = 'stage' AND k.ref_id = g.id
WHERE g.campaign_id = $1;

-- Relies on attempt_campaign.
-- name: api_cost_by_cause
-- $1 campaign bigint, $2 causes text[]
SELECT coalesce(json_agg(json_build_object('cause', ($2::text[])[x.cause + 1], 'attempts', x.n, 'seconds', x.seconds,
    'micro_usd', x.musd, 'estimated', x.estimated) ORDER BY x.cause), '[]'::json)::text
FROM (SELECT cause, count(*) AS n, sum(billable_s)::bigint AS seconds, sum(cost_musd)::bigint AS musd,
        bool_or(estimated) AS estimated
    FROM attempt WHERE campaign_id = $1 AND cost_musd + billable_s > 0 GROUP BY cause) x;
