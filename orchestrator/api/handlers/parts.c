/* Parts: pages of them, one with its attempts, and its log. */
#include "parts.h"
#include "api/server/paging.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "common/clock.h"
#include "store/api/parts.h"
#include <assert.h>

#define LOG_TIMEOUT_US (15 * USEC_PER_SEC)

/* The campaign {c} and the stage ?stage=; without ?stage= *ret_stage is 0. */
static bool where(struct api_req *r, int64_t *ret_campaign, int64_t *ret_stage, struct err *err)
{
    const char *name = req_query(r, "stage");
    struct apidb_stage_row row;
    if (!req_id(r, 0, "c-", ret_campaign, err) || !req_db(r, err) ||
        !apidb_stage_find(r->db, *ret_campaign, name, &row, err)) {
        return false;
    }
    *ret_stage = name != NULL ? row.id : 0;
    return true;
}

static bool cause_add(struct apidb_parts_query *q, struct str name, struct err *err)
{
    name = str_trim(name);
    for (int i = 1; i < CAUSE_COUNT; i++) {
        if (str_eq_cstr(name, cause_name((enum cause)i))) {
            if (q->causes_n < ARRAY_LEN(q->causes)) {
                q->causes[q->causes_n++] = (int16_t)i;
            }
            return true;
        }
    }
    return err_set(err, ERR_MALFORMED, "'%.*s' is not a cause; drover failures lists them",
                   (int)MIN(name.n, 64), name.p);
}

static bool causes_add(struct apidb_parts_query *q, struct str list, struct err *err)
{
    while (list.n > 0) {
        if (!cause_add(q, str_split(&list, ','), err)) {
            return false;
        }
    }
    return true;
}

static bool state_set(struct apidb_parts_query *q, struct str name, struct err *err)
{
    name = str_trim(name);
    for (int i = 0; i < TASK_STATE_COUNT; i++) {
        if (str_eq_cstr(name, task_state_name((enum task_state)i))) {
            q->state = i;
            return true;
        }
    }
    return err_set(err, ERR_MALFORMED,
                   "'%.*s' is not a state; there are waiting, active, held, done, failed, skipped, "
                   "cancelled",
                   (int)MIN(name.n, 64), name.p);
}

/* Parses one of: state=S, cause=C, cause IN (C, C), attempts>=N. */
static bool term_read(struct apidb_parts_query *q, struct str term, struct err *err)
{
    term = str_trim(term);
    if (str_starts(term, "state=")) {
        return state_set(q, (struct str){term.p + 6, term.n - 6}, err);
    }
    if (str_starts(term, "cause=")) {
        return cause_add(q, (struct str){term.p + 6, term.n - 6}, err);
    }
    if (str_starts(term, "cause IN (") && term.p[term.n - 1] == ')') {
        return causes_add(q, (struct str){term.p + 10, term.n - 11}, err);
    }
    if (str_starts(term, "attempts>=")) {
        struct str n = {term.p + 10, term.n - 10};
        return parse_i64(str_trim(n), 0, INT16_MAX, &q->attempts_min, NULL) ||
               err_set(err, ERR_MALFORMED, "filter: attempts>= takes a number");
    }
    return err_set(err, ERR_MALFORMED,
                   "filter: '%.*s' is not understood; write state=S, cause=C, cause IN (C, D) or "
                   "attempts>=N, joined by AND",
                   (int)MIN(term.n, 64), term.p);
}

static bool filter_read(struct apidb_parts_query *q, const char *filter, struct err *err)
{
    struct str rest = str_of(filter);
    while (rest.n > 0) {
        ptrdiff_t at = str_find(rest, STR(" AND "));
        struct str term = {rest.p, at < 0 ? rest.n : (size_t)at};
        size_t skip = at < 0 ? rest.n : (size_t)at + 5;
        rest = (struct str){rest.p + skip, rest.n - skip};
        if (!term_read(q, term, err)) {
            return false;
        }
    }
    return true;
}

static bool query_read(struct api_req *r, struct apidb_parts_query *q, struct err *err)
{
    const char *state = req_query(r, "state"), *cause = req_query(r, "cause");
    const char *filter = req_query(r, "filter");
    int64_t key[3] = {0, -1, -1};
    bool given;
    *q = (struct apidb_parts_query){.state = -1};
    if ((state != NULL && !state_set(q, str_of(state), err)) ||
        (cause != NULL && !causes_add(q, str_of(cause), err)) ||
        (filter != NULL && !filter_read(q, filter, err)) ||
        !req_query_i64(r, "page_size", 1, 1000, 100, &q->n, err) ||
        !page_token_read(r, key, 3, &given, err)) {
        return false;
    }
    if (q->causes_n > 0 && q->attempts_min > 0) {
        return err_set(err, ERR_MALFORMED, "filter: cause and attempts cannot be combined");
    }
    q->after_id = key[0];
    q->after_cause = key[1];
    q->after_seq = key[2];
    return true;
}

bool parts_list(struct api_req *r, struct err *err)
{
    struct apidb_parts_query q;
    int64_t campaign, stage;
    if (!query_read(r, &q, err) || !where(r, &campaign, &stage, err)) {
        return false;
    }
    q.campaign_id = campaign;
    q.stage_id = stage;
    struct apidb_ids ids;
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    bool ok = apidb_parts_ids(r->db, &q, &ids, err) &&
              apidb_parts_rows(r->db, campaign, &ids, clock_wall_us(), &rows, err);
    bool more = ids.more;
    free(ids.at);
    if (!ok) {
        return false;
    }
    const int64_t key[3] = {q.after_id, q.after_cause, q.after_seq};
    buf_addf(&r->out, "{\"parts\":%s,\"next_page_token\":", buf_cstr(&rows));
    if (more) {
        buf_addf(&r->out, "\"%s\"}\n", page_token_make(r, key, 3));
    } else {
        buf_add_cstr(&r->out, "null}\n");
    }
    return reply_out(r, 200);
}

bool part_find(struct api_req *r, int64_t *ret_campaign, int64_t *ret_task, struct err *err)
{
    int64_t seq;
    struct apidb_stage_row row;
    return req_id(r, 0, "c-", ret_campaign, err) && req_id(r, 1, "", &seq, err) && req_db(r, err) &&
           apidb_stage_find(r->db, *ret_campaign, req_query(r, "stage"), &row, err) &&
           apidb_part_id(r->db, *ret_campaign, row.id, seq, ret_task, err);
}

bool part_get(struct api_req *r, struct err *err)
{
    int64_t campaign, task;
    if (!part_find(r, &campaign, &task, err)) {
        return false;
    }
    struct apidb_ids ids = {.at = &task, .n = 1};
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    AUTO_BUF struct buf attempts = BUF_INIT(API_ANSWER_MAX);
    if (!apidb_parts_rows(r->db, campaign, &ids, clock_wall_us(), &rows, err) ||
        !apidb_part_attempts(r->db, task, &attempts, err)) {
        return false;
    }
    ASSERT(rows.n > 4); /* "[{...}]" */
    buf_add(&r->out, rows.p + 1, rows.n - 3);
    buf_addf(&r->out, ", \"attempt_list\":%s}\n", buf_cstr(&attempts));
    reply_etag_of_body(r, "");
    return reply_out(r, 200);
}

bool logs_get(struct api_req *r, struct err *err)
{
    int64_t campaign, task, attempt;
    struct bridge_question q = {.kind = BRIDGE_LOG_TAIL};
    struct job_name name;
    const char *token = req_query(r, "token");
    if (!req_query_i64(r, "attempt", 0, INT32_MAX, 0, &attempt, err) ||
        !req_query_i64(r, "limit", 1, 10000, 200, &q.max, err) ||
        !part_find(r, &campaign, &task, err) ||
        !apidb_attempt_name(r->db, task, attempt, &name, err)) {
        return false;
    }
    if (token != NULL && strlen(token) >= sizeof q.token) {
        return err_set(err, ERR_MALFORMED, "query parameter 'token' is too long");
    }
    static_assert(sizeof q.job >= sizeof name.s, "a job's name fits");
    memcpy(q.job, name.s, sizeof name.s);
    memcpy(q.token, token != NULL ? token : "", token != NULL ? strlen(token) + 1 : 1);
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    if (!req_bridge(r, &q, LOG_TIMEOUT_US, &reply, err)) {
        return err_wrap(err, "cannot read the log of %s", name.s);
    }
    struct str json = str_trim(buf_str(&reply.json)); /* {"lines":[...],"next":...} */
    ASSERT(json.n > 2 && json.p[0] == '{');
    buf_addf(&r->out, "{\"job_name\":\"%s\",%.*s\n", name.s, (int)json.n - 1, json.p + 1);
    return reply_out(r, 200);
}
