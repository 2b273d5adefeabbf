/* Events; see events.h. */
#include "events.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_events(struct store *s, int64_t after_id, int64_t campaign_id, int64_t n,
                  void (*cb)(void *ctx, const struct apidb_event *e), void *ctx, int64_t *ret_n,
                  int64_t *ret_last, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, after_id);
    param_i64(&p, campaign_id);
    param_i64(&p, n);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_EVENTS_AFTER), &p, &res, err)) {
        return false;
    }
    *ret_n = row_count(res);
    *ret_last = after_id;
    for (int i = 0; i < row_count(res); i++) {
        struct apidb_event e = {.id = row_i64(res, i, 0),
                                .campaign_id = row_i64(res, i, 1),
                                .kind = row_text(res, i, 2),
                                .json = row_text(res, i, 3),
                                .project = row_text(res, i, 4)};
        cb(ctx, &e);
        *ret_last = e.id;
    }
    return true;
}

bool apidb_events_ends(struct store *s, int64_t *ret_first, int64_t *ret_last, struct err *err)
{
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_EVENTS_ENDS), NULL, &res, err)) {
        return false;
    }
    *ret_first = row_i64(res, 0, 0);
    *ret_last = row_i64(res, 0, 1);
    return true;
}
