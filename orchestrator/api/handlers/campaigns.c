/* Campaigns: submit, list, show, and change what is wanted of them. */
#include "campaigns.h"
#include "api/server/audit.h"
#include "api/server/idempotency.h"
#include "api/server/paging.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "common/clock.h"
#include "core/leader/operations.h"
#include "core/spec/spec_json.h"
#include "guidance.h"
#include "live_name.h"
#include "store/api/campaigns.h"
#include "store/api/page.h"
#include "store/api/part_load.h"
#include "store/pg/tx.h"
#include "submit.h"

bool campaign_answer(struct api_req *r, int64_t id, int status, struct err *err)
{
    AUTO_BUF struct buf json = BUF_INIT(API_ANSWER_MAX);
    int64_t version;
    if (!apidb_campaign_get(r->db, id, guidance_out, &version, &json, err)) {
        return false;
    }
    (void)reply_json(r, status, buf_str(&json));
    reply_etag_of_body(r, arena_printf(&r->arena, "%lld-", (long long)version));
    return true;
}

static bool dry_run_post(struct api_req *r, struct err *err)
{
    CLEANUP(submit_done)
    struct submit s = {.dry_run = true};
    if (!submit_prepare(r, &s, err) || !live_name_check(r, s.spec, err)) {
        return false;
    }
    AUTO_BUF struct buf plan = BUF_INIT(API_ANSWER_MAX);
    return submit_plan(r, &s, &plan, err) && reply_json(r, 200, buf_str(&plan));
}

static bool submit_commit(struct api_req *r, struct submit *s, struct keyed *k, struct err *err)
{
    AUTO_TX struct store *tx = r->db; /* rolled back unless committed */
    int64_t id;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_bulk(tx, err) || !live_name_check(r, s->spec, err) ||
        !submit_write(r, s, &id, err) || !campaign_answer(r, id, 201, err)) {
        return false;
    }
    const char *location = arena_printf(&r->arena, "/v1/campaigns/c-%lld", (long long)id);
    const char *subject = arena_printf(&r->arena, "c-%lld", (long long)id);
    reply_header(r, MHD_HTTP_HEADER_LOCATION, "%s", location);
    return keyed_store(k, location, err) && req_audit(r, "campaign.submit", subject, "{}", err) &&
           apidb_notify(tx, err) && apidb_load_publish(tx, id, err) && tx_commit(tx, err);
}

bool campaign_post(struct api_req *r, struct err *err)
{
    bool replayed;
    if (!req_db(r, err)) {
        return false;
    }
    if (req_flag(r, "dry_run")) {
        return dry_run_post(r, err);
    }
    CLEANUP(keyed_end)
    struct keyed k;
    if (!keyed_begin(r, true, &k, &replayed, err)) {
        return false;
    }
    if (replayed) {
        return true;
    }
    CLEANUP(submit_done)
    struct submit s = {0};
    bool ok = submit_prepare(r, &s, err) && submit_commit(r, &s, &k, err);
    apidb_bulk_end(r->db);
    return ok;
}

bool campaign_get(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    return req_db(r, err) && campaign_answer(r, id, 200, err);
}

bool campaign_list(struct api_req *r, struct err *err)
{
    bool given, down = page_is_down(r, true);
    int64_t n = req_number(r, "page_size"), key[2] = {1, down ? INT64_MAX : 0};
    if (!page_token_read(r, key, 2, &given, err)) {
        return false;
    }
    const struct apidb_campaign_query q = {
        .after_us = given || !down ? key[0] : clock_wall_us() + 366 * 24 * 3600 * USEC_PER_SEC,
        .after_id = key[1],
        .down = down,
        .state = req_query(r, "state"),
        .projects = r->who.projects,
        .n = n};
    struct apidb_page page = {.rows = BUF_INIT(API_ANSWER_MAX)};
    bool ok = req_db(r, err) && apidb_campaign_list(r->db, &q, guidance_out, &page, err);
    if (ok) {
        const int64_t last[2] = {page.last_us, page.last_id};
        buf_addf(&r->out, "{\"campaigns\":[%s],\"next_page_token\":", buf_cstr(&page.rows));
        if (page.n == n) {
            buf_addf(&r->out, "\"%s\"}\n", page_token_make(r, last, 2));
        } else {
            buf_add_cstr(&r->out, "null}\n");
        }
        (void)reply_out(r, 200);
    }
    buf_done(&page.rows);
    return ok;
}

/* The spec with *** for every value of environment, for who may not see them. *ret NULL: it has
 * none. The text as it was sent cannot be cut safely, so it is not shown then. */
static bool spec_hidden(const struct buf *json, char **ret, struct err *err)
{
    AUTO_JSON json_t *spec = NULL;
    size_t i, k;
    json_t *stage, *pair;
    bool any = false;
    if (!json_parse(buf_str(json), json->n, &spec, err)) {
        return false;
    }
    json_array_foreach(json_object_get(spec, "stages"), i,
                       stage){json_array_foreach(json_object_get(stage, "environment"), k, pair){
        (void)json_array_set_new(pair, 1, json_string("***")); /* [name, value] */
    any = true;
}
}
*ret = any ? json_text(spec) : NULL;
return true;
}

bool campaign_spec(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    AUTO_BUF struct buf json = BUF_INIT(4 * API_BODY_MAX);
    AUTO_BUF struct buf text = BUF_INIT(2 * API_BODY_MAX);
    if (!req_db(r, err) || !apidb_campaign_spec(r->db, id, &json, &text, err)) {
        return false;
    }
    AUTO_FREE char *shown = NULL;
    if (r->who.role < API_ADMIN && !spec_hidden(&json, &shown, err)) {
        return false;
    }
    struct json_out w;
    json_out_init(&w, &r->out);
    json_out_object(&w, NULL);
    if (shown != NULL) {
        json_out_null(&w, "text");
        json_out_str(&w, "text_hidden", "values of environment are shown to admins only");
        json_out_raw(&w, "spec", str_of(shown));
    } else {
        json_out_strn(&w, "text", buf_str(&text));
        json_out_raw(&w, "spec", buf_str(&json));
    }
    json_out_end_object(&w);
    return reply_out(r, 200);
}

/* Resuming what gates alone hold would change nothing: it is refused in the gate's words, which end
 * with the command that overrides it. */
static bool gate_allows(struct api_req *r, int64_t id, struct err *err)
{
    struct apidb_gate gate;
    enum verb_answer answer = verb_answer_gated(VERB_RESUME);
    if (!apidb_campaign_gate(r->db, id, &gate, err)) {
        return false;
    }
    return !gate.held || !verb_refused(answer) ||
           err_set(err, ERR_CONFLICT, "campaign c-%lld: %s; stage %s: %s", (long long)id,
                   verb_refusal(answer), gate.stage, gate.reason);
}

/* What is wanted, as the audit keeps it. */
static const char *wish_text(struct api_req *r, enum wanted wanted)
{
    return arena_printf(&r->arena, "{\"wanted\":\"%s\"}", wanted_name(wanted));
}

static bool want(struct api_req *r, enum verb verb, enum wanted wanted, const char *action,
                 struct err *err)
{
    int64_t id = req_id(r, 0);
    if (!req_db(r, err)) {
        return false;
    }
    AUTO_TX struct store *tx = r->db;
    struct apidb_wish now;
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_campaign_lock(tx, id, &now, err)) {
        return false;
    }
    enum verb_answer answer =
        now.archived ? verb_answer_archived(verb) : verb_answer_any(verb, now.state, now.wanted);
    if (verb_refused(answer)) {
        return err_set(err, now.archived ? ERR_ARCHIVED : ERR_CONFLICT, "campaign c-%lld: %s",
                       (long long)id, verb_refusal(answer));
    }
    if (verb == VERB_RESUME && now.wanted == WANTED_RUN && !gate_allows(r, id, err)) {
        return false;
    }
    const char *subject = arena_printf(&r->arena, "c-%lld", (long long)id);
    /* A held campaign (breaker, budget) is already wanted to run; resuming asks the leader to check
     * it again. */
    bool again = wanted == WANTED_RUN && now.state == CAMPAIGN_HELD;
    if ((now.wanted != wanted || again) &&
        (!apidb_campaign_want(tx, id, wanted, err) ||
         !req_audit_both(r, action, subject, wish_text(r, now.wanted), wish_text(r, wanted),
                         err))) {
        return false;
    }
    if (wanted == WANTED_RUN && !apidb_stages_resume(tx, id, err)) {
        return false;
    }
    return campaign_answer(r, id, 202, err) && apidb_notify(tx, err) && tx_commit(tx, err);
}

bool campaign_pause(struct api_req *r, struct err *err)
{
    return want(r, VERB_PAUSE, WANTED_PAUSE, "campaign.pause", err);
}

bool campaign_resume(struct api_req *r, struct err *err)
{
    return want(r, VERB_RESUME, WANTED_RUN, "campaign.resume", err);
}

bool campaign_drain(struct api_req *r, struct err *err)
{
    return want(r, VERB_DRAIN, WANTED_DRAIN, "campaign.drain", err);
}

bool campaign_cancel(struct api_req *r, struct err *err)
{
    return want(r, VERB_CANCEL, WANTED_CANCEL, "campaign.cancel", err);
}

static bool patch_budget(const json_t *budget, struct apidb_patch *p, struct err *err)
{
    const char *total = json_string_value(json_object_get(budget, "total"));
    const json_t *limit = json_object_get(budget, "limit_micro_usd");
    p->budget_musd = json_is_integer(limit) ? json_integer_value(limit) : -1;
    p->set_budget = limit != NULL || total != NULL;
    p->at_limit = json_string_value(json_object_get(budget, "at_limit"));
    return total == NULL || parse_usd(str_of(total), &p->budget_musd, err);
}

static bool patch_read(const json_t *body, struct apidb_patch *p, struct err *err)
{
    const json_t *limits = json_object_get(body, "limits");
    const json_t *budget = json_object_get(body, "budget");
    const json_t *priority = json_object_get(body, "priority");
    const json_t *deadline = json_object_get(body, "deadline");
    const json_t *weight = json_object_get(limits, "weight");
    const json_t *parts = json_object_get(limits, "parts");
    *p =
        (struct apidb_patch){.priority = priority != NULL ? (int)json_integer_value(priority) : -1,
                             .weight = weight != NULL ? json_integer_value(weight) : -1,
                             .set_parts = parts != NULL,
                             .parts_limit = json_is_integer(parts) ? json_integer_value(parts) : -1,
                             .set_deadline = deadline != NULL};
    if (json_is_string(deadline) &&
        !clock_parse_rfc3339(json_string_value(deadline), &p->deadline_us, err)) {
        return err_wrap(err, "deadline");
    }
    return budget == NULL || patch_budget(budget, p, err);
}

/* If-Match holds the version, alone or followed by the rest of GET's ETag. */
static bool if_match(const struct api_req *r, int64_t version, struct err *err)
{
    struct str tag = str_trim(str_of(req_header(r, MHD_HTTP_HEADER_IF_MATCH)));
    if (str_eq_cstr(tag, "*")) {
        return true;
    }
    int64_t v = -1;
    if (tag.n >= 2 && tag.p[0] == '"' && tag.p[tag.n - 1] == '"') {
        tag = (struct str){tag.p + 1, tag.n - 2};
        struct str number = str_split(&tag, '-');
        (void)!parse_i64(number, 0, INT64_MAX, &v, NULL);
    }
    return v == version ? true
                        : err_set(err, ERR_PRECONDITION,
                                  "the campaign was changed since you read it; read it again");
}

/* "900 USD" or null, if it is given. */
static bool money_limit(const json_t *budget, const char *key, bool *ret_set, musd_t *ret,
                        struct err *err)
{
    const json_t *v = json_object_get(budget, key);
    *ret_set = v != NULL;
    *ret = -1;
    return !json_is_string(v) || parse_usd(str_of(json_string_value(v)), ret, err);
}

/* "stages": {NAME: {"parts": N | null, "budget": {"total": "900 USD" | null, "per_task": ...}}} */
static bool patch_stage(struct store *tx, int64_t campaign_id, const char *name, const json_t *v,
                        struct err *err)
{
    const json_t *n = json_object_get(v, "parts");
    const json_t *budget = json_object_get(v, "budget");
    struct apidb_stage_budget b;
    return (n == NULL || apidb_stage_limit(tx, campaign_id, name,
                                           json_is_null(n) ? -1 : json_integer_value(n), err)) &&
           (budget == NULL ||
            (money_limit(budget, "total", &b.set_total, &b.total_musd, err) &&
             money_limit(budget, "per_task", &b.set_per_task, &b.per_task_musd, err) &&
             apidb_stage_budget(tx, campaign_id, name, &b, err)));
}

static bool patch_stages(struct store *tx, int64_t campaign_id, const json_t *body, struct err *err)
{
    const char *name;
    json_t *v;
    json_object_foreach(json_object_get(body, "stages"), name, v)
    {
        if (!patch_stage(tx, campaign_id, name, v, err)) {
            return false;
        }
    }
    return true;
}

bool campaign_patch(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    const json_t *body = req_json(r);
    struct apidb_patch p;
    if (!patch_read(body, &p, err) || !req_db(r, err)) {
        return false;
    }
    CLEANUP(keyed_end)
    struct keyed k = {0};
    bool replayed; /* the reply to the first one was lost */
    if (!keyed_begin(r, false, &k, &replayed, err) || replayed) {
        return replayed;
    }
    AUTO_TX struct store *tx = r->db;
    struct apidb_wish now;
    const char *subject = arena_printf(&r->arena, "c-%lld", (long long)id);
    AUTO_BUF struct buf was = BUF_INIT(API_ANSWER_MAX);
    return tx_begin(tx, TX_WRITE, err) && apidb_campaign_lock(tx, id, &now, err) &&
           if_match(r, now.version, err) && apidb_campaign_limits(tx, id, &was, err) &&
           req_audit_change(r, "campaign.change", subject, buf_cstr(&was), body, err) &&
           apidb_campaign_patch(tx, id, &p, err) && patch_stages(tx, id, body, err) &&
           campaign_answer(r, id, 200, err) && keyed_store(&k, "", err) && apidb_notify(tx, err) &&
           tx_commit(tx, err);
}

bool campaign_spec_read(struct api_req *r, int64_t id, struct spec **ret, struct err *err)
{
    AUTO_BUF struct buf json = BUF_INIT(4 * API_BODY_MAX);
    AUTO_BUF struct buf text = BUF_INIT(2 * API_BODY_MAX);
    AUTO_JSON json_t *v = NULL;
    return apidb_campaign_spec(r->db, id, &json, &text, err) &&
           json_parse(buf_str(&json), json.n, &v, err) && spec_from_json(v, &r->arena, ret, err);
}
