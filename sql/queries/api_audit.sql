-- Who changed what.

-- name: api_audit_add
-- $1 token text, $2 role text, $3 action text, $4 subject text, $5 detail jsonb, $6 request text, $7 before jsonb or NULL
INSERT INTO audit (token_id, role, action, subject, detail, request_id, before) VALUES ($1, $2, $3, $4, $5, $6, $7);

-- A page of it in order of ids, as JSON texts joined by commas; how many these are, the last of their ids, the last of the $8 ids that
-- were looked at and how many these are: of those of the campaign, else of the action, else of all. Who has only some projects sees
-- their campaigns and what was changed of themselves; rows about tokens are for admins. $4 is a token's id or name, $5 an action or
-- what it begins with ("campaign" of "campaign.retry"). Relies on audit_of_campaign, audit_of_action and the primary key.
-- name: api_audit_page
-- $1 behind bigint, $2 rows bigint, $3 campaign bigint or 0, $4 who text or '', $5 action text or '', $6 projects text or '', $7 admin boolean,
-- $8 rows to look at bigint, $9 newest first? boolean
WITH seen AS MATERIALIZED (
    (SELECT id, token_id, action, subject, campaign_id FROM audit
     WHERE $9::boolean AND $3::bigint > 0 AND campaign_id = $3::bigint AND id < $1::bigint ORDER BY campaign_id DESC, id DESC LIMIT $8::bigint)
    UNION ALL
    (SELECT id, token_id, action, subject, campaign_id FROM audit
     WHERE NOT $9::boolean AND $3::bigint > 0 AND campaign_id = $3::bigint AND id > $1::bigint ORDER BY campaign_id, id LIMIT $8::bigint)
    UNION ALL
    (SELECT id, token_id, action, subject, campaign_id FROM audit
     WHERE $9::boolean AND $3::bigint = 0 AND strpos($5::text, '.') > 0 AND action = $5::text AND id < $1::bigint ORDER BY action DESC, id DESC LIMIT $8::bigint)
    UNION ALL
    (SELECT id, token_id, action, subject, campaign_id FROM audit
     WHERE NOT $9::boolean AND $3::bigint = 0 AND strpos($5::text, '.') > 0 AND action = $5::text AND id > $1::bigint ORDER BY action, id LIMIT $8::bigint)
    UNION ALL
    (SELECT id, token_id, action, subject, campaign_id FROM audit
     WHERE $9::boolean AND $3::bigint = 0 AND strpos($5::text, '.') = 0 AND id < $1::bigint ORDER BY id DESC LIMIT $8::bigint)
    UNION ALL
    (SELECT id, token_id, action, subject, campaign_id FROM audit
     WHERE NOT $9::boolean AND $3::bigint = 0 AND strpos($5::text, '.') = 0 AND id > $1::bigint ORDER BY id LIMIT $8::bigint)),
found AS MATERIALIZED (
    SELECT a.id, t.name
    FROM seen a
    LEFT JOIN token t ON t.id = a.token_id
    WHERE ($5::text = '' OR a.action = $5::text OR starts_with(a.action, $5::text || '.'))
        AND ($7::boolean OR a.action NOT LIKE 'token.%')
        AND ($4::text = '' OR a.token_id = $4::text OR t.name = $4::text)
        AND ($6::text = '' OR (a.action = 'project.change' AND a.subject = ANY (string_to_array($6::text, ',')))
            OR a.campaign_id IN (SELECT k.id FROM campaign k JOIN project p ON p.id = k.project_id WHERE p.name = ANY (string_to_array($6::text, ','))))
    ORDER BY CASE WHEN NOT $9::boolean THEN a.id END, a.id DESC LIMIT $2::bigint)
SELECT (SELECT coalesce(string_agg(json_build_object('id', 'a-' || a.id, 'at', a.at, 'who', a.token_id, 'name', f.name, 'role', a.role,
        'action', a.action, 'subject', a.subject, 'campaign', 'c-' || a.campaign_id, 'before', a.before, 'detail', a.detail,
        'request_id', a.request_id)::text, ',' ORDER BY CASE WHEN NOT $9::boolean THEN f.id END, f.id DESC), '')
        FROM found f JOIN audit a ON a.id = f.id),
    (SELECT count(*) FROM found), (SELECT CASE WHEN $9::boolean THEN min(id) ELSE max(id) END FROM found),
    (SELECT CASE WHEN $9::boolean THEN min(id) ELSE max(id) END FROM seen), (SELECT count(*) FROM seen);
