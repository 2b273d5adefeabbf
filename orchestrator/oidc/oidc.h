/* Logins by a provider of OpenID Connect: authorization code with PKCE. It reads the provider's
 * discovery document and keys, keeps them for a time, and longer when they cannot be read again. It
 * reads the keys again when a token names one it does not know, at most every 30 s. All functions
 * may be called from several threads; they block for as long as the provider takes, up to the
 * timeout. */
#pragma once
#include "common/addr.h"
#include "common/json.h"

struct oidc_config {       /* strings are borrowed and live as long as the provider */
    const char *issuer;    /* https://login.example.com/realm, exactly as the provider says it */
    const char *client_id; /* of drover at the provider */
    const char *client_secret; /* NULL: a public client */
    const char *redirect_url;  /* where the provider sends browsers back to */
    const char *scopes;        /* "openid profile email" */
    struct addr_rules allow;   /* private addresses that may be reached, and by http too */
    int64_t timeout_us;        /* of one request */
    int64_t keep_us;           /* the documents are read again after so long */
    const char *user_agent;
};
struct oidc;
/* Nothing is asked before the first login. The caller frees it with oidc_free. */
struct oidc *oidc_new(const struct oidc_config *cfg);
void oidc_free(struct oidc *o); /* NULL ignored */
/* Append the address a browser is sent to. state, nonce: random texts of this login; verifier: the
 * secret of PKCE, whose hash is sent. ERR_UNAVAILABLE: the provider cannot be reached. */
bool oidc_begin(struct oidc *o, const char *state, const char *nonce, const char *verifier,
                struct buf *ret_url, struct err *err) MUST_CHECK;
/* Exchange the code for an ID token and check it. The caller decrefs *ret_claims.
 * ERR_UNAUTHENTICATED: the provider refused the code, or its token is not valid;
 * ERR_UNAVAILABLE. */
bool oidc_end(struct oidc *o, const char *code, const char *verifier, const char *nonce,
              json_t **ret_claims, struct err *err) MUST_CHECK;
/* True when this can be an issuer; else ERR_INVALID with what to write. */
bool oidc_issuer_check(const char *issuer, struct err *err) MUST_CHECK;
