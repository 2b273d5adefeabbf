-- The history a forecast learns from.

-- The newest ended attempts of a stage: 0 done, 1 failed (its cause counts as a try),
-- 2 neither; size; run and start in microseconds, NULL when it never ran; cause. The states that end an attempt begin with
-- success. Relies on attempt_campaign.
-- name: api_stage_history
-- $1 campaign bigint, $2 stage bigint, $3 state of success smallint, $4 causes that count smallint[], $5 rows bigint
SELECT CASE WHEN a.state = $3 THEN 0 WHEN a.cause = ANY ($4) THEN 1 ELSE 2 END, coalesce(t.size, 0),
    greatest(extract(epoch FROM a.ended_at - a.started_at) * 1000000, 1)::bigint,
    greatest(extract(epoch FROM a.started_at - a.intended_at) * 1000000, 0)::bigint, coalesce(a.cause, 0)
FROM (SELECT task_id, state, cause, intended_at, started_at, ended_at FROM attempt
      WHERE campaign_id = $1 AND stage_id = $2 AND state >= $3 ORDER BY id DESC LIMIT $5) a
LEFT JOIN task t ON t.campaign_id = $1 AND t.id = a.task_id;

-- Sizes of some parts of a stage, in the order in which they start. Relies on task_seq.
-- name: api_part_sizes
-- $1 campaign bigint, $2 stage bigint, $3 seqs integer[]
SELECT size, seq FROM task WHERE campaign_id = $1 AND stage_id = $2 AND seq = ANY ($3::int[]) ORDER BY size DESC, seq;

-- The leader's rate of Creates, in millionths a second; 0: it has not said.
-- name: api_create_rate
SELECT coalesce(creates_per_s_u, 0) FROM lease;

-- Other campaigns that take slots now, the $2 that go first, in order of their ids; and how many there are of all.
-- name: api_others_running
-- $1 campaign bigint, $2 rows bigint
SELECT x.id, x.n FROM (SELECT c.id, count(*) OVER () AS n FROM campaign_run r JOIN campaign c ON c.id = r.campaign_id
    WHERE r.state = 'running' AND c.wanted = 'run' AND c.id <> $1 ORDER BY c.priority DESC, c.id LIMIT $2) x
ORDER BY x.id;

-- One part that waits. Relies on the primary keys of task and task_run.
-- name: api_part_waiting
-- $1 campaign bigint, $2 task bigint
SELECT r.stage_id, t.seq, t.size, r.not_before_us
FROM task_run r JOIN task t ON t.campaign_id = r.campaign_id AND t.id = r.id
WHERE r.campaign_id = $1 AND r.id = $2 AND r.state = 0;
