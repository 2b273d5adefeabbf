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

-- Of attempts that are archived the sums are kept. What is of no job is of the same snapshot: the answer is remembered, the total is
-- not. Relies on attempt_campaign.
-- name: api_cost_by_cause
-- $1 campaign bigint, $2 causes text[]
SELECT json_build_object('by_cause', coalesce(json_agg(json_build_object('cause', ($2::text[])[x.cause + 1], 'attempts', x.n,
        'seconds', x.seconds, 'micro_usd', x.musd, 'estimated', x.estimated) ORDER BY x.cause), '[]'::json),
    'of_no_job_micro_usd', greatest(coalesce((SELECT m.spent_musd FROM money m WHERE m.level = 'campaign' AND m.ref_id = $1), 0)
        - coalesce(sum(x.musd), 0), 0)::bigint)::text
FROM (SELECT y.cause, sum(y.n)::bigint AS n, sum(y.seconds)::bigint AS seconds, sum(y.musd)::bigint AS musd,
        bool_or(y.estimated) AS estimated
    FROM (SELECT cause, count(*) AS n, sum(billable_s) AS seconds, sum(cost_musd) AS musd, bool_or(estimated) AS estimated
            FROM attempt WHERE campaign_id = $1 AND cost_musd + billable_s > 0 GROUP BY cause
        UNION ALL SELECT cause, attempts, seconds, musd, estimated FROM archive_cost WHERE campaign_id = $1) y
    GROUP BY y.cause) x;

-- By stage: what its attempts and their pools cost, what all of it cost, and the sums of what is stored of their phases. Relies on
-- attempt_campaign.
-- name: api_cost_phases
-- $1 campaign bigint
SELECT g.name, coalesce(x.n, 0), coalesce(x.measured, 0), coalesce(x.keeps, false),
    CASE jsonb_typeof(d.stage->'instance_type') WHEN 'array' THEN jsonb_array_length(d.stage->'instance_type') ELSE 1 END = 1,
    coalesce(x.job_s, 0), coalesce(x.job_musd, 0), coalesce(x.warm_s, 0), coalesce(x.warm_musd, 0),
    coalesce(d.stage ? 'endpoint', false), coalesce(d.stage ? 'filesystem', false), coalesce(m.seconds, 0), coalesce(m.spent_musd, 0),
    coalesce(x.p1, 0), coalesce(x.p2, 0), coalesce(x.p3, 0), coalesce(x.p4, 0), coalesce(x.p5, 0), coalesce(x.p6, 0), coalesce(x.p7, 0), coalesce(x.p8, 0), coalesce(x.p9, 0),
    coalesce(x.p10, 0), coalesce(x.p11, 0), coalesce(x.p12, 0), coalesce(x.p13, 0), coalesce(x.p14, 0), coalesce(x.p15, 0), coalesce(x.p16, 0), coalesce(x.p17, 0), coalesce(x.p18, 0)
FROM stage g JOIN campaign c ON c.id = g.campaign_id
LEFT JOIN money m ON m.level = 'stage' AND m.ref_id = g.id
LEFT JOIN LATERAL (SELECT e AS stage FROM jsonb_array_elements(CASE jsonb_typeof(c.spec->'stages') WHEN 'array' THEN c.spec->'stages' END) e WHERE e->>'name' = g.name LIMIT 1) d ON true
LEFT JOIN (SELECT y.stage_id, sum(y.n)::bigint AS n, sum(y.measured)::bigint AS measured, bool_or(y.keeps) AS keeps,
        sum(y.job_s)::bigint AS job_s, sum(y.job_musd)::bigint AS job_musd, sum(y.warm_s)::bigint AS warm_s,
        sum(y.warm_musd)::bigint AS warm_musd,
        sum(y.phases[1])::bigint AS p1, sum(y.phases[2])::bigint AS p2, sum(y.phases[3])::bigint AS p3,
        sum(y.phases[4])::bigint AS p4, sum(y.phases[5])::bigint AS p5, sum(y.phases[6])::bigint AS p6,
        sum(y.phases[7])::bigint AS p7, sum(y.phases[8])::bigint AS p8, sum(y.phases[9])::bigint AS p9,
        sum(y.phases[10])::bigint AS p10, sum(y.phases[11])::bigint AS p11, sum(y.phases[12])::bigint AS p12,
        sum(y.phases[13])::bigint AS p13, sum(y.phases[14])::bigint AS p14, sum(y.phases[15])::bigint AS p15,
        sum(y.phases[16])::bigint AS p16, sum(y.phases[17])::bigint AS p17, sum(y.phases[18])::bigint AS p18
    FROM (SELECT stage_id, 1 AS n, (phases IS NOT NULL)::int AS measured, keep_alive_s > 0 OR market = 'spot' AS keeps,
            billable_s AS job_s, cost_musd AS job_musd, warm_s, warm_musd, phases
            FROM attempt WHERE campaign_id = $1 AND (phases IS NOT NULL OR cost_musd + billable_s + warm_s > 0)
        UNION ALL SELECT stage_id, attempts, measured, keeps, job_s, job_musd, warm_s, warm_musd, phases
            FROM archive_stage WHERE campaign_id = $1) y
    GROUP BY y.stage_id) x ON x.stage_id = g.id
WHERE g.campaign_id = $1 ORDER BY g.seq;
