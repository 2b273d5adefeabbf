/* Who a proxy says asks. Only requests that came by its socket are believed. */
#pragma once
#include "oidc/person.h"
#include "request.h"

/* NULL: no proxy, it does not say, or says it twice. */
const char *proxy_user(const struct api_req *r);
/* False when the token stands for another person of the proxy's than the one it says. */
bool proxy_user_fits(const struct api_req *r, const char *token_id);
/* The claims of that user, as those of an ID token; the caller decrefs them.
 * ERR_UNAUTHENTICATED. */
bool proxy_user_claims(const struct api_req *r, json_t **ret, struct err *err) MUST_CHECK;
/* What makes ids of the proxy's people others than those of a provider. */
#define PROXY_ISSUER "proxy"
#define PROXY_CLAIM  "groups"
