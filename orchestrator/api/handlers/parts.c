/* Parts: pages of them, one with its attempts, and its log. */
#include "parts.h"
#include "api/server/paging.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "common/clock.h"
#include "log_lines.h"
#include "parts_map.h"
#include "selection.h"
#include "store/api/parts.h"
#include <assert.h>

#define LOG_TIMEOUT_US (15 * USEC_PER_SEC)

/* The campaign {c} and the stage ?stage=; without ?stage= *ret_stage is 0. */
static bool where(struct api_req *r, int64_t *ret_campaign, int64_t *ret_stage, struct err *err)
{
    const char *name = req_query(r, "stage");
    struct apidb_stage_row row;
    *ret_campaign = req_id(r, 0);
    if (!req_db(r, err) || !apidb_stage_find(r->db, *ret_campaign, name, &row, err)) {
        return false;
    }
    *ret_stage = name != NULL ? row.id : 0;
    return true;
}

/* Only an order that an index has is cheap in a campaign of a million parts. */
static bool order_check(const struct api_req *r, const struct apidb_parts_query *q, struct err *err)
{
    const char *order = req_query(r, "order_by");
    bool by_cause = order != NULL && str_starts(str_of(order), "cause");
    if (order == NULL || by_cause == apidb_parts_by_cause(q)) {
        return true;
    }
    return by_cause ? err_set(err, ERR_MALFORMED,
                              "order_by: cause is of parts that failed: with it comes state=failed "
                              "or cause=...; other lists are by id or id desc")
                    : err_set(err, ERR_MALFORMED,
                              "order_by: parts that failed are by cause or cause desc");
}

static bool query_read(struct api_req *r, struct apidb_parts_query *q, struct err *err)
{
    bool given, down = page_is_down(r, false);
    int64_t key[3] = {down ? INT64_MAX : 0, down ? INT16_MAX : -1, down ? INT32_MAX : -1};
    struct selection *sel = arena_alloc(&r->arena, sizeof *sel);
    selection_init(sel);
    *q = (struct apidb_parts_query){0};
    if (!selection_query(sel, req_query(r, "state"), req_query(r, "cause"), req_query(r, "filter"),
                         err) ||
        !page_token_read(r, key, 3, &given, err)) {
        return false;
    }
    q->n = req_number(r, "page_size");
    q->down = down;
    q->state = sel->state;
    q->attempts_min = sel->attempts_min;
    q->cost_min_musd = sel->cost_min_musd;
    q->updated_from_us = sel->updated_from_us;
    q->updated_before_us = sel->updated_before_us;
    q->text = sel->text[0] != '\0' ? sel->text : NULL;
    q->causes_n = sel->causes_n;
    memcpy(q->causes, sel->causes, sizeof q->causes);
    if (q->causes_n > 0 && selection_for_lists_only(sel)) {
        return err_set(err, ERR_MALFORMED,
                       "filter: cause cannot be combined with attempts, cost, updated or text");
    }
    q->after_id = key[0];
    q->after_cause = key[1];
    q->after_seq = key[2];
    return order_check(r, q, err);
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
              (!ids.more || (int64_t)ids.n == q.n || parts_map_fill(r, &q, &ids, err)) &&
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
    struct apidb_stage_row row;
    *ret_campaign = req_id(r, 0);
    return req_db(r, err) &&
           apidb_stage_find(r->db, *ret_campaign, req_query(r, "stage"), &row, err) &&
           apidb_part_id(r->db, *ret_campaign, row.id, req_id(r, 1), ret_task, err);
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
    AUTO_BUF struct buf skipped = BUF_INIT(4096);
    if (!apidb_parts_rows(r->db, campaign, &ids, clock_wall_us(), &rows, err) ||
        !apidb_part_skipped(r->db, campaign, task, &skipped, err) ||
        !apidb_part_attempts(r->db, task, &attempts, err)) {
        return false;
    }
    ASSERT(rows.n > 4); /* "[{...}]" */
    buf_add(&r->out, rows.p + 1, rows.n - 3);
    buf_addf(&r->out, ", \"skipped\":%s, \"attempt_list\":%s}\n", buf_cstr(&skipped),
             buf_cstr(&attempts));
    return reply_out(r, 200);
}

/* {"job_name":...,"lines":[...],"next":...}, with `next` as a token of ours. */
static bool log_answer(struct api_req *r, const struct job_name *name, struct str reply,
                       struct err *err)
{
    AUTO_JSON json_t *page = NULL;
    if (!json_parse(reply, reply.n, &page, err)) {
        return false;
    }
    const char *next = json_string_value(json_object_get(page, "next"));
    log_lines_readable(json_object_get(page, "lines"));
    AUTO_JSON json_t *answer =
        json_pack("{s:s, s:O}", "job_name", name->s, "lines", json_object_get(page, "lines"));
    ASSERT(answer != NULL);
    (void)json_object_set_new(
        answer, "next", next != NULL ? json_string(page_text_make(r, name->s, next)) : json_null());
    AUTO_FREE char *text = json_text(answer);
    return reply_json(r, 200, str_of(text));
}

bool logs_get(struct api_req *r, struct err *err)
{
    int64_t campaign, task;
    struct bridge_question q = {.kind = BRIDGE_LOG_TAIL, .max = req_number(r, "limit")};
    struct job_name name;
    const char *token;
    if (!part_find(r, &campaign, &task, err) ||
        !apidb_attempt_name(r->db, task, req_number(r, "attempt"), &name, err) ||
        !page_text_read(r, "token", name.s, &token, err)) {
        return false;
    }
    if (strlen(token) >= sizeof q.token) {
        return err_set(err, ERR_MALFORMED, "query parameter 'token' is too long");
    }
    static_assert(sizeof q.job >= sizeof name.s, "a job's name fits");
    memcpy(q.job, name.s, sizeof name.s);
    memcpy(q.token, token, strlen(token) + 1);
    CLEANUP(bridge_reply_done)
    struct bridge_reply reply = {0};
    if (!req_bridge(r, &q, LOG_TIMEOUT_US, &reply, err)) {
        return err_wrap(err, "cannot read the log of %s", name.s);
    }
    return log_answer(r, &name, buf_str(&reply.json), err);
}
