-- name: session_set
-- Settings of a session. $1 names text[], $2 values text[]
SELECT count(set_config(n, v, false)) FROM unnest($1::text[], $2::text[]) AS t (n, v)
