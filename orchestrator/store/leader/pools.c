/* Warm pools as rows: read at takeover, changed, ended. They are inserted and become available with
 * the attempt that leaves them (attempts.c). */
#include "pg_names.h"
#include "queries.h"
#include "scheduler.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"

#define END_REASON_CHARS_MAX 63

static bool read_pool(const PGresult *r, int i, struct pool_row *p, struct err *err)
{
    p->id = row_i64(r, i, 0);
    p->attempt_id = row_i64(r, i, 1);
    p->campaign_id = row_i64(r, i, 2);
    p->stage_id = row_i64(r, i, 3);
    p->task_id = row_i64(r, i, 4);
    p->state = pool_state_parse(row_text(r, i, 5));
    if (p->state == POOL_STATE_COUNT) {
        return err_set(err, ERR_DATABASE, "pool state '%s' is not known to this droverd",
                       row_text(r, i, 5));
    }
    p->fingerprint = (uint64_t)row_i64(r, i, 6);
    row_text_into(r, i, 7, p->instance_type, sizeof p->instance_type);
    p->instances = row_int(r, i, 8);
    p->keep_alive_s = row_span_s(r, i, 9);
    p->taken_by = row_i64(r, i, 10);
    row_text_into(r, i, 11, p->end_reason, sizeof p->end_reason);
    p->available_us = row_time(r, i, 12);
    p->expires_us = row_time(r, i, 13);
    row_text_into(r, i, 14, p->job.s, sizeof p->job.s);
    p->price_musd_per_hour = row_i64(r, i, 15);
    p->open_musd = row_i64(r, i, 16);
    p->cost_musd = row_i64(r, i, 17);
    p->intended_us = row_time(r, i, 18);
    return true;
}

bool view_pools(struct store *s, int64_t campaign_id, struct pool_row **ret, size_t *ret_n,
                struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_POOLS), &p, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    AUTO_FREE struct pool_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        if (!read_pool(r, (int)i, &rows[i], err)) {
            return false;
        }
    }
    *ret = TAKE(rows);
    *ret_n = n;
    return true;
}

bool view_pool_ends(struct store *s, int64_t **ret, size_t *ret_n, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_POOL_ENDS), NULL, &r, err)) {
        return false;
    }
    *ret_n = (size_t)row_count(r);
    *ret = xcalloc(*ret_n + 1, sizeof **ret);
    for (size_t i = 0; i < *ret_n; i++) {
        (*ret)[i] = row_i64(r, (int)i, 0);
    }
    return true;
}

bool store_pool_note(struct store *s, int64_t pool_id, usec_t expires_us, const char *end_reason,
                     struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, pool_id);
    param_time(&p, expires_us);
    param_outside_text(&p, end_reason, END_REASON_CHARS_MAX);
    return store_run(s, QUERY(POOL_NOTE), &p, NULL, err);
}

bool store_pool_swap(struct store *s, int64_t pool_id, int64_t other_id, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, pool_id);
    param_i64(&p, other_id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(POOL_SWAP), &p, &r, err)) {
        return false;
    }
    return row_i64(r, 0, 0) == 2 ||
           err_set(err, ERR_CONFLICT, "pools %lld and %lld are no longer both available",
                   (long long)pool_id, (long long)other_id);
}

bool store_pool_end(struct store *s, const struct pool_end *e, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    ASSERT(pool_state_terminal(e->to));
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, e->pool_id);
    param_text(&p, pool_state_name(e->to));
    param_i64(&p, e->retained_s);
    param_i64(&p, e->warm_s);
    param_i64(&p, e->warm_musd);
    param_entries(&p, e->entries, e->entries_n);
    param_i64(&p, e->open_musd);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(POOL_END), &p, &r, err)) {
        return false;
    }
    if (row_i64(r, 0, 0) != 1) {
        return err_set(err, ERR_CONFLICT, "pool %lld is no longer available",
                       (long long)e->pool_id);
    }
    s->events = true;
    return true;
}
