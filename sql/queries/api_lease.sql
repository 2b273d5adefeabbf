-- Who leads.

-- Both times are of the database's clock. renewed: for how long it was not, in microseconds.
-- name: api_lease
SELECT holder, length_us, (extract(epoch FROM clock_timestamp() - renewed_at) * 1000000)::bigint FROM lease
