-- Campaigns as the API shows and writes them. The JSON is built here; a handler passes it on.

-- One campaign by id: from counters only, for any number of parts. Relies on the primary keys,
-- stage(campaign_id, seq) and stage_run_campaign.
-- name: api_campaign_get
-- $1 campaign bigint, $2 names of wait reasons text[], $3 their texts text[], $4 those that pass text[]
WITH blocked AS MATERIALIZED (SELECT * FROM stage_needs_told($1))
SELECT c.version, json_build_object(
    'id', 'c-' || c.id, 'name', c.name, 'project', p.name, 'state', r.state, 'reason', r.reason,
    'wanted', c.wanted, 'priority', c.priority, 'deadline', c.deadline, 'version', c.version,
    'limits', json_build_object('parts', c.parts_limit, 'weight', c.weight),
    'budget', json_build_object('limit_micro_usd', k.limit_musd, 'at_limit', coalesce(k.at_limit, 'drain'),
        'reserved_micro_usd', coalesce(m.reserved_musd, 0), 'spent_micro_usd', coalesce(m.spent_musd, 0),
        'seconds', coalesce(m.seconds, 0)),
    'waits_for', CASE WHEN r.state = 'planned' THEN input_listing_told(c.id)
        WHEN r.state = 'running' AND s.active = 0 THEN s.waits_for END,
    'parts', s.parts, 'stages', s.stages,
    'parked', (SELECT count(*) FROM parked x WHERE x.campaign_id = c.id),
    'created_by', c.created_by, 'created_at', c.created_at, 'started_at', r.started_at, 'ended_at', r.ended_at,
    'archive', CASE WHEN h.campaign_id IS NOT NULL THEN json_build_object(
        'state', CASE WHEN h.archived_at IS NULL THEN 'archiving' ELSE 'archived' END, 'asked_by', h.asked_by,
        'asked_at', h.asked_at, 'archived_at', h.archived_at, 'attempts', h.attempts,
        'export', CASE WHEN h.export_uri <> '' THEN json_build_object('uri', h.export_uri, 'objects', h.exported,
            'lines', h.exported_rows, 'ended_at', h.exported_at, 'problem', nullif(h.export_problem, '')) END) END,
    'links', json_build_object('dashboard', '/c/' || c.id))::text
FROM campaign c
JOIN campaign_run r ON r.campaign_id = c.id
JOIN project p ON p.id = c.project_id
LEFT JOIN cap k ON k.level = 'campaign' AND k.ref_id = c.id
LEFT JOIN money m ON m.level = 'campaign' AND m.ref_id = c.id
LEFT JOIN archive h ON h.campaign_id = c.id
CROSS JOIN LATERAL (
    SELECT json_build_object('total', coalesce(sum(i.tasks), 0)::bigint,
            'waiting', coalesce(sum(i.tasks - n.taken + n.waiting), 0)::bigint,
            'active', coalesce(sum(n.active), 0)::bigint, 'held', coalesce(sum(n.held), 0)::bigint,
            'done', coalesce(sum(n.done), 0)::bigint, 'failed', coalesce(sum(n.failed), 0)::bigint,
            'skipped', coalesce(sum(n.skipped), 0)::bigint, 'cancelled', coalesce(sum(n.cancelled), 0)::bigint,
            'exact', true) AS parts,
        sum(n.active) AS active,
        (array_agg(($3::text[])[array_position($2::text[], n.wait_reason)] || coalesce(': ' || nullif(n.wait_detail, ''), '') ORDER BY g.seq)
            FILTER (WHERE n.state = 'running' AND (i.tasks - n.taken + n.waiting > 0 OR (g.kind <> 'jobs' AND n.wait_reason <> 'none'))
                AND n.wait_reason <> ALL ($4::text[])))[1] AS waits_for,
        coalesce(json_agg(json_build_object('name', g.name, 'kind', g.kind, 'state', n.state, 'reason', n.reason,
            'closed', i.closed, 'listing', CASE WHEN l.id IS NOT NULL THEN input_listing_json(l) END,
            'limits', json_build_object('parts', g.parts_limit),
            'budget', json_build_object('limit_micro_usd', b.limit_musd, 'per_task_micro_usd', b.per_task_musd,
                'reserved_micro_usd', coalesce(u.reserved_musd, 0), 'spent_micro_usd', coalesce(u.spent_musd, 0)),
            'wait_reason', CASE WHEN (i.tasks - n.taken + n.waiting > 0 OR (g.kind <> 'jobs' AND n.state = 'running' AND n.wait_reason <> 'none')) THEN n.wait_reason END,
            'wait_text', CASE WHEN n.wait_reason = 'stage_blocked' AND n.state <> 'skipped' AND i.tasks - n.taken + n.waiting > 0
                AND (SELECT true FROM blocked b WHERE b.stage_id = g.id) THEN 'waits for ' || (SELECT b.told FROM blocked b WHERE b.stage_id = g.id)
                WHEN (i.tasks - n.taken + n.waiting > 0 OR (g.kind <> 'jobs' AND n.state = 'running' AND n.wait_reason <> 'none'))
                THEN ($3::text[])[array_position($2::text[], n.wait_reason)] || coalesce(': ' || nullif(n.wait_detail, ''), '') END,
            'parts', json_build_object('total', i.tasks, 'waiting', i.tasks - n.taken + n.waiting,
                'active', n.active, 'held', n.held, 'done', n.done, 'failed', n.failed, 'skipped', n.skipped,
                'cancelled', n.cancelled, 'exact', true),
            'rows_in', n.rows_in, 'successes', n.successes, 'failed_to_download', n.failed_to_download,
            'failed_to_resize', n.failed_to_resize, 'bytes', n.bytes, 'run_seconds', n.run_seconds,
            'started_at', n.started_at, 'ended_at', n.ended_at) ORDER BY g.seq), '[]'::json) AS stages
    FROM stage g JOIN stage_run n ON n.stage_id = g.id JOIN stage_input i ON i.stage_id = g.id
    LEFT JOIN input_listing l ON l.stage_id = g.id
    LEFT JOIN cap b ON b.level = 'stage' AND b.ref_id = g.id
    LEFT JOIN money u ON u.level = 'stage' AND u.ref_id = g.id
    WHERE g.campaign_id = c.id) s
WHERE c.id = $1;

-- Which versions of their rows a campaign's counters, money and archive have, as text, how many parts it has, and how many
-- are active: every change of a part, and every end of an attempt, is written with one of them. Relies on stage_run_campaign and the primary keys of the others.
-- name: api_campaign_rows
-- $1 campaign bigint
SELECT coalesce(string_agg(concat_ws(' ', n.stage_id, n.xmin, s.xmin, c.xmin, a.xmin), ',' ORDER BY n.stage_id), ''),
    coalesce(sum(n.taken), 0)::bigint, coalesce(sum(n.active), 0)::bigint
FROM stage_run n
LEFT JOIN archive a ON a.campaign_id = n.campaign_id
LEFT JOIN money s ON s.level = 'stage' AND s.ref_id = n.stage_id
LEFT JOIN money c ON c.level = 'campaign' AND c.ref_id = n.campaign_id
WHERE n.campaign_id = $1;

-- A page of campaigns, newest first. Relies on campaign_newest.
-- name: api_campaign_list
-- $1 behind this time timestamptz, $2 behind this id bigint, $3 state text or NULL, $4 rows bigint,
-- $5 names of wait reasons text[], $6 their texts text[], $7 projects by commas text, '' for all, $8 newest first? boolean,
-- $9 wait reasons that pass text[]
SELECT c.id, c.created_at, json_build_object(
    'id', 'c-' || c.id, 'name', c.name, 'project', p.name, 'state', r.state, 'reason', r.reason,
    'wanted', c.wanted, 'priority', c.priority, 'deadline', c.deadline,
    'budget', json_build_object('limit_micro_usd', k.limit_musd,
        'reserved_micro_usd', coalesce(m.reserved_musd, 0), 'spent_micro_usd', coalesce(m.spent_musd, 0)),
    'parts', (SELECT json_build_object('total', coalesce(sum(i.tasks), 0)::bigint,
            'waiting', coalesce(sum(i.tasks - n.taken + n.waiting), 0)::bigint,
            'active', coalesce(sum(n.active), 0)::bigint, 'held', coalesce(sum(n.held), 0)::bigint,
            'done', coalesce(sum(n.done), 0)::bigint, 'failed', coalesce(sum(n.failed), 0)::bigint,
            'skipped', coalesce(sum(n.skipped), 0)::bigint, 'cancelled', coalesce(sum(n.cancelled), 0)::bigint,
            'exact', true)
        FROM stage_run n JOIN stage_input i ON i.stage_id = n.stage_id WHERE n.campaign_id = c.id),
    'waits_for', CASE WHEN r.state = 'planned' THEN input_listing_told(c.id) WHEN r.state = 'running' THEN (SELECT (array_agg(($6::text[])[array_position($5::text[], n.wait_reason)] || coalesce(': ' || nullif(n.wait_detail, ''), '')
            ORDER BY n.stage_id) FILTER (WHERE n.state = 'running' AND (i.tasks - n.taken + n.waiting > 0 OR (g.kind <> 'jobs' AND n.wait_reason <> 'none'))
                AND n.wait_reason <> ALL ($9::text[])))[1]
        FROM stage_run n JOIN stage_input i ON i.stage_id = n.stage_id JOIN stage g ON g.id = n.stage_id WHERE n.campaign_id = c.id
        HAVING sum(n.active) = 0) END,
    'created_at', c.created_at, 'started_at', r.started_at, 'ended_at', r.ended_at,
    'archive', CASE WHEN h.campaign_id IS NOT NULL THEN json_build_object(
        'state', CASE WHEN h.archived_at IS NULL THEN 'archiving' ELSE 'archived' END, 'asked_by', h.asked_by,
        'asked_at', h.asked_at, 'archived_at', h.archived_at, 'attempts', h.attempts,
        'export', CASE WHEN h.export_uri <> '' THEN json_build_object('uri', h.export_uri, 'objects', h.exported,
            'lines', h.exported_rows, 'ended_at', h.exported_at, 'problem', nullif(h.export_problem, '')) END) END)::text
FROM ((SELECT c.id FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id JOIN project p ON p.id = c.project_id
       WHERE $8::boolean AND (c.created_at, c.id) < ($1, $2) AND ($3::text IS NULL OR r.state = $3)
           AND ($7::text = '' OR p.name = ANY (string_to_array($7::text, ',')))
       ORDER BY c.created_at DESC, c.id DESC LIMIT $4)
    UNION ALL
      (SELECT c.id FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id JOIN project p ON p.id = c.project_id
       WHERE NOT $8::boolean AND (c.created_at, c.id) > ($1, $2) AND ($3::text IS NULL OR r.state = $3)
           AND ($7::text = '' OR p.name = ANY (string_to_array($7::text, ',')))
       ORDER BY c.created_at, c.id LIMIT $4)) w
JOIN campaign c ON c.id = w.id
JOIN campaign_run r ON r.campaign_id = c.id
JOIN project p ON p.id = c.project_id
LEFT JOIN cap k ON k.level = 'campaign' AND k.ref_id = c.id
LEFT JOIN money m ON m.level = 'campaign' AND m.ref_id = c.id
LEFT JOIN archive h ON h.campaign_id = c.id
ORDER BY CASE WHEN NOT $8::boolean THEN c.created_at END, CASE WHEN NOT $8::boolean THEN c.id END, c.created_at DESC, c.id DESC;

-- What a person should know of those campaigns that are held, stuck, late or cannot run; no row for others. While one of them
-- waits nothing happens to it, so its last event tells since when. Relies on the primary keys, stage(campaign_id, seq),
-- stage_run_campaign, parked_campaign and event_campaign. A stage without parts (endpoint, lustre) waits itself.
-- name: api_campaign_guidance
-- $1 campaigns bigint[], $2 wait reasons that end by themselves text[]
SELECT c.id, json_build_object('state', r.state, 'reason', r.reason, 'wanted', c.wanted,
    'since', to_char(coalesce((SELECT e.at FROM event e WHERE e.campaign_id = c.id ORDER BY e.id DESC LIMIT 1),
        r.started_at, c.created_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'limit', k.limit_musd, 'at_limit', k.at_limit, 'reserved', coalesce(m.reserved_musd, 0), 'spent', coalesce(m.spent_musd, 0),
    'late_since', CASE WHEN c.deadline < clock_timestamp() THEN to_char(c.deadline AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END,
    'active', s.active, 'parts_limit', c.parts_limit, 'parked', x.n, 'parked_what', x.what, 'parked_reason', x.reason,
    'parked_since', to_char(x.since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'parts_held', s.parts_held, 'kept', (SELECT json_build_object('name', f.token,
            'until', to_char(f.delete_after AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
        FROM filesystem f WHERE f.campaign_id = c.id AND f.state = 'available' AND f.kept_for_retry
        ORDER BY f.id DESC LIMIT 1),
    'account', (SELECT json_object_agg(q.kind, q.limit_n) FROM account_quota q),
    'stages', (SELECT json_agg(json_build_object('name', g.name, 'state', n.state, 'reason', n.reason,
            'job', (SELECT json_build_object('instances', d->'instance_count', 'run_s', d->'max_runtime_s', 'volume_gb', d->'volume_gb', 'spot', d->'spot')
                FROM jsonb_array_elements(CASE jsonb_typeof(c.spec->'stages') WHEN 'array' THEN c.spec->'stages' END) d
                WHERE d->>'name' = g.name LIMIT 1),
            'wait_reason', n.wait_reason, 'wait_detail', n.wait_detail, 'active', n.active, 'failed', n.failed,
            'waiting', i.tasks - n.taken + n.waiting + (g.kind <> 'jobs' AND n.wait_reason <> 'none')::int,
            'parts_limit', g.parts_limit, 'limit', gk.limit_musd, 'per_task', gk.per_task_musd,
            'reserved', coalesce(gm.reserved_musd, 0), 'spent', coalesce(gm.spent_musd, 0),
            'types', (SELECT json_agg(json_build_object('type', t.type, 'limit', q.limit_n, 'own_limit', o.limit_n,
                    'held', coalesce(l.held + l.warm_idle, 0), 'others', coalesce(l.foreign_n, 0),
                    'price', (SELECT musd_per_hour FROM price WHERE instance_type = t.type)) ORDER BY t.i)
                FROM jsonb_array_elements(CASE jsonb_typeof(c.spec->'stages') WHEN 'array' THEN c.spec->'stages' END) d
                CROSS JOIN LATERAL jsonb_array_elements_text(CASE jsonb_typeof(d->'instance_type') WHEN 'array' THEN d->'instance_type' END) WITH ORDINALITY t (type, i)
                LEFT JOIN quota q ON q.instance_type = t.type
                    AND q.market = CASE WHEN d->>'spot' = 'true' THEN 'spot' ELSE 'on_demand' END
                LEFT JOIN slots l ON l.instance_type = t.type
                    AND l.market = CASE WHEN d->>'spot' = 'true' THEN 'spot' ELSE 'on_demand' END
                LEFT JOIN slot_limit o ON o.instance_type = t.type
                    AND o.market = CASE WHEN d->>'spot' = 'true' THEN 'spot' ELSE 'on_demand' END
                WHERE d->>'name' = g.name)) ORDER BY g.seq)
        FROM stage g JOIN stage_run n ON n.stage_id = g.id JOIN stage_input i ON i.stage_id = g.id
        LEFT JOIN cap gk ON gk.level = 'stage' AND gk.ref_id = g.id
        LEFT JOIN money gm ON gm.level = 'stage' AND gm.ref_id = g.id
        WHERE g.campaign_id = c.id AND n.state IN ('running', 'held')))::text
FROM campaign c
JOIN campaign_run r ON r.campaign_id = c.id
CROSS JOIN LATERAL (SELECT coalesce(sum(n.active), 0)::bigint AS active, sum(n.held) AS parts_held, bool_or(n.state = 'held') AS held,
        bool_or(n.state = 'running' AND (i.tasks - n.taken + n.waiting > 0 OR (g.kind <> 'jobs' AND n.wait_reason <> 'none')) AND n.wait_reason <> ALL ($2)) AS waits
    FROM stage_run n JOIN stage_input i ON i.stage_id = n.stage_id JOIN stage g ON g.id = n.stage_id WHERE n.campaign_id = c.id) s
CROSS JOIN LATERAL (SELECT count(*) AS n, min(p.since) AS since,
        (array_agg(p.reason ORDER BY p.since, p.kind, p.ref_id))[1] AS reason,
        (SELECT string_agg(k.n || ' ' || k.kind || CASE WHEN k.n = 1 THEN '' ELSE 's' END, ', ' ORDER BY k.kind)
         FROM (SELECT y.kind, count(*) AS n FROM parked y WHERE y.campaign_id = c.id GROUP BY y.kind) k) AS what
    FROM parked p WHERE p.campaign_id = c.id) x
LEFT JOIN cap k ON k.level = 'campaign' AND k.ref_id = c.id
LEFT JOIN money m ON m.level = 'campaign' AND m.ref_id = c.id
WHERE c.id = ANY ($1) AND (r.state = 'failed' AND EXISTS (SELECT FROM filesystem f
        WHERE f.campaign_id = c.id AND f.state = 'available' AND f.kept_for_retry)
    OR r.state NOT IN ('succeeded', 'failed', 'cancelled') AND (x.n > 0 OR s.parts_held > 0 OR c.deadline < clock_timestamp() OR r.state IN ('held', 'paused', 'draining') OR s.held OR (s.active = 0 AND s.waits)
        OR (r.state = 'planned' AND c.created_at < clock_timestamp() - interval '10 min' AND input_listing_told(c.id) IS NULL)));

-- name: api_campaign_spec
-- $1 campaign bigint
SELECT version, spec::text, spec_text FROM campaign WHERE id = $1;

-- The state that a change of the wanted state starts from, locked against other changes.
-- name: api_campaign_lock
-- $1 campaign bigint
SELECT c.version, c.wanted, r.state FROM campaign c JOIN campaign_run r ON r.campaign_id = c.id
WHERE c.id = $1 FOR UPDATE OF c;

-- After the lock, in a statement of its own: it sees what was committed while it waited. $1 campaign bigint
-- name: api_campaign_archived
SELECT EXISTS (SELECT FROM archive WHERE campaign_id = $1);

-- name: api_campaign_want
-- $1 campaign bigint, $2 wanted text
UPDATE campaign SET wanted = $2, version = version + 1 WHERE id = $1;

-- name: api_campaign_patch
-- $1 campaign bigint, $2 priority integer or NULL, $3 change the limit? boolean, $4 parts_limit integer or NULL,
-- $5 weight integer or NULL, $6 change the deadline? boolean, $7 deadline timestamptz or NULL
UPDATE campaign SET priority = coalesce($2, priority), weight = coalesce($5, weight),
    parts_limit = CASE WHEN $3 THEN $4 ELSE parts_limit END, deadline = CASE WHEN $6 THEN $7 ELSE deadline END, version = version + 1
WHERE id = $1;

-- What the statement above and those of caps and stages change. $1 campaign bigint
-- name: api_campaign_limits
SELECT json_build_object('priority', c.priority, 'deadline', c.deadline, 'limits', json_build_object('parts', c.parts_limit, 'weight', c.weight),
    'budget', json_build_object('limit_micro_usd', k.limit_musd, 'at_limit', coalesce(k.at_limit, 'drain')),
    'stages', (SELECT json_object_agg(g.name, json_build_object('parts', g.parts_limit,
            'budget', json_build_object('limit_micro_usd', b.limit_musd, 'per_task_micro_usd', b.per_task_musd)))
        FROM stage g LEFT JOIN cap b ON b.level = 'stage' AND b.ref_id = g.id WHERE g.campaign_id = c.id))::text
FROM campaign c LEFT JOIN cap k ON k.level = 'campaign' AND k.ref_id = c.id
WHERE c.id = $1;

-- name: api_project_take
-- $1 name text
INSERT INTO project (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id;

-- The newest campaign of a name that has not ended, with its file. Relies on project(name) and campaign_run_live.
-- name: api_campaign_live
-- $1 project text, $2 name text
SELECT c.id, r.state, c.spec_text FROM campaign c
JOIN campaign_run r ON r.campaign_id = c.id AND r.state NOT IN ('succeeded', 'failed', 'cancelled')
JOIN project p ON p.id = c.project_id
WHERE p.name = $1 AND c.name = $2 ORDER BY c.id DESC LIMIT 1;

-- name: api_campaign_insert
-- $1 project bigint, $2 name text, $3 text as sent text, $4 spec jsonb, $5 priority integer, $6 parts_limit bigint,
-- $7 created_by text, $8 weight bigint, $9 nonce text, $10 deadline timestamptz or NULL
INSERT INTO campaign (project_id, name, spec_text, spec, priority, parts_limit, created_by, weight, nonce, deadline)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id;

-- name: api_campaign_run_insert
-- $1 campaign bigint
INSERT INTO campaign_run (campaign_id) VALUES ($1);

-- name: api_stage_insert
-- $1 campaign bigint, $2 seq integer, $3 name text, $4 parts_limit bigint or NULL, $5 kind text
INSERT INTO stage (campaign_id, seq, name, parts_limit, kind) VALUES ($1, $2, $3, $4, $5) RETURNING id;

-- name: api_stage_input_insert
-- $1 stage bigint, $2 campaign bigint, $3 closed boolean
INSERT INTO stage_input (stage_id, campaign_id, closed) VALUES ($1, $2, $3);

-- name: api_stage_run_insert
-- $1 stage bigint, $2 campaign bigint
INSERT INTO stage_run (stage_id, campaign_id) VALUES ($1, $2);

-- name: api_cap_put
-- $1 level text, $2 ref bigint, $3 limit bigint or NULL, $4 per task bigint or NULL, $5 at_limit text
INSERT INTO cap (level, ref_id, limit_musd, per_task_musd, at_limit) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (level, ref_id) DO UPDATE SET limit_musd = excluded.limit_musd,
    per_task_musd = coalesce(excluded.per_task_musd, cap.per_task_musd), at_limit = excluded.at_limit;

-- The thresholds of an existing cap.
-- name: api_cap_warn
-- $1 level text, $2 ref bigint, $3 parts of a million bigint[]
UPDATE cap SET warn_at_ppm = $3 WHERE level = $1 AND ref_id = $2;

-- name: api_cap_get
-- $1 level text, $2 ref bigint
SELECT limit_musd, at_limit FROM cap WHERE level = $1 AND ref_id = $2;

-- A stage without a cap gets one with the thresholds of its campaign's.
-- name: api_stage_budget
-- $1 campaign bigint, $2 stage name text, $3 change the total? boolean, $4 limit bigint or NULL, $5 change that of a part?
-- boolean, $6 per task bigint or NULL
INSERT INTO cap (level, ref_id, limit_musd, per_task_musd, at_limit, warn_at_ppm)
SELECT 'stage', g.id, CASE WHEN $3 THEN $4::bigint END, CASE WHEN $5 THEN $6::bigint END, coalesce(k.at_limit, 'drain'), k.warn_at_ppm
FROM stage g LEFT JOIN cap k ON k.level = 'campaign' AND k.ref_id = g.campaign_id
WHERE g.campaign_id = $1 AND g.name = $2
ON CONFLICT (level, ref_id) DO UPDATE SET limit_musd = CASE WHEN $3 THEN $4::bigint ELSE cap.limit_musd END,
    per_task_musd = CASE WHEN $5 THEN $6::bigint ELSE cap.per_task_musd END;

-- name: api_notify_wanted
SELECT pg_notify('drover_wanted', '');

-- name: api_stage_limit
-- $1 campaign bigint, $2 stage name text, $3 parts integer or NULL
UPDATE stage SET parts_limit = $3 WHERE campaign_id = $1 AND name = $2;

-- Stages held by the breaker continue when a person resumes the campaign.
-- name: api_stages_resume
-- The new version makes the leader read the campaign again. $1 campaign bigint
WITH again AS (
    UPDATE stage g SET resumes = g.resumes + 1 FROM stage_run n
    WHERE n.stage_id = g.id AND n.state = 'held' AND g.campaign_id = $1 RETURNING g.campaign_id)
UPDATE campaign SET version = version + 1 WHERE id IN (SELECT campaign_id FROM again);

-- The gate of a stage: held by it, overridden, what it said.
-- name: api_stage_gate
-- $1 campaign bigint, $2 stage name text
SELECT n.state = 'held' AND n.reason LIKE 'gate: %', g.gate_override, n.reason
FROM stage g JOIN stage_run n ON n.stage_id = g.id WHERE g.campaign_id = $1 AND g.name = $2;

-- The first gate that holds a campaign and that resuming it would not open: the runs of its stage have ended, no retry is
-- under way, every held stage is held by its gate, and no budget holds the campaign. Index stage(campaign_id, name).
-- name: api_campaign_gate
-- $1 campaign bigint
SELECT g.name, n.reason
FROM stage g JOIN stage_run n ON n.stage_id = g.id JOIN stage_input i ON i.stage_id = g.id
JOIN campaign_run r ON r.campaign_id = g.campaign_id AND NOT (r.state = 'held' AND r.reason LIKE 'budget%')
WHERE g.campaign_id = $1 AND n.state = 'held' AND NOT g.gate_override
    AND i.closed AND n.taken = i.tasks AND n.waiting + n.active + n.held = 0
    AND NOT EXISTS (SELECT FROM stage_run b WHERE b.campaign_id = $1 AND b.state = 'held' AND b.reason NOT LIKE 'gate: %')
    AND NOT EXISTS (SELECT FROM operation o WHERE o.campaign_id = $1 AND o.state IN ('accepted', 'running'))
ORDER BY g.seq LIMIT 1;

-- The new version makes the leader read the campaign again.
-- name: api_stage_gate_override
-- $1 campaign bigint, $2 stage name text
WITH g AS (UPDATE stage SET gate_override = true WHERE campaign_id = $1 AND name = $2 RETURNING campaign_id)
UPDATE campaign SET version = version + 1 WHERE id IN (SELECT campaign_id FROM g);
