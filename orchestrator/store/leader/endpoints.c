/* See endpoints.h. */
#include "endpoints.h"
#include "pg_names.h"
#include "queries.h"
#include "reason.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"
#include <stdio.h>

static bool read_row(const PGresult *r, int i, struct endpoint_row *e, struct err *err)
{
    e->id = row_i64(r, i, 0);
    e->project_id = row_i64(r, i, 1);
    e->campaign_id = row_i64(r, i, 2);
    e->stage_id = row_i64(r, i, 3);
    e->n = row_int(r, i, 4);
    e->state = endpoint_state_parse(row_text(r, i, 5));
    row_text_into(r, i, 6, e->name.s, sizeof e->name.s);
    row_text_into(r, i, 7, e->instance_type, sizeof e->instance_type);
    e->instances = row_int(r, i, 8);
    e->ttl_s = row_span_s(r, i, 9);
    e->made = row_int(r, i, 10);
    e->passed = row_bool(r, i, 11);
    e->delete_asked = row_bool(r, i, 12);
    e->failed = row_bool(r, i, 13);
    e->cause = (enum cause)row_i64(r, i, 14);
    e->p95_us = row_i64(r, i, 15);
    e->price_musd_per_hour = row_i64(r, i, 16);
    e->reserved_musd = row_i64(r, i, 17);
    e->intended_us = row_time(r, i, 18);
    e->created_us = row_time(r, i, 19);
    e->in_service_us = row_time(r, i, 20);
    e->deleting_us = row_time(r, i, 21);
    e->off_us = row_time(r, i, 22);
    e->ended_us = row_time(r, i, 23);
    row_text_into(r, i, 24, e->reason, sizeof e->reason);
    e->extend_us = row_time(r, i, 25);
    e->extend_seen_us = row_time(r, i, 26);
    e->idle_s = row_span_s(r, i, 27);
    e->tested_us = row_time(r, i, 28);
    e->tested_n = row_int(r, i, 29);
    e->invoked_us = row_time(r, i, 30);
    e->served_us = row_time(r, i, 31);
    return e->state < ENDPOINT_STATE_COUNT ||
           err_set(err, ERR_DATABASE, "endpoint state '%s' is not known to this droverd",
                   row_text(r, i, 5));
}

bool view_endpoints(struct store *s, struct endpoint_row **ret, size_t *ret_n, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_ENDPOINTS), NULL, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    AUTO_FREE struct endpoint_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        if (!read_row(r, (int)i, &rows[i], err)) {
            return false;
        }
    }
    *ret = TAKE(rows);
    *ret_n = n;
    return true;
}

bool store_endpoint_id(struct store *s, int64_t *ret, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(ENDPOINT_ID), NULL, &r, err)) {
        return false;
    }
    *ret = row_i64(r, 0, 0);
    return true;
}

static void param_request(struct params *p, struct str text)
{
    param_bytes(p, text.p, text.n);
}

static bool money_rows(struct store *s, const struct endpoint_row *row, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, row->campaign_id);
    param_i64(&p, row->stage_id);
    return store_run(s, QUERY(ENDPOINT_MONEY_ROWS), &p, NULL, err);
}

bool store_endpoint_intend(struct store *s, const struct endpoint_row *row, usec_t until_us,
                           const struct endpoint_texts *texts, char ret_refused[static 12],
                           struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    if (!money_rows(s, row, err)) {
        return false;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(PARAM(&p, ENDPOINT_INTEND, ID), row->id);
    param_i64(PARAM(&p, ENDPOINT_INTEND, CAMPAIGN), row->campaign_id);
    param_i64(PARAM(&p, ENDPOINT_INTEND, STAGE), row->stage_id);
    param_i32(PARAM(&p, ENDPOINT_INTEND, N), row->n);
    param_text(PARAM(&p, ENDPOINT_INTEND, NAME), row->name.s);
    param_text(PARAM(&p, ENDPOINT_INTEND, INSTANCE_TYPE), row->instance_type);
    param_i32(PARAM(&p, ENDPOINT_INTEND, INSTANCES), row->instances);
    param_i64(PARAM(&p, ENDPOINT_INTEND, TTL_S), row->ttl_s);
    param_i64(PARAM(&p, ENDPOINT_INTEND, IDLE_S), row->idle_s);
    param_i64(PARAM(&p, ENDPOINT_INTEND, PRICE), row->price_musd_per_hour);
    param_i64(PARAM(&p, ENDPOINT_INTEND, RESERVE), row->reserved_musd);
    param_request(PARAM(&p, ENDPOINT_INTEND, MODEL_REQUEST), texts->model);
    param_request(PARAM(&p, ENDPOINT_INTEND, CONFIG_REQUEST), texts->config);
    param_request(PARAM(&p, ENDPOINT_INTEND, ENDPOINT_REQUEST), texts->endpoint);
    param_time(PARAM(&p, ENDPOINT_INTEND, NOW), row->intended_us);
    param_time(PARAM(&p, ENDPOINT_INTEND, UNTIL), until_us);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(ENDPOINT_INTEND), &p, &r, err)) {
        return false;
    }
    (void)snprintf(ret_refused, 12, "%s", row_text(r, 0, 0));
    s->events |= ret_refused[0] == '\0';
    return true;
}

bool store_endpoint_move(struct store *s, const struct endpoint_row *row, enum endpoint_state from,
                         usec_t until_us, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(PARAM(&p, ENDPOINT_MOVE, ID), row->id);
    param_text(PARAM(&p, ENDPOINT_MOVE, FROM), endpoint_state_name(from));
    param_text(PARAM(&p, ENDPOINT_MOVE, TO), endpoint_state_name(row->state));
    param_i32(PARAM(&p, ENDPOINT_MOVE, MADE), row->made);
    param_bool(PARAM(&p, ENDPOINT_MOVE, PASSED), row->passed);
    param_bool(PARAM(&p, ENDPOINT_MOVE, FAILED), row->failed);
    param_i16(PARAM(&p, ENDPOINT_MOVE, CAUSE), (int16_t)row->cause);
    param_i64(PARAM(&p, ENDPOINT_MOVE, P95_US), row->p95_us);
    param_outside_text(PARAM(&p, ENDPOINT_MOVE, REASON), row->reason, RESOURCE_REASON_CHARS_MAX);
    param_time(PARAM(&p, ENDPOINT_MOVE, CREATED), row->created_us);
    param_time(PARAM(&p, ENDPOINT_MOVE, IN_SERVICE), row->in_service_us);
    param_time(PARAM(&p, ENDPOINT_MOVE, DELETING), row->deleting_us);
    param_time(PARAM(&p, ENDPOINT_MOVE, OFF), row->off_us);
    param_time(PARAM(&p, ENDPOINT_MOVE, UNTIL), until_us);
    param_time(PARAM(&p, ENDPOINT_MOVE, WISH), row->extend_us);
    param_time(PARAM(&p, ENDPOINT_MOVE, TESTED), row->tested_us);
    param_i32(PARAM(&p, ENDPOINT_MOVE, TESTED_N), row->tested_n);
    param_time(PARAM(&p, ENDPOINT_MOVE, INVOKED), row->invoked_us);
    param_time(PARAM(&p, ENDPOINT_MOVE, SERVED), row->served_us);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(ENDPOINT_MOVE), &p, &r, err)) {
        return false;
    }
    s->events = true;
    return row_i64(r, 0, 0) == 1 || err_set(err, ERR_CONFLICT, "endpoint %s is not %s, or extended",
                                            row->name.s, endpoint_state_name(from));
}

bool store_endpoint_extend(struct store *s, const struct endpoint_row *row, usec_t until_us,
                           char ret_refused[static 12], struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    if (!money_rows(s, row, err)) {
        return false;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, row->id);
    param_time(&p, row->extend_seen_us);
    param_i64(&p, row->ttl_s);
    param_i64(&p, row->reserved_musd);
    param_time(&p, until_us);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(ENDPOINT_EXTEND), &p, &r, err)) {
        return false;
    }
    (void)snprintf(ret_refused, 12, "%s", row_text(r, 0, 0));
    s->events = true;
    return true;
}

bool store_endpoint_end(struct store *s, const struct endpoint_row *row,
                        const struct endpoint_end *e, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER && endpoint_state_terminal(row->state));
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, row->id);
    param_text(&p, endpoint_state_name(row->state));
    param_time(&p, row->ended_us);
    param_i64(&p, e->billable_s);
    param_i64(&p, e->cost_musd);
    param_bool(&p, e->estimated);
    param_entries(&p, e->entries, e->entries_n);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(ENDPOINT_END), &p, &r, err)) {
        return false;
    }
    s->events = true;
    return row_i64(r, 0, 0) == 1 ||
           err_set(err, ERR_CONFLICT, "endpoint %s is not being deleted", row->name.s);
}

bool store_endpoint_request(struct store *s, int64_t id, int thing, struct buf *ret,
                            struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(ENDPOINT_REQUESTS), &p, &r, err)) {
        return false;
    }
    if (row_count(r) != 1 || row_null(r, 0, thing)) {
        return err_set(err, ERR_DATABASE, "endpoint %lld has no request", (long long)id);
    }
    buf_add_str(ret, row_bytes(r, 0, thing));
    return true;
}

bool view_endpoint_model_job(struct store *s, int64_t stage_id, struct job_name *ret,
                             struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, stage_id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(ENDPOINT_MODEL_JOB), &p, &r, err)) {
        return false;
    }
    ret->s[0] = '\0';
    if (row_count(r) == 1) {
        row_text_into(r, 0, 0, ret->s, sizeof ret->s);
    }
    return true;
}
