/* Idempotency keys of requests, with the first answer of each. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

struct apidb_answer {
    uint8_t body_hash[32];
    int status;
    struct buf answer; /* the caller calls buf_done */
    char location[128];
};
/* The stored answer of a key, if any. */
bool apidb_key_get(struct store *s, const char *token_id, const char *key, bool *ret_found,
                   struct apidb_answer *ret, struct err *err) MUST_CHECK;
/* Store the answer of a key, in the transaction it answers for. */
bool apidb_key_put(struct store *s, const char *token_id, const char *key,
                   const struct apidb_answer *a, struct err *err) MUST_CHECK;
/* Lock a key, for all droverd processes. *ret_locked false: another request holds it. When the
 * session says nothing for longer than silence_us (milliseconds at least), because its process
 * stands still, PostgreSQL ends it, and with it the lock. */
bool apidb_key_lock(struct store *s, const char *token_id, const char *key, usec_t silence_us,
                    bool *ret_locked, struct err *err) MUST_CHECK;
void apidb_key_unlock(struct store *s, const char *token_id, const char *key);
