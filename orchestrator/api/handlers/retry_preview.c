/* See retry_preview.h. The forecast is computed twice, without and with the parts that would wait
 * again; the second one counts what has ended as open. */
#include "retry_preview.h"
#include "forecast_out.h"

/* Since a duration is of the model, a change of type or volume is not in it. */
static bool forecast_both(struct api_req *r, int64_t campaign_id,
                          const struct apidb_retry_stage *stages, size_t n, struct json_out *w,
                          struct err *err)
{
    AUTO_FORECAST_FACTS struct forecast_facts *a = NULL;
    bool live = false;
    struct forecast now = {.known = true};
    struct forecast then;
    if (!forecast_facts_load_retry(r, campaign_id, &a, &live, err)) {
        return false;
    }
    const struct forecast_input *in = forecast_facts_input(a);
    musd_t before = in->campaigns[in->target_i].spent_musd;
    if (live && !forecast_run(in, &now, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        forecast_facts_add_parts(a, stages[i].stage_id, stages[i].parts, stages[i].size);
    }
    if (!forecast_run(in, &then, err)) {
        return false;
    }
    before = live && now.known ? now.cost_musd.p50 : before;
    json_out_bool(w, "known", then.known);
    json_out_str(w, "reason", forecast_reason(&r->arena, &then));
    if (live && now.known) {
        forecast_out_times(w, "now", &now.end_us);
    } else {
        json_out_null(w, "now");
    }
    if (then.known) {
        forecast_out_times(w, "end", &then.end_us);
    } else {
        json_out_null(w, "end");
    }
    if (then.known && now.known && then.price_known) {
        json_out_i64(w, "added_micro_usd", MAX(INT64_C(0), then.cost_musd.p50 - before));
    } else {
        json_out_null(w, "added_micro_usd");
    }
    return true;
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
        json_out_object(w, "forecast");
        if (!forecast_both(r, sel->campaign_id, stages, n, w, err)) {
            return false;
        }
        json_out_end_object(w);
    }
    json_out_i64(w, "pools_lost", lost);
    return true;
}
