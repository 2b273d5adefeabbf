/* See retry_preview.h. The forecast is computed twice, without and with the parts that would wait
 * again; the second one counts what has ended as open. */
#include "retry_preview.h"
#include "api/server/response_cache.h"
#include "api/server/server.h"
#include "forecast_out.h"

#define TURN_US USEC_PER_SEC /* the preview waits no longer for other forecasts */

struct both {
    struct forecast now, then;
    bool live; /* the campaign has not ended: now is of it */
    musd_t before_musd;
};

/* Both use the durations of past attempts, so a changed type or volume does not alter them. False:
 * *err says why there is no forecast. */
static bool forecast_both(struct api_req *r, int64_t campaign_id,
                          const struct apidb_retry_stage *stages, size_t n, struct both *ret,
                          struct err *err)
{
    AUTO_FORECAST_FACTS struct forecast_facts *a = NULL;
    if (!forecast_facts_load_retry(r, campaign_id, &a, &ret->live, err)) {
        return false;
    }
    const struct forecast_input *in = forecast_facts_input(a);
    ret->before_musd = in->campaigns[in->target_i].spent_musd;
    if (ret->live && !forecast_run(in, &ret->now, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        forecast_facts_add_parts(a, stages[i].stage_id, stages[i].parts, stages[i].size);
    }
    ret->before_musd = ret->live && ret->now.known ? ret->now.cost_musd.p50 : ret->before_musd;
    return forecast_run(in, &ret->then, err);
}

static void times_or_null(struct json_out *w, const char *key, bool known, const struct forecast *f)
{
    if (known) {
        forecast_out_times(w, key, &f->end_us);
    } else {
        json_out_null(w, key);
    }
}

static void out_both(struct api_req *r, const struct both *f, const char *why, struct json_out *w)
{
    bool known = why == NULL && f->then.known;
    bool compared = known && (!f->live || f->now.known) && f->then.price_known;
    json_out_object(w, "forecast");
    json_out_bool(w, "known", known);
    json_out_str(w, "reason", why != NULL ? why : forecast_reason(&r->arena, &f->then));
    times_or_null(w, "now", known && f->live && f->now.known, &f->now);
    times_or_null(w, "end", known, &f->then);
    if (compared) {
        json_out_i64(w, "added_micro_usd", MAX(INT64_C(0), f->then.cost_musd.p50 - f->before_musd));
    } else {
        json_out_null(w, "added_micro_usd");
    }
    json_out_end_object(w);
}

/* A preview does not fail for want of a forecast. */
static void out_forecast(struct api_req *r, int64_t campaign_id,
                         const struct apidb_retry_stage *stages, size_t n, struct json_out *w)
{
    struct both f = {0};
    struct err err = ERR_INIT;
    if (!response_cache_turn_soon(req_answers(r), TURN_US)) {
        out_both(r, &f, "other forecasts are being made just now", w);
        return;
    }
    bool ok = forecast_both(r, campaign_id, stages, n, &f, &err);
    response_cache_turn_end(req_answers(r));
    out_both(r, &f, ok ? NULL : err.message, w);
}

bool retry_preview_out(struct api_req *r, const struct apidb_selector *sel,
                       const struct operation_order *order, struct json_out *w, struct err *err)
{
    AUTO_FREE struct apidb_retry_stage *stages = NULL;
    size_t n = 0;
    int64_t lost = 0;
    if (!apidb_retry_stages(r->db, sel, order->instance_type, order->volume_gb, &stages, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        lost += stages[i].pools_lost;
    }
    if (n == 0) {
        json_out_null(w, "forecast");
    } else {
        out_forecast(r, sel->campaign_id, stages, n, w);
    }
    json_out_i64(w, "pools_lost", lost);
    return true;
}
