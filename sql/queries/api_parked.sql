-- What the leader has set aside, as people see it, and how they let it be tried again.

-- Oldest first; with what it is about and what to do. Relies on parked_campaign.
-- name: api_parked
-- $1 campaign bigint or 0: all, $2 rows bigint, $3 kinds text[], $4 what to do for each text[]
SELECT coalesce(json_agg(json_build_object('kind', p.kind, 'id', p.id, 'campaign', 'c-' || p.campaign_id,
    'stage', g.name, 'part', t.seq, 'job_name', a.name, 'reason', p.reason,
    'what_to_do', replace(($4::text[])[array_position($3::text[], p.kind)], '{c}', 'c-' || p.campaign_id),
    'times', p.times, 'since', p.since, 'tried_at', p.tried_at) ORDER BY p.since, p.kind, p.ref_id), '[]'::json)::text
FROM (SELECT x.*, CASE x.kind WHEN 'campaign' THEN 'c-' WHEN 'operation' THEN 'op-' ELSE '' END || x.ref_id AS id
      FROM parked x WHERE $1 = 0 OR x.campaign_id = $1 ORDER BY x.since LIMIT $2) p
LEFT JOIN attempt a ON p.kind = 'attempt' AND a.id = p.ref_id
LEFT JOIN task_run t ON t.campaign_id = p.campaign_id
    AND t.id = CASE p.kind WHEN 'attempt' THEN a.task_id WHEN 'part' THEN p.ref_id END
LEFT JOIN stage g ON g.id = t.stage_id;

-- name: api_unpark
-- $1 campaign bigint
DELETE FROM parked WHERE campaign_id = $1;
