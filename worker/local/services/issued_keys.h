/* Temporary keys that drover-local gives out: to jobs, to an instance or container it plays, and by
 * STS. Nothing is stored: secret and session token are made from the key id, which holds the end,
 * so they survive a restart. They prove nothing to anybody who reads this: it plays AWS. */
#pragma once
#include "local/settings.h"

#define ISSUED_TOKEN_MAX 700

struct issued_keys {
    char id[21]; /* ASIA, the end in hex, random */
    char secret[65];
    char token[ISSUED_TOKEN_MAX];
    usec_t expires;
};

/* session: ARN of the assumed role. life_us is cut to the configured life of keys. */
void issued_make(const struct local_settings *set, const char *session, int64_t life_us, usec_t now,
                 struct issued_keys *ret);
/* The secret of an id that issued_make made; false: the id has another form. */
bool issued_secret(const struct local_settings *set, struct str id, char ret[static 65]) MUST_CHECK;
/* True when token belongs to id; *ret_session views into it, *ret_expires is its end. */
bool issued_token_check(const struct local_settings *set, struct str id, struct str token,
                        struct str *ret_session, usec_t *ret_expires) MUST_CHECK;
/* Proof that drover-local said `text` in the role of `kind`; 32 hex digits. */
void issued_proof(const struct local_settings *set, const char *kind, const char *text,
                  char ret[static 33]);
/* "arn:aws:sts::ACCOUNT:assumed-role/NAME/session" of a role's ARN; the caller frees. */
char *issued_session(const char *role_arn, const char *session);
