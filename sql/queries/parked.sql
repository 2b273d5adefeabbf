-- name: view_parked
-- A handful of rows, as a rule none.
SELECT kind, ref_id, campaign_id FROM parked ORDER BY kind, ref_id

-- name: park
-- $1 kind text, $2 ref bigint, $3 campaign bigint, $4 reason text, $5 alert text
WITH p AS (
    INSERT INTO parked AS p (kind, ref_id, campaign_id, reason)
    VALUES ($1::text, $2::bigint, $3::bigint, $4::text)
    ON CONFLICT (kind, ref_id) DO UPDATE SET reason = excluded.reason, times = p.times + 1,
        tried_at = clock_timestamp()
    RETURNING times)
INSERT INTO event (campaign_id, kind, detail)
SELECT $3::bigint, 'alert', jsonb_build_object('campaign', $3::bigint, 'text', $5::text, 'about', 'parked')
FROM p WHERE times = 1

-- name: unpark
-- $1 kind text, $2 ref bigint
DELETE FROM parked WHERE kind = $1::text AND ref_id = $2::bigint
