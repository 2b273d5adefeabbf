/* The cookie of a browser's session: a random value, of which the database has the SHA-256, and a
 * CSRF value that is an HMAC keyed by it. */
#pragma once
#include "request.h"

#define SESSION_COOKIE "drover_session"
#define SESSION_HEX_N  64

/* The SHA-256 of a session's value; false when it cannot be one. */
bool session_hash(const char *cookie, uint8_t ret[static 32]);
void session_csrf(const char *cookie, char out[static 65]);
/* 32 random bytes as text. */
void session_random(char ret[static SESSION_HEX_N + 1]);
/* "; Secure", or "" when browsers reach the server by http. */
const char *session_cookie_secure(const struct api_req *r);
