/* A small world for the scheduler: campaigns, stages with waiting tasks, three instance types. */
#pragma once
#include "core/sched/sched.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define NOW    INT64_C(1700000000000000)
#define STAGES 12
#define CAMPS  5
#define TYPES  3
#define TASKS  40

UNUSED static const char *const type_names[TYPES] = {"ml.a.large", "ml.b.large", "ml.c.large"};

struct change {
    int rung;
    int volume_gb;
    int64_t runtime_s;
};

struct world {
    struct sched_view view;
    struct spec spec[CAMPS];
    struct spec_stage stage[STAGES];
    struct sched_stage stages[STAGES];
    struct sched_campaign campaigns[CAMPS];
    struct sched_project projects[2];
    struct quota_ledger slots[TYPES];
    struct quota_ledger_account account;
    struct change change[STAGES * TASKS + 1]; /* by task id; rung < 0: none */
    int64_t tasks_n;
};

UNUSED static bool change_of(void *ctx, int64_t task_id, int *rung, int *volume_gb,
                             int64_t *runtime_s)
{
    const struct world *w = ctx;
    const struct change *c = &w->change[task_id];
    if (c->rung < 0) {
        return false;
    }
    *rung = c->rung;
    *volume_gb = c->volume_gb;
    *runtime_s = c->runtime_s;
    return true;
}

/* An empty world: no stage, no campaign, three types with 10 slots at 3.60 USD an hour. */
UNUSED static struct world *world_new(void)
{
    struct world *w = xcalloc(1, sizeof *w);
    for (int i = 0; i < TYPES; i++) {
        w->slots[i] = (struct quota_ledger){.quota = 10,
                                            .operator_limit = -1,
                                            .refused_limit = -1,
                                            .foreign_us = NOW,
                                            .price_musd_per_hour = 3600000};
        (void)snprintf(w->slots[i].instance_type, sizeof w->slots[i].instance_type, "%s",
                       type_names[i]);
    }
    w->account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    for (int i = 0; i < 2; i++) {
        w->projects[i] = (struct sched_project){
            .project_id = i + 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    }
    w->view = (struct sched_view){.now_us = NOW,
                                  .parts_limit = -1,
                                  .left_musd = INT64_MAX,
                                  .projects = w->projects,
                                  .projects_n = 2,
                                  .account = &w->account,
                                  .tokens = 100,
                                  .stages = w->stages,
                                  .campaigns = w->campaigns,
                                  .slots = w->slots,
                                  .slots_n = TYPES,
                                  .change_of = change_of,
                                  .ctx = w};
    return w;
}

UNUSED static void world_free(struct world *w)
{
    for (int i = 0; i < w->view.stages_n; i++) {
        ready_queue_free(w->stages[i].ready);
    }
    free(w);
}

UNUSED static int add_campaign(struct world *w)
{
    int c = w->view.campaigns_n++;
    w->campaigns[c] = (struct sched_campaign){
        .campaign_id = c + 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    return c;
}

/* A stage of campaign c on type i with n waiting tasks of one instance each. */
UNUSED static int add_stage(struct world *w, int c, int type, int n)
{
    int s = w->view.stages_n++;
    w->stage[s] = (struct spec_stage){.instance_type = {type_names[type]},
                                      .instance_type_n = 1,
                                      .instance_count = 1,
                                      .volume_gb = 30,
                                      .max_runtime_s = 3600,
                                      .min_runtime_s = 3600,
                                      .budget_musd = -1,
                                      .per_task_musd = -1};
    w->stages[s] = (struct sched_stage){.campaign_id = c + 1,
                                        .stage_id = s + 1,
                                        .spec = &w->spec[c],
                                        .stage = &w->stage[s],
                                        .ready = ready_queue_new(),
                                        .may_start = true,
                                        .priority = 50,
                                        .campaign_i = c,
                                        .parts_limit = -1,
                                        .stage_left_musd = INT64_MAX,
                                        .part_cap_musd = INT64_MAX};
    for (int i = 0; i < n; i++) {
        int64_t id = ++w->tasks_n;
        w->change[id].rung = -1;
        ready_queue_push(w->stages[s].ready,
                         &(struct ready_queue_task){.task_id = id, .seq = (uint32_t)i});
    }
    return s;
}

UNUSED static struct sched_plan *decide(const struct world *w)
{
    struct sched_plan *p = xcalloc(1, sizeof *p);
    sched_decide(&w->view, p);
    return p;
}

UNUSED static void plan_free(struct sched_plan *p)
{
    sched_plan_done(p);
    free(p);
}

UNUSED static int launches_of(const struct sched_plan *p, int stage_i)
{
    int n = 0;
    for (int i = 0; i < p->launches_n; i++) {
        n += p->launches[i].stage_i == stage_i;
    }
    return n;
}

#define assert_reason(p, s, want)                                                                  \
    assert_string_equal(wait_reason_name((p)->reason[s]), wait_reason_name(WAIT_##want))
