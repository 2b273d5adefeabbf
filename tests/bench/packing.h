/* How evenly the scheduler fills its slots: 128 parts of log-normal size on 18 slots, worked off by
 * sched_decide itself on a virtual clock, event by event. Used by bench_packing.c (the figures) and
 * tests/unit/statistics/test_packing.c (the bounds). */
#pragma once
#include "common/rng.h"
#include "core/sched/sched.h"
#include <math.h>

#define PACKING_PARTS 128
#define PACKING_SLOTS 18
#define PACKING_SEEDS 200
#define PACKING_START INT64_C(1700000000000000)

enum packing_order {
    PACKING_SCHED,   /* what sched_decide starts */
    PACKING_LONGEST, /* sched_decide without a duration model: longest first, no look-ahead */
    PACKING_FIFO,    /* sched_decide, told that all parts are of one size: by id */
    PACKING_NOTEBOOK /* the first 18 by id, then wait for all of them, and so on */
};
struct packing_case {
    const char *name;
    enum packing_order order;
    double off;   /* size tells the run time within +- this */
    double fails; /* of the tries, each at a uniform point of its run time */
    bool late;    /* they fail when they would have ended */
    bool learned; /* nothing is known before parts have finished */
    double bound; /* of the mean ratio; 0: shown only */
};
static const struct packing_case packing_cases[] = {
    {.name = "makespan_ratio_known", .order = PACKING_SCHED, .bound = 1.02},
    {.name = "makespan_ratio_sized",
     .order = PACKING_SCHED,
     .off = 0.2,
     .learned = true,
     .bound = 1.04},
    {.name = "makespan_ratio_fail3", .order = PACKING_SCHED, .fails = 0.03, .bound = 1.06},
    {.name = "makespan_ratio_fail3_late",
     .order = PACKING_SCHED,
     .fails = 0.03,
     .late = true,
     .bound = 1.06},
    {.name = "makespan_ratio_longest_first", .order = PACKING_LONGEST},
    {.name = "makespan_ratio_fifo", .order = PACKING_FIFO},
    {.name = "makespan_ratio_notebook", .order = PACKING_NOTEBOOK},
};
struct packing_live {
    struct ready_queue_task task;
    int64_t started_us, ends_us;
    bool fails;
};
struct packing {
    const struct packing_case *c;
    struct rng rng;
    int64_t run_us[PACKING_PARTS + 1]; /* by task id */
    struct packing_live live[PACKING_SLOTS];
    int live_n;
    struct sched_view view;
    struct spec spec;
    struct spec_stage spec_stage;
    struct sched_stage stage;
    struct sched_campaign campaign;
    struct sched_project project;
    struct quota_ledger slots;
    struct quota_ledger_account account;
    struct sched_job jobs[PACKING_SLOTS];
    struct duration duration;
    struct sched_plan plan;
};

/* The model that is right from the start: a second a megabyte. */
static inline void packing_teach(struct duration *d)
{
    duration_init(d, 0);
    for (uint32_t mb = 100; mb <= 1000; mb += 100) {
        duration_learn(d, mb, (int64_t)mb * USEC_PER_SEC);
    }
    duration_fit(d);
}

static inline void packing_init(struct packing *p, const struct packing_case *c, uint64_t seed)
{
    memset(p, 0, sizeof *p);
    p->c = c;
    rng_seed(&p->rng, seed);
    p->slots = (struct quota_ledger){.instance_type = "ml.c5.18xlarge",
                                     .quota = PACKING_SLOTS,
                                     .operator_limit = -1,
                                     .refused_limit = -1,
                                     .price_musd_per_hour = 3672000};
    p->account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    p->project = (struct sched_project){
        .project_id = 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    p->campaign = (struct sched_campaign){
        .campaign_id = 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    p->spec_stage = (struct spec_stage){.instance_type = {p->slots.instance_type},
                                        .instance_type_n = 1,
                                        .instance_count = 1,
                                        .volume_gb = 30,
                                        .max_runtime_s = 86400,
                                        .min_runtime_s = 86400,
                                        .budget_musd = -1,
                                        .per_task_musd = -1};
    p->stage = (struct sched_stage){.campaign_id = 1,
                                    .stage_id = 1,
                                    .spec = &p->spec,
                                    .stage = &p->spec_stage,
                                    .ready = ready_queue_new(),
                                    .may_start = true,
                                    .parts_limit = -1,
                                    .stage_left_musd = INT64_MAX,
                                    .part_cap_musd = INT64_MAX,
                                    .duration = c->order == PACKING_SCHED ? &p->duration : NULL};
    p->view = (struct sched_view){.parts_limit = -1,
                                  .left_musd = INT64_MAX,
                                  .stages = &p->stage,
                                  .stages_n = 1,
                                  .campaigns = &p->campaign,
                                  .campaigns_n = 1,
                                  .projects = &p->project,
                                  .projects_n = 1,
                                  .slots = &p->slots,
                                  .slots_n = 1,
                                  .account = &p->account,
                                  .jobs = p->jobs};
    if (c->learned) {
        duration_init(&p->duration, 0);
    } else {
        packing_teach(&p->duration);
    }
    for (int64_t id = 1; id <= PACKING_PARTS; id++) {
        uint32_t mb = (uint32_t)(600 * exp(0.5 * rng_normal(&p->rng))) + 1;
        double off = 1 + c->off * (2 * rng_unit(&p->rng) - 1);
        p->run_us[id] = (int64_t)(mb * 1e6 * off);
        struct ready_queue_task t = {.task_id = id, .seq = (uint32_t)id};
        t.size_mb = c->order == PACKING_SCHED || c->order == PACKING_LONGEST ? mb : 0;
        ready_queue_push(p->stage.ready, &t);
    }
}

/* What the controller tells the scheduler of its live jobs. */
static inline void packing_view(struct packing *p, int64_t now_us)
{
    p->view.now_us = now_us;
    p->view.tokens = SCHED_LAUNCHES_MAX;
    if (p->c->order == PACKING_NOTEBOOK && p->live_n > 0) {
        p->view.tokens = 0;
    }
    duration_fit(&p->duration);
    for (int i = 0; i < p->live_n; i++) {
        const struct packing_live *l = &p->live[i];
        int64_t left_us =
            duration_remaining_us(&p->duration, l->task.size_mb, now_us - l->started_us, 50);
        p->jobs[i] = (struct sched_job){.task_id = l->task.task_id,
                                        .stage_id = 1,
                                        .instances = 1,
                                        .end_p50_us = left_us > 0 ? now_us + left_us : USEC_NEVER,
                                        .end_p90_us = USEC_NEVER};
    }
    p->view.jobs_n = p->live_n;
    p->view.live = p->live_n;
    p->slots.held = p->live_n;
    p->account.total[MARKET_ON_DEMAND].held = p->live_n;
    p->campaign.live = p->campaign.held = p->live_n;
    p->project.live = p->project.held = p->live_n;
    p->stage.live = p->live_n;
}

/* One campaign from its first start to its last end: makespan over what no order can beat, which
 * is max(work / slots, longest part), work including what failed tries took. */
static inline double packing_ratio(struct packing *p, const struct packing_case *c, uint64_t seed)
{
    packing_init(p, c, seed);
    int64_t now_us = PACKING_START;
    int64_t work_us = 0;
    int64_t longest_us = 0;
    do {
        packing_view(p, now_us);
        sched_decide(&p->view, &p->plan);
        for (int i = 0; i < p->plan.launches_n; i++) {
            struct packing_live l = {.task = p->plan.launches[i].task, .started_us = now_us};
            int64_t run_us = p->run_us[l.task.task_id];
            longest_us = MAX(longest_us, run_us);
            l.fails = rng_chance(&p->rng, c->fails);
            double until = rng_unit(&p->rng);
            run_us = l.fails && !c->late ? 1 + (int64_t)((double)run_us * until) : run_us;
            work_us += run_us;
            l.ends_us = now_us + run_us;
            ASSERT(p->live_n < PACKING_SLOTS);
            p->live[p->live_n++] = l;
        }
        ASSERT(p->live_n > 0);
        int first = 0;
        for (int i = 1; i < p->live_n; i++) {
            first = p->live[i].ends_us < p->live[first].ends_us ? i : first;
        }
        struct packing_live ended = p->live[first];
        p->live[first] = p->live[--p->live_n];
        now_us = ended.ends_us;
        if (ended.fails) {
            ready_queue_push(p->stage.ready, &ended.task);
        } else if (c->learned) {
            duration_learn(&p->duration, ended.task.size_mb, now_us - ended.started_us);
        }
    } while (p->live_n > 0 || ready_queue_n(p->stage.ready) > 0);
    ready_queue_free(p->stage.ready);
    sched_plan_done(&p->plan);
    int64_t bound_us = MAX(work_us / PACKING_SLOTS, longest_us);
    return (double)(now_us - PACKING_START) / (double)bound_us;
}

struct packing_result {
    double mean, worst;
};
static inline struct packing_result packing_run(const struct packing_case *c, uint64_t seeds)
{
    struct packing *p = xmalloc(sizeof *p);
    struct packing_result r = {0};
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        double ratio = packing_ratio(p, c, seed);
        r.mean += ratio / (double)seeds;
        r.worst = MAX(r.worst, ratio);
    }
    free(p);
    return r;
}
