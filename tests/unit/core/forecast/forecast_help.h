/* A small world for the forecast: campaigns, stages of parts that take ten minutes, two types. */
#pragma once
#include "core/forecast/forecast_work.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define NOW    INT64_C(1700000000000000)
#define MIN_US (60 * USEC_PER_SEC)
#define STAGES 32
#define PARTS  64
#define CAMPS  3

struct world {
    struct forecast_input in;
    struct spec spec[CAMPS];
    struct spec_stage stage[STAGES];
    struct forecast_stage stages[STAGES];
    struct forecast_part parts[STAGES][PARTS];
    struct forecast_job jobs[STAGES][PARTS];
    struct forecast_campaign campaigns[CAMPS];
    struct forecast_project projects[2];
    struct quota_ledger slots[2];
    struct quota_ledger_account account;
    int64_t tasks;
};

/* Two types of 4 slots at 3.60 USD an hour, one campaign, no stage. */
UNUSED static struct world *world_new(void)
{
    struct world *w = xcalloc(1, sizeof *w);
    w->account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    for (int i = 0; i < 2; i++) {
        w->slots[i] = (struct quota_ledger){
            .quota = 4, .operator_limit = -1, .refused_limit = -1, .price_musd_per_hour = 3600000};
        (void)snprintf(w->slots[i].instance_type, sizeof w->slots[i].instance_type, "ml.%c.large",
                       'a' + i);
        w->projects[i] = (struct forecast_project){
            .project_id = i + 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    }
    for (int i = 0; i < CAMPS; i++) {
        w->spec[i].parts_limit = -1;
        w->campaigns[i] = (struct forecast_campaign){.campaign_id = i + 1,
                                                     .priority = 50,
                                                     .weight = 100,
                                                     .parts_limit = -1,
                                                     .left_musd = INT64_MAX};
    }
    w->in = (struct forecast_input){.now_us = NOW,
                                    .seed = 1,
                                    .runs = 60,
                                    .creates_per_s = 1000,
                                    .stages = w->stages,
                                    .campaigns = w->campaigns,
                                    .campaigns_n = 1,
                                    .projects = w->projects,
                                    .projects_n = 1,
                                    .slots = w->slots,
                                    .slots_n = 2,
                                    .account = &w->account,
                                    .parts_limit = -1,
                                    .left_musd = INT64_MAX};
    return w;
}

/* n equal parts of campaign c on type 0; forty were seen to take ten minutes each, none failed. */
UNUSED static struct forecast_stage *add_stage(struct world *w, int c, int n)
{
    int i = w->in.stages_n++;
    struct forecast_stage *s = &w->stages[i];
    w->stage[i] = (struct spec_stage){.name = i == 0 ? "first" : "second",
                                      .instance_type = {"ml.a.large"},
                                      .instance_type_n = 1,
                                      .instance_count = 1,
                                      .volume_gb = 30,
                                      .max_runtime_s = 7200,
                                      .min_runtime_s = 7200,
                                      .budget_musd = -1,
                                      .per_task_musd = -1};
    *s = (struct forecast_stage){.campaign_id = c + 1,
                                 .stage_id = i + 1,
                                 .campaign_i = c,
                                 .spec = &w->spec[c],
                                 .stage = &w->stage[i],
                                 .may_start = true,
                                 .parts = w->parts[i],
                                 .parts_n = (size_t)n,
                                 .jobs = w->jobs[i],
                                 .parts_limit = -1,
                                 .left_musd = INT64_MAX,
                                 .part_cap_musd = INT64_MAX,
                                 .tries = 1000000};
    duration_init(&s->duration, 0);
    for (int k = 0; k < 40; k++) {
        duration_learn(&s->duration, 0, 10 * MIN_US);
    }
    for (int k = 0; k < n; k++) {
        w->parts[i][k] =
            (struct forecast_part){.task_id = ++w->tasks, .seq = (uint32_t)k, .size_mb = 0};
    }
    return s;
}

/* The last waiting parts of a stage have run for so long, on type 0. */
UNUSED static void set_running(struct world *w, int stage_i, int n, int64_t ran_us)
{
    struct forecast_stage *s = &w->stages[stage_i];
    for (int k = 0; k < n; k++) {
        const struct forecast_part *p = &w->parts[stage_i][--s->parts_n];
        w->jobs[stage_i][s->jobs_n++] = (struct forecast_job){.task_id = p->task_id,
                                                              .intended_us = NOW - ran_us,
                                                              .started_us = NOW - ran_us,
                                                              .size_mb = p->size_mb,
                                                              .instances = 1};
        w->slots[0].held++;
    }
}

UNUSED static struct forecast run(const struct world *w)
{
    struct err err = ERR_INIT;
    struct forecast f;
    if (!forecast_run(&w->in, &f, &err)) {
        fail_msg("%s", err.message);
    }
    return f;
}

#define assert_min(us, want_min) assert_int_equal(((us) + MIN_US / 2) / MIN_US, want_min)
