/* See notices.h. */
#include "notices.h"
#include "names.h"
#include "queries.h"
#include "store/pg/query.h"

#define PROBLEM_CHARS 4000

bool store_notice_begin(struct store *s, struct notice_begin *ret, struct err *err)
{
    AUTO_PARAMS struct params none = PARAMS_INIT;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *lock = NULL;
    AUTO_RESULT PGresult *r = NULL;
    ret->since_us = 0;
    if (!store_exec(s, QUERY(NOTICE_LOCK), &none, &lock, err)) {
        return false;
    }
    if (!row_bool(lock, 0, 0)) {
        return true;
    }
    if (!store_exec(s, QUERY(NOTICE_BEGIN), &p, &r, err)) {
        return false;
    }
    ASSERT(row_count(r) == 1);
    ret->event_id = row_i64(r, 0, 0);
    ret->since_us = row_time(r, 0, 1);
    return true;
}

bool store_notice_events(struct store *s, const struct notice_begin *from, int64_t rows,
                         int64_t collect_us, struct notice_events *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, from->event_id);
    param_time(&p, from->since_us);
    param_i64(&p, rows);
    param_i64(&p, collect_us);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(NOTICE_EVENTS), &p, &r, err)) {
        return false;
    }
    ret->n = row_i64(r, 0, 0);
    ret->last_id = row_i64(r, 0, 1);
    ret->changed = xstrdup(row_text(r, 0, 2));
    return true;
}

bool store_notice_budgets(struct store *s, const char *changed, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, changed);
    return store_run(s, QUERY(NOTICE_BUDGETS), &p, NULL, err);
}

bool store_notice_stuck(struct store *s, int64_t stuck_us, struct err *err)
{
    AUTO_PARAMS struct params seen = PARAMS_INIT;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    PARAM_NAMES(&seen, names_wait_passing);
    param_i64(&p, stuck_us);
    return store_run(s, QUERY(NOTICE_STUCK), &seen, NULL, err) &&
           store_run(s, QUERY(NOTICE_STUCK_LONG), &p, NULL, err);
}

bool store_notice_late(struct store *s, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    return store_run(s, QUERY(NOTICE_LATE), &p, NULL, err);
}

bool store_notice_due(struct store *s, int64_t event_id, notice_due_cb cb, void *ctx,
                      struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, event_id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(NOTICE_DUE), &p, &r, err)) {
        return false;
    }
    for (int i = 0; i < row_count(r); i++) {
        if (!cb(ctx, row_i64(r, i, 0), row_text(r, i, 1), row_i64(r, i, 2), row_text(r, i, 3),
                err)) {
            return false;
        }
    }
    return true;
}

bool store_notice_tell(struct store *s, int64_t id, int64_t event_id, const char *facts_json,
                       int64_t queue_max, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    param_i64(&p, event_id);
    param_json(&p, facts_json);
    param_i64(&p, queue_max);
    return store_run(s, QUERY(NOTICE_TELL), &p, NULL, err);
}

bool store_notice_go_on(struct store *s, int64_t event_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, event_id);
    return store_run(s, QUERY(NOTICE_GO_ON), &p, NULL, err);
}

bool store_notice_forget(struct store *s, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    return store_run(s, QUERY(NOTICE_FORGET), &p, NULL, err);
}

bool store_delivery_take(struct store *s, int64_t n, int64_t hold_us,
                         void (*cb)(void *ctx, const struct webhook_delivery *d), void *ctx,
                         int *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, n);
    param_i64(&p, hold_us);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(DELIVERY_TAKE), &p, &r, err)) {
        return false;
    }
    for (int i = 0; i < row_count(r); i++) {
        const struct webhook_delivery d = {.id = row_i64(r, i, 0),
                                           .tries = row_i64(r, i, 1),
                                           .url = row_text(r, i, 2),
                                           .format = row_text(r, i, 3),
                                           .secret = row_bytes(r, i, 4),
                                           .message_id = row_text(r, i, 5),
                                           .kind = row_text(r, i, 6),
                                           .at_us = row_time(r, i, 7),
                                           .facts_json = row_text(r, i, 8),
                                           .addresses_json = row_text(r, i, 9)};
        cb(ctx, &d);
    }
    *ret_n = row_count(r);
    return true;
}

bool store_delivery_done(struct store *s, const struct delivery_result *d, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(PARAM(&p, DELIVERY_DONE, STATE), d->state);
    param_i32(PARAM(&p, DELIVERY_DONE, STATUS), d->status);
    param_outside_text(PARAM(&p, DELIVERY_DONE, PROBLEM), d->problem, PROBLEM_CHARS);
    param_json(PARAM(&p, DELIVERY_DONE, ADDRESSES), d->addresses_json);
    param_i64(PARAM(&p, DELIVERY_DONE, TOOK_US), d->took_us);
    param_i64(PARAM(&p, DELIVERY_DONE, AGAIN), d->again_us);
    param_i64(PARAM(&p, DELIVERY_DONE, ID), d->id);
    param_i32(PARAM(&p, DELIVERY_DONE, TRIES), (int32_t)d->tries);
    return store_run(s, QUERY(DELIVERY_DONE), &p, NULL, err);
}
