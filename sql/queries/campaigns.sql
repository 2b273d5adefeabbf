-- name: campaign_state
-- $1 campaign bigint, $2 from text, $3 to text, $4 reason text, $5 taken version bigint,
-- $6 terminal boolean
WITH c AS (
    UPDATE campaign_run SET state = $3::text, reason = coalesce($4::text, ''),
        taken_version = greatest(taken_version, $5::bigint),
        started_at = CASE WHEN $3::text = 'running' THEN coalesce(started_at, clock_timestamp())
                          ELSE started_at END,
        ended_at = CASE WHEN $6::boolean THEN clock_timestamp() END
    WHERE campaign_id = $1::bigint AND state = $2::text RETURNING campaign_id),
e AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT campaign_id, 'campaign.state', jsonb_build_object('campaign', campaign_id,
        'from', $2::text, 'to', $3::text, 'reason', coalesce($4::text, ''))
    FROM c WHERE $2::text <> $3::text)
SELECT campaign_id FROM c

-- name: stage_state
-- $1 stage bigint, $2 from text, $3 to text, $4 reason text, $5 terminal boolean
WITH s AS (
    UPDATE stage_run SET state = $3::text, reason = coalesce($4::text, ''),
        started_at = CASE WHEN $3::text = 'running' THEN coalesce(started_at, clock_timestamp())
                          ELSE started_at END,
        ended_at = CASE WHEN $5::boolean THEN clock_timestamp() END
    WHERE stage_id = $1::bigint AND state = $2::text RETURNING stage_id, campaign_id),
e AS (
    INSERT INTO event (campaign_id, kind, detail)
    SELECT campaign_id, 'stage.state', jsonb_build_object('campaign', campaign_id,
        'stage', stage_id, 'from', $2::text, 'to', $3::text, 'reason', coalesce($4::text, ''))
    FROM s WHERE $2::text <> $3::text)
SELECT stage_id FROM s

-- name: stage_wait_reason
-- $1 stage bigint, $2 reason text
UPDATE stage_run SET wait_reason = $2::text, wait_detail = '', wait_again_at = NULL
WHERE stage_id = $1::bigint AND wait_reason <> $2::text

-- name: stage_unchecked
-- The same of a stage all of whose waiting parts are still to be asked about (done_if).
-- :stage, :reason, :detail why no answer came, :again when it is asked again
UPDATE stage_run SET wait_reason = :reason::text, wait_detail = :detail::text, wait_again_at = :again::timestamptz
WHERE stage_id = :stage::bigint
    AND (wait_reason, wait_detail, wait_again_at) IS DISTINCT FROM (:reason::text, :detail::text, :again::timestamptz)

-- name: alert
-- $1 campaign bigint (0: none), $2 text text
INSERT INTO event (campaign_id, kind, detail)
VALUES ($1::bigint, 'alert', jsonb_build_object('campaign', $1::bigint, 'text', $2::text))

-- name: event_day_make
-- $1 days ahead integer
SELECT true FROM (SELECT event_day_make($1::integer)) AS done

-- name: events_maintain
SELECT true FROM (SELECT events_maintain()) AS done
