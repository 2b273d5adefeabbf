/* API tokens and sessions; see tokens.h. */
#include "tokens.h"
#include "queries.h"
#include "store/pg/query.h"

/* One row of a statement, or ERR_NOT_FOUND. */
static bool one(struct store *s, const char *name, const char *sql, struct params *p,
                const char *what, PGresult **res, struct err *err)
{
    if (!store_exec(s, name, sql, p, res, err)) {
        return false;
    }
    return row_count(*res) > 0 || err_set(err, ERR_NOT_FOUND, "there is no such %s", what);
}

bool apidb_token_get(struct store *s, const char *id, struct apidb_token *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, id);
    AUTO_RESULT PGresult *res = NULL;
    if (!one(s, QUERY(API_TOKEN_GET), &p, "token", &res, err)) {
        return false;
    }
    struct str hash = row_bytes(res, 0, 0);
    ASSERT(hash.n == 32);
    memcpy(ret->hash, hash.p, hash.n);
    row_text_into(res, 0, 1, ret->role, sizeof ret->role);
    row_text_into(res, 0, 2, ret->projects, sizeof ret->projects);
    row_text_into(res, 0, 3, ret->name, sizeof ret->name);
    ret->to_note = row_bool(res, 0, 4);
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

bool apidb_token_new(struct store *s, const struct apidb_token_new *t, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, t->id);
    param_bytes(&p, t->hash, 32);
    param_text(&p, t->role);
    param_text(&p, t->name);
    param_text_array(&p, t->projects_n > 0 ? t->projects : NULL, t->projects_n);
    param_i64_or_null(&p, t->lives_s, 0);
    param_text(&p, t->by);
    return store_run(s, QUERY(API_TOKEN_NEW), &p, NULL, err);
}

bool apidb_token_lock(struct store *s, const char *id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, id);
    return store_run(s, QUERY(API_TOKEN_LOCK), &p, NULL, err);
}

bool apidb_token_change(struct store *s, const char *id, bool revoke, int64_t lives_s,
                        struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, id);
    param_bool(&p, revoke);
    param_i64_or_null(&p, lives_s, -1);
    AUTO_RESULT PGresult *res = NULL;
    return one(s, QUERY(API_TOKEN_CHANGE), &p, "token", &res, err);
}

bool apidb_tokens(struct store *s, const char *id, struct buf *ret_json, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, id);
    return store_text(s, QUERY(API_TOKENS), &p, "row", ret_json, err);
}

bool apidb_tokens_ended(struct store *s, const char *const *names, size_t n,
                        void (*cb)(void *ctx, const char *name), void *ctx, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text_array(&p, names, n);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_TOKENS_ENDED), &p, &res, err)) {
        return false;
    }
    for (int i = 0; i < row_count(res); i++) {
        cb(ctx, row_text(res, i, 0));
    }
    return true;
}

bool apidb_session_get(struct store *s, const uint8_t hash[static 32], struct apidb_session *ret,
                       struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_bytes(&p, hash, 32);
    AUTO_RESULT PGresult *res = NULL;
    if (!one(s, QUERY(API_SESSION_GET), &p, "session", &res, err)) {
        return false;
    }
    ret->id = row_i64(res, 0, 0);
    row_text_into(res, 0, 1, ret->token_id, sizeof ret->token_id);
    row_text_into(res, 0, 2, ret->role, sizeof ret->role);
    row_text_into(res, 0, 3, ret->projects, sizeof ret->projects);
    row_text_into(res, 0, 4, ret->name, sizeof ret->name);
    ret->to_note = row_bool(res, 0, 5);
    return true;
}

bool apidb_session_new(struct store *s, const uint8_t hash[static 32], const char *token_id,
                       int64_t lives_s, const char *address, struct err *err)
{
    AUTO_PARAMS struct params trim = PARAMS_INIT;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&trim, token_id);
    param_bytes(&p, hash, 32);
    param_text(&p, token_id);
    param_i64(&p, lives_s);
    param_text(&p, address);
    return store_run(s, QUERY(API_SESSION_NEW), &p, NULL, err) &&
           store_run(s, QUERY(API_SESSION_TRIM), &trim, NULL, err);
}

bool apidb_session_end(struct store *s, int64_t id, const uint8_t *hash, const char *token_id,
                       struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    static const uint8_t no_hash[32]; /* no SHA-256 that anybody knows a text of */
    param_bytes(&p, hash != NULL ? hash : no_hash, 32);
    param_text(&p, token_id);
    AUTO_RESULT PGresult *res = NULL;
    return one(s, QUERY(API_SESSION_END), &p, "session", &res, err);
}

bool apidb_token_used(struct store *s, const char *id, int64_t session_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, id);
    param_i64(&p, session_id);
    return store_run(s, QUERY(API_TOKEN_USED), &p, NULL, err);
}

bool apidb_sessions(struct store *s, const char *token_id, int64_t own, struct buf *ret_json,
                    struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, token_id);
    param_i64(&p, own);
    return store_text(s, QUERY(API_SESSIONS), &p, "row", ret_json, err);
}

bool apidb_project_of(struct store *s, int64_t campaign_id, int64_t operation_id, const char *name,
                      char ret[static 128], struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, operation_id);
    param_text(&p, name);
    AUTO_RESULT PGresult *res = NULL;
    if (!one(s, QUERY(API_PROJECT_OF), &p, name != NULL ? "name" : "campaign or operation", &res,
             err)) {
        return false;
    }
    row_text_into(res, 0, 0, ret, 128);
    return true;
}
