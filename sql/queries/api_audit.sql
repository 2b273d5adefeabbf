-- Who changed what.

-- name: api_audit_add
-- $1 token text, $2 role text, $3 action text, $4 subject text, $5 detail jsonb, $6 request text
INSERT INTO audit (token_id, role, action, subject, detail, request_id) VALUES ($1, $2, $3, $4, $5, $6);
