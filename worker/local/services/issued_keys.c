/* Temporary keys: see issued_keys.h. */
#include "issued_keys.h"
#include "common/hash.h"
#include "common/rng.h"
#include <stdio.h>

#define TOKEN_START "drover-local/"

static void mac(const struct local_settings *set, const char *kind, struct str text,
                char ret[static 65])
{
    AUTO_BUF struct buf b = BUF_INIT((size_t)64 * 1024);
    uint8_t out[32];
    buf_addf(&b, "%s\n", kind);
    buf_add_str(&b, text);
    hash_hmac_sha256(set->account, strlen(set->account), b.p, b.n, out);
    str_hex(out, sizeof out, ret);
}

void issued_proof(const struct local_settings *set, const char *kind, const char *text,
                  char ret[static 33])
{
    char hex[65];
    mac(set, kind, str_of(text), hex);
    (void)snprintf(ret, 33, "%.32s", hex);
}

/* The proof in a token: over its id and session. */
static void token_proof(const struct local_settings *set, struct str id, struct str session,
                        char ret[static 33])
{
    AUTO_FREE char *text = xasprintf(STR_FMT "|" STR_FMT, STR_ARG(id), STR_ARG(session));
    issued_proof(set, "token", text, ret);
}

void issued_make(const struct local_settings *set, const char *session, int64_t life_us, usec_t now,
                 struct issued_keys *ret)
{
    uint32_t random;
    char proof[33];
    rng_secret(&random, sizeof random);
    int64_t end_s = (now + MIN(life_us, set->credential_us) + USEC_PER_SEC - 1) / USEC_PER_SEC;
    ret->expires = end_s * USEC_PER_SEC;
    (void)snprintf(ret->id, sizeof ret->id, "ASIA%08X%08X", (unsigned)end_s, (unsigned)random);
    mac(set, "secret", str_of(ret->id), ret->secret);
    token_proof(set, str_of(ret->id), str_of(session), proof);
    (void)snprintf(ret->token, sizeof ret->token, TOKEN_START "%s/%s", proof, session);
}

static bool id_end(struct str id, usec_t *ret)
{
    uint8_t end[4];
    if (id.n != 20 || !str_starts(id, "ASIA") || !str_unhex((struct str){id.p + 4, 8}, end, 4)) {
        return false;
    }
    uint32_t s = (uint32_t)end[0] << 24 | (uint32_t)end[1] << 16 | (uint32_t)end[2] << 8 | end[3];
    *ret = (usec_t)s * USEC_PER_SEC;
    return true;
}

bool issued_secret(const struct local_settings *set, struct str id, char ret[static 65])
{
    usec_t end;
    if (!id_end(id, &end)) {
        return false;
    }
    mac(set, "secret", id, ret);
    return true;
}

bool issued_token_check(const struct local_settings *set, struct str id, struct str token,
                        struct str *ret_session, usec_t *ret_expires)
{
    size_t start = sizeof TOKEN_START - 1;
    char proof[33];
    usec_t end;
    if (!id_end(id, &end) || !str_starts(token, TOKEN_START) || token.n < start + 33) {
        return false;
    }
    struct str session = {token.p + start + 33, token.n - start - 33};
    token_proof(set, id, session, proof);
    if (!hash_equal(proof, token.p + start, 32) || token.p[start + 32] != '/') {
        return false;
    }
    *ret_session = session;
    *ret_expires = end;
    return true;
}

char *issued_session(const char *role_arn, const char *session)
{
    struct str rest = str_of(role_arn);
    struct str parts[5];
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        parts[i] = str_split(&rest, ':');
    }
    const char *slash = strrchr(role_arn, '/');
    return xasprintf("arn:" STR_FMT ":sts::" STR_FMT ":assumed-role/%.128s/%.64s",
                     STR_ARG(parts[1]), STR_ARG(parts[4]), slash != NULL ? slash + 1 : role_arn,
                     session);
}
