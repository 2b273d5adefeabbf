/* Why one part is not running: the reason, its position in the queue, its expected start, and what
 * would change that. */
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/response_cache.h"
#include "api/server/routes.h"
#include "common/clock.h"
#include "forecast_out.h"
#include "guidance.h"
#include "parts.h"
#include "store/api/parts.h"

#define NEXT_MAX     320
#define SAME_PART_US (2 * USEC_PER_SEC) /* as long as a forecast stands */

/* The part's row as the parts list shows it. */
static bool part_row(struct api_req *r, int64_t campaign, int64_t task, json_t **ret,
                     struct err *err)
{
    struct apidb_ids ids = {.at = &task, .n = 1};
    AUTO_BUF struct buf rows = BUF_INIT(API_ANSWER_MAX);
    AUTO_JSON json_t *all = NULL;
    if (!apidb_parts_rows(r->db, campaign, &ids, clock_wall_us(), &rows, err) ||
        !json_parse(buf_str(&rows), API_ANSWER_MAX, &all, err)) {
        return false;
    }
    *ret = json_incref(json_array_get(all, 0));
    return *ret != NULL || err_set(err, ERR_NOT_FOUND, "there is no such part");
}

static const char *str_member(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

/* The text for a part that does not wait. */
static const char *not_waiting(struct api_req *r, const json_t *row)
{
    const char *state = str_member(row, "state");
    enum cause cause = cause_parse(str_member(row, "cause"));
    if (strcmp(state, "active") == 0) {
        return arena_printf(&r->arena, "attempt %lld is %s",
                            (long long)json_integer_value(json_object_get(row, "attempt")),
                            str_member(row, "phase"));
    }
    if (strcmp(state, "failed") == 0) {
        int64_t n = json_integer_value(json_object_get(row, "attempts"));
        return arena_printf(&r->arena, "failed after %lld attempt%s: %s; %s", (long long)n,
                            n == 1 ? "" : "s", str_member(row, "reason"), cause_remedy(cause));
    }
    if (strcmp(state, "held") == 0) {
        return "a person holds it";
    }
    return arena_printf(&r->arena, "it is %s", state);
}

struct why_wanted {
    struct api_req *r;
    int64_t campaign_id, task_id;
    const json_t *row; /* the part's */
    bool waits;
};

/* Of one that is skipped: who did it and when, and how it had failed. */
static bool skipped_text(const struct why_wanted *of, const char **ret, struct err *err)
{
    AUTO_BUF struct buf out = BUF_INIT(4096);
    AUTO_JSON json_t *skipped = NULL;
    const char *failed = str_member(of->row, "reason");
    if (!apidb_part_skipped(of->r->db, of->campaign_id, of->task_id, &out, err) ||
        !json_parse(buf_str(&out), out.n, &skipped, err)) {
        return false;
    }
    if (json_is_object(skipped)) { /* not retried just now */
        *ret = arena_printf(&of->r->arena, "%s%s%s", str_member(skipped, "text"),
                            failed[0] != '\0' ? "; it had failed: " : "", failed);
    }
    return true;
}

/* The numbers of parts begin again in each stage, and a command for one names its stage. */
static const char *release_if_held(struct api_req *r, const json_t *row)
{
    const char *number = strrchr(str_member(row, "id"), '/');
    return number != NULL && strcmp(str_member(row, "state"), "held") == 0
               ? arena_printf(&r->arena, "drover release {c}/{s}%s", number)
               : "";
}

/* Write each change that would start it sooner, with the new start. */
static void out_changes(struct json_out *w, struct forecast_facts *a, const struct forecast *base,
                        int64_t campaign)
{
    struct forecast_advice advice[FORECAST_ADVICE_SHOWN];
    int n = 0;
    struct err ignored = ERR_INIT;
    struct forecast_input *in = forecast_facts_input(a);
    int64_t limit = in->campaigns[in->target_i].parts_limit;
    json_out_array(w, "changes");
    if (base->known && !forecast_advise(in, base, advice, FORECAST_ADVICE_SHOWN, &n, &ignored)) {
        n = 0;
    }
    for (int i = 0; i < n; i++) {
        int slots_i = advice[i].slots_i;
        int64_t to = advice[i].more + (slots_i < 0 ? MAX(limit, 0) : in->slots[slots_i].quota);
        struct what_if what = WHAT_IF_NOTHING;
        *(slots_i < 0 ? &what.parts : &what.slots) = to;
        struct forecast f;
        if (!forecast_run_what_if(in, &what, &f, &ignored) || !f.known ||
            f.start_us.p50 == USEC_NEVER || base->start_us.p50 == USEC_NEVER ||
            f.start_us.p50 >= base->start_us.p50) {
            continue;
        }
        char command[160];
        if (slots_i < 0) {
            (void)snprintf(command, sizeof command, "drover scale c-%lld %lld", (long long)campaign,
                           (long long)to);
        } else {
            (void)snprintf(command, sizeof command, "ask AWS for %lld x %s", (long long)to,
                           forecast_facts_type(a, slots_i));
        }
        json_out_object(w, NULL);
        json_out_str(w, "command", command);
        forecast_out_times(w, "starts", &f.start_us);
        json_out_i64(w, "sooner_seconds", (base->start_us.p50 - f.start_us.p50) / USEC_PER_SEC);
        json_out_end_object(w);
    }
    json_out_end_array(w);
}

static bool out_forecast(struct api_req *r, struct json_out *w, int64_t campaign, int64_t task,
                         struct err *err)
{
    AUTO_FORECAST_FACTS struct forecast_facts *a = NULL;
    bool ended = false;
    struct forecast f = {0};
    if (!forecast_facts_load(r, campaign, task, &a, &ended, err)) {
        return false;
    }
    if (ended) {
        return true;
    }
    if (!forecast_run(forecast_facts_input(a), &f, err)) {
        return false;
    }
    if (f.place > 0) {
        json_out_i64(w, "place", f.place);
        json_out_i64(w, "place_of", f.place_of);
    }
    if (f.known && f.place > 0) {
        forecast_out_times(w, "starts", &f.start_us);
    } else if (!f.known) {
        json_out_str(w, "starts_unknown", forecast_reason(&r->arena, &f));
    }
    out_changes(w, a, &f, campaign);
    return true;
}

static bool why_make(void *ctx, struct buf *out, struct err *err)
{
    const struct why_wanted *of = ctx;
    struct api_req *r = of->r;
    const json_t *row = of->row;
    const char *name = str_member(row, "wait_reason");
    enum wait_reason why = wait_reason_parse(name);
    if (why == WAIT_NONE || why == WAIT_REASON_COUNT) {
        why = WAIT_NEW; /* added after the stage's last plan */
    }
    const char *told = str_member(row, "wait_text"); /* with what is known besides */
    const char *text = !of->waits                                          ? not_waiting(r, row)
                       : told[0] != '\0' && why == wait_reason_parse(name) ? told
                                                                           : wait_reason_text(why);
    if (strcmp(str_member(row, "state"), "skipped") == 0 && !skipped_text(of, &text, err)) {
        return false;
    }
    AUTO_BUF struct buf next = BUF_INIT(NEXT_MAX);
    const char *todo = of->waits ? wait_reason_next(why) : release_if_held(r, row);
    guidance_command(&next, todo, of->campaign_id, str_member(row, "stage"));
    struct json_out w;
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_str(&w, "id", str_member(row, "id"));
    json_out_str(&w, "stage", str_member(row, "stage"));
    json_out_str(&w, "state", str_member(row, "state"));
    json_out_str(&w, "reason", of->waits ? wait_reason_name(why) : NULL);
    json_out_str(&w, "text", text);
    json_out_str(&w, "since", json_string_value(json_object_get(row, "updated_at")));
    json_out_str(&w, "not_before", json_string_value(json_object_get(row, "not_before")));
    json_out_str(&w, "next", of->waits || next.n > 0 ? buf_cstr(&next) : NULL);
    if (of->waits && !out_forecast(r, &w, of->campaign_id, of->task_id, err)) {
        return false;
    }
    json_out_end_object(&w);
    return true;
}

bool why_get(struct api_req *r, struct err *err)
{
    struct why_wanted of = {.r = r};
    AUTO_JSON json_t *row = NULL;
    AUTO_FREE char *json = NULL;
    if (!part_find(r, &of.campaign_id, &of.task_id, err) ||
        !part_row(r, of.campaign_id, of.task_id, &row, err)) {
        return false;
    }
    of.row = row;
    of.waits = strcmp(str_member(row, "state"), "waiting") == 0;
    AUTO_FREE char *text = json_dumps(row, JSON_COMPACT);
    const struct response_cache_ask ask = {.key = arena_printf(&r->arena, "why %lld %lld",
                                                               (long long)of.campaign_id,
                                                               (long long)of.task_id),
                                           .version = response_cache_version(text, strlen(text)),
                                           .same_us = SAME_PART_US,
                                           .strict = true,
                                           .in_turn = of.waits,
                                           .db = r->db};
    return response_cache_answer(req_answers(r), &ask, why_make, &of, &json, err) &&
           reply_json(r, 200, str_of(json));
}
