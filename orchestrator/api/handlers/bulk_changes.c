/* Retry or skip of the failed parts a selector names, hold of waiting ones, release of held ones:
 * parse, preview, accept as an operation. */
#include "api/server/audit.h"
#include "api/server/idempotency.h"
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/routes.h"
#include "campaigns.h"
#include "core/leader/operations.h"
#include "retry_preview.h"
#include "selection.h"
#include "store/api/campaigns.h"
#include "store/api/filesystems.h"
#include "store/api/operations.h"
#include "store/api/parts.h"
#include "store/pg/tx.h"

struct bulk_change {
    enum verb verb; /* RETRY, SKIP, HOLD or RELEASE */
    int64_t campaign_id;
    struct selection sel;
    struct apidb_selector query;  /* the same, as the query wants it */
    const json_t *changes;        /* borrowed from the body; NULL: none */
    struct operation_order order; /* the same, read */
};

/* Whether the selector is about parts in the state that the verb moves them from. Those of a hold
 * have no cause. */
static bool of_its_parts(const struct bulk_change *t, struct err *err)
{
    enum task_state from = verb_parts_from(t->verb);
    if (t->sel.state >= 0 && t->sel.state != (int)from) {
        return err_set(err, ERR_INVALID, "selector.state: a %s is of %s parts", verb_name(t->verb),
                       task_state_name(from));
    }
    return from == TASK_FAILED || t->sel.causes_n == 0 ||
           err_set(err, ERR_INVALID,
                   "selector.cause: %s parts have none; name the parts or their stage",
                   task_state_name(from));
}

static bool selector_read(struct api_req *r, struct bulk_change *t, const json_t *json,
                          struct err *err)
{
    struct apidb_stage_row row;
    selection_init(&t->sel);
    if (!selection_json(&t->sel, json, err)) {
        return false;
    }
    if (selection_for_lists_only(&t->sel)) {
        return err_set(err, ERR_INVALID,
                       "selector.filter: this does not select by attempts, cost, updated or "
                       "text; name the parts");
    }
    if (!of_its_parts(t, err)) {
        return false;
    }
    if (!apidb_stage_find(r->db, t->campaign_id, t->sel.stage, &row, err)) {
        return false;
    }
    t->query = (struct apidb_selector){.campaign_id = t->campaign_id,
                                       .stage_id = t->sel.stage != NULL ? row.id : 0,
                                       .causes = t->sel.causes,
                                       .causes_n = t->sel.causes_n,
                                       .parts = t->sel.parts,
                                       .parts_n = t->sel.parts_n};
    return true;
}

/* A stage has a list of types with their limits and prices; another type is not the stage's. Every
 * stage that the selector means is asked, because parts of it may fail until the retry is done. */
static bool type_known(struct api_req *r, const struct bulk_change *t, struct err *err)
{
    struct spec *spec;
    if (t->order.instance_type[0] == '\0') {
        return true;
    }
    if (!campaign_spec_read(r, t->campaign_id, &spec, err)) {
        return false;
    }
    for (int i = 0; i < spec->stages_n; i++) {
        const struct spec_stage *stage = spec->stages[i];
        bool meant = t->sel.stage == NULL || strcmp(t->sel.stage, stage->name) == 0;
        if (meant && operation_rung(stage, t->order.instance_type) < 0) {
            AUTO_BUF struct buf list = BUF_INIT(4096);
            for (int k = 0; k < stage->instance_type_n; k++) {
                buf_addf(&list, "%s%s", k > 0 ? ", " : "", stage->instance_type[k]);
            }
            return err_set(
                err, ERR_INVALID, "changes.instance_type: stage '%s' lists %s; name one of these%s",
                stage->name, buf_cstr(&list),
                t->sel.stage == NULL && spec->stages_n > 1 ? ", or the stage that is meant"
                                                           : ", or submit the parts again");
        }
    }
    return true;
}

static bool bulk_read(struct api_req *r, struct bulk_change *t, struct err *err)
{
    t->changes = json_object_get(req_json(r), "changes");
    if (t->changes != NULL && !operation_changes_read(t->changes, &t->order, err)) {
        return err_wrap(err, "changes");
    }
    return selector_read(r, t, json_object_get(req_json(r), "selector"), err) &&
           type_known(r, t, err);
}

/* The changes as they are kept: durations in seconds. */
static char *changes_text(const struct bulk_change *t)
{
    AUTO_JSON json_t *kept =
        t->changes != NULL ? json_copy((json_t *)(uintptr_t)t->changes) : json_object();
    if (t->order.max_runtime_s > 0) {
        (void)json_object_set_new(kept, "max_runtime", json_integer(t->order.max_runtime_s));
    }
    return json_text(kept);
}

static bool bulk_count(struct api_req *r, const struct bulk_change *t, struct apidb_match *ret,
                       struct err *err)
{
    enum task_state from = verb_parts_from(t->verb);
    return from == TASK_FAILED ? apidb_retry_count(r->db, &t->query, ret, err)
                               : apidb_hold_count(r->db, &t->query, from, ret, err);
}

static bool bulk_preview(struct api_req *r, const struct bulk_change *t, struct err *err)
{
    struct apidb_match m = {.sample = BUF_INIT(4096)};
    struct json_out w;
    bool ok = bulk_count(r, t, &m, err);
    if (ok) {
        json_out_init(&w, &r->out);
        json_out_object(&w, NULL);
        json_out_bool(&w, "dry_run", true);
        json_out_i64(&w, "parts", m.parts);
        json_out_raw(&w, "sample", buf_str(&m.sample));
        json_out_i64(&w, "lost_micro_usd", m.lost_musd);
        if (t->verb == VERB_RETRY && m.parts > 0) {
            ok = retry_preview_out(r, &t->query, &t->order, &w, err);
        } else {
            json_out_null(&w, "forecast");
            json_out_i64(&w, "pools_lost", 0);
        }
        json_out_end_object(&w);
    }
    buf_done(&m.sample);
    return ok && reply_out(r, 200);
}

static bool bulk_write(struct api_req *r, const struct bulk_change *t, int64_t *ret_id,
                       struct err *err)
{
    struct apidb_match m = {.sample = BUF_INIT(4096)};
    AUTO_JSON json_t *json = selection_to_json(&t->sel);
    AUTO_FREE char *selector = json_text(json);
    AUTO_FREE char *changes = changes_text(t);
    bool ok =
        bulk_count(r, t, &m, err) &&
        apidb_operation_insert(r->db, t->campaign_id, verb_name(t->verb), selector, changes,
                               m.parts, r->who.token_id, ret_id, err) &&
        req_audit(r, arena_printf(&r->arena, "campaign.%s", verb_name(t->verb)),
                  arena_printf(&r->arena, "c-%lld", (long long)t->campaign_id), selector, err);
    buf_done(&m.sample);
    return ok;
}

/* Checks the current state; the campaign's row is locked. */
static bool bulk_allowed(struct api_req *r, const struct bulk_change *t,
                         const struct apidb_wish *now, struct err *err)
{
    enum verb_answer a = verb_answer_any(t->verb, now->state, now->wanted);
    struct apidb_stage_row row;
    if (now->archived) { /* since the selector was read */
        return err_set(err, ERR_ARCHIVED, "campaign c-%lld: %s", (long long)t->campaign_id,
                       verb_refusal(verb_answer_archived(t->verb)));
    }
    if (t->sel.stage != NULL) {
        if (!apidb_stage_find(r->db, t->campaign_id, t->sel.stage, &row, err)) {
            return false;
        }
        a = verb_answer(t->verb, now->state, now->wanted, row.state);
    }
    return !verb_refused(a) || err_set(err, ERR_CONFLICT, "campaign c-%lld: %s",
                                       (long long)t->campaign_id, verb_refusal(a));
}

/* A cancel that came when the campaign had just ended; else it would cancel what runs again. */
static bool cancel_taken_back(struct api_req *r, const struct bulk_change *t,
                              const struct apidb_wish *now, struct err *err)
{
    return now->wanted != WANTED_CANCEL || !campaign_state_terminal(now->state) ||
           apidb_campaign_want(r->db, t->campaign_id, WANTED_RUN, err);
}

static bool bulk_commit(struct api_req *r, const struct bulk_change *t, struct keyed *k,
                        struct err *err)
{
    AUTO_TX struct store *tx = r->db;
    struct apidb_wish now;
    int64_t id;
    AUTO_BUF struct buf json = BUF_INIT(API_ANSWER_MAX);
    if (!tx_begin(tx, TX_WRITE, err) || !apidb_campaign_lock(tx, t->campaign_id, &now, err)) {
        return false;
    }
    if (!bulk_allowed(r, t, &now, err) || !cancel_taken_back(r, t, &now, err) ||
        !bulk_write(r, t, &id, err) || !apidb_operation_get(tx, id, &json, err)) {
        return false;
    }
    const char *location = arena_printf(&r->arena, "/v1/operations/op-%lld", (long long)id);
    (void)reply_json(r, 202, buf_str(&json));
    reply_header(r, MHD_HTTP_HEADER_LOCATION, "%s", location);
    return keyed_store(k, location, err) && apidb_notify(tx, err) && tx_commit(tx, err);
}

static bool change_parts(struct api_req *r, enum verb verb, struct err *err)
{
    bool replayed;
    struct bulk_change *t = arena_alloc(&r->arena, sizeof *t);
    t->verb = verb;
    t->campaign_id = req_id(r, 0);
    CLEANUP(keyed_end)
    struct keyed k = {0};
    if (!req_db(r, err) || !bulk_read(r, t, err) ||
        (verb == VERB_RETRY &&
         !apidb_filesystem_there(r->db, t->campaign_id, t->query.stage_id, err))) {
        return false;
    }
    if (req_flag(r, "dry_run")) {
        return bulk_preview(r, t, err);
    }
    if (!keyed_begin(r, false, &k, &replayed, err)) {
        return false;
    }
    return replayed || bulk_commit(r, t, &k, err);
}

bool campaign_retry(struct api_req *r, struct err *err)
{
    return change_parts(r, VERB_RETRY, err);
}

bool campaign_skip(struct api_req *r, struct err *err)
{
    return change_parts(r, VERB_SKIP, err);
}

bool campaign_hold(struct api_req *r, struct err *err)
{
    return change_parts(r, VERB_HOLD, err);
}

bool campaign_release(struct api_req *r, struct err *err)
{
    return change_parts(r, VERB_RELEASE, err);
}
