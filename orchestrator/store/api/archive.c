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

bool apidb_archive_ask(struct store *s, int64_t campaign_id, const char *by, const char *folder,
                       bool *ret_asked, struct buf *ret_folder, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, campaign_id);
    param_text(&p, by);
    param_text(&p, folder);
    if (!store_exec(s, QUERY(API_ARCHIVE_ASK), &p, &r, err)) {
        return false;
    }
    *ret_asked = row_i64(r, 0, 0) > 0;
    buf_add_cstr(ret_folder, row_text(r, 0, 1));
    return true;
}
