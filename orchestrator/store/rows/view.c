/* Reads campaigns, stages, tasks, attempts, slots. A row with a state this binary does not know is
 * an error. */
#include "view.h"
#include "common/json.h"
#include "queries.h"
#include "store/pg/query.h"
#include "words.h"

#define TRIES_UNKNOWN 10000 /* more than any row of the retry table allows */
#define CHANGES_PAGE  20000

static bool unknown_name(struct err *err, const char *what, const char *name)
{
    return err_set(err, ERR_DATABASE, "%s '%s' is not known to this droverd", what, name);
}

bool view_versions(struct store *s, struct campaign_version **ret, size_t *ret_n, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_VERSIONS), NULL, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    struct campaign_version *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct campaign_version){.id = row_i64(r, (int)i, 0),
                                            .version = row_i64(r, (int)i, 1),
                                            .tasks = row_i64(r, (int)i, 2)};
    }
    *ret = rows;
    *ret_n = n;
    return true;
}

static bool parse_at_limit(const char *s, enum at_limit *ret, struct err *err)
{
    *ret = at_limit_parse(s);
    return (int)*ret < AT_LIMIT_COUNT || unknown_name(err, "at_limit", s);
}

bool view_campaign(struct store *s, int64_t id, struct campaign_row *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_CAMPAIGN), &p, &r, err)) {
        return false;
    }
    if (row_count(r) != 1) {
        return err_set(err, ERR_NOT_FOUND, "no campaign %lld", (long long)id);
    }
    struct campaign_row c = {.id = row_i64(r, 0, 0), .project_id = row_i64(r, 0, 1)};
    row_text_into(r, 0, 2, c.name, sizeof c.name);
    c.state = campaign_state_parse(row_text(r, 0, 3));
    c.wanted = wanted_parse(row_text(r, 0, 4));
    if (c.state == CAMPAIGN_STATE_COUNT || c.wanted == WANTED_COUNT) {
        return unknown_name(err, "campaign state or wanted state", row_text(r, 0, 3));
    }
    if (!parse_at_limit(row_text(r, 0, 11), &c.at_limit, err)) {
        return false;
    }
    c.priority = row_int(r, 0, 5);
    c.parts_limit = row_i64_or(r, 0, 6, -1);
    c.version = row_i64(r, 0, 7);
    c.taken_version = row_i64(r, 0, 8);
    c.cap_musd = row_i64_or(r, 0, 10, -1);
    c.reserved_musd = row_i64(r, 0, 12);
    c.spent_musd = row_i64(r, 0, 13);
    c.weight = row_i64(r, 0, 14);
    c.warm_musd = row_i64(r, 0, 15);
    c.warn.warned_ppm = row_i64(r, 0, 17);
    if (!warn_at_read(row_text(r, 0, 16), &c.warn)) {
        return unknown_name(err, "thresholds", row_text(r, 0, 16));
    }
    row_text_into(r, 0, 18, c.nonce, sizeof c.nonce);
    c.held_for_money = row_bool(r, 0, 19);
    c.spec_json = row_text_dup(r, 0, 9);
    *ret = c;
    return true;
}

static bool read_stage(const PGresult *r, int i, struct stage_row *st, struct err *err)
{
    st->id = row_i64(r, i, 0);
    st->campaign_id = row_i64(r, i, 1);
    st->seq = row_int(r, i, 2);
    row_text_into(r, i, 3, st->name, sizeof st->name);
    if (row_null(r, i, 4) || row_null(r, i, 5)) {
        return err_set(err, ERR_DATABASE, "stage %lld has lost the row of its %s",
                       (long long)st->id, row_null(r, i, 4) ? "counters" : "input");
    }
    st->state = stage_state_parse(row_text(r, i, 4));
    if (st->state == STAGE_STATE_COUNT) {
        return unknown_name(err, "stage state", row_text(r, i, 4));
    }
    st->tasks = row_i64(r, i, 5);
    st->closed = row_bool(r, i, 6);
    st->taken = row_i64(r, i, 7);
    _Static_assert(TASK_STATE_COUNT == 7, "a column of view_stages each");
    for (int k = 0; k < TASK_STATE_COUNT; k++) {
        st->counts[k] = row_i64(r, i, 8 + k);
    }
    st->cap_musd = row_i64_or(r, i, 15, -1);
    st->per_task_musd = row_i64_or(r, i, 16, -1);
    st->reserved_musd = row_i64(r, i, 17);
    st->spent_musd = row_i64(r, i, 18);
    st->parts_limit = row_i64_or(r, i, 19, -1);
    st->resumes = row_int(r, i, 20);
    st->resumes_taken = row_int(r, i, 21);
    st->breaker_since = row_i64(r, i, 22);
    st->breaker_passed = row_bool(r, i, 23);
    st->warn.warned_ppm = row_i64(r, i, 25);
    row_text_into(r, i, 26, st->reason, sizeof st->reason);
    st->gate_override = row_bool(r, i, 27);
    st->input = strcmp(row_text(r, i, 28), "running") == 0  ? INPUT_LISTED
                : strcmp(row_text(r, i, 28), "failed") == 0 ? INPUT_REFUSED
                                                            : INPUT_KNOWN;
    row_text_into(r, i, 29, st->input_problem, sizeof st->input_problem);
    return warn_at_read(row_text(r, i, 24), &st->warn)
               ? true
               : unknown_name(err, "thresholds", row_text(r, i, 24));
}

bool view_stages(struct store *s, int64_t campaign_id, struct stage_row **ret, size_t *ret_n,
                 struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_STAGES), &p, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    AUTO_FREE struct stage_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        if (!read_stage(r, (int)i, &rows[i], err)) {
            return false;
        }
    }
    *ret = TAKE(rows);
    *ret_n = n;
    return true;
}

static void read_attempt(const PGresult *r, int i, struct attempt_row *a)
{
    a->id = row_i64(r, i, 0);
    a->campaign_id = row_i64(r, i, 1);
    a->stage_id = row_i64(r, i, 2);
    a->task_id = row_i64(r, i, 3);
    a->seq = row_int(r, i, 4);
    a->n = row_int(r, i, 5);
    a->state = (enum attempt_state)row_int(r, i, 6);
    a->epoch = row_i64(r, i, 7);
    row_text_into(r, i, 8, a->name.s, sizeof a->name.s);
    row_text_into(r, i, 9, a->identity_hash, sizeof a->identity_hash);
    row_text_into(r, i, 10, a->instance_type, sizeof a->instance_type);
    a->instances = row_int(r, i, 11);
    a->volume_gb = row_int(r, i, 12);
    a->max_runtime_s = row_span_s(r, i, 13);
    a->price_musd_per_hour = row_i64(r, i, 14);
    a->reserved_musd = row_i64(r, i, 15);
    a->holds = row_bool(r, i, 16);
    a->intended_us = row_time(r, i, 17);
    a->started_us = row_time(r, i, 18);
    a->ended_us = row_time(r, i, 19);
    a->task_attempts = row_int(r, i, 20);
    a->uri = row_text_dup(r, i, 21);
    a->size = row_i64(r, i, 22);
    a->vars_json = row_text_dup(r, i, 23);
    a->project_id = row_i64(r, i, 24);
    a->unwanted = row_bool(r, i, 25);
    a->market = market_parse(row_text(r, i, 26));
    a->keep_alive_s = row_span_s(r, i, 27);
    a->instance_type_i = row_int(r, i, 28);
    a->subnet_i = row_int(r, i, 29);
    a->pool_id = row_i64(r, i, 30);
    a->open_musd = row_i64(r, i, 31);
    a->cost_musd = row_i64(r, i, 32);
    a->settled = row_bool(r, i, 33);
    a->stop_cause = (enum cause)row_int(r, i, 34);
    a->created_us = row_time(r, i, 35);
    a->failed_as = (enum cause)row_int(r, i, 36);
    a->part_lost = row_bool(r, i, 37);
    a->artifacts = row_text_dup(r, i, 38);
    a->reason = row_text_dup(r, i, 39);
}

bool view_attempts(struct store *s, int64_t campaign_id, int64_t attempt_id,
                   struct attempt_row **ret, size_t *ret_n, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, attempt_id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_ATTEMPTS), &p, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    struct attempt_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        read_attempt(r, (int)i, &rows[i]);
        ASSERT(rows[i].state < ATTEMPT_STATE_COUNT); /* ensured by the column's CHECK */
    }
    *ret = rows;
    *ret_n = n;
    return true;
}

void attempt_rows_free(struct attempt_row *rows, size_t n)
{
    for (size_t i = 0; rows != NULL && i < n; i++) {
        free(rows[i].uri);
        free(rows[i].vars_json);
        free(rows[i].artifacts);
        free(rows[i].reason);
    }
    free(rows);
}

bool attempt_request(struct store *s, int64_t attempt_id, struct buf *ret, struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, attempt_id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(ATTEMPT_REQUEST), &p, &r, err)) {
        return false;
    }
    if (row_count(r) != 1 || row_null(r, 0, 0)) {
        return err_set(err, ERR_NOT_FOUND, "attempt %lld has no stored request",
                       (long long)attempt_id);
    }
    buf_reset(ret);
    buf_add_str(ret, row_bytes(r, 0, 0));
    return ret->overflow ? err_set(err, ERR_TOO_LARGE, "request of attempt %lld is too large",
                                   (long long)attempt_id)
                         : true;
}

bool task_input_get(struct store *s, int64_t campaign_id, int64_t task_id, struct task_input *ret,
                    struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, campaign_id);
    param_i64(&p, task_id);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(TASK_INPUT), &p, &r, err)) {
        return false;
    }
    if (row_count(r) != 1) {
        return err_set(err, ERR_NOT_FOUND, "no task %lld", (long long)task_id);
    }
    *ret = (struct task_input){.id = row_i64(r, 0, 0),
                               .stage_id = row_i64(r, 0, 1),
                               .seq = row_int(r, 0, 2),
                               .attempts = row_int(r, 0, 3),
                               .names = row_int(r, 0, 4),
                               .size = row_i64(r, 0, 5),
                               .uri = row_text_dup(r, 0, 6),
                               .vars_json = row_text_dup(r, 0, 7),
                               .state = (enum task_state)row_int(r, 0, 8)};
    return true;
}

/* {"disk_full": 1}: tries by cause. What cannot be read counts as tried often: nobody pays for a
 * retry that the table of causes may not allow. */
static void read_tries(const char *text, int tries[static CAUSE_COUNT])
{
    AUTO_JSON json_t *o = NULL;
    struct err ignored = ERR_INIT;
    const char *key;
    json_t *v;
    bool known = json_parse(str_of(text), TRIES_BYTES_MAX, &o, &ignored);
    json_object_foreach(o, key, v)
    {
        enum cause c = cause_parse(key);
        bool good = c != CAUSE_COUNT && json_is_integer(v) && json_integer_value(v) >= 0;
        known &= good;
        if (good) {
            tries[c] = (int)MIN(json_integer_value(v), (json_int_t)TRIES_UNKNOWN);
        }
    }
    for (int i = 0; !known && i < CAUSE_COUNT; i++) {
        tries[i] = TRIES_UNKNOWN;
    }
}

/* Appends a page. Returns the last task in it, INT64_MAX when it is not full. */
static int64_t append_changes(const PGresult *r, struct task_change_row **rows, size_t *n)
{
    int got = row_count(r);
    *rows = xrealloc(*rows, (*n + (size_t)got + 1) * sizeof **rows);
    for (int i = 0; i < got; i++) {
        if (row_null(r, i, 8)) {
            continue;
        }
        struct task_change_row *t = &(*rows)[(*n)++];
        *t = (struct task_change_row){.task_id = row_i64(r, i, 0),
                                      .campaign_id = row_i64(r, i, 1),
                                      .instance_type_i = row_int(r, i, 2),
                                      .volume_gb = row_int(r, i, 3),
                                      .max_runtime_s = row_span_s(r, i, 4),
                                      .signature_hash = (uint64_t)row_i64(r, i, 6),
                                      .same = row_int(r, i, 7),
                                      .spent_musd = row_i64(r, i, 8)};
        read_tries(row_text(r, i, 5), t->tries);
    }
    return got < CHANGES_PAGE ? INT64_MAX : row_i64(r, got - 1, 0);
}

bool view_task_changes_of(struct store *s, int64_t campaign_id, struct task_change_row **ret,
                          size_t *ret_n, struct err *err)
{
    for (int64_t after = 0; after != INT64_MAX;) {
        AUTO_PARAMS struct params p = PARAMS_INIT;
        param_i64(&p, campaign_id);
        param_i64(&p, after);
        param_i32(&p, CHANGES_PAGE);
        AUTO_RESULT PGresult *r = NULL;
        if (!store_exec(s, QUERY(VIEW_TASK_CHANGES_OF), &p, &r, err)) {
            return false;
        }
        after = append_changes(r, ret, ret_n);
    }
    return true;
}

bool view_task_changes(struct store *s, int64_t *after, struct task_change_row **rows, size_t *n,
                       struct err *err)
{
    AUTO_PARAMS struct params p = PARAMS_INIT;
    param_i64(&p, *after);
    param_i32(&p, CHANGES_PAGE);
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_TASK_CHANGES), &p, &r, err)) {
        return false;
    }
    *after = append_changes(r, rows, n);
    return true;
}

bool view_slots(struct store *s, struct slots_row **ret, size_t *ret_n, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_SLOTS), NULL, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    struct slots_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        row_text_into(r, (int)i, 0, rows[i].instance_type, sizeof rows[i].instance_type);
        rows[i].market = market_parse(row_text(r, (int)i, 1));
        rows[i].held = row_i64(r, (int)i, 2);
        rows[i].warm_idle = row_i64(r, (int)i, 3);
        rows[i].foreign = row_i64(r, (int)i, 4);
        rows[i].foreign_us = row_i64(r, (int)i, 5);
        rows[i].refused_limit = row_i64_or(r, (int)i, 6, -1);
        rows[i].limit = row_i64_or(r, (int)i, 7, -1);
        rows[i].warm_limit = row_i64_or(r, (int)i, 8, -1);
        rows[i].operator_limit = row_i64_or(r, (int)i, 9, -1);
        rows[i].price_musd_per_hour = row_i64_or(r, (int)i, 10, -1);
    }
    *ret = rows;
    *ret_n = n;
    return true;
}

bool view_projects(struct store *s, struct project_row **ret, size_t *ret_n, struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_PROJECTS), NULL, &r, err)) {
        return false;
    }
    size_t n = (size_t)row_count(r);
    AUTO_FREE struct project_row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        int k = (int)i;
        rows[i] = (struct project_row){.id = row_i64(r, k, 0),
                                       .weight = row_i64(r, k, 1),
                                       .parts_limit = row_i64_or(r, k, 2, -1),
                                       .cap_musd = row_i64_or(r, k, 3, -1),
                                       .reserved_musd = row_i64(r, k, 4),
                                       .spent_musd = row_i64(r, k, 5),
                                       .warn = {.warned_ppm = row_i64(r, k, 7)}};
        row_text_into(r, k, 8, rows[i].name, sizeof rows[i].name);
        if (!warn_at_read(row_text(r, k, 6), &rows[i].warn)) {
            return err_set(err, ERR_DATABASE, "thresholds '%s' are not valid", row_text(r, k, 6));
        }
    }
    *ret = TAKE(rows);
    *ret_n = n;
    return true;
}

bool view_account_quotas(struct store *s, int64_t ret[static ACCOUNT_QUOTA_COUNT], struct err *err)
{
    AUTO_RESULT PGresult *r = NULL;
    if (!store_exec(s, QUERY(VIEW_ACCOUNT_QUOTAS), NULL, &r, err)) {
        return false;
    }
    for (int k = 0; k < ACCOUNT_QUOTA_COUNT; k++) {
        ret[k] = -1;
        for (int i = 0; i < row_count(r); i++) {
            if (strcmp(row_text(r, i, 0), account_quota_word((enum account_quota)k)) == 0) {
                ret[k] = row_i64(r, i, 1);
            }
        }
    }
    return true;
}
