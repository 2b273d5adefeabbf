/* See strays.h. */
#include "strays.h"
#include "common/clock.h"
#include "pg_names.h"
#include "queries.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"
#include "store/rows/words.h"

bool names_unknown(struct store *s, const char *const *names, size_t n, struct unknown_name **ret,
                   size_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text_array(&p, names, n);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(NAMES_UNKNOWN), &p, &r, err)) {
        return false;
    }
    *ret_n = (size_t)row_count(r);
    *ret = xcalloc(*ret_n + 1, sizeof **ret);
    for (size_t i = 0; i < *ret_n; i++) {
        row_text_into(r, (int)i, 0, (*ret)[i].name, sizeof(*ret)[i].name);
        (*ret)[i].is_void = row_bool(r, (int)i, 1);
    }
    return true;
}

bool view_strays(struct store *s, struct stray_row **ret, size_t *ret_n, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_STRAYS), NULL, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    struct stray_row *rows = xcalloc(n + 1, sizeof *rows);
    for (int i = 0; i < row_count(r); i++) {
        struct stray_row *x = &rows[i];
        row_text_into(r, i, 0, x->name, sizeof x->name);
        row_text_into(r, i, 1, x->arn, sizeof x->arn);
        x->campaign_id = row_i64(r, i, 2);
        x->task_id = row_i64(r, i, 3);
        row_text_into(r, i, 4, x->why, sizeof x->why);
        row_text_into(r, i, 5, x->instance_type, sizeof x->instance_type);
        x->market = market_parse(row_text(r, i, 6));
        x->instances = row_int(r, i, 7);
        x->keep_alive_s = row_span_s(r, i, 8);
        x->price_musd_per_hour = row_i64(r, i, 9);
        x->reserved_musd = row_i64(r, i, 10);
        row_text_into(r, i, 11, x->status, sizeof x->status);
        x->created_us = row_time(r, i, 12);
        x->started_us = row_time(r, i, 13);
        x->stop_asked = row_bool(r, i, 14);
    }
    *ret = rows;
    *ret_n = n;
    return true;
}

bool store_stray_put(struct store *s, const struct stray_row *row, bool *ret_new, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(PARAM(&p, STRAY_PUT, NAME), row->name);
    param_text(PARAM(&p, STRAY_PUT, ARN), row->arn);
    param_i64(PARAM(&p, STRAY_PUT, CAMPAIGN), row->campaign_id);
    param_i64(PARAM(&p, STRAY_PUT, TASK), row->task_id);
    param_i32(PARAM(&p, STRAY_PUT, N), row->n);
    param_text(PARAM(&p, STRAY_PUT, WHY), row->why);
    param_text(PARAM(&p, STRAY_PUT, INSTANCE_TYPE), row->instance_type);
    param_text(PARAM(&p, STRAY_PUT, MARKET), market_name(row->market));
    param_i32(PARAM(&p, STRAY_PUT, INSTANCES), row->instances);
    param_i64(PARAM(&p, STRAY_PUT, KEEP_ALIVE_S), row->keep_alive_s);
    param_i64(PARAM(&p, STRAY_PUT, PRICE), row->price_musd_per_hour);
    param_i64(PARAM(&p, STRAY_PUT, RESERVE), row->reserved_musd);
    param_outside_text(PARAM(&p, STRAY_PUT, STATUS), row->status, sizeof row->status);
    param_time(PARAM(&p, STRAY_PUT, CREATED), row->created_us);
    param_time(PARAM(&p, STRAY_PUT, STARTED), row->started_us);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(STRAY_PUT), &p, &r, err)) {
        return false;
    }
    *ret_new = row_i64(r, 0, 0) == 1;
    s->events |= *ret_new;
    AUTO_PARAMS struct params past = PARAMS_INIT;
    param_i64(&past, row->attempt_id);
    return row->attempt_id == 0 || store_run(s, QUERY(ATTEMPT_IDS_PAST), &past, NULL, err);
}

bool store_stray_seen(struct store *s, const struct stray_row *row, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, row->name);
    param_outside_text(&p, row->status, sizeof row->status);
    param_time(&p, row->started_us);
    param_i64(&p, row->price_musd_per_hour);
    param_i64(&p, row->reserved_musd);
    return store_run(s, QUERY(STRAY_SEEN), &p, NULL, err);
}

bool store_stray_end(struct store *s, const struct stray_end *e, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, e->name);
    param_outside_text(&p, e->status, 32);
    param_time(&p, e->started_us);
    param_time(&p, e->ended_us);
    param_i64(&p, e->billable_s);
    param_i64(&p, e->cost_musd);
    param_bool(&p, e->estimated);
    param_entries(&p, e->entries, e->entries_n);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(STRAY_END), &p, &r, err)) {
        return false;
    }
    return row_i64(r, 0, 0) == 1 || err_set(err, ERR_CONFLICT, "stray %s is not open", e->name);
}

bool store_attempt_revive(struct store *s, int64_t epoch, const char *name,
                          const char *identity_hash, musd_t reserve_musd, bool *ret_revived,
                          struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, name);
    param_outside_text(&p, identity_hash, 64);
    param_i64(&p, epoch);
    param_i64(&p, reserve_musd);
    param_i64(&p, clock_wall_us());
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(ATTEMPT_REVIVE), &p, &r, err)) {
        return false;
    }
    *ret_revived = row_count(r) == 1;
    s->events |= *ret_revived;
    return true;
}

bool store_attempt_recast(struct store *s, int64_t attempt_id, const struct intent *as,
                          struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params room = PARAMS_INIT;
    param_text(&room, as->instance_type);
    param_text(&room, market_name(as->market));
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, attempt_id);
    param_outside_text(&p, as->identity_hash, 64);
    param_text(&p, as->instance_type);
    param_text(&p, market_name(as->market));
    param_i32(&p, as->instances);
    param_i32(&p, as->volume_gb);
    param_i64(&p, as->max_runtime_s);
    param_i64(&p, as->keep_alive_s);
    param_i64(&p, as->price_musd_per_hour);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_run(s, QUERY(SLOTS_ROW), &room, NULL, err) ||
        !store_exec(s, QUERY(ATTEMPT_RECAST), &p, &r, err)) {
        return false;
    }
    return row_i64(r, 0, 0) == 1 ||
           err_set(err, ERR_CONFLICT, "attempt %lld has ended", (long long)attempt_id);
}

bool store_attempt_priced(struct store *s, const struct late_price *price, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, price->attempt_id);
    param_i64(&p, price->price_musd_per_hour);
    param_i64(&p, price->more_musd);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(ATTEMPT_PRICED), &p, &r, err)) {
        return false;
    }
    return row_i64(r, 0, 0) == 1 || err_set(err, ERR_CONFLICT, "attempt %lld has ended or a price",
                                            (long long)price->attempt_id);
}
