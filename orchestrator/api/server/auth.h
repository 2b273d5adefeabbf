/* Who asks: tokens and sessions. */
#pragma once
#include "request.h"

struct auth;
bool auth_new(const struct api_config *cfg, struct store *db, struct auth **ret,
              struct err *err) MUST_CHECK;
void auth_free(struct auth *a);
/* Fills r->who. ERR_UNAUTHENTICATED, ERR_FORBIDDEN, ERR_THROTTLED. */
bool auth_check(struct auth *a, struct api_req *r, struct err *err) MUST_CHECK;
const char *role_name(enum api_role role);
