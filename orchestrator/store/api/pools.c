/* Warm pools; see pools.h. */
#include "pools.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_pools(struct store *s, int64_t campaign_id, const char *projects, int64_t n,
                 struct buf *ret_rows, struct buf *ret_sum, struct err *err)
{
    AUTO_PARAMS struct params rows = PARAMS_INIT;
    param_i64(&rows, campaign_id);
    param_i64(&rows, n);
    param_text(&rows, projects);
    AUTO_PARAMS struct params sum = PARAMS_INIT;
    param_i64(&sum, campaign_id);
    param_text(&sum, projects);
    return store_text(s, QUERY(API_POOLS), &rows, "row", ret_rows, err) &&
           store_text(s, QUERY(API_POOLS_SUM), &sum, "row", ret_sum, err);
}

bool apidb_pool_end(struct store *s, const char *job, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, job);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(API_POOL_END), &p, &r, err)) {
        return false;
    }
    if (row_count(r) == 0) {
        return err_set(err, ERR_NOT_FOUND, "job '%.63s' keeps no instances", job);
    }
    if (row_i64(r, 0, 2) == 0) {
        return err_set(err, ERR_CONFLICT, "%s",
                       row_bool(r, 0, 1) ? "another job takes these instances; stop that one"
                                         : "its job has not ended; they are not idle yet");
    }
    return true;
}
