/* Idempotency keys, audit, tokens, quotas and prices for API handlers; see api_db.h. */
#include "api_db.h"
#include "common/banned.h"
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
    return store_run(s, QUERY(API_KEY_PUT), &p, NULL, err);
}

bool apidb_key_lock(struct store *s, const char *token_id, const char *key, bool *ret_locked,
                    struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, token_id);
    param_text(&p, key);
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
    /* A lost connection has unlocked it already. */
    (void)!store_run(s, QUERY(API_KEY_UNLOCK), &p, NULL, NULL);
}

bool apidb_audit(struct store *s, const char *token_id, const char *role, const char *action,
                 const char *subject, const char *detail_json, const char *request_id,
                 struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, token_id);
    param_text(&p, role);
    param_text(&p, action);
    param_text(&p, subject);
    param_json(&p, detail_json);
    param_text(&p, request_id);
    return store_run(s, QUERY(API_AUDIT_ADD), &p, NULL, err);
}

bool apidb_token_get(struct store *s, const char *id, uint8_t ret_hash[static 32],
                     char ret_role[static 16], struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, id);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_TOKEN_GET), &p, &res, err)) {
        return false;
    }
    if (row_count(res) == 0) {
        return err_set(err, ERR_NOT_FOUND, "there is no such token");
    }
    struct str hash = row_bytes(res, 0, 0);
    ASSERT(hash.n == 32);
    memcpy(ret_hash, hash.p, hash.n);
    row_text_into(res, 0, 1, ret_role, 16);
    return true;
}

bool apidb_token_put(struct store *s, const char *id, const uint8_t hash[static 32],
                     const char *name, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, id);
    param_bytes(&p, hash, 32);
    param_text(&p, name);
    return store_run(s, QUERY(API_TOKEN_PUT), &p, NULL, err);
}

bool apidb_quotas(struct store *s, struct buf *ret_json, struct err *err)
{
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_QUOTAS), NULL, &res, err)) {
        return false;
    }
    buf_add_cstr(ret_json, row_text(res, 0, 0));
    return true;
}

bool apidb_rate(struct store *s, const char *instance_type, struct apidb_rate *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, instance_type);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_RATE), &p, &res, err)) {
        return false;
    }
    *ret = (struct apidb_rate){.price_musd_per_hour = row_i64_or(res, 0, 0, -1),
                               .limit = row_i64_or(res, 0, 1, -1),
                               .held = row_i64(res, 0, 2),
                               .foreign = row_i64(res, 0, 3)};
    size_t n = strlen(instance_type);
    memcpy(ret->instance_type, instance_type, MIN(n, INSTANCE_TYPE_MAX));
    return true;
}
