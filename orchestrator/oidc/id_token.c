/* See id_token.h. The algorithm is taken from a list of two and must fit the key, before any
 * signature is looked at: a token cannot choose to be unsigned, or to be signed with the public key
 * as a secret. */
#include "id_token.h"
#include "common/cleanup.h"
#include <cjose/cjose.h>

#define RSA_BITS_MIN       2048
#define RSA_CHARS_MAX      1366 /* 8,192 bits */
#define EXPONENT_CHARS_MAX 11   /* 64 bits */
#define P256_CHARS         43   /* 32 bytes */
#define KEYS_MAX           64

static const struct signing {
    const char *alg, *kty, *crv; /* crv NULL: has none */
} algorithms[] = {{"RS256", "RSA", NULL}, {"ES256", "EC", "P-256"}};

static bool refuse(struct err *err, const char *why)
{
    return err_set(err, ERR_UNAUTHENTICATED, "the ID token of the provider is not valid: %s", why);
}

static const char *text_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

/* Absent, or this text. */
static bool is_or_absent(const json_t *o, const char *key, const char *want)
{
    const json_t *v = json_object_get(o, key);
    return v == NULL || (json_is_string(v) && strcmp(json_string_value(v), want) == 0);
}

static const struct signing *algorithm_of(const char *alg)
{
    for (size_t i = 0; alg != NULL && i < ARRAY_LEN(algorithms); i++) {
        if (strcmp(alg, algorithms[i].alg) == 0) {
            return &algorithms[i];
        }
    }
    return NULL;
}

static bool key_fits(const json_t *key, const struct signing *a, const char *kid)
{
    const char *own = text_of(key, "kid"), *kty = text_of(key, "kty"), *crv = text_of(key, "crv");
    return kty != NULL && strcmp(kty, a->kty) == 0 && is_or_absent(key, "use", "sig") &&
           is_or_absent(key, "alg", a->alg) &&
           (a->crv == NULL || (crv != NULL && strcmp(crv, a->crv) == 0)) &&
           (kid == NULL || (own != NULL && strcmp(own, kid) == 0));
}

/* The key of that id. A token without an id has its key when there is one that fits. NULL: none. */
static const json_t *key_find(const json_t *jwks, const struct signing *a, const char *kid)
{
    const json_t *key, *found = NULL, *keys = json_object_get(jwks, "keys");
    size_t i;
    json_array_foreach(keys, i, key)
    {
        if (i < KEYS_MAX && key_fits(key, a, kid)) {
            if (found != NULL) {
                return NULL; /* which of them is not said */
            }
            found = key;
        }
    }
    return found;
}

/* base64url without padding, of whole bytes. cjose 0.6.2 ends the process at other texts: its
 * decoder asserts that no part of a byte is left. */
static bool is_base64url(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' &&
            c != '_') {
            return false;
        }
    }
    return s.n % 4 != 1;
}

/* Only the members that the algorithm needs, and only if they can be numbers of such a key. The
 * caller frees it. NULL: they are not. */
static char *public_key(const json_t *key, const struct signing *a)
{
    static const struct {
        const char *kty, *name;
        size_t min, max; /* characters */
    } members[] = {{"RSA", "n", 1, RSA_CHARS_MAX},
                   {"RSA", "e", 1, EXPONENT_CHARS_MAX},
                   {"EC", "x", P256_CHARS, P256_CHARS},
                   {"EC", "y", P256_CHARS, P256_CHARS}};
    AUTO_JSON json_t *jwk = json_pack("{s:s}", "kty", a->kty);
    if (a->crv != NULL) {
        (void)json_object_set_new(jwk, "crv", json_string(a->crv));
    }
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        json_t *v = json_object_get(key, members[i].name);
        struct str s = str_of(json_string_value(v));
        if (strcmp(members[i].kty, a->kty) != 0) {
            continue;
        }
        if (s.n < members[i].min || s.n > members[i].max || !is_base64url(s)) {
            return NULL;
        }
        (void)json_object_set(jwk, members[i].name, v);
    }
    return json_text(jwk);
}

static bool signature_check(cjose_jws_t *jws, const json_t *key, const struct signing *a,
                            struct err *err)
{
    AUTO_FREE char *text = public_key(key, a);
    cjose_err why = {.code = CJOSE_ERR_NONE};
    cjose_jwk_t *jwk = text != NULL ? cjose_jwk_import(text, strlen(text), &why) : NULL;
    if (jwk == NULL) {
        return refuse(err, "its key cannot be read");
    }
    bool strong = a->crv != NULL || cjose_jwk_get_keysize(jwk, &why) >= RSA_BITS_MIN;
    bool ok = strong && cjose_jws_verify(jws, jwk, &why);
    (void)cjose_jwk_release(jwk);
    return ok || refuse(err, strong ? "its signature is wrong" : "its key is weak");
}

/* Three parts of base64url, the last of which may be empty. */
static bool is_compact(struct str text)
{
    struct str header = str_split(&text, '.');
    struct str claims = str_split(&text, '.');
    return header.n > 0 && claims.n > 0 && is_base64url(header) && is_base64url(claims) &&
           is_base64url(text);
}

static bool header_check(cjose_jws_t *jws, const struct signing **ret, const char **ret_kid,
                         struct err *err)
{
    cjose_err why = {.code = CJOSE_ERR_NONE};
    cjose_header_t *header = cjose_jws_get_protected(jws);
    const char *alg = cjose_header_get(header, CJOSE_HDR_ALG, &why);
    AUTO_FREE char *critical = cjose_header_get_raw(header, "crit", &why);
    *ret_kid = cjose_header_get(header, CJOSE_HDR_KID, &why);
    *ret = algorithm_of(alg);
    if (*ret == NULL) {
        return err_set(err, ERR_UNAUTHENTICATED,
                       "the ID token of the provider is not valid: it is signed by '%.32s', and "
                       "only RS256 and ES256 are taken",
                       alg != NULL ? alg : "none");
    }
    return critical == NULL || refuse(err, "it needs an extension of JWS that is not known here");
}

/* In an array of texts, or the text itself. */
static bool has_text(const json_t *v, const char *want)
{
    const json_t *one;
    size_t i;
    if (json_is_string(v)) {
        return strcmp(json_string_value(v), want) == 0;
    }
    json_array_foreach(v, i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), want) == 0) {
            return true;
        }
    }
    return false;
}

static bool audience_check(const json_t *claims, const char *client_id, struct err *err)
{
    const json_t *aud = json_object_get(claims, "aud"), *azp = json_object_get(claims, "azp");
    if (!has_text(aud, client_id)) {
        return refuse(err, "it is for another client (aud)");
    }
    bool named = json_is_string(azp) && strcmp(json_string_value(azp), client_id) == 0;
    bool alone = !json_is_array(aud) || json_array_size(aud) == 1;
    return named || (azp == NULL && alone) || refuse(err, "another client asked for it (azp)");
}

/* Seconds since 1970 as microseconds; false: absent or no time. */
static bool time_of(const json_t *claims, const char *key, usec_t *ret)
{
    const json_t *v = json_object_get(claims, key);
    double s = json_is_number(v) ? json_number_value(v) : -1;
    if (s < 0 || s > 1e11) {
        return false;
    }
    *ret = (usec_t)(s * (double)USEC_PER_SEC);
    return true;
}

static bool times_check(const json_t *claims, usec_t now, struct err *err)
{
    usec_t exp, iat, nbf = 0;
    if (!time_of(claims, "exp", &exp) || !time_of(claims, "iat", &iat) ||
        (json_object_get(claims, "nbf") != NULL && !time_of(claims, "nbf", &nbf))) {
        return refuse(err, "it does not say when it ends (exp) and when it was made (iat)");
    }
    if (exp + ID_TOKEN_SKEW_US <= now) {
        return refuse(err, "it has expired (exp); compare the clocks");
    }
    if (nbf - ID_TOKEN_SKEW_US > now || iat - ID_TOKEN_SKEW_US > now) {
        return refuse(err, "it is of the future (nbf, iat); compare the clocks");
    }
    return iat + ID_TOKEN_AGE_US + ID_TOKEN_SKEW_US >= now ||
           refuse(err, "it was made for an earlier login (iat)");
}

static bool claims_check(const json_t *claims, const struct id_token_expected *e, struct err *err)
{
    const char *iss = text_of(claims, "iss"), *sub = text_of(claims, "sub");
    const char *nonce = text_of(claims, "nonce");
    if (iss == NULL || strcmp(iss, e->issuer) != 0) {
        return refuse(err, "it is of another issuer (iss)");
    }
    if (sub == NULL || sub[0] == '\0' || strlen(sub) > 255) {
        return refuse(err, "it names nobody (sub)");
    }
    return audience_check(claims, e->client_id, err) && times_check(claims, e->now_us, err) &&
           ((nonce != NULL && strcmp(nonce, e->nonce) == 0) ||
            refuse(err, "it is of another login (nonce)"));
}

static bool claims_read(cjose_jws_t *jws, json_t **ret, struct err *err)
{
    cjose_err why = {.code = CJOSE_ERR_NONE};
    struct err ignored = ERR_INIT;
    uint8_t *bytes = NULL; /* of jws */
    size_t n = 0;
    if (!cjose_jws_get_plaintext(jws, &bytes, &n, &why) ||
        !json_parse((struct str){(const char *)bytes, n}, ID_TOKEN_MAX, ret, &ignored)) {
        return refuse(err, "its claims cannot be read");
    }
    return json_is_object(*ret) || refuse(err, "its claims are no object");
}

static bool jws_check(cjose_jws_t *jws, const json_t *jwks, const struct id_token_expected *e,
                      bool *ret_unknown_key, json_t **ret_claims, struct err *err)
{
    const struct signing *a;
    const char *kid;
    AUTO_JSON json_t *claims = NULL;
    if (!header_check(jws, &a, &kid, err)) {
        return false;
    }
    const json_t *key = key_find(jwks, a, kid);
    if (key == NULL) {
        *ret_unknown_key = true;
        return refuse(err, "the provider does not publish the key it is signed with");
    }
    if (!signature_check(jws, key, a, err) || !claims_read(jws, &claims, err) ||
        !claims_check(claims, e, err)) {
        return false;
    }
    *ret_claims = TAKE(claims);
    return true;
}

bool id_token_check(struct str text, const json_t *jwks, const struct id_token_expected *expected,
                    bool *ret_unknown_key, json_t **ret_claims, struct err *err)
{
    cjose_err why = {.code = CJOSE_ERR_NONE};
    *ret_unknown_key = false;
    if (text.n > ID_TOKEN_MAX || !is_compact(text)) {
        return refuse(err, "it is no JWS of up to 16 KiB");
    }
    cjose_jws_t *jws = cjose_jws_import(text.p, text.n, &why);
    if (jws == NULL) {
        return refuse(err, "it is no signed JWS");
    }
    bool ok = jws_check(jws, jwks, expected, ret_unknown_key, ret_claims, err);
    cjose_jws_release(jws);
    return ok;
}
