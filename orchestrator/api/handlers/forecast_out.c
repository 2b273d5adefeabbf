/* A forecast as JSON; see forecast_out.h. */
#include "forecast_out.h"

static const char *const bindings[] = {[FORECAST_BINDS_NONE] = "none",
                                       [FORECAST_BINDS_SLOTS] = "slots",
                                       [FORECAST_BINDS_CONCURRENCY] = "concurrency",
                                       [FORECAST_BINDS_RATE] = "rate",
                                       [FORECAST_BINDS_MONEY] = "budget"};

const char *forecast_reason(struct arena *arena, const struct forecast *f)
{
    if (f->known) {
        return NULL;
    }
    if (f->unread) {
        return "this droverd cannot read its file: drover parked says why";
    }
    if (f->too_large) {
        return "too large to forecast";
    }
    return arena_printf(arena, "needs %d%s finished part%s of %s, or expect: in its stage",
                        f->needs_parts, f->needs_parts < DURATION_MIN ? " more" : "",
                        f->needs_parts == 1 ? "" : "s", f->needs_stage);
}

/* null for a time that never comes. */
void forecast_out_seconds(struct json_out *w, const char *key, int64_t us)
{
    if (us == USEC_NEVER) {
        json_out_null(w, key);
    } else {
        json_out_i64(w, key, us / USEC_PER_SEC);
    }
}

void forecast_out_times(struct json_out *w, const char *key, const struct forecast_band *b)
{
    json_out_object(w, key);
    forecast_out_seconds(w, "p10_seconds", b->p10);
    forecast_out_seconds(w, "p50_seconds", b->p50);
    forecast_out_seconds(w, "p90_seconds", b->p90);
    json_out_end_object(w);
}

static void out_cost(struct json_out *w, const struct forecast_band *b)
{
    json_out_object(w, "cost");
    json_out_i64(w, "p10_micro_usd", b->p10);
    json_out_i64(w, "p50_micro_usd", b->p50);
    json_out_i64(w, "p90_micro_usd", b->p90);
    json_out_end_object(w);
}

void forecast_out(struct json_out *w, const struct forecast_facts *a, const struct forecast *f)
{
    json_out_bool(w, "known", f->known);
    json_out_i64(w, "runs", f->runs);
    if (a != NULL && forecast_facts_left_out(a) > 0) {
        json_out_i64(w, "campaigns_left_out", forecast_facts_left_out(a));
    }
    json_out_str(w, "binding", bindings[f->binding]);
    json_out_str(w, "binding_instance_type",
                 f->binding_slots_i >= 0 ? forecast_facts_type(a, f->binding_slots_i) : NULL);
    if (!f->known) {
        json_out_null(w, "end");
        json_out_null(w, "cost");
        return;
    }
    forecast_out_times(w, "end", &f->end_us);
    json_out_double(w, "fits_budget", f->fits_budget);
    if (f->price_known) {
        out_cost(w, &f->cost_musd);
    } else {
        json_out_null(w, "cost");
    }
}

void forecast_out_stages(struct json_out *w, struct forecast_facts *a, const struct forecast *f)
{
    const struct forecast_input *in = forecast_facts_input(a);
    json_out_array(w, "stages");
    for (int i = 0; i < f->stages_n; i++) {
        const struct forecast_stage_out *s = &f->stage[i];
        if (!s->known) {
            continue;
        }
        json_out_object(w, NULL);
        json_out_str(w, "name", in->stages[s->stage_i].stage->name);
        forecast_out_times(w, "start", &s->start_us);
        forecast_out_times(w, "end", &s->end_us);
        if (f->price_known) {
            out_cost(w, &s->cost_musd);
        } else {
            json_out_null(w, "cost");
        }
        json_out_double(w, "parts_per_hour", s->parts_per_h);
        json_out_end_object(w);
    }
    json_out_end_array(w);
}

void forecast_out_advice(struct json_out *w, struct forecast_facts *a, const struct forecast *f)
{
    struct forecast_advice advice[FORECAST_ADVICE_SHOWN];
    int n = 0;
    struct err ignored = ERR_INIT;
    json_out_array(w, "advice");
    if (f->known &&
        forecast_advise(forecast_facts_input(a), f, advice, FORECAST_ADVICE_SHOWN, &n, &ignored)) {
        for (int i = 0; i < n; i++) {
            json_out_object(w, NULL);
            json_out_str(w, "instance_type",
                         advice[i].slots_i >= 0 ? forecast_facts_type(a, advice[i].slots_i) : NULL);
            json_out_i64(w, "more", advice[i].more);
            json_out_i64(w, "sooner_seconds", advice[i].sooner_us / USEC_PER_SEC);
            json_out_i64(w, "dearer_micro_usd", advice[i].dearer_musd);
            json_out_end_object(w);
        }
    }
    json_out_end_array(w);
}

bool forecast_out_what_if(struct api_req *r, struct json_out *w, struct forecast_facts *a,
                          const char *text, struct err *err)
{
    struct what_if what;
    struct forecast f;
    if (!forecast_facts_what_if(r, a, &what, err) ||
        !forecast_run_what_if(forecast_facts_input(a), &what, &f, err)) {
        return false;
    }
    json_out_object(w, "what_if");
    json_out_str(w, "text", text);
    forecast_out(w, a, &f);
    json_out_end_object(w);
    return true;
}
