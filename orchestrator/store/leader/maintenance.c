/* See maintenance.h. */
#include "maintenance.h"
#include "queries.h"
#include "store/pg/query.h"

bool store_keys_expire(struct store *s, int64_t n, int64_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, n);
    return store_run(s, QUERY(KEYS_EXPIRE), &p, ret_n, err);
}

bool store_archive_due(struct store *s, usec_t before_us, int64_t n, int64_t *ret_n,
                       struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_time(&p, before_us);
    param_i64(&p, n);
    return store_run(s, QUERY(ARCHIVE_DUE), &p, ret_n, err);
}
