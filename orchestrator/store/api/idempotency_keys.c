/* Idempotency keys; see idempotency_keys.h. */
#include "idempotency_keys.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_key_get(struct store *s, const char *token_id, const char *key, bool *ret_found,
                   struct apidb_answer *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, token_id);
    param_text(&p, key);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_KEY_GET), &p, &res, err)) {
        return false;
    }
    *ret_found = row_count(res) == 1;
    if (*ret_found) {
        struct str hash = row_bytes(res, 0, 0);
        ASSERT(hash.n == sizeof ret->body_hash);
        memcpy(ret->body_hash, hash.p, hash.n);
        ret->status = row_int(res, 0, 1);
        buf_add_cstr(&ret->answer, row_text(res, 0, 2));
        row_text_into(res, 0, 3, ret->location, sizeof ret->location);
    }
    return true;
}

bool apidb_key_put(struct store *s, const char *token_id, const char *key,
                   const struct apidb_answer *a, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, token_id);
    param_text(&p, key);
    param_bytes(&p, a->body_hash, sizeof a->body_hash);
    param_i32(&p, a->status);
    param_str(&p, buf_str(&a->answer));
    param_text(&p, a->location);
    AUTO_RESULT PGresult *res = NULL;
    return store_exec(s, QUERY(API_KEY_PUT), &p, &res, err) &&
           (row_count(res) == 1 || err_set(err, ERR_KEY_IN_USE, "the idempotency key is in use"));
}

bool apidb_key_lock(struct store *s, const char *token_id, const char *key, usec_t silence_us,
                    bool *ret_locked, struct err *err)
{
    char silence[32];
    (void)snprintf(silence, sizeof silence, "%lldms", (long long)(silence_us / USEC_PER_MSEC));
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, token_id);
    param_text(&p, key);
    param_text(&p, silence);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_KEY_LOCK), &p, &res, err)) {
        return false;
    }
    *ret_locked = row_bool(res, 0, 0);
    return true;
}

void apidb_key_unlock(struct store *s, const char *token_id, const char *key)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, token_id);
    param_text(&p, key);
    /* When the connection is lost, the lock is already released. */
    (void)!store_run(s, QUERY(API_KEY_UNLOCK), &p, NULL, NULL);
}
