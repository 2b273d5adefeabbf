-- additive: logins by a provider of OpenID Connect; an older droverd offers none.
CREATE TABLE login (                         -- API: those that have begun and not ended
    browser bytea PRIMARY KEY CHECK (length(browser) = 32),  -- SHA-256 of the value in the browser's cookie, of which state, nonce and verifier are made
    return_to text NOT NULL,                                 -- the page that was asked for
    address text NOT NULL,
    expires_at timestamptz NOT NULL);
CREATE INDEX login_expires ON login (expires_at);
