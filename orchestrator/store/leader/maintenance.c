/* See maintenance.h. */
#include "maintenance.h"
#include "queries.h"
#include "store/pg/query.h"
#include "store/pg/tx.h"

#define EVENT_DAYS 3 /* today and the next two */

bool store_events_expire(struct store *s, int64_t n, int64_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, n);
    return store_run(s, QUERY(EVENTS_EXPIRE), &p, ret_n, err);
}

bool store_keys_expire(struct store *s, int64_t n, int64_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, n);
    return store_run(s, QUERY(KEYS_EXPIRE), &p, ret_n, err);
}

static bool due_ids(struct store *s, usec_t before_us, int64_t n, int64_t *ret, size_t *ret_n,
                    struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_time(&p, before_us);
    param_i64(&p, n);
    if (!store_exec(s, QUERY(ARCHIVE_DUE), &p, &r, err)) {
        return false;
    }
    *ret_n = (size_t)row_count(r);
    for (int i = 0; i < row_count(r); i++) {
        ret[i] = row_i64(r, i, 0);
    }
    return true;
}

bool store_archive_due(struct store *s, usec_t before_us, int64_t n, int64_t *ret_n,
                       struct err *err)
{
    AUTO_TX struct store *tx = s;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_FREE int64_t *ids = xcalloc((size_t)n, sizeof *ids);
    size_t locked = 0;
    if (!tx_begin(tx, TX_WRITE, err) || !due_ids(tx, before_us, n, ids, &locked, err)) {
        return false;
    }
    param_i64_array(&p, ids, locked);
    return store_run(tx, QUERY(ARCHIVE_LOCKED), &p, ret_n, err) && tx_commit(tx, err);
}

bool store_events_maintain(struct store *s, struct err *err)
{
    for (int ahead = 0; ahead < EVENT_DAYS; ahead++) {
        AUTO_PARAMS struct params p = PARAMS_INIT;
        param_i32(&p, ahead);
        if (!store_run(s, QUERY(EVENT_DAY_MAKE), &p, NULL, err)) {
            return false;
        }
    }
    return store_run(s, QUERY(EVENTS_MAINTAIN), NULL, NULL, err);
}
