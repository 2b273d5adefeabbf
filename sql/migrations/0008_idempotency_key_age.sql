-- Idempotency keys expire after 7 days: the oldest are found by this index.
CREATE INDEX idempotency_key_age ON idempotency_key (created_at);
