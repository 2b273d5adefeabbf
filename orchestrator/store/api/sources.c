/* See sources.h. */
#include "sources.h"
#include "queries.h"
#include "store/pg/query.h"

#define SOURCE_JSON_MAX 4096

void apidb_source_done(struct apidb_source *s)
{
    buf_done(&s->json);
}

bool apidb_source_get(struct store *s, const char *sha256, struct apidb_source *ret,
                      struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_text(&p, sha256);
    if (!store_exec(s, QUERY(API_SOURCE_GET), &p, &r, err)) {
        return false;
    }
    if (row_count(r) != 1) {
        return err_set(err, ERR_NOT_FOUND, "no source of this digest was sent");
    }
    *ret = (struct apidb_source){.size = row_i64(r, 0, 0), .json = BUF_INIT(SOURCE_JSON_MAX)};
    row_text_into(r, 0, 1, ret->uri, sizeof ret->uri);
    buf_add_cstr(&ret->json, row_text(r, 0, 2));
    return true;
}

bool apidb_source_put(struct store *s, const char *sha256, int64_t size, const char *uri,
                      struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, sha256);
    param_i64(&p, size);
    param_text(&p, uri);
    return store_run(s, QUERY(API_SOURCE_PUT), &p, NULL, err);
}
