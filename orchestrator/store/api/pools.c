/* Warm pools; see pools.h. */
#include "pools.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_pools(struct store *s, const struct apidb_pools_of *of, int64_t n, struct buf *ret_rows,
                 struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, of->campaign_id);
    param_i64(&p, n);
    param_text(&p, of->projects);
    return store_text(s, QUERY(API_POOLS), &p, "row", ret_rows, err);
}

bool apidb_pools_now(struct store *s, const struct apidb_pools_of *of, struct apidb_pools_now *ret,
                     struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, of->campaign_id);
    param_text(&p, of->projects);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(API_POOLS_NOW), &p, &r, err)) {
        return false;
    }
    *ret = (struct apidb_pools_now){.open = row_i64(r, 0, 0),
                                    .newest_id = row_i64(r, 0, 1),
                                    .idle_seconds = row_i64(r, 0, 2),
                                    .idle_musd = row_i64(r, 0, 3)};
    return true;
}

bool apidb_pools_count(struct store *s, const struct apidb_pools_of *of, int64_t *ret_all,
                       int64_t *ret_reused, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, of->campaign_id);
    param_text(&p, of->projects);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(API_POOLS_COUNT), &p, &r, err)) {
        return false;
    }
    *ret_all = row_i64(r, 0, 0);
    *ret_reused = row_i64(r, 0, 1);
    return true;
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
