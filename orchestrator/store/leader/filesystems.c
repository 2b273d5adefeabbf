/* See filesystems.h. */
#include "filesystems.h"
#include "pg_names.h"
#include "queries.h"
#include "reason.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"
#include <stdio.h>

static void read_times(const PGresult *r, int i, struct filesystem_row *f)
{
    f->intended_us = row_time(r, i, 22);
    f->created_us = row_time(r, i, 23);
    f->available_us = row_time(r, i, 24);
    f->ending_us = row_time(r, i, 25);
    f->off_us = row_time(r, i, 26);
    f->ended_us = row_time(r, i, 27);
}

static bool read_row(const PGresult *r, int i, struct filesystem_row *f, struct err *err)
{
    f->id = row_i64(r, i, 0);
    f->project_id = row_i64(r, i, 1);
    f->campaign_id = row_i64(r, i, 2);
    f->stage_id = row_i64(r, i, 3);
    f->n = row_int(r, i, 4);
    f->state = filesystem_state_parse(row_text(r, i, 5));
    row_text_into(r, i, 6, f->token.s, sizeof f->token.s);
    row_text_into(r, i, 7, f->aws_id, sizeof f->aws_id);
    row_text_into(r, i, 8, f->mount, sizeof f->mount);
    row_text_into(r, i, 9, f->link_id, sizeof f->link_id);
    row_text_into(r, i, 10, f->deployment, sizeof f->deployment);
    f->size_gib = row_i64(r, i, 11);
    f->ttl_s = row_span_s(r, i, 12);
    f->keep = row_bool(r, i, 13);
    f->exports = row_bool(r, i, 14);
    row_text_into(r, i, 15, f->import_from, sizeof f->import_from);
    f->ready = row_bool(r, i, 16);
    f->delete_asked = row_bool(r, i, 17);
    f->failed = row_bool(r, i, 18);
    f->cause = (enum cause)row_i64(r, i, 19);
    f->price_musd_per_gb_month = row_i64(r, i, 20);
    f->reserved_musd = row_i64(r, i, 21);
    read_times(r, i, f);
    row_text_into(r, i, 28, f->reason, sizeof f->reason);
    f->kept_for_retry = row_bool(r, i, 29);
    return f->state < FILESYSTEM_STATE_COUNT ||
           err_set(err, ERR_DATABASE, "file system state '%s' is not known to this droverd",
                   row_text(r, i, 5));
}

bool view_filesystems(struct store *s, struct filesystem_row **ret, size_t *ret_n, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_FILESYSTEMS), NULL, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    AUTO_FREE struct filesystem_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        if (!read_row(r, (int)i, &rows[i], err)) {
            return false;
        }
    }
    *ret = TAKE(rows);
    *ret_n = n;
    return true;
}

bool store_filesystem_id(struct store *s, int64_t *ret, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(FILESYSTEM_ID), NULL, &r, err)) {
        return false;
    }
    *ret = row_i64(r, 0, 0);
    return true;
}

bool store_filesystem_intend(struct store *s, const struct filesystem_row *row, usec_t until_us,
                             struct str request, char ret_refused[static 12], struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params money = PARAMS_INIT;
    param_i64(&money, row->campaign_id);
    param_i64(&money, row->stage_id);
    if (!store_run(s, QUERY(FILESYSTEM_MONEY_ROWS), &money, NULL, err)) {
        return false;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(PARAM(&p, FILESYSTEM_INTEND, ID), row->id);
    param_i64(PARAM(&p, FILESYSTEM_INTEND, CAMPAIGN), row->campaign_id);
    param_i64(PARAM(&p, FILESYSTEM_INTEND, STAGE), row->stage_id);
    param_i32(PARAM(&p, FILESYSTEM_INTEND, N), row->n);
    param_text(PARAM(&p, FILESYSTEM_INTEND, TOKEN), row->token.s);
    param_i64(PARAM(&p, FILESYSTEM_INTEND, SIZE), row->size_gib);
    param_text(PARAM(&p, FILESYSTEM_INTEND, DEPLOYMENT), row->deployment);
    param_i64(PARAM(&p, FILESYSTEM_INTEND, TTL_S), row->ttl_s);
    param_bool(PARAM(&p, FILESYSTEM_INTEND, KEEP), row->keep);
    param_bool(PARAM(&p, FILESYSTEM_INTEND, EXPORTS), row->exports);
    param_text(PARAM(&p, FILESYSTEM_INTEND, IMPORT), row->import_from);
    param_bytes(PARAM(&p, FILESYSTEM_INTEND, REQUEST), request.p, request.n);
    param_i64(PARAM(&p, FILESYSTEM_INTEND, PRICE), row->price_musd_per_gb_month);
    param_i64(PARAM(&p, FILESYSTEM_INTEND, RESERVE), row->reserved_musd);
    param_time(PARAM(&p, FILESYSTEM_INTEND, NOW), row->intended_us);
    param_time(PARAM(&p, FILESYSTEM_INTEND, UNTIL), until_us);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(FILESYSTEM_INTEND), &p, &r, err)) {
        return false;
    }
    (void)snprintf(ret_refused, 12, "%s", row_text(r, 0, 0));
    s->events |= ret_refused[0] == '\0';
    return true;
}

bool store_filesystem_move(struct store *s, const struct filesystem_row *row,
                           enum filesystem_state from, usec_t until_us, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(PARAM(&p, FILESYSTEM_MOVE, ID), row->id);
    param_text(PARAM(&p, FILESYSTEM_MOVE, FROM), filesystem_state_name(from));
    param_text(PARAM(&p, FILESYSTEM_MOVE, TO), filesystem_state_name(row->state));
    param_text(PARAM(&p, FILESYSTEM_MOVE, AWS_ID), row->aws_id);
    param_text(PARAM(&p, FILESYSTEM_MOVE, MOUNT), row->mount);
    param_text(PARAM(&p, FILESYSTEM_MOVE, LINK), row->link_id);
    param_bool(PARAM(&p, FILESYSTEM_MOVE, READY), row->ready);
    param_bool(PARAM(&p, FILESYSTEM_MOVE, FAILED), row->failed);
    param_i16(PARAM(&p, FILESYSTEM_MOVE, CAUSE), (int16_t)row->cause);
    param_outside_text(PARAM(&p, FILESYSTEM_MOVE, REASON), row->reason, RESOURCE_REASON_CHARS_MAX);
    param_bool(PARAM(&p, FILESYSTEM_MOVE, KEPT), row->kept_for_retry);
    param_time(PARAM(&p, FILESYSTEM_MOVE, CREATED), row->created_us);
    param_time(PARAM(&p, FILESYSTEM_MOVE, AVAILABLE), row->available_us);
    param_time(PARAM(&p, FILESYSTEM_MOVE, ENDING), row->ending_us);
    param_time(PARAM(&p, FILESYSTEM_MOVE, OFF), row->off_us);
    param_time(PARAM(&p, FILESYSTEM_MOVE, UNTIL), until_us);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(FILESYSTEM_MOVE), &p, &r, err)) {
        return false;
    }
    s->events = true;
    return row_i64(r, 0, 0) == 1 || err_set(err, ERR_CONFLICT, "file system %s is not %s",
                                            row->token.s, filesystem_state_name(from));
}

bool store_filesystem_end(struct store *s, const struct filesystem_row *row,
                          const struct filesystem_end *e, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER && filesystem_state_terminal(row->state));
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, row->id);
    param_text(&p, filesystem_state_name(row->state));
    param_time(&p, row->ended_us);
    param_i64(&p, e->hours);
    param_i64(&p, e->cost_musd);
    param_bool(&p, e->estimated);
    param_entries(&p, e->entries, e->entries_n);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(FILESYSTEM_END), &p, &r, err)) {
        return false;
    }
    s->events = true;
    return row_i64(r, 0, 0) == 1 ||
           err_set(err, ERR_CONFLICT, "file system %s is not being deleted", row->token.s);
}

bool store_filesystem_request(struct store *s, int64_t id, struct buf *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(FILESYSTEM_REQUEST), &p, &r, err)) {
        return false;
    }
    if (row_count(r) != 1 || row_null(r, 0, 0)) {
        return err_set(err, ERR_DATABASE, "file system %lld has no request", (long long)id);
    }
    buf_add_str(ret, row_bytes(r, 0, 0));
    return true;
}
