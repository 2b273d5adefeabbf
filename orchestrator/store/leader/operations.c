/* Bulk operations: reading them, the tasks that their selector or their undo names, progress. */
#include "operations.h"
#include "common/json.h"
#include "queries.h"
#include "store/pg/connection_private.h"
#include "store/pg/tx.h"

#define SELECTOR_BYTES_MAX (4 << 20)
#define PAGE_MAX           100000

bool view_operations(struct store *s, struct operation_row **ret, size_t *ret_n, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_OPERATIONS), NULL, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    struct operation_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        int k = (int)i;
        rows[i].id = row_i64(r, k, 0);
        rows[i].campaign_id = row_i64(r, k, 1);
        row_text_into(r, k, 2, rows[i].kind, sizeof rows[i].kind);
        rows[i].selector_json = row_text_dup(r, k, 3);
        rows[i].changes_json = row_text_dup(r, k, 4);
        rows[i].state = operation_state_parse(row_text(r, k, 5));
        rows[i].total = row_i64(r, k, 6);
        rows[i].done = row_i64(r, k, 7);
        rows[i].undo = row_bool(r, k, 8);
        rows[i].undone = row_i64(r, k, 9);
        rows[i].posted = row_i64(r, k, 10);
        ASSERT(rows[i].state != OPERATION_STATE_COUNT); /* the query returns only known states */
    }
    *ret = rows;
    *ret_n = n;
    return true;
}

void operation_rows_free(struct operation_row *rows, size_t n)
{
    for (size_t i = 0; rows != NULL && i < n; i++) {
        free(rows[i].selector_json);
        free(rows[i].changes_json);
    }
    free(rows);
}

/* selector.cause: names to numbers. Absent or empty: any cause. */
static bool add_causes(const json_t *selector, struct params *p, struct err *err)
{
    json_t *a = NULL;
    if (!json_get_array(selector, "cause", &a, err)) {
        return false;
    }
    int16_t causes[CAUSE_COUNT];
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(a); i++) {
        const char *name = json_string_value(json_array_get(a, i));
        enum cause c = cause_parse(name == NULL ? "" : name);
        if (c == CAUSE_COUNT) {
            return err_set(err, ERR_INVALID, "cause '%s' is not known", name == NULL ? "" : name);
        }
        if (n < CAUSE_COUNT) {
            causes[n++] = (int16_t)c;
        }
    }
    param_i16_array_or_null(p, n == 0 ? NULL : causes, n);
    return true;
}

static bool add_parts(const json_t *selector, struct params *p, struct err *err)
{
    json_t *a = NULL;
    if (!json_get_array(selector, "parts", &a, err)) {
        return false;
    }
    size_t n = json_array_size(a);
    AUTO_FREE int32_t *parts = xmalloc((n + 1) * sizeof *parts);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(a, i);
        json_int_t part = json_integer_value(v);
        if (!json_is_integer(v) || part < 0 || part > INT32_MAX) {
            return err_set(err, ERR_INVALID, "parts[%zu] is not a part number", i);
        }
        parts[i] = (int32_t)part;
    }
    param_i32_array_or_null(p, n == 0 ? NULL : parts, n);
    return true;
}

static bool page_params(const struct operation_row *op, enum task_state state, int64_t after_id,
                        size_t n_max, json_t *selector, struct params *p, struct err *err)
{
    const char *stage = NULL;
    if (!json_get_str(selector, "stage", "", &stage, err)) {
        return false;
    }
    param_i64(p, op->campaign_id);
    if (state != TASK_FAILED) {
        param_i16(p, (int16_t)state);
    }
    param_i64(p, after_id);
    param_i32(p, (int32_t)n_max);
    param_text(p, stage[0] == '\0' ? NULL : stage);
    if (!add_causes(selector, p, err) || !add_parts(selector, p, err)) {
        return false;
    }
    if (state == TASK_FAILED) { /* one that fails again later was not asked for */
        param_i64(p, op->id);
    }
    return true;
}

bool operation_page(struct store *s, const struct operation_row *op, enum task_state state,
                    int64_t after_id, size_t n_max, struct task_row *ret, size_t *ret_n,
                    struct err *err)
{
    ASSERT(n_max >= 1 && n_max <= PAGE_MAX);
    AUTO_JSON json_t *selector = NULL;
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    if (!json_parse(str_of(op->selector_json), SELECTOR_BYTES_MAX, &selector, err) ||
        !page_params(op, state, after_id, n_max, selector, &p, err) ||
        !(state == TASK_FAILED ? store_exec(s, QUERY(OPERATION_PAGE_FAILED), &p, &r, err)
                               : store_exec(s, QUERY(OPERATION_PAGE), &p, &r, err))) {
        return err_wrap(err, "operation %lld", (long long)op->id);
    }
    size_t n = (size_t)row_count(r);
    for (size_t i = 0; i < n; i++) {
        int k = (int)i;
        ret[i] = (struct task_row){.id = row_i64(r, k, 0),
                                   .stage_id = row_i64(r, k, 1),
                                   .seq = row_int(r, k, 2),
                                   .attempts = (int16_t)row_int(r, k, 3),
                                   .names = (int16_t)row_int(r, k, 4),
                                   .state = (enum task_state)row_int(r, k, 5),
                                   .not_before_us = row_i64(r, k, 6),
                                   .size = row_i64(r, k, 7)};
    }
    *ret_n = n;
    return true;
}

bool store_operation_progress(struct store *s, int64_t id, enum operation_state to, int64_t done,
                              struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    param_text(&p, operation_state_name(to));
    param_i64(&p, done);
    param_bool(&p, to == OPERATION_DONE || to == OPERATION_CANCELLED);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(OPERATION_PROGRESS), &p, &r, err)) {
        return false;
    }
    s->events = true;
    return row_count(r) == 1
               ? true
               : err_set(err, ERR_CONFLICT, "operation %lld is no longer open", (long long)id);
}

bool undo_page(struct store *s, const struct operation_row *op, size_t n_max,
               struct retried_row *ret, size_t *ret_n, struct err *err)
{
    ASSERT(n_max >= 1 && n_max <= PAGE_MAX);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, op->id);
    param_i32(&p, (int32_t)n_max);
    if (!store_exec(s, QUERY(UNDO_PAGE), &p, &r, err)) {
        return false;
    }
    *ret_n = (size_t)row_count(r);
    for (size_t i = 0; i < *ret_n; i++) {
        int k = (int)i;
        ret[i] = (struct retried_row){.task_id = row_i64(r, k, 0),
                                      .stage_id = row_i64(r, k, 1),
                                      .instance_type_i = row_int(r, k, 2),
                                      .volume_gb = row_int(r, k, 3),
                                      .max_runtime_s = row_span_s(r, k, 4),
                                      .state = (enum task_state)row_int(r, k, 5)};
    }
    return true;
}

bool store_operation_undo(struct store *s, int64_t id, int64_t undone, bool over, struct err *err)
{
    ASSERT(tx_open(s) && s->role == STORE_LEADER);
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    param_i64(&p, undone);
    param_bool(&p, over);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(OPERATION_UNDO), &p, &r, err)) {
        return false;
    }
    s->events = true;
    return row_count(r) == 1 ||
           err_set(err, ERR_CONFLICT, "operation %lld is not being undone", (long long)id);
}
