-- Browser sessions of the server's own, and tokens for some projects only.
CREATE TABLE session (                       -- API
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash bytea NOT NULL UNIQUE CHECK (length(hash) = 32),   -- of the random value in the cookie
    token_id text NOT NULL REFERENCES token (id),
    address text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    ended_at timestamptz);
CREATE INDEX session_token ON session (token_id);

ALTER TABLE token
    ADD COLUMN projects text[] CHECK (cardinality(projects) BETWEEN 1 AND 8),  -- NULL: every project
    ADD COLUMN created_by text NOT NULL DEFAULT '';
