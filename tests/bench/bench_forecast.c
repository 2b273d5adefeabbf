/* Figures of the forecast: how often P10-P90 holds the true end over simulated campaigns, how far
 * the plan before the start is off when durations are given, and how long the forecast of a
 * campaign of 1 M waiting parts takes. Prints JSON lines. Usage: bench_forecast [CAMPAIGNS [SEED]]
 */
#include "common/cleanup.h"
#include "common/str.h"
#include "tests/unit/statistics/forecast_honesty.h"
#include <math.h>
#include <stdio.h>
#include <time.h>

static void must(bool ok, const struct err *err)
{
    if (!ok) {
        (void)fprintf(stderr, "bench_forecast: %s\n", err->message);
        exit(1);
    }
}

static void figure(const char *name, double value, const char *unit, int n, const char *note)
{
    (void)printf("{\"name\":\"%s\",\"value\":%.3f,\"unit\":\"%s\",\"n\":%d,\"note\":\"%s\"}\n",
                 name, value, unit, n, note);
    (void)fflush(stdout);
}

static void honesty(int campaigns, uint64_t first)
{
    struct honesty h = {0};
    for (int i = 0; i < campaigns; i++) {
        honesty_campaign(first + (uint64_t)i, 100, &h);
    }
    for (int i = 0; i < HONESTY_POINTS; i++) {
        (void)fprintf(stderr, "at %d %%: %.1f %% inside, %.1f %% ended sooner\n",
                      honesty_at_percent[i], 100.0 * h.inside[i] / campaigns,
                      100.0 * h.sooner[i] / campaigns);
    }
    char note[200];
    (void)snprintf(note, sizeof note,
                   "true end within P10-P90; %d campaigns, checked at 20, 40, 60 and 80 %%; mean "
                   "width %.1f %% of the time left",
                   campaigns, 100 * h.width / h.checks);
    figure("forecast_inside_percent", honesty_inside_percent(&h), "percent", h.checks, note);
    figure("forecast_cost_inside_percent", 100.0 * h.cost_inside / h.checks, "percent", h.checks,
           "true cost within P10-P90, same checks");
    figure("forecast_plan_near_percent", 100.0 * h.plans_near / h.plans, "percent", h.plans,
           "plans before the start, durations given, whose P50 is within 20 % of the truth");
    figure("forecast_plan_near_capacity_percent", 100.0 * h.dry_near / MAX(h.dry, 1), "percent",
           h.dry, "the same where AWS then lacks capacity now and then, which no plan can know");
    figure("forecast_plan_needs_parts_percent", 100.0 * h.needs_told / campaigns, "percent",
           campaigns, "plans before the start, durations not given, that say: needs 5 parts");
}

#define MANY 1000000
#define LIVE 1000
#define SEEN 2000
#define NOW  INT64_C(1700000000000000)

static uint32_t some_size(struct rng *rng)
{
    return (uint32_t)(300 * exp(0.5 * rng_normal(rng)));
}

/* MANY waiting and LIVE running parts of about half an hour, SEEN finished ones. */
static void fill(struct forecast_stage *s, struct forecast_part *parts, struct forecast_job *jobs)
{
    struct rng rng;
    rng_seed(&rng, 1);
    for (int i = 0; i < MANY; i++) {
        parts[i] = (struct forecast_part){
            .task_id = i + 1, .seq = (uint32_t)i, .size_mb = some_size(&rng)};
    }
    for (int i = 0; i < LIVE; i++) {
        usec_t since_us = NOW - (1 + i % 600) * USEC_PER_SEC;
        jobs[i] = (struct forecast_job){.task_id = MANY + i + 1,
                                        .intended_us = since_us - 180 * USEC_PER_SEC,
                                        .started_us = since_us,
                                        .size_mb = 300,
                                        .instances = 1};
    }
    for (int i = 0; i < SEEN; i++) {
        uint32_t mb = some_size(&rng);
        double s_run = (100 + 5.0 * mb) * exp(0.3 * rng_normal(&rng));
        duration_learn(&s->duration, mb, (int64_t)(s_run * 1e6));
        duration_learn(&s->start, 0, (int64_t)(180e6 * exp(0.2 * rng_normal(&rng))));
    }
    s->parts = parts;
    s->parts_n = MANY;
    s->jobs = jobs;
    s->jobs_n = LIVE;
    s->tries = SEEN;
    s->failed_tries = SEEN * 3 / 100;
}

static double cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void million(void)
{
    const struct spec spec = {.parts_limit = -1};
    const struct spec_stage stage = {.name = "download",
                                     .instance_type = {"ml.c5.18xlarge"},
                                     .instance_type_n = 1,
                                     .instance_count = 1,
                                     .max_runtime_s = 86400,
                                     .budget_musd = -1,
                                     .per_task_musd = -1};
    const struct quota_ledger_account account = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    const struct quota_ledger slots = {.instance_type = "ml.c5.18xlarge",
                                       .held = LIVE,
                                       .quota = LIVE,
                                       .operator_limit = -1,
                                       .refused_limit = -1,
                                       .price_musd_per_hour = 3600000};
    const struct forecast_campaign campaign = {
        .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    const struct forecast_project project = {
        .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    AUTO_FREE struct forecast_part *parts = xcalloc(MANY, sizeof *parts);
    AUTO_FREE struct forecast_job *jobs = xcalloc(LIVE, sizeof *jobs);
    AUTO_FREE struct forecast_stage *s = xcalloc(1, sizeof *s);
    *s = (struct forecast_stage){.spec = &spec,
                                 .stage = &stage,
                                 .may_start = true,
                                 .parts_limit = -1,
                                 .left_musd = INT64_MAX,
                                 .part_cap_musd = INT64_MAX};
    fill(s, parts, jobs);
    struct forecast_input in = {.now_us = NOW,
                                .creates_per_s = 5,
                                .stages = s,
                                .stages_n = 1,
                                .campaigns = &campaign,
                                .campaigns_n = 1,
                                .projects = &project,
                                .projects_n = 1,
                                .slots = &slots,
                                .slots_n = 1,
                                .account = &account,
                                .parts_limit = -1,
                                .left_musd = INT64_MAX};
    struct err err = ERR_INIT;
    struct forecast f;
    double from_s = cpu_s();
    must(forecast_run(&in, &f, &err), &err);
    double took_s = cpu_s() - from_s;
    char note[200];
    (void)snprintf(note, sizeof note,
                   "1,000,000 waiting and 1,000 live parts, unsorted; CPU seconds of one thread; "
                   "%d worlds; P10 %.1f h, P50 %.1f h, P90 %.1f h",
                   f.runs, (double)f.end_us.p10 / 3600e6, (double)f.end_us.p50 / 3600e6,
                   (double)f.end_us.p90 / 3600e6);
    figure("forecast_s_1m", took_s, "s", 1, note);
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    int64_t campaigns = 500;
    int64_t first = 1;
    if (argc > 1) {
        must(parse_i64(str_of(argv[1]), 1, 100000, &campaigns, &err), &err);
    }
    if (argc > 2) {
        must(parse_i64(str_of(argv[2]), 0, INT64_MAX / 2, &first, &err), &err);
    }
    million();
    honesty((int)campaigns, (uint64_t)first);
    return 0;
}
