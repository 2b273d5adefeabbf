/* Figures of the forecast: how often P10-P90 holds the true end over simulated campaigns, how far
 * the plan before the start is off when durations are given, and how long the forecast of a
 * campaign of 1 M waiting parts takes. Prints JSON lines. Usage: bench_forecast [CAMPAIGNS [SEED]]
 */
#include "common/clock.h"
#include "common/str.h"
#include "tests/unit/forecast_truth.h"
#include <math.h>
#include <stdio.h>

#define POINTS 4

static const int per_cent[POINTS] = {20, 40, 60, 80};

struct counts {
    int checks[POINTS], inside[POINTS], below[POINTS];
    int cost_inside, plans, plans_near, needs_told;
    double width;
};

static void must(bool ok, const struct err *err)
{
    if (!ok) {
        (void)fprintf(stderr, "bench_forecast: %s\n", err->message);
        exit(1);
    }
}

static struct forecast look(struct truth *t, int runs)
{
    struct err err = ERR_INIT;
    struct forecast f;
    struct forecast_input in = *truth_input(t);
    in.runs = runs;
    must(forecast_run(&in, &f, &err), &err);
    return f;
}

static void plan(const struct truth_how *how, uint64_t seed, usec_t true_us, struct counts *c)
{
    struct truth *t = truth_new(how, seed, 0);
    struct forecast silent = look(t, 0);
    c->needs_told += !silent.known && silent.needs_parts == 5;
    double mean_s = truth_mean_s(t);
    truth_free(t);
    t = truth_new(how, seed, (int64_t)(mean_s * 1e6));
    struct forecast f = look(t, 100);
    double off = (double)f.end_us.p50 / (double)true_us - 1;
    c->plans++;
    c->plans_near += f.known && fabs(off) <= 0.2;
    truth_free(t);
}

static void campaign(uint64_t seed, struct counts *c)
{
    struct truth_how how;
    truth_draw(seed, &how);
    struct truth *t = truth_new(&how, seed, 0);
    struct forecast f[POINTS];
    usec_t at[POINTS];
    usec_t began = truth_now(t);
    for (int i = 0; i < POINTS; i++) {
        (void)truth_until(t, (how.parts * per_cent[i] + 99) / 100);
        at[i] = truth_now(t);
        f[i] = look(t, 100);
    }
    (void)truth_until(t, how.parts);
    for (int i = 0; i < POINTS; i++) {
        int64_t left = truth_now(t) - at[i];
        c->checks[i]++;
        c->inside[i] += left >= f[i].end_us.p10 && left <= f[i].end_us.p90;
        c->below[i] += left < f[i].end_us.p10;
        c->cost_inside +=
            truth_spent(t) >= f[i].cost_musd.p10 && truth_spent(t) <= f[i].cost_musd.p90;
        c->width += (double)(f[i].end_us.p90 - f[i].end_us.p10) / (double)left;
    }
    plan(&how, seed, truth_now(t) - began, c);
    truth_free(t);
}

static void figure(const char *name, double value, const char *unit, int n, const char *note)
{
    (void)printf("{\"name\":\"%s\",\"value\":%.3f,\"unit\":\"%s\",\"n\":%d,\"note\":\"%s\"}\n",
                 name, value, unit, n, note);
    (void)fflush(stdout);
}

static void honesty(int campaigns, uint64_t first)
{
    struct counts c = {0};
    for (int i = 0; i < campaigns; i++) {
        campaign(first + (uint64_t)i, &c);
    }
    int checks = 0;
    int inside = 0;
    char note[200];
    for (int i = 0; i < POINTS; i++) {
        checks += c.checks[i];
        inside += c.inside[i];
        (void)fprintf(stderr, "at %d %%: %.1f %% inside, %.1f %% ended sooner\n", per_cent[i],
                      100.0 * c.inside[i] / c.checks[i], 100.0 * c.below[i] / c.checks[i]);
    }
    (void)snprintf(note, sizeof note,
                   "true end within P10-P90; %d campaigns, checked at 20, 40, 60 and 80 %%; mean "
                   "width %.1f %% of the time left",
                   campaigns, 100 * c.width / checks);
    figure("forecast_inside_percent", 100.0 * inside / checks, "percent", checks, note);
    figure("forecast_cost_inside_percent", 100.0 * c.cost_inside / checks, "percent", checks,
           "true cost within P10-P90, same checks");
    figure("forecast_plan_near_percent", 100.0 * c.plans_near / c.plans, "percent", c.plans,
           "plans before the start, durations given, whose P50 is within 20 % of the truth");
    figure("forecast_plan_needs_parts_percent", 100.0 * c.needs_told / c.plans, "percent", c.plans,
           "plans before the start, durations not given, that say 5 finished parts are needed");
}

/* --- a million ------------------------------------------------------------------------------- */

#define MANY 1000000
#define LIVE 1000

static void million(void)
{
    struct spec spec = {.parts_limit = -1};
    struct spec_stage stage = {.name = "download",
                               .instance_type = {"ml.c5.18xlarge"},
                               .instance_type_n = 1,
                               .instance_count = 1,
                               .max_runtime_s = 86400,
                               .budget_musd = -1,
                               .per_task_musd = -1};
    struct slots_account account = SLOTS_ACCOUNT_UNLIMITED;
    struct slots slots = {.instance_type = "ml.c5.18xlarge",
                          .held = LIVE,
                          .quota = LIVE,
                          .operator_limit = -1,
                          .refused_limit = -1,
                          .price_musd_per_hour = 3600000};
    struct forecast_part *parts = xcalloc(MANY, sizeof *parts);
    struct forecast_job *jobs = xcalloc(LIVE, sizeof *jobs);
    struct rng rng;
    rng_seed(&rng, 1);
    struct forecast_stage *s = xcalloc(1, sizeof *s);
    *s = (struct forecast_stage){.spec = &spec,
                                 .stage = &stage,
                                 .may_start = true,
                                 .parts = parts,
                                 .parts_n = MANY,
                                 .jobs = jobs,
                                 .jobs_n = LIVE,
                                 .parts_limit = -1,
                                 .tries = 2000,
                                 .failed_tries = 60};
    usec_t now = INT64_C(1700000000000000);
    for (int i = 0; i < MANY; i++) {
        parts[i] = (struct forecast_part){.task_id = i + 1,
                                          .seq = (uint32_t)i,
                                          .size_mb = (uint32_t)(300 * exp(0.5 * rng_normal(&rng)))};
    }
    for (int i = 0; i < LIVE; i++) {
        jobs[i] = (struct forecast_job){.task_id = MANY + i + 1,
                                        .intended_us = now - 900 * USEC_PER_SEC,
                                        .started_us = now - (i % 600) * USEC_PER_SEC - 1,
                                        .size_mb = 300,
                                        .instances = 1};
    }
    for (int i = 0; i < 2000; i++) {
        uint32_t mb = (uint32_t)(300 * exp(0.5 * rng_normal(&rng)));
        duration_learn(&s->duration, mb,
                       (int64_t)((100 + 5.0 * mb) * exp(0.3 * rng_normal(&rng)) * 1e6));
        duration_learn(&s->start, 0, (int64_t)(180e6 * exp(0.2 * rng_normal(&rng))));
    }
    struct forecast_campaign campaign = {.weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    struct forecast_project project = {.weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    struct forecast_input in = {.now_us = now,
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
    int64_t from = clock_mono_us();
    must(forecast_run(&in, &f, &err), &err);
    double took_s = (double)(clock_mono_us() - from) / 1e6;
    char note[200];
    (void)snprintf(note, sizeof note,
                   "1,000,000 waiting and 1,000 live parts, one core, unsorted; %d worlds; P10 "
                   "%.1f h, P50 %.1f h, P90 %.1f h",
                   f.runs, (double)f.end_us.p10 / 3600e6, (double)f.end_us.p50 / 3600e6,
                   (double)f.end_us.p90 / 3600e6);
    figure("forecast_s_1m", took_s, "s", 1, note);
    free(parts);
    free(jobs);
    free(s);
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
