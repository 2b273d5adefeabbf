-- Archives of training scripts that were brought to the bucket, one row a digest. Their bytes are in S3 only.

-- name: api_source_get
-- $1 digest text
SELECT size, uri, json_build_object('sha256', sha256, 'size', size, 'uri', uri, 'uploaded_at', uploaded_at)::text
FROM source WHERE sha256 = $1 AND uploaded_at IS NOT NULL;

-- Again after the object was deleted, or to another bucket. $1 digest text, $2 size bigint, $3 object text
-- name: api_source_put
INSERT INTO source (sha256, size, uri, uploaded_at) VALUES ($1, $2, $3, clock_timestamp())
ON CONFLICT (sha256) DO UPDATE SET uri = EXCLUDED.uri, uploaded_at = EXCLUDED.uploaded_at;
