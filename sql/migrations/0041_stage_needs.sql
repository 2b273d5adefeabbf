-- additive: a function alone.

-- The stages of a campaign that wait for others, and how far those are: "download: 118 of 128 done, 2 failed". A stage
-- without parts is told by its state. Reads the campaign's file, and the counters of its stages.
CREATE FUNCTION stage_needs_told(campaign bigint) RETURNS TABLE(stage_id bigint, told text) LANGUAGE sql STABLE AS $$
    SELECT g.id, string_agg(h.name || CASE WHEN i.tasks > 0 THEN format(': %s of %s done', n.done, i.tasks)
            || coalesce(', ' || nullif(n.skipped, 0) || ' skipped', '') || coalesce(', ' || nullif(n.failed, 0) || ' failed', '')
            ELSE ' (' || n.state || ')' END, '; ' ORDER BY h.seq)
    FROM campaign c
    CROSS JOIN LATERAL jsonb_array_elements(CASE jsonb_typeof(c.spec->'stages') WHEN 'array' THEN c.spec->'stages' END) d
    CROSS JOIN LATERAL jsonb_array_elements_text(CASE jsonb_typeof(d->'needs') WHEN 'array' THEN d->'needs' END) need
    JOIN stage g ON g.campaign_id = c.id AND g.name = d->>'name'
    JOIN stage h ON h.campaign_id = c.id AND h.name = need
    JOIN stage_run n ON n.stage_id = h.id JOIN stage_input i ON i.stage_id = h.id
    WHERE c.id = $1 AND n.state <> 'succeeded' GROUP BY g.id;
$$;
