/* API tokens; see tokens.h. */
#include "tokens.h"
#include "queries.h"
#include "store/pg/query.h"

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

bool apidb_tokens_ended(struct store *s, const char *const *ids, size_t n,
                        void (*cb)(void *ctx, const char *id), void *ctx, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text_array(&p, ids, n);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_TOKENS_ENDED), &p, &res, err)) {
        return false;
    }
    for (int i = 0; i < row_count(res); i++) {
        cb(ctx, row_text(res, i, 0));
    }
    return true;
}
