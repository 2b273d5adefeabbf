/* When a campaign ends, what it costs, what would change that, and why one part waits. A forecast
 * of a large campaign takes seconds: one is computed at a time, and cached. */
#include "api/server/reply.h"
#include "api/server/request.h"
#include "api/server/response_cache.h"
#include "api/server/routes.h"
#include "common/clock.h"
#include "core/sched/wait_reason.h"
#include "forecast_out.h"
#include "store/api/parts.h"

#define SAME_COUNTS_US (2 * USEC_PER_SEC)

/* What keeps every part of a stage from starting, though its campaign runs; NULL: nothing does. */
static const char *blocked_by(const struct apidb_stage_row *st)
{
    if (st->state != STAGE_RUNNING || st->counts[TASK_ACTIVE] > 0 ||
        st->counts[TASK_WAITING] == 0) {
        return NULL;
    }
    return wait_reason_row(st->wait_reason)->told == WAIT_TOLD_BLOCKS
               ? wait_reason_text(st->wait_reason)
               : NULL;
}

/* Fields of a single stage, kept for clients written before "stages" existed. */
static void one_stage(struct api_req *r, struct json_out *w, struct forecast_facts *a, int stage_i,
                      const struct apidb_stage_row *st, const struct forecast *f)
{
    int64_t ended = st->counts[TASK_DONE] + st->counts[TASK_FAILED] + st->counts[TASK_SKIPPED] +
                    st->counts[TASK_CANCELLED];
    int64_t left = st->tasks - ended;
    const struct forecast_stage_out *s = NULL;
    for (int i = 0; a != NULL && i < f->stages_n; i++) {
        s = f->stage[i].stage_i == stage_i && f->stage[i].known ? &f->stage[i] : s;
    }
    const char *blocked = blocked_by(st);
    bool never = s != NULL && s->end_us.p50 == USEC_NEVER;
    json_out_str(w, "stage", st->name);
    json_out_i64(w, "finished", st->counts[TASK_DONE]);
    json_out_i64(w, "remaining", left);
    if (left > 0 && s != NULL && !never && blocked == NULL) {
        forecast_out_seconds(w, "ends_in_seconds", s->end_us.p50);
        forecast_out_seconds(w, "low_seconds", s->end_us.p10);
        forecast_out_seconds(w, "high_seconds", s->end_us.p90);
        json_out_time(w, "ends_at", clock_wall_us() + s->end_us.p50);
        json_out_double(w, "parts_per_hour", s->parts_per_h);
        return;
    }
    json_out_null(w, "ends_in_seconds");
    json_out_null(w, "low_seconds");
    json_out_null(w, "high_seconds");
    json_out_null(w, "ends_at");
    json_out_null(w, "parts_per_hour");
    const char *why = a != NULL ? forecast_reason(&r->arena, f) : NULL;
    why = never ? "not under the current limits: a cap, quota or price blocks it" : why;
    int64_t held = st->counts[TASK_HELD];
    why = never && held > 0 ? arena_printf(&r->arena, "not before its %lld held part%s released",
                                           (long long)held, held == 1 ? " is" : "s are")
                            : why;
    why = blocked != NULL ? arena_printf(&r->arena, "cannot start: %s", blocked) : why;
    json_out_str(w, "reason", left <= 0 || why == NULL ? "nothing is left" : why);
}

struct forecast_wanted {
    struct api_req *r;
    int64_t campaign_id;
    const struct apidb_stage_row *stage;
};

static bool forecast_make(void *ctx, struct buf *out, struct err *err)
{
    const struct forecast_wanted *of = ctx;
    struct api_req *r = of->r;
    const struct apidb_stage_row *st = of->stage;
    AUTO_FORECAST_FACTS struct forecast_facts *a = NULL;
    bool ended = false;
    struct forecast f = {0};
    struct json_out w;
    if (!forecast_facts_load(r, of->campaign_id, 0, &a, &ended, err)) {
        return false;
    }
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    if (ended) {
        one_stage(r, &w, NULL, -1, st, &f);
        json_out_end_object(&w);
        return true;
    }
    if (!forecast_run(forecast_facts_input(a), &f, err)) {
        return false;
    }
    one_stage(r, &w, a, forecast_facts_stage(a, st->name), st, &f);
    json_out_object(&w, "campaign");
    forecast_out(&w, a, &f);
    json_out_str(&w, "reason", forecast_reason(&r->arena, &f));
    forecast_out_stages(&w, a, &f);
    forecast_out_advice(&w, a, &f);
    json_out_end_object(&w);
    const char *text = req_query(r, "what_if");
    if (text != NULL && !forecast_out_what_if(r, &w, a, text, err)) {
        return false;
    }
    json_out_end_object(&w);
    return true;
}

bool forecast_get(struct api_req *r, struct err *err)
{
    int64_t id = req_id(r, 0);
    struct apidb_stage_row st;
    const char *what = req_query(r, "what_if");
    if (!req_db(r, err) || !apidb_stage_find(r->db, id, req_query(r, "stage"), &st, err)) {
        return false;
    }
    const char *key =
        arena_printf(&r->arena, "forecast %lld %s %d %s", (long long)id, st.name,
                     blocked_by(&st) != NULL ? (int)st.wait_reason : 0, what != NULL ? what : "");
    const struct response_cache_ask ask = {.key = key,
                                           .version =
                                               response_cache_version(st.counts, sizeof st.counts),
                                           .same_us = SAME_COUNTS_US,
                                           .in_turn = true,
                                           .db = r->db};
    struct forecast_wanted of = {.r = r, .campaign_id = id, .stage = &st};
    AUTO_FREE char *json = NULL;
    return response_cache_answer(req_answers(r), &ask, forecast_make, &of, &json, err) &&
           reply_json(r, 200, str_of(json));
}
