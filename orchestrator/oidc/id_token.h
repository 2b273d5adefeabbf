/* Checks an ID token of OpenID Connect: its signature, by cjose, and its claims. Pure but for the
 * random blinding inside OpenSSL: the keys and the time are parameters. */
#pragma once
#include "common/json.h"

#define ID_TOKEN_MAX     (16 * 1024)
#define ID_TOKEN_SKEW_US (60 * USEC_PER_SEC)  /* clocks may differ by so much */
#define ID_TOKEN_AGE_US  (600 * USEC_PER_SEC) /* a token for a login is not older */

struct id_token_expected {
    const char *issuer, *client_id, *nonce;
    usec_t now_us;
};
/* Check text, a compact JWS, against jwks, a JSON Web Key Set. Only RS256 with RSA keys of 2,048
 * bits or more and ES256 with P-256 keys are taken. The caller decrefs *ret_claims.
 * ERR_UNAUTHENTICATED says which check failed; *ret_unknown_key: the set has no key for it, so a
 * newer set may. */
bool id_token_check(struct str text, const json_t *jwks, const struct id_token_expected *expected,
                    bool *ret_unknown_key, json_t **ret_claims, struct err *err) MUST_CHECK;
