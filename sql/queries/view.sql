-- name: view_versions
-- Every campaign that has not ended: its wanted state and the size of its input, with listings that have failed.
-- Index campaign_run_live, stage_input_campaign, input_listing_campaign.
SELECT c.id, c.version, least(9223372036854775807, (SELECT coalesce(sum(i.tasks), 0) + count(*) FILTER (WHERE i.closed)
                         FROM stage_input i WHERE i.campaign_id = c.id)
                        + (SELECT count(*) FROM input_listing l WHERE l.campaign_id = c.id AND l.state = 'failed'))::bigint
FROM campaign_run r JOIN campaign c ON c.id = r.campaign_id
WHERE r.state NOT IN ('succeeded', 'failed', 'cancelled')
ORDER BY c.id

-- name: view_campaign
-- $1 campaign bigint
SELECT c.id, c.project_id, c.name, r.state, c.wanted, c.priority, c.parts_limit, c.version,
    r.taken_version, c.spec::text,
    k.limit_musd, coalesce(k.at_limit, 'drain'), coalesce(m.reserved_musd, 0), coalesce(m.spent_musd, 0),
    c.weight, coalesce(m.warm_musd, 0), array_to_string(k.warn_at_ppm, ','), coalesce(m.warned_ppm, 0), c.nonce,
    r.reason = 'budget'
FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id
LEFT JOIN cap k ON k.level = 'campaign' AND k.ref_id = c.id
LEFT JOIN money m ON m.level = 'campaign' AND m.ref_id = c.id
WHERE c.id = $1::bigint

-- name: view_stages
-- A stage whose other rows are gone is there all the same. $1 campaign bigint
SELECT s.id, s.campaign_id, s.seq, s.name, r.state, i.tasks, i.closed, r.taken,
    r.waiting, r.active, r.held, r.done, r.failed, r.skipped, r.cancelled,
    k.limit_musd, k.per_task_musd, coalesce(m.reserved_musd, 0), coalesce(m.spent_musd, 0), s.parts_limit,
    s.resumes, r.resumes_taken, r.breaker_since, r.breaker_passed, array_to_string(k.warn_at_ppm, ','),
    coalesce(m.warned_ppm, 0), r.reason, s.gate_override, coalesce(l.state, ''), coalesce(l.problem, '')
FROM stage s LEFT JOIN stage_run r ON r.stage_id = s.id LEFT JOIN stage_input i ON i.stage_id = s.id
LEFT JOIN input_listing l ON l.stage_id = s.id
LEFT JOIN cap k ON k.level = 'stage' AND k.ref_id = s.id
LEFT JOIN money m ON m.level = 'stage' AND m.ref_id = s.id
WHERE s.campaign_id = $1::bigint
ORDER BY s.seq

-- name: view_tasks_range
-- Ids of the first and the last task of [from, to); ids grow with seq within a stage.
-- $1 campaign bigint, $2 stage bigint, $3 from integer, $4 to integer. Index task_seq.
SELECT (SELECT id FROM task WHERE campaign_id = $1::bigint AND stage_id = $2::bigint AND seq = $3::int),
       (SELECT id FROM task WHERE campaign_id = $1::bigint AND stage_id = $2::bigint AND seq = $4::int - 1)

-- name: view_tasks
-- One page of waiting or held tasks, by id, as arrays side by side: a row for each costs more than finding it. Ids that
-- are adjacent, and seqs that go with them, are NULL: the first id, how many, and id - seq tell them all. The last five
-- are of those alone that were tried, are held or back off. Primary key of task_run.
-- $1 campaign bigint, $2 stage bigint, $3 after id bigint, $4 last id bigint, $5 page integer
SELECT count(*), min(id), max(id), min(id - seq),
    CASE WHEN count(*) = max(id) - min(id) + 1 THEN NULL ELSE array_agg(id) END,
    CASE WHEN min(id - seq) = max(id - seq) THEN NULL ELSE array_agg(seq) END,
    array_agg(id) FILTER (WHERE moved), array_agg(attempts) FILTER (WHERE moved),
    array_agg(names) FILTER (WHERE moved), array_agg(state) FILTER (WHERE moved), array_agg(not_before_us) FILTER (WHERE moved)
FROM (
    SELECT id, seq, attempts, names, state, not_before_us, attempts | names | state <> 0 OR not_before_us <> 0 AS moved
    FROM task_run
    WHERE campaign_id = $1::bigint AND stage_id = $2::bigint
      AND id > $3::bigint AND id <= $4::bigint AND state IN (0, 2)
    ORDER BY id LIMIT $5::int) t

-- name: view_sizes
-- Sizes of a page of adjacent tasks: reading two ranges in parallel costs a third of a join. Ids NULL: each of the range
-- is there. Primary key of task: the sum keeps the planner, which has no statistics of a table just loaded, from reading
-- the whole stage by task_seq.
-- $1 campaign bigint, $2 stage bigint, $3 first id bigint, $4 last id bigint
SELECT CASE WHEN count(*) = $4::bigint - $3::bigint + 1 THEN NULL ELSE array_agg(id) END, array_agg(size) FROM (
    SELECT id, size FROM task
    WHERE campaign_id = $1::bigint AND stage_id + 0 = $2::bigint
      AND id BETWEEN $3::bigint AND $4::bigint
    ORDER BY id) t

-- name: view_sizes_of
-- Sizes of a page of scattered tasks. $1 campaign bigint, $2 ids bigint[]
SELECT array_agg(id), array_agg(size) FROM (
    SELECT id, size FROM task
    WHERE campaign_id = $1::bigint AND id = ANY ($2::bigint[])
    ORDER BY id) t

-- name: view_attempts
-- Attempts that have not ended, by id, those of parts whose rows are gone, too. Index attempt_open. $1 campaign bigint or
-- 0: any, $2 attempt bigint or 0: any
SELECT a.id, a.campaign_id, a.stage_id, a.task_id, coalesce(r.seq, t.seq, 0), a.n, a.state, a.epoch, a.name,
    a.identity_hash, a.instance_type, a.instances, a.volume_gb, a.max_runtime_s,
    a.price_musd_per_hour, a.reserved_musd, a.holds, a.intended_at, a.started_at, a.ended_at,
    coalesce(r.attempts, 0), t.uri, coalesce(t.size, 0), t.vars::text, c.project_id, a.unwanted, a.market, a.keep_alive_s,
    a.instance_type_i, a.subnet_i, coalesce(a.pool_id, 0), a.open_musd,
    least(9223372036854775807, a.cost_musd::numeric + a.warm_musd)::bigint, a.settled,
    a.stop_cause, a.created_at, a.failed_as, r.id IS NULL OR t.id IS NULL,
    a.artifacts, CASE WHEN a.failed_as <> 0 THEN a.reason END
FROM attempt a JOIN campaign c ON c.id = a.campaign_id
LEFT JOIN task_run r ON r.campaign_id = a.campaign_id AND r.id = a.task_id
LEFT JOIN task t ON t.campaign_id = a.campaign_id AND t.id = a.task_id
WHERE a.state < 8 AND ($1::bigint = 0 OR a.campaign_id = $1::bigint)
    AND ($2::bigint = 0 OR a.id = $2::bigint)
ORDER BY a.id

-- name: attempt_request
-- $1 attempt bigint
SELECT request FROM attempt WHERE id = $1::bigint

-- name: task_input
-- $1 campaign bigint, $2 task bigint
SELECT r.id, r.stage_id, r.seq, r.attempts, r.names, t.size, t.uri, t.vars::text, r.state
FROM task_run r JOIN task t ON t.campaign_id = r.campaign_id AND t.id = r.id
WHERE r.campaign_id = $1::bigint AND r.id = $2::bigint

-- name: view_task_changes
-- A page by task; rows of ended campaigns say so and come along, so that a page costs the same
-- whatever has ended. What the ended attempts of a task have cost is summed up where a part has a cap of its own, and is 0
-- elsewhere: it is most of what a takeover of a million retried parts takes. One that lives counts when it ends. Primary
-- key. $1 after task bigint, $2 page integer
SELECT h.task_id, h.campaign_id, h.instance_type_i, h.volume_gb, h.max_runtime_s,
    h.cause_tries::text, h.signature_hash, h.same,
    CASE WHEN l.capped THEN (SELECT least(9223372036854775807, coalesce(sum(a.cost_musd::numeric + a.warm_musd + a.open_musd), 0))::bigint FROM attempt a
              WHERE a.task_id = h.task_id AND a.state >= 8)
        WHEN NOT l.capped THEN 0::bigint END
FROM (SELECT * FROM task_change WHERE task_id > $1::bigint ORDER BY task_id LIMIT $2::int) h
LEFT JOIN LATERAL (
    SELECT EXISTS (SELECT FROM stage g JOIN cap k ON k.level = 'stage' AND k.ref_id = g.id
        WHERE g.campaign_id = r.campaign_id AND k.per_task_musd IS NOT NULL) AS capped
    FROM campaign_run r
    WHERE r.campaign_id = h.campaign_id AND r.state NOT IN ('succeeded', 'failed', 'cancelled')) l ON true
ORDER BY h.task_id

-- name: view_task_changes_of
-- A page of those of one campaign, which may have ended. Its tasks are a range of ids, in which others may have some, too.
-- Primary keys. $1 campaign bigint, $2 after task bigint, $3 page integer
SELECT h.task_id, h.campaign_id, h.instance_type_i, h.volume_gb, h.max_runtime_s,
    h.cause_tries::text, h.signature_hash, h.same,
    CASE WHEN l.capped THEN (SELECT least(9223372036854775807, coalesce(sum(a.cost_musd::numeric + a.warm_musd + a.open_musd), 0))::bigint FROM attempt a
              WHERE a.task_id = h.task_id AND a.state >= 8)
        ELSE 0::bigint END
FROM task_change h CROSS JOIN (
    SELECT EXISTS (SELECT FROM stage g JOIN cap k ON k.level = 'stage' AND k.ref_id = g.id
        WHERE g.campaign_id = $1::bigint AND k.per_task_musd IS NOT NULL) AS capped) l
WHERE h.task_id > $2::bigint AND h.campaign_id = $1::bigint
    AND h.task_id >= (SELECT min(id) FROM task_run WHERE campaign_id = $1::bigint)
    AND h.task_id <= (SELECT max(id) FROM task_run WHERE campaign_id = $1::bigint)
ORDER BY h.task_id LIMIT $3::int

-- name: view_slots
-- Every instance type and market that is in use, limited or priced.
SELECT n.instance_type, n.market, coalesce(s.held, 0), coalesce(s.warm_idle, 0), coalesce(s.foreign_n, 0),
    coalesce(s.foreign_us, 0), s.refused_limit, q.limit_n, w.limit_n, l.limit_n, p.musd_per_hour
FROM (SELECT instance_type, market FROM slots WHERE market <> 'warm'
      UNION SELECT instance_type, market FROM quota WHERE market <> 'warm'
      UNION SELECT instance_type, 'on_demand' FROM price) AS n
LEFT JOIN slots s ON s.instance_type = n.instance_type AND s.market = n.market
LEFT JOIN quota q ON q.instance_type = n.instance_type AND q.market = n.market
LEFT JOIN quota w ON w.instance_type = n.instance_type AND w.market = 'warm' AND n.market = 'on_demand'
LEFT JOIN slot_limit l ON l.instance_type = n.instance_type AND l.market = n.market
LEFT JOIN price p ON p.instance_type = n.instance_type
ORDER BY n.instance_type, n.market

-- name: view_projects
-- Weights, limits, caps and money of every project; id 0 is the whole installation.
SELECT v.id, v.weight, v.parts_limit, k.limit_musd, coalesce(m.reserved_musd, 0), coalesce(m.spent_musd, 0),
    array_to_string(k.warn_at_ppm, ','), coalesce(m.warned_ppm, 0), v.name
FROM (SELECT 0::bigint AS id, 100 AS weight, (SELECT value FROM setting WHERE name = 'parts_limit') AS parts_limit,
          'global' AS level, '' AS name
      UNION ALL SELECT id, weight, parts_limit::bigint, 'project', name FROM project) AS v
LEFT JOIN cap k ON k.level = v.level AND k.ref_id = v.id
LEFT JOIN money m ON m.level = v.level AND m.ref_id = v.id
ORDER BY v.id

-- name: view_account_quotas
SELECT kind, limit_n FROM account_quota
