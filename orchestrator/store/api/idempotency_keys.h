/* Idempotency keys of requests and the first answer of each. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

struct apidb_answer {
    uint8_t body_hash[32];
    int status;
    struct buf answer; /* caller: buf_done */
    char location[128];
};
bool apidb_key_get(struct store *s, const char *token_id, const char *key, bool *ret_found,
                   struct apidb_answer *ret, struct err *err) MUST_CHECK;
bool apidb_key_put(struct store *s, const char *token_id, const char *key,
                   const struct apidb_answer *a, struct err *err) MUST_CHECK;
/* The key is in flight from lock to unlock, in every droverd. */
bool apidb_key_lock(struct store *s, const char *token_id, const char *key, bool *ret_locked,
                    struct err *err) MUST_CHECK;
void apidb_key_unlock(struct store *s, const char *token_id, const char *key);
