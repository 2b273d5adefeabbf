/* The answer to a dry run. */
#include "api/server/reply.h"
#include "api/server/response_cache.h"
#include "core/capacity/account_limit.h"
#include "core/money/cost.h"
#include "core/spec/spec_parse.h"
#include "forecast_out.h"
#include "forecast_slots.h"
#include "store/api/quotas.h"
#include "submit.h"

static void musd_or_null(struct json_out *w, const char *key, int64_t v)
{
    if (v < 0) {
        json_out_null(w, key);
    } else {
        json_out_i64(w, key, v);
    }
}

static void warning(struct json_out *w, const char *code, const char *stage, const char *text)
{
    json_out_object(w, NULL);
    json_out_str(w, "code", code);
    json_out_str(w, "stage", stage);
    json_out_str(w, "message", text);
    json_out_end_object(w);
}

static void stage_plan(struct json_out *w, const struct spec_stage *sp,
                       const struct submit_stage *st)
{
    static const char *const fan_outs[] = {"none", "s3", "api", "count"};
    const struct apidb_rate *rate = &st->rate[0];
    json_out_object(w, NULL);
    json_out_str(w, "name", sp->name);
    json_out_str(w, "kind", spec_kind_word(sp->kind));
    json_out_str(w, "fan_out", fan_outs[sp->fan_out]);
    musd_or_null(w, "parts", st->parts);
    json_out_bool(w, "parts_complete", !st->unfinished);
    json_out_null(w, "skipped"); /* known after the leader has checked the outputs */
    json_out_str(w, "instance_type", rate->instance_type);
    json_out_i64(w, "instance_count", sp->instance_count);
    json_out_object(w, "quota");
    musd_or_null(w, "limit", rate->limit);
    json_out_i64(w, "held", rate->held);
    json_out_i64(w, "foreign", rate->foreign);
    json_out_end_object(w);
    musd_t per_hour = rate->price_musd_per_hour;
    if (sp->filesystem != NULL && per_hour >= 0) { /* of a GB and month */
        struct err ignored = ERR_INIT;
        bool fits = cost_of_storage(per_hour, sp->filesystem->capacity_gib, 1, &per_hour, &ignored);
        per_hour = fits ? per_hour : -1;
    }
    musd_or_null(w, "price_micro_usd_per_hour", per_hour);
    musd_or_null(w, "worst_case_micro_usd_per_part", st->worst_musd);
    musd_or_null(w, "worst_case_micro_usd", st->worst_all_musd);
    if (sp->endpoint != NULL) {
        json_out_i64(w, "ttl_seconds", sp->endpoint->ttl_s);
        musd_or_null(w, "idle_seconds", sp->endpoint->idle_s > 0 ? sp->endpoint->idle_s : -1);
    } else if (sp->filesystem != NULL) {
        json_out_i64(w, "ttl_seconds", sp->filesystem->ttl_s);
        json_out_i64(w, "size_gib", sp->filesystem->capacity_gib);
    } else {
        json_out_i64(w, "max_runtime_seconds", sp->max_runtime_s);
    }
    json_out_end_object(w);
}

struct limits { /* of the account */
    double creates_per_s;
    struct quota_ledger_account account;
};

static void job_warnings(struct json_out *w, const struct spec_stage *sp,
                         const struct submit_stage *st, const struct limits *l)
{
    const struct apidb_rate *rate = &st->rate[0];
    const struct account_limit_job job = {sp->spot ? MARKET_SPOT : MARKET_ON_DEMAND,
                                          sp->instance_count,
                                          spec_goes_on(sp) ? 0 : sp->max_runtime_s, sp->volume_gb};
    char text[256];
    if (rate->limit < 0) {
        (void)snprintf(text, sizeof text,
                       "the quota of %s is unknown: nothing starts until it is known",
                       rate->instance_type);
        warning(w, "quota_unreadable", sp->name, text);
    } else if (rate->limit < sp->instance_count) {
        warning(w, "quota_too_small", sp->name,
                "the quota of its instance type is smaller than one job");
    }
    if (account_limit_exceeded(&l->account, &job, text, sizeof text)) {
        warning(w, "quota_too_small", sp->name, text);
    }
    if ((double)st->parts > l->creates_per_s * 3600) {
        (void)snprintf(
            text, sizeof text,
            "at %.4g jobs a second the requests alone take %.1f hours: consider per_part",
            l->creates_per_s, (double)st->parts / l->creates_per_s / 3600);
        warning(w, "create_rate", sp->name, text);
    }
}

static void storage_warnings(struct json_out *w, const struct spec_stage *sp,
                             const struct apidb_rate *rate)
{
    const struct spec_filesystem *f = sp->filesystem;
    char tier[SPEC_STORAGE_TIER_MAX];
    char text[200];
    spec_storage_tier(f->deployment, f->throughput, tier);
    if (rate->price_musd_per_hour >= 0 && strchr(tier, '/') != NULL &&
        strchr(rate->instance_type, '/') == NULL) {
        (void)snprintf(text, sizeof text,
                       "no price of %s is known: that of %s is taken, the dearest that AWS lists",
                       tier, f->deployment);
        warning(w, "price_of_dearest", sp->name, text);
    }
    warning(w, "outlives_drover", sp->name,
            "a file system does not end by itself should drover stop: its ttl is reserved");
}

static void stage_warnings(struct json_out *w, const struct spec_stage *sp,
                           const struct submit_stage *st, const struct limits *l)
{
    const struct apidb_rate *rate = &st->rate[0];
    char text[160];
    if (st->unfinished) {
        (void)snprintf(text, sizeof text,
                       "not all objects could be listed in time: at least %lld parts; a submit "
                       "lists the rest before it starts",
                       (long long)st->parts);
        warning(w, "listing_unfinished", sp->name, text);
    }
    if (rate->price_musd_per_hour < 0) {
        (void)snprintf(text, sizeof text,
                       "the price of %s is unknown: nothing starts until it is known",
                       rate->instance_type);
        warning(w, "price_unknown", sp->name, text);
    }
    if (sp->kind == SPEC_KIND_ENDPOINT) {
        warning(w, "outlives_drover", sp->name,
                "an endpoint does not end by itself should drover stop: its ttl is reserved");
        return;
    }
    if (sp->kind == SPEC_KIND_LUSTRE) {
        storage_warnings(w, sp, rate);
        return;
    }
    job_warnings(w, sp, st, l);
}

/* Warnings about a valid campaign file. */
static void spec_warnings(struct json_out *w, const struct spec *spec)
{
    struct faults *f = xcalloc(1, sizeof *f);
    spec_warn(spec, f);
    for (int i = 0; i < f->n; i++) {
        json_out_object(w, NULL);
        json_out_str(w, "code", f->at[i].code);
        bool of_stage = strncmp(f->at[i].pointer, "stages.", 7) == 0;
        json_out_str(w, "stage", f->at[i].pointer + (of_stage ? 7 : 0));
        json_out_str(w, "message", f->at[i].message);
        json_out_end_object(w);
    }
    free(f);
}

/* The plan stands without a forecast: why there is none. */
static bool no_forecast(struct json_out *w, const struct err *why)
{
    const struct forecast none = {.binding_slots_i = -1};
    json_out_object(w, "forecast");
    forecast_out(w, NULL, &none);
    json_out_str(w, "reason", why->message);
    json_out_end_object(w);
    return true;
}

/* False: a stage of the file has neither a time nor a cost that could be added up. */
static bool is_forecast(const struct spec *spec, struct err *err)
{
    for (int i = 0; i < spec->stages_n; i++) {
        if (spec->stages[i]->kind != SPEC_KIND_JOBS) {
            return err_set(err, ERR_INVALID,
                           "time and cost of stage %.64s are not forecast in this version",
                           spec->stages[i]->name);
        }
    }
    return true;
}

/* Forecast of the campaign together with the live ones. */
static bool plan_forecast(struct api_req *r, const struct submit *s, struct json_out *w,
                          struct err *err)
{
    AUTO_FORECAST_FACTS struct forecast_facts *a = NULL;
    bool ended;
    struct forecast f;
    struct err why = ERR_INIT;
    const char *text = req_query(r, "what_if");
    if (!is_forecast(s->spec, &why) || !forecast_facts_load(r, 0, 0, &a, &ended, &why)) {
        return no_forecast(w, &why);
    }
    forecast_facts_add_plan(a, s);
    if (!forecast_run(forecast_facts_input(a), &f, &why)) {
        return no_forecast(w, &why);
    }
    json_out_object(w, "forecast");
    forecast_out(w, a, &f);
    json_out_str(w, "reason", forecast_reason(&r->arena, &f));
    forecast_out_stages(w, a, &f);
    forecast_out_advice(w, a, &f);
    json_out_end_object(w);
    return text == NULL || forecast_out_what_if(r, w, a, text, err);
}

static void plan_file(const struct submit *s, const struct limits *l, struct json_out *w)
{
    const struct spec *spec = s->spec;
    json_out_bool(w, "dry_run", true);
    json_out_str(w, "name", spec->name);
    json_out_str(w, "project", spec->project);
    json_out_object(w, "parts");
    json_out_i64(w, "total", s->parts);
    json_out_null(w, "skipped");
    json_out_end_object(w);
    musd_or_null(w, "worst_case_micro_usd", s->worst_all_musd);
    musd_or_null(w, "budget_micro_usd", spec->budget_musd);
    json_out_array(w, "stages");
    for (int i = 0; i < spec->stages_n; i++) {
        stage_plan(w, spec->stages[i], &s->stages[i]);
    }
    json_out_end_array(w);
    json_out_array(w, "warnings");
    spec_warnings(w, spec);
    for (int i = 0; i < spec->stages_n; i++) {
        stage_warnings(w, spec->stages[i], &s->stages[i], l);
    }
    if (spec->budget_musd >= 0 && s->worst_all_musd > spec->budget_musd) {
        warning(w, "budget", NULL,
                "the worst case of all parts is above the budget: the campaign may stop at it");
    }
    json_out_end_array(w);
    json_out_str(w, "prices", "list prices, not the bill");
}

bool submit_plan(struct api_req *r, const struct submit *s, struct buf *out, struct err *err)
{
    struct json_out w;
    struct limits limits;
    if (!forecast_creates_per_s(r, &limits.creates_per_s, err) ||
        !forecast_slots_account(r->db, &limits.account, err)) {
        return false;
    }
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    plan_file(s, &limits, &w);
    response_cache_turn(req_answers(r));
    bool ok = plan_forecast(r, s, &w, err);
    response_cache_turn_end(req_answers(r));
    json_out_end_object(&w);
    return ok;
}
