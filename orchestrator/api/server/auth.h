/* Authentication: tokens and sessions. */
#pragma once
#include "request.h"

struct auth;
/* Reads the first admin token from cfg->token_file, or makes the file, and stores its hash. The
 * caller owns *ret. ERR_IO, ERR_INVALID, ERR_DATABASE. */
bool auth_new(const struct api_config *cfg, struct store *db, struct auth **ret,
              struct err *err) MUST_CHECK;
void auth_free(struct auth *a);
/* Authenticate r, check the role its route needs, and fill r->who. ERR_UNAUTHENTICATED,
 * ERR_FORBIDDEN, ERR_THROTTLED. */
bool auth_check(struct auth *a, struct api_req *r, struct err *err) MUST_CHECK;
/* The same once the body is there, which may have taken long: the token may have been revoked
 * meanwhile. It counts as no request of its own. */
bool auth_check_again(struct auth *a, struct api_req *r, struct err *err) MUST_CHECK;
/* The principal of a token "id.secret", which the role of no route is compared with.
 * ERR_UNAUTHENTICATED, ERR_THROTTLED: too many were wrong from this address. */
bool auth_token(struct api_req *r, struct str text, struct api_principal *ret,
                struct err *err) MUST_CHECK;
/* The limit of wrong tokens by address, for other ways to log in. */
bool auth_may_try(const struct api_req *r, struct err *err) MUST_CHECK;
void auth_failed(const struct api_req *r);
const char *role_name(enum api_role role);
enum api_role role_parse(const char *name); /* unknown: viewer */
/* Tokens or sessions have changed: forget what is remembered of them. */
void req_forget_tokens(struct api_req *r);
