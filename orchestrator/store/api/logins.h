/* Logins by a provider of OpenID Connect. */
#pragma once
#include "store/pg/connection.h"
#include "tokens.h"

#define LOGIN_LIVES_S     600
#define LOGIN_RETURN_TEXT 260

/* Note that a login has begun in a browser, by the SHA-256 of its cookie. ERR_THROTTLED: too many
 * are under way. */
bool apidb_login_begin(struct store *s, const uint8_t browser[static 32], const char *return_to,
                       const char *address, struct err *err) MUST_CHECK;
/* End it: a second time it is not there. ERR_NOT_FOUND: there is none, or it has expired. */
bool apidb_login_end(struct store *s, const uint8_t browser[static 32],
                     char ret_return_to[static LOGIN_RETURN_TEXT], struct err *err) MUST_CHECK;
/* Make the token of a person, or give it the rights of t, which ends sessions of other rights.
 * lives_s is not used. ERR_FORBIDDEN: it
 * was revoked or has expired. */
bool apidb_person_put(struct store *s, const struct apidb_token_new *t, struct err *err) MUST_CHECK;
