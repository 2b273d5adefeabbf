-- Failed parts by stage, cause and signature: the 200 largest groups, and how many parts there are in all of them.

-- name: api_failures
-- $1 campaign bigint, $2 stage bigint or 0, $3 causes text[], $4 remedies text[]
SELECT coalesce(json_agg(json_build_object('stage', g.name, 'cause', ($3::text[])[x.cause + 1], 'signature', x.signature,
    'parts', x.parts, 'final', x.final_n, 'retrying', x.parts - x.final_n, 'first_at', x.first_at,
    'last_at', x.last_at, 'lost_micro_usd', x.lost, 'message', x.message, 'sample', x.sample,
    'remedy', ($4::text[])[x.cause + 1]) ORDER BY x.nth) FILTER (WHERE x.nth <= 200), '[]'::json)::text,
    coalesce(sum(x.parts), 0)::bigint, coalesce(sum(x.final_n), 0)::bigint
FROM (SELECT stage_id, cause, signature, count(*) AS parts, count(*) FILTER (WHERE final) AS final_n, min(at) AS first_at,
        max(at) AS last_at, sum(lost_musd)::bigint AS lost, (array_agg(message ORDER BY at))[1] AS message,
        (array_agg(seq ORDER BY seq))[1:20] AS sample, row_number() OVER (ORDER BY count(*) DESC, cause, signature, stage_id) AS nth
    FROM task_failure WHERE campaign_id = $1 AND ($2 = 0 OR stage_id = $2)
    GROUP BY stage_id, cause, signature) x
JOIN stage g ON g.campaign_id = $1 AND g.id = x.stage_id;
