/* Parts, for handlers: pages by key with bounded work, rows, attempts, tiles, failures. */
#include "parts.h"
#include "names.h"
#include "queries.h"
#include "store/pg/query.h"

#define SCAN_IDS_MIN 500   /* ids that a page with a filter looks at first, */
#define SCAN_IDS_MAX 2500  /* and at most before it is told where to go on */
#define SEEK_IDS_MAX 10000 /* and behind the part that was sought */

static enum wait_reason apidb_wait_reason(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(names_wait_reason); i++) {
        if (strcmp(names_wait_reason[i], name) == 0) {
            return (enum wait_reason)i;
        }
    }
    return WAIT_NONE;
}

bool apidb_stage_find(struct store *s, int64_t campaign_id, const char *name,
                      struct apidb_stage_row *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_text(&p, name);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_STAGE_FIND), &p, &res, err)) {
        return false;
    }
    if (row_count(res) == 0) {
        return name == NULL ? err_set(err, ERR_NOT_FOUND, "there is no campaign c-%lld",
                                      (long long)campaign_id)
                            : err_set(err, ERR_NOT_FOUND, "campaign c-%lld has no stage '%.64s'",
                                      (long long)campaign_id, name);
    }
    if (row_bool(res, 0, 7 + TASK_STATE_COUNT)) {
        return err_set(err, ERR_ARCHIVED,
                       "campaign c-%lld is archived: its parts, attempts and metrics are deleted; "
                       "its counters, its cost and its file are kept",
                       (long long)campaign_id);
    }
    *ret = (struct apidb_stage_row){.id = row_i64(res, 0, 0),
                                    .tasks = row_i64(res, 0, 2),
                                    .closed = row_bool(res, 0, 3),
                                    .taken = row_i64(res, 0, 4)};
    row_text_into(res, 0, 1, ret->name, sizeof ret->name);
    for (int i = 0; i < TASK_STATE_COUNT; i++) {
        ret->counts[i] = row_i64(res, 0, 5 + i);
    }
    ret->state = stage_state_parse(row_text(res, 0, 5 + TASK_STATE_COUNT));
    ret->wait_reason = apidb_wait_reason(row_text(res, 0, 6 + TASK_STATE_COUNT));
    return true;
}

/* The first column of every row, malloc'd. Returns how many. */
static int ids_take(const PGresult *res, struct apidb_ids *ret)
{
    int n = row_count(res);
    ret->at = xcalloc((size_t)n + 1, sizeof *ret->at);
    for (int i = 0; i < n; i++) {
        ret->at[ret->n++] = row_i64(res, i, 0);
    }
    return n;
}

bool apidb_parts_looks_at_each(const struct apidb_parts_query *q)
{
    return q->text != NULL || q->cost_min_musd > 0 || q->updated_from_us > 0 ||
           q->updated_before_us > 0;
}

/* Keeps those of at[*n] whose text, cost and time fit, at most `most`. */
static bool match(struct store *s, const struct apidb_parts_query *q, int64_t *at, size_t *n,
                  int64_t most, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, q->campaign_id);
    param_i64_array(&p, at, *n);
    param_text(&p, q->text);
    param_i64(&p, q->cost_min_musd);
    param_i64(&p, MAX(q->updated_from_us, (usec_t)(q->updated_before_us > 0))); /* 0: never */
    param_i64(&p, q->updated_before_us > 0 ? q->updated_before_us : INT64_MAX);
    param_i64(&p, most);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PARTS_MATCH), &p, &res, err)) {
        return false;
    }
    *n = (size_t)row_count(res);
    for (size_t i = 0; i < *n; i++) {
        at[i] = row_i64(res, (int)i, 0);
    }
    return true;
}

/* Looks at the next ids and appends those that fit. *ret_looked less than look_at: there are no
 * more. */
static bool scan_some(struct store *s, struct apidb_parts_query *q, int64_t look_at,
                      struct apidb_ids *ret, int64_t *ret_looked, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, q->campaign_id);
    param_i64(&p, q->stage_id);
    param_i64(&p, q->after_id);
    param_i64(&p, look_at);
    param_i32(&p, q->state);
    param_i32(&p, (int32_t)q->attempts_min);
    bool each = apidb_parts_looks_at_each(q);
    int64_t most = q->n - (int64_t)ret->n;
    param_i64(&p, each ? look_at : most);
    param_bool(&p, q->down);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PARTS_SCAN), &p, &res, err)) {
        return false;
    }
    AUTO_FREE int64_t *at = xcalloc((size_t)row_count(res), sizeof *at);
    size_t n = 0;
    for (int i = 0; i < row_count(res) && !row_null(res, i, 0); i++) {
        at[n++] = row_i64(res, i, 0);
    }
    if (each && n > 0 && !match(s, q, at, &n, most, err)) {
        return false;
    }
    memcpy(ret->at + ret->n, at, n * sizeof *at);
    ret->n += n;
    *ret_looked = row_i64(res, 0, 2);
    q->after_id =
        (int64_t)ret->n == q->n ? ret->at[ret->n - 1] : row_i64_or(res, 0, 1, q->after_id);
    return true;
}

static bool any_of_state(struct store *s, const struct apidb_parts_query *q, bool *ret,
                         struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, q->campaign_id);
    param_i64(&p, q->stage_id);
    param_i32(&p, q->state);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PARTS_ANY), &p, &res, err)) {
        return false;
    }
    *ret = row_bool(res, 0, 0);
    return true;
}

/* More and more at a time: a page that fills soon costs little, one of few that fit few calls. */
static bool scan_up_to(struct store *s, struct apidb_parts_query *q, int64_t look_at, int64_t left,
                       struct apidb_ids *ret, struct err *err)
{
    int64_t looked;
    for (; left > 0; left -= looked) {
        look_at = MIN(look_at, left);
        if (!scan_some(s, q, look_at, ret, &looked, err)) {
            return false;
        }
        ret->more = looked == look_at || (int64_t)ret->n == q->n;
        if (looked < look_at || (int64_t)ret->n == q->n) {
            break;
        }
        look_at *= 4;
    }
    return true;
}

static bool ids_scan(struct store *s, struct apidb_parts_query *q, struct apidb_ids *ret,
                     struct err *err)
{
    bool each = apidb_parts_looks_at_each(q);
    bool filters = q->state >= 0 || q->attempts_min > 0 || q->stage_id != 0 || each;
    int64_t look_at = filters ? MAX(q->n, SCAN_IDS_MIN) : q->n;
    bool any = true;
    if (q->state >= 0 && (!any_of_state(s, q, &any, err) || !any)) {
        return !any;
    }
    ret->at = xcalloc((size_t)q->n, sizeof *ret->at);
    return scan_up_to(s, q, look_at, MAX(look_at, each ? APIDB_EACH_IDS_MAX : SCAN_IDS_MAX), ret,
                      err);
}

bool apidb_parts_ids_within(struct store *s, struct apidb_parts_query *q, int64_t look_at,
                            struct apidb_ids *ret, struct err *err)
{
    int64_t before = q->after_id;
    ASSERT((int64_t)ret->n < q->n);
    if (!scan_up_to(s, q, SCAN_IDS_MIN, look_at, ret, err)) {
        return false;
    }
    ret->more = q->after_id != before; /* else nothing is there */
    return true;
}

bool apidb_parts_ids_seek(struct store *s, struct apidb_parts_query *q, struct apidb_ids *ret,
                          struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, q->campaign_id);
    param_i64(&p, q->stage_id);
    param_i64(&p, q->after_id);
    param_i32(&p, q->state);
    param_i32(&p, (int32_t)q->attempts_min);
    param_bool(&p, q->down);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PARTS_SEEK), &p, &res, err)) {
        return false;
    }
    ret->more = !row_null(res, 0, 0);
    if (!ret->more) {
        return true;
    }
    q->after_id = row_i64(res, 0, 0) + (q->down ? 1 : -1);
    return apidb_parts_ids_within(s, q, SEEK_IDS_MAX, ret, err);
}

bool apidb_parts_range(struct store *s, int64_t campaign_id, int64_t *ret_first, int64_t *ret_last,
                       struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PARTS_RANGE), &p, &res, err)) {
        return false;
    }
    *ret_first = row_i64_or(res, 0, 0, 0);
    *ret_last = row_i64_or(res, 0, 1, -1);
    return true;
}

bool apidb_parts_map(struct store *s, const struct apidb_map_query *q, struct apidb_map_range *ret,
                     int64_t n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, q->campaign_id);
    param_i64(&p, q->first_id);
    param_i64(&p, q->per_range);
    param_i64(&p, q->stage_id);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PARTS_MAP), &p, &res, err)) {
        return false;
    }
    for (int i = 0; i < row_count(res); i++) {
        int64_t at = row_i64(res, i, 0);
        if (at < n) { /* not parts added since the range was read */
            ret[at] = (struct apidb_map_range){.states = (unsigned)row_int(res, i, 1),
                                               .attempts = row_int(res, i, 2)};
        }
    }
    return true;
}

static bool ids_failed(struct store *s, struct apidb_parts_query *q, struct apidb_ids *ret,
                       struct err *err)
{
    int16_t all[CAUSE_COUNT];
    for (int i = 0; i < CAUSE_COUNT; i++) {
        all[i] = (int16_t)i;
    }
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, q->campaign_id);
    param_i64(&p, q->stage_id);
    param_i16_array(&p, q->causes_n > 0 ? q->causes : all,
                    q->causes_n > 0 ? q->causes_n : ARRAY_LEN(all));
    param_i16(&p, (int16_t)q->after_cause);
    param_i32(&p, (int32_t)q->after_seq);
    param_i64(&p, q->after_id);
    param_i64(&p, q->n);
    param_bool(&p, q->state == TASK_FAILED);
    param_bool(&p, q->down);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PARTS_FAILED), &p, &res, err)) {
        return false;
    }
    int last = ids_take(res, ret) - 1;
    if (last >= 0) {
        q->after_id = ret->at[last];
        q->after_cause = row_i64(res, last, 1);
        q->after_seq = row_i64(res, last, 2);
    }
    ret->more = (int64_t)ret->n == q->n;
    return true;
}

static bool ids_live(struct store *s, struct apidb_parts_query *q, struct apidb_ids *ret,
                     struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, q->campaign_id);
    param_i64(&p, q->stage_id);
    param_i64(&p, q->after_id);
    param_i64(&p, q->n);
    param_bool(&p, q->down);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PARTS_LIVE), &p, &res, err)) {
        return false;
    }
    int n = ids_take(res, ret);
    q->after_id = n > 0 ? ret->at[n - 1] : q->after_id;
    ret->more = n == q->n;
    return true;
}

bool apidb_parts_by_cause(const struct apidb_parts_query *q)
{
    return (q->state == TASK_FAILED && q->attempts_min == 0 && !apidb_parts_looks_at_each(q)) ||
           q->causes_n > 0;
}

bool apidb_parts_ids(struct store *s, struct apidb_parts_query *q, struct apidb_ids *ret,
                     struct err *err)
{
    ASSERT(q->n >= 1 && q->n <= 1000);
    *ret = (struct apidb_ids){0};
    if (q->state == TASK_ACTIVE && q->causes_n == 0 && q->attempts_min == 0 &&
        !apidb_parts_looks_at_each(q)) {
        return ids_live(s, q, ret, err);
    }
    return apidb_parts_by_cause(q) ? ids_failed(s, q, ret, err) : ids_scan(s, q, ret, err);
}

bool apidb_parts_rows(struct store *s, int64_t campaign_id, const struct apidb_ids *ids,
                      usec_t now_us, struct buf *ret_json, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64_array(&p, ids->at, ids->n);
    PARAM_NAMES(&p, names_task_state);
    PARAM_NAMES(&p, names_attempt_state);
    PARAM_NAMES(&p, names_cause);
    param_i64(&p, now_us);
    PARAM_NAMES(&p, names_wait_reason);
    PARAM_NAMES(&p, names_wait_text);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PARTS_ROWS), &p, &res, err)) {
        return false;
    }
    buf_add_cstr(ret_json, row_text(res, 0, 0));
    return true;
}

bool apidb_part_id(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t seq,
                   int64_t *ret_id, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, stage_id);
    param_i32(&p, (int32_t)MIN(seq, INT32_MAX));
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PART_ID), &p, &res, err)) {
        return false;
    }
    if (row_count(res) == 0) {
        return err_set(err, ERR_NOT_FOUND, "campaign c-%lld has no part %lld",
                       (long long)campaign_id, (long long)seq);
    }
    *ret_id = row_i64(res, 0, 0);
    return true;
}

bool apidb_part_attempts(struct store *s, int64_t task_id, struct buf *ret_json, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, task_id);
    PARAM_NAMES(&p, names_attempt_state);
    PARAM_NAMES(&p, names_cause);
    PARAM_NAMES(&p, names_cost_phase);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PART_ATTEMPTS), &p, &res, err)) {
        return false;
    }
    buf_add_cstr(ret_json, row_text(res, 0, 0));
    return true;
}

bool apidb_part_skipped(struct store *s, int64_t campaign_id, int64_t task_id, struct buf *ret_json,
                        struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, task_id);
    PARAM_NAMES(&p, names_cause);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_PART_SKIPPED), &p, &res, err)) {
        return false;
    }
    buf_add_cstr(ret_json, row_count(res) > 0 ? row_text(res, 0, 0) : "null");
    return true;
}

bool apidb_attempt_name(struct store *s, int64_t task_id, int64_t n, struct job_name *ret,
                        struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, task_id);
    param_i32(&p, (int32_t)n);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_ATTEMPT_NAME), &p, &res, err)) {
        return false;
    }
    if (row_count(res) == 0) {
        return err_set(err, ERR_NOT_FOUND, "this part has no such attempt yet, so there is no log");
    }
    row_text_into(res, 0, 0, ret->s, sizeof ret->s);
    return true;
}

void apidb_request_done(struct apidb_request *q)
{
    free(q->uri);
    free(q->vars_json);
    free(q->stage);
    free(q->instance_type);
    free(q->request);
}

bool apidb_attempt_request(struct store *s, int64_t campaign_id, int64_t task_id, int64_t n,
                           struct apidb_request *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, task_id);
    param_i32(&p, (int32_t)n);
    AUTO_RESULT PGresult *res = NULL;
    *ret = (struct apidb_request){0};
    if (!store_exec(s, QUERY(API_ATTEMPT_REQUEST), &p, &res, err)) {
        return false;
    }
    if (row_count(res) == 0 || (n > 0 && row_null(res, 0, 4))) {
        return err_set(err, ERR_NOT_FOUND, "this part has no such attempt");
    }
    ret->seq = row_i64(res, 0, 0);
    ret->uri = row_text_dup(res, 0, 1);
    ret->size = row_i64(res, 0, 2);
    ret->vars_json = row_text_dup(res, 0, 3);
    ret->stage = row_text_dup(res, 0, 11);
    if (!row_null(res, 0, 4)) {
        ret->n = row_i64(res, 0, 4);
        ret->attempt_id = row_i64(res, 0, 5);
        row_text_into(res, 0, 6, ret->name.s, sizeof ret->name.s);
        ret->request = row_text_dup(res, 0, 7);
        ret->instance_type = row_text_dup(res, 0, 8);
        ret->volume_gb = row_int(res, 0, 9);
        ret->max_runtime_s = row_i64(res, 0, 10);
    }
    return true;
}

bool apidb_tiles(struct store *s, const struct apidb_tiles_query *q,
                 int64_t (*counts)[TASK_STATE_COUNT], int64_t tiles_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, q->campaign_id);
    param_i64(&p, q->stage_id);
    param_i32(&p, (int32_t)q->per_tile);
    param_i32(&p, (int32_t)q->first);
    param_i32(&p, (int32_t)q->last);
    AUTO_RESULT PGresult *res = NULL;
    if (!store_exec(s, QUERY(API_TILES), &p, &res, err)) {
        return false;
    }
    for (int i = 0; i < row_count(res); i++) {
        int64_t tile = row_i64(res, i, 0);
        int state = row_int(res, i, 1);
        ASSERT(tile >= 0 && state >= 0 && state < TASK_STATE_COUNT);
        if (tile < tiles_n) { /* skip parts added after the stage's row was read */
            counts[tile][state] = row_i64(res, i, 2);
        }
    }
    return true;
}
