/* Bulk operations; see operations.h. */
#include "operations.h"
#include "input_listings.h"
#include "names.h"
#include "queries.h"
#include "store/pg/query.h"

bool apidb_retry_count(struct store *s, const struct apidb_selector *sel, struct apidb_match *ret,
                       struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, sel->campaign_id);
    param_i64(&p, sel->stage_id);
    param_i16_array(&p, sel->causes, sel->causes_n);
    param_i32_array(&p, sel->parts, sel->parts_n);
    PARAM_NAMES(&p, names_cause);
    param_bool(&p, sel->causes_n > 0);
    param_bool(&p, sel->parts_n > 0);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_RETRY_COUNT), &p, &res, err)) {
        return false;
    }
    ret->parts = row_i64(res, 0, 0);
    buf_add_cstr(&ret->sample, row_text(res, 0, 1));
    ret->lost_musd = row_i64(res, 0, 2);
    return true;
}

bool apidb_retry_stages(struct store *s, const struct apidb_selector *sel,
                        const char *instance_type, int volume_gb, struct apidb_retry_stage **ret,
                        size_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, sel->campaign_id);
    param_i64(&p, sel->stage_id);
    param_i16_array(&p, sel->causes, sel->causes_n);
    param_i32_array(&p, sel->parts, sel->parts_n);
    param_bool(&p, sel->causes_n > 0);
    param_bool(&p, sel->parts_n > 0);
    param_text(&p, instance_type);
    param_i32(&p, volume_gb);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_RETRY_STAGES), &p, &res, err)) {
        return false;
    }
    *ret_n = (size_t)row_count(res);
    *ret = xcalloc(*ret_n + 1, sizeof **ret);
    for (int i = 0; i < row_count(res); i++) {
        (*ret)[i] = (struct apidb_retry_stage){.stage_id = row_i64(res, i, 0),
                                               .parts = row_i64(res, i, 1),
                                               .size = row_i64(res, i, 2),
                                               .pools_lost = row_i64(res, i, 3)};
    }
    return true;
}

bool apidb_hold_count(struct store *s, const struct apidb_selector *sel, enum task_state state,
                      struct apidb_match *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, sel->campaign_id);
    param_i64(&p, sel->stage_id);
    param_i16(&p, (int16_t)state);
    param_i32_array_or_null(&p, sel->parts_n > 0 ? sel->parts : NULL, sel->parts_n);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_HOLD_COUNT), &p, &res, err)) {
        return false;
    }
    ret->parts = row_i64(res, 0, 0);
    buf_add_cstr(&ret->sample, row_text(res, 0, 1));
    return true;
}

bool apidb_operation_insert(struct store *s, int64_t campaign_id, const char *kind,
                            const char *selector_json, const char *changes_json, int64_t total,
                            const char *by, int64_t *ret_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_text(&p, kind);
    param_json(&p, selector_json);
    param_json(&p, changes_json);
    param_i64(&p, total);
    param_text(&p, by);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_OPERATION_INSERT), &p, &res, err)) {
        return false;
    }
    *ret_id = row_i64(res, 0, 0);
    return true;
}

static bool no_undo(int64_t id, const PGresult *r, struct err *err)
{
    long long op = (long long)id, campaign = (long long)row_i64(r, 0, 0);
    const char *kind = row_text(r, 0, 1);
    bool asked = row_bool(r, 0, 2), over = row_bool(r, 0, 3);
    if (asked) {
        return err_set(err, ERR_CONFLICT, "operation op-%lld %s; drover ops op-%lld shows %s", op,
                       over ? "was undone" : "is being undone already", op,
                       over ? "how many parts" : "how far");
    }
    if (strcmp(kind, "retry") == 0) {
        return err_set(err, ERR_CONFLICT,
                       "operation op-%lld has ended and no part of it waits to start; drover pause "
                       "c-%lld stops those that run",
                       op, campaign);
    }
    if (strcmp(kind, "hold") == 0 || strcmp(kind, "release") == 0) {
        return err_set(err, ERR_CONFLICT,
                       "operation op-%lld has ended; drover %s c-%lld is its opposite", op,
                       strcmp(kind, "hold") == 0 ? "release" : "hold", campaign);
    }
    if (strcmp(kind, "skip") == 0) {
        return err_set(err, ERR_CONFLICT,
                       "operation op-%lld has ended, and what is skipped stays so; submit these "
                       "parts of c-%lld again",
                       op, campaign);
    }
    return err_set(err, ERR_CONFLICT,
                   "operation op-%lld is of kind %s, which is not undone; drover ops op-%lld shows "
                   "how far it is",
                   op, kind, op);
}

/* A number of no operation; it may be a listing's. */
static bool no_operation(struct store *s, int64_t id, struct err *err)
{
    int64_t campaign = 0;
    if (!apidb_input_listing_campaign(s, id, &campaign, err)) {
        return false;
    }
    return campaign != 0
               ? err_set(err, ERR_CONFLICT,
                         "operation op-%lld lists the input of c-%lld and ends with it; "
                         "drover cancel c-%lld ends both",
                         (long long)id, (long long)campaign, (long long)campaign)
               : err_set(err, ERR_NOT_FOUND, "there is no operation op-%lld", (long long)id);
}

bool apidb_operation_undo(struct store *s, int64_t id, const char *by, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    AUTO_RESULT PGresult *r = NULL;
    param_i64(&p, id);
    param_text(&p, by);
    if (!store_exec(s, QUERY(API_OPERATION_UNDO), &p, &r, err)) {
        return false;
    }
    if (row_count(r) == 0) {
        return no_operation(s, id, err);
    }
    return row_i64(r, 0, 4) == 1 || no_undo(id, r, err);
}

bool apidb_operation_list(struct store *s, const struct apidb_operation_query *q,
                          struct apidb_page *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, q->id);
    param_i64(&p, q->after_id);
    param_i64(&p, q->n);
    param_i64(&p, q->campaign_id);
    param_bool(&p, q->down);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_OPERATIONS), &p, &res, err)) {
        return false;
    }
    ret->n = row_count(res);
    for (int i = 0; i < row_count(res); i++) {
        ret->last_id = row_i64(res, i, 0);
        buf_add_cstr(&ret->rows, i == 0 ? "" : ",");
        buf_add_cstr(&ret->rows, row_text(res, i, 1));
    }
    return true;
}

bool apidb_operation_get(struct store *s, int64_t id, struct buf *ret_json, struct err *err)
{
    struct apidb_page page = {.rows = *ret_json};
    const struct apidb_operation_query q = {.id = id, .n = 1};
    bool ok = apidb_operation_list(s, &q, &page, err);
    *ret_json = page.rows;
    if (ok && page.n == 0) {
        return err_set(err, ERR_NOT_FOUND, "there is no operation op-%lld", (long long)id);
    }
    return ok;
}
