/* See resource_strays.h. */
#include "resource_strays.h"
#include "pg_names.h"
#include "queries.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"

static bool read_row(const PGresult *r, int i, struct resource_stray_row *x, struct err *err)
{
    row_text_into(r, i, 0, x->name, sizeof x->name);
    row_text_into(r, i, 1, x->arn, sizeof x->arn);
    x->kind = resource_kind_parse(row_text(r, i, 2));
    row_text_into(r, i, 3, x->token, sizeof x->token);
    row_text_into(r, i, 4, x->status, sizeof x->status);
    row_text_into(r, i, 5, x->instance_type, sizeof x->instance_type);
    x->instances = row_int(r, i, 6);
    x->size_gib = row_i64(r, i, 7);
    x->price_musd_per_hour = row_i64(r, i, 8);
    x->created_us = row_time(r, i, 9);
    x->started_us = row_time(r, i, 10);
    x->ended_us = row_time(r, i, 11);
    x->estimated = row_bool(r, i, 12);
    x->stop_asked = row_bool(r, i, 13);
    return x->kind < RESOURCE_KIND_COUNT ||
           err_set(err, ERR_DATABASE, "a stray of kind '%s' is not known to this droverd",
                   row_text(r, i, 2));
}

bool view_resource_strays(struct store *s, struct resource_stray_row **ret, size_t *ret_n,
                          struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_RESOURCE_STRAYS), NULL, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    AUTO_FREE struct resource_stray_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        if (!read_row(r, (int)i, &rows[i], err)) {
            return false;
        }
    }
    *ret = TAKE(rows);
    *ret_n = n;
    return true;
}

bool store_resource_stray_put(struct store *s, struct resource_stray_row *row, bool *ret_new,
                              struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(PARAM(&p, RESOURCE_STRAY_PUT, NAME), row->name);
    param_text(PARAM(&p, RESOURCE_STRAY_PUT, ARN), row->arn);
    param_text(PARAM(&p, RESOURCE_STRAY_PUT, KIND), resource_kind_name(row->kind));
    param_outside_text(PARAM(&p, RESOURCE_STRAY_PUT, TOKEN), row->token, sizeof row->token);
    param_outside_text(PARAM(&p, RESOURCE_STRAY_PUT, STATUS), row->status, sizeof row->status);
    param_outside_text(PARAM(&p, RESOURCE_STRAY_PUT, INSTANCE_TYPE), row->instance_type,
                       sizeof row->instance_type);
    param_i32(PARAM(&p, RESOURCE_STRAY_PUT, INSTANCES), (int32_t)row->instances);
    param_i64(PARAM(&p, RESOURCE_STRAY_PUT, SIZE), row->size_gib);
    param_i64(PARAM(&p, RESOURCE_STRAY_PUT, PRICE), row->price_musd_per_hour);
    param_time(PARAM(&p, RESOURCE_STRAY_PUT, CREATED), row->created_us);
    param_time(PARAM(&p, RESOURCE_STRAY_PUT, STARTED), row->started_us);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(RESOURCE_STRAY_PUT), &p, &r, err)) {
        return false;
    }
    *ret_new = row_i64(r, 0, 0) == 1;
    if (*ret_new) {
        row->started_us = row_time(r, 0, 1);
        row->created_us = row_time(r, 0, 2);
    }
    s->events |= *ret_new;
    return true;
}

bool store_resource_stray_seen(struct store *s, const struct resource_stray_row *row,
                               struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, row->name);
    param_text(&p, resource_kind_name(row->kind));
    param_outside_text(&p, row->status, sizeof row->status);
    param_time(&p, row->started_us);
    param_time(&p, row->ended_us);
    param_bool(&p, row->estimated);
    param_outside_text(&p, row->instance_type, sizeof row->instance_type);
    param_i64(&p, row->price_musd_per_hour);
    return store_run(s, QUERY(RESOURCE_STRAY_SEEN), &p, NULL, err);
}

bool store_resource_stray_drop(struct store *s, const char *name, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_text(&p, name);
    return store_run(s, QUERY(RESOURCE_STRAY_DROP), &p, NULL, err);
}

bool store_resource_stray_end(struct store *s, const struct resource_stray_end *e, struct err *err)
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
    if (!store_exec(s, QUERY(RESOURCE_STRAY_END), &p, &r, err)) {
        return false;
    }
    return row_i64(r, 0, 0) == 1 || err_set(err, ERR_CONFLICT, "stray %s is not open", e->name);
}
