/* See archive.h. */
#include "archive.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_archive_hindrance(struct store *s, int64_t campaign_id, struct buf *ret_why,
                             struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    if (!store_exec(s, QUERY(API_ARCHIVE_HINDRANCE), &p, &r, err)) {
        return false;
    }
    buf_add_cstr(ret_why, row_text(r, 0, 0));
    return true;
}

bool apidb_archive_ask(struct store *s, int64_t campaign_id, const char *by, bool *ret_asked,
                       struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    int64_t n = 0;
    param_i64(&p, campaign_id);
    param_text(&p, by);
    bool ok = store_run(s, QUERY(API_ARCHIVE_ASK), &p, &n, err);
    *ret_asked = ok && n > 0;
    return ok;
}
