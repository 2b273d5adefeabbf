/* One request to a provider of OpenID Connect. */
#pragma once
#include "oidc.h"

/* The JSON object that the provider answers with, whatever its status; the caller decrefs it. form
 * NULL: GET; authorization NULL: without that header. Blocks for up to the timeout. No proxy is
 * used, no redirect is followed. ERR_UNAVAILABLE: it cannot be reached, has an address that is not
 * allowed, or answers with something else. */
bool ask_json(const struct oidc_config *cfg, const char *url, const char *form,
              const char *authorization, int *ret_status, json_t **ret, struct err *err) MUST_CHECK;
