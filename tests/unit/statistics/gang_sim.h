/* A fleet of one instance type under the real sched_decide, on a virtual clock: a stage of parts
 * whose durations the model learns as they end, and stages of runs of many instances. Everything is
 * drawn from one seed. For test_gang_sim.c and bench_gang.c. */
#pragma once
#include "common/rng.h"
#include "core/sched/sched.h"
#include <math.h>
#include <stdio.h>

#define GS_NOW    INT64_C(1700000000000000)
#define GS_TASKS  3000
#define GS_STAGES 4 /* 0: parts; others: runs */
#define GS_SLOTS  64
#define GS_COLD_S 180
#define GS_RUN_S  (6 * 3600)          /* longest run time: then it is stopped */
#define GS_SEEN   (10 * USEC_PER_SEC) /* an end is seen by the next look */
#define GS_PARTS  900
#define GS_QUEUE  150 /* of them there from the start; others arrive as the fleet works */
#define GS_TYPE   "ml.a.large"

enum gs_noise { GS_LOG_NORMAL, GS_UNIFORM }; /* of durations around what size tells */

struct gs_task {
    int stage_i;
    uint32_t size_mb;
    int64_t run_us, cold_us;
    usec_t arrive_us, start_us, end_us; /* start 0: waits */
    usec_t promised_us;                 /* the first promise it got; 0: none */
};
struct gs_check { /* of each part started while one run waits with a reservation */
    int64_t backfilled, in_time, broken; /* broken: P90 end after the promise, and nothing spare */
    int64_t late;                        /* their P90 said in time, they were not */
};
struct gs {
    struct rng rng;
    enum gs_noise noise;
    bool drain; /* while a run waits no part starts */
    int64_t limit;
    struct sched_view view;
    struct spec spec[GS_STAGES];
    struct spec_stage spec_stage[GS_STAGES];
    struct sched_stage stages[GS_STAGES];
    struct sched_campaign campaigns[GS_STAGES];
    struct sched_project project;
    struct quota_ledger slots;
    struct quota_ledger_account account;
    struct duration duration;
    struct reservation reservation[GS_STAGES];
    struct sched_plan plan;
    struct sched_job jobs[GS_SLOTS];
    struct gs_task task[GS_TASKS + 1]; /* by id, from 1, by arrival */
    int tasks_n, arrived, ended_parts;
    int64_t idle_us;                  /* slots x time free while a run waits */
    usec_t hungry_from_us[GS_STAGES]; /* waits since then without a start; 0: does not wait */
    int64_t hunger_us[GS_STAGES];     /* the longest such time */
    struct gs_check check;
};

UNUSED static struct gs *gs_new(uint64_t seed, int64_t limit, enum gs_noise noise, bool drain)
{
    struct gs *s = xcalloc(1, sizeof *s);
    rng_seed(&s->rng, seed);
    s->noise = noise;
    s->drain = drain;
    s->limit = limit;
    duration_init(&s->duration, 0);
    s->slots = (struct quota_ledger){.instance_type = GS_TYPE,
                                     .quota = limit,
                                     .operator_limit = -1,
                                     .refused_limit = -1,
                                     .price_musd_per_hour = 3600000};
    s->account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    s->project = (struct sched_project){
        .project_id = 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    s->view = (struct sched_view){.now_us = GS_NOW,
                                  .parts_limit = -1,
                                  .left_musd = INT64_MAX,
                                  .stages = s->stages,
                                  .campaigns = s->campaigns,
                                  .projects = &s->project,
                                  .projects_n = 1,
                                  .slots = &s->slots,
                                  .slots_n = 1,
                                  .account = &s->account,
                                  .jobs = s->jobs};
    return s;
}

UNUSED static void gs_free(struct gs *s)
{
    for (int i = 0; i < s->view.stages_n; i++) {
        ready_queue_free(s->stages[i].ready);
    }
    sched_plan_done(&s->plan);
    free(s);
}

/* A campaign of one stage; the first is that of the parts. */
UNUSED static int gs_stage(struct gs *s, int instances)
{
    int i = s->view.stages_n++;
    s->view.campaigns_n++;
    s->spec[i].parts_limit = -1;
    s->spec_stage[i] = (struct spec_stage){.instance_type = {GS_TYPE},
                                           .instance_type_n = 1,
                                           .instance_count = instances,
                                           .volume_gb = 30,
                                           .max_runtime_s = GS_RUN_S,
                                           .min_runtime_s = GS_RUN_S,
                                           .budget_musd = -1,
                                           .per_task_musd = -1};
    s->stages[i] = (struct sched_stage){.campaign_id = i + 1,
                                        .stage_id = i + 1,
                                        .spec = &s->spec[i],
                                        .stage = &s->spec_stage[i],
                                        .ready = ready_queue_new(),
                                        .may_start = true,
                                        .priority = 50,
                                        .campaign_i = i,
                                        .parts_limit = -1,
                                        .stage_left_musd = INT64_MAX,
                                        .part_cap_musd = INT64_MAX,
                                        .duration = i == 0 ? &s->duration : NULL,
                                        .cold_start_s = GS_COLD_S,
                                        .reservation = &s->reservation[i]};
    s->campaigns[i] = (struct sched_campaign){
        .campaign_id = i + 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    return i;
}

/* A part: size log-normal (sigma 0.5), about half an hour, duration by size with a tenth of noise.
 */
UNUSED static void gs_part(struct gs *s, usec_t arrive_us)
{
    double mb = 1000 * exp(0.5 * rng_normal(&s->rng));
    double z = rng_normal(&s->rng);
    double u = rng_unit(&s->rng);
    double off = s->noise == GS_UNIFORM ? 0.8 + 0.4 * u : exp(0.1 * z);
    double run_s = fmin((60 + 1.6 * mb) * off, GS_RUN_S);
    int64_t cold_us = (int64_t)((GS_COLD_S - 30 + 60 * rng_unit(&s->rng)) * 1e6);
    ASSERT(s->tasks_n < GS_TASKS);
    s->task[++s->tasks_n] = (struct gs_task){.size_mb = (uint32_t)mb,
                                             .run_us = (int64_t)(run_s * 1e6),
                                             .cold_us = cold_us,
                                             .arrive_us = arrive_us};
}

/* `queue` of them there from the start, then as many more as the fleet does: about 2,000 s each. */
UNUSED static void gs_parts(struct gs *s, int queue)
{
    double at_s = 0;
    for (int i = 0; i < GS_PARTS; i++) {
        gs_part(s, GS_NOW + (usec_t)(at_s * 1e6));
        at_s -= i < queue ? 0 : log(1 - rng_unit(&s->rng)) * 2000 / (double)s->limit;
    }
}

/* A run; one that is added while the fleet works comes before whatever has not come yet. */
UNUSED static int gs_run_task(struct gs *s, int stage_i, usec_t arrive_us, int64_t run_us)
{
    ASSERT(s->tasks_n < GS_TASKS);
    int at = s->arrived + 1;
    while (at <= s->tasks_n && s->task[at].arrive_us <= arrive_us) {
        at++;
    }
    memmove(&s->task[at + 1], &s->task[at], (size_t)(s->tasks_n - at + 1) * sizeof s->task[0]);
    s->tasks_n++;
    s->task[at] = (struct gs_task){.stage_i = stage_i,
                                   .run_us = run_us,
                                   .cold_us = GS_COLD_S * USEC_PER_SEC,
                                   .arrive_us = arrive_us};
    return at;
}

static void gs_count(struct gs *s, int stage_i, int sign)
{
    int n = sign * s->spec_stage[stage_i].instance_count;
    s->slots.held += n;
    s->project.held += n;
    s->project.live += sign;
    s->campaigns[stage_i].held += n;
    s->campaigns[stage_i].live += sign;
    s->stages[stage_i].live += sign;
    s->view.live += sign;
}

/* What the scheduler knows of a live job now. */
static void gs_see_job(const struct gs *s, struct sched_job *j)
{
    const struct gs_task *t = &s->task[j->task_id];
    usec_t runs_us = t->start_us + t->cold_us;
    usec_t expected_us = MAX(s->view.now_us, t->start_us + GS_COLD_S * USEC_PER_SEC);
    j->run_from_us = runs_us <= s->view.now_us ? runs_us : expected_us;
    j->last_us = j->run_from_us + (GS_RUN_S + 120) * USEC_PER_SEC;
    j->duration = s->stages[t->stage_i].duration;
}

static bool gs_any_run_waits(const struct gs *s)
{
    for (int i = 1; i < s->view.stages_n; i++) {
        if (ready_queue_n(s->stages[i].ready) > 0) {
            return true;
        }
    }
    return false;
}

static void gs_end_jobs(struct gs *s)
{
    int kept = 0;
    for (int i = 0; i < s->view.jobs_n; i++) {
        struct sched_job *j = &s->jobs[i];
        const struct gs_task *t = &s->task[j->task_id];
        if (t->end_us > s->view.now_us) {
            s->jobs[kept++] = *j;
            continue;
        }
        gs_count(s, t->stage_i, -1);
        if (t->stage_i == 0) {
            s->ended_parts++;
            duration_learn(&s->duration, t->size_mb, t->run_us);
        }
    }
    s->view.jobs_n = kept;
}

static usec_t gs_p90(const struct gs *s, const struct gs_task *t)
{
    usec_t from = t->start_us + t->cold_us <= s->view.now_us
                      ? t->start_us + t->cold_us
                      : MAX(s->view.now_us, t->start_us + GS_COLD_S * USEC_PER_SEC);
    int64_t elapsed = MAX(s->view.now_us - from, 0);
    return MAX(s->view.now_us, from) + duration_remaining_us(&s->duration, t->size_mb, elapsed, 90);
}

/* The oracle of backfill, by its own sums: for a single run that waits. */
static void gs_check_backfill(struct gs *s, const struct gs_task *t, int run_stage_i)
{
    const struct reservation *g = &s->reservation[run_stage_i];
    int64_t spare = s->limit - s->spec_stage[run_stage_i].instance_count;
    if (g->task_id == 0 || t->stage_i != 0 || s->drain) {
        return;
    }
    int64_t late = 0;
    for (int i = 0; i < s->view.jobs_n; i++) {
        late += gs_p90(s, &s->task[s->jobs[i].task_id]) > g->promised_us;
    }
    bool in_time = gs_p90(s, t) <= g->promised_us;
    s->check.backfilled++;
    s->check.in_time += in_time;
    s->check.broken += !in_time && late > spare;
    s->check.late += in_time && t->end_us > g->promised_us;
}

static void gs_launch(struct gs *s, const struct sched_launch *l)
{
    struct gs_task *t = &s->task[l->task.task_id];
    ASSERT(t->start_us == 0 && s->view.jobs_n < GS_SLOTS);
    t->start_us = s->view.now_us;
    usec_t end = t->start_us + t->cold_us + t->run_us;
    t->end_us = (end + GS_SEEN - 1) / GS_SEEN * GS_SEEN;
    gs_count(s, t->stage_i, 1);
    ASSERT(s->slots.held <= s->limit);
    s->jobs[s->view.jobs_n++] =
        (struct sched_job){.attempt_id = l->task.task_id,
                           .task_id = l->task.task_id,
                           .stage_id = s->stages[t->stage_i].stage_id,
                           .campaign_i = t->stage_i,
                           .instances = s->spec_stage[t->stage_i].instance_count,
                           .end_p50_us = USEC_NEVER,
                           .end_p90_us = USEC_NEVER,
                           .size_mb = t->size_mb};
    gs_see_job(s, &s->jobs[s->view.jobs_n - 1]);
    if (s->view.stages_n == 2) {
        gs_check_backfill(s, t, 1);
    }
}

static void gs_arrive(struct gs *s)
{
    while (s->arrived < s->tasks_n && s->task[s->arrived + 1].arrive_us <= s->view.now_us) {
        const struct gs_task *t = &s->task[++s->arrived];
        ready_queue_push(s->stages[t->stage_i].ready,
                         &(struct ready_queue_task){.task_id = s->arrived,
                                                    .seq = (uint32_t)s->arrived,
                                                    .size_mb = t->size_mb});
    }
}

static void gs_decide(struct gs *s)
{
    if (gs_any_run_waits(s)) {
        duration_fit(&s->duration);
    }
    for (int i = 0; i < s->view.jobs_n; i++) {
        gs_see_job(s, &s->jobs[i]);
    }
    s->view.tokens = 100;
    s->stages[0].may_start = !s->drain || !gs_any_run_waits(s);
    s->stages[0].why_not = WAIT_RESERVED;
    sched_decide(&s->view, &s->plan);
    for (int i = 1; i < s->view.stages_n; i++) {
        const struct reservation *g = &s->reservation[i];
        if (g->task_id != 0 && s->task[g->task_id].promised_us == 0 &&
            g->promised_us != USEC_NEVER) {
            s->task[g->task_id].promised_us = g->promised_us;
        }
    }
    bool started[GS_STAGES] = {false};
    for (int i = 0; i < s->plan.launches_n; i++) {
        gs_launch(s, &s->plan.launches[i]);
        started[s->plan.launches[i].stage_i] = true;
    }
    for (int i = 0; i < s->view.stages_n; i++) {
        usec_t *from = &s->hungry_from_us[i];
        if (started[i] || ready_queue_n(s->stages[i].ready) == 0) {
            *from = ready_queue_n(s->stages[i].ready) > 0 ? s->view.now_us : 0;
        } else if (*from == 0) {
            *from = s->view.now_us;
        }
        s->hunger_us[i] =
            *from > 0 ? MAX(s->hunger_us[i], s->view.now_us - *from) : s->hunger_us[i];
    }
}

/* One event; false: everything has ended. */
UNUSED static bool gs_step(struct gs *s)
{
    usec_t next = s->arrived < s->tasks_n ? s->task[s->arrived + 1].arrive_us : USEC_NEVER;
    for (int i = 0; i < s->view.jobs_n; i++) {
        next = MIN(next, s->task[s->jobs[i].task_id].end_us);
    }
    if (s->view.live > 0 || s->arrived < s->tasks_n) {
        next = MIN(next, MAX(s->plan.wake_us, s->view.now_us + 1));
    }
    if (next == USEC_NEVER) {
        return false;
    }
    next = MAX(next, s->view.now_us);
    if (gs_any_run_waits(s)) {
        s->idle_us += (s->limit - s->slots.held) * (next - s->view.now_us);
    }
    s->view.now_us = next;
    gs_end_jobs(s);
    gs_arrive(s);
    gs_decide(s);
    return true;
}

struct gs_arrival {
    int64_t wait_us, promised_us; /* from its arrival on; promised -1: none */
    int64_t idle_us;
    struct gs_check check;
};

/* Same seed, same parts and same arrival, told durations or not. */
UNUSED static struct gs_arrival gs_arrival_run(uint64_t seed, enum gs_noise noise, int queue,
                                               bool drain)
{
    struct gs *s = gs_new(seed, 24 + (int64_t)(seed % 9), noise, drain);
    (void)gs_stage(s, 1);
    int run_stage_i = gs_stage(s, 24);
    gs_parts(s, queue);
    int after = 100 + (int)rng_below(&s->rng, 300);
    int64_t later_us = (int64_t)rng_below(&s->rng, (uint64_t)(1800 * USEC_PER_SEC));
    while (s->ended_parts < after && gs_step(s)) {
    }
    usec_t arrive_us = s->view.now_us + later_us;
    int id = gs_run_task(s, run_stage_i, arrive_us, 7200 * USEC_PER_SEC);
    while (s->task[id].start_us == 0 && gs_step(s)) {
    }
    const struct gs_task *t = &s->task[id];
    ASSERT(t->start_us > 0);
    struct gs_arrival ret = {.wait_us = t->start_us - t->arrive_us,
                             .promised_us = t->promised_us > 0 ? t->promised_us - arrive_us : -1,
                             .idle_us = s->idle_us,
                             .check = s->check};
    gs_free(s);
    return ret;
}

struct gs_result {
    int seeds, promised, kept;
    double wait_s, promise_s;        /* means */
    double ratio_mean, ratio_median; /* promise over wait, seed by seed */
    double idle_s, idle_drain_s;     /* slot-seconds, means */
    double wait_drain_s;
    struct gs_check check;
};

static int gs_by_value(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

UNUSED static struct gs_result gs_arrivals(uint64_t first, int seeds, enum gs_noise noise,
                                           int queue)
{
    struct gs_result r = {.seeds = seeds};
    double *ratio = xcalloc((size_t)seeds, sizeof *ratio);
    for (int i = 0; i < seeds; i++) {
        struct gs_arrival a = gs_arrival_run(first + (uint64_t)i, noise, queue, false);
        struct gs_arrival d = gs_arrival_run(first + (uint64_t)i, noise, queue, true);
        r.promised += a.promised_us >= 0;
        r.kept += a.promised_us >= 0 && a.wait_us <= a.promised_us;
        r.wait_s += (double)a.wait_us / 1e6 / seeds;
        r.wait_drain_s += (double)d.wait_us / 1e6 / seeds;
        r.promise_s += (double)a.promised_us / 1e6 / seeds;
        r.idle_s += (double)a.idle_us / 1e6 / seeds;
        r.idle_drain_s += (double)d.idle_us / 1e6 / seeds;
        ratio[i] = (double)a.promised_us / (double)MAX(a.wait_us, 1);
        r.ratio_mean += ratio[i] / seeds;
        r.check.backfilled += a.check.backfilled;
        r.check.in_time += a.check.in_time;
        r.check.broken += a.check.broken;
        r.check.late += a.check.late;
    }
    qsort(ratio, (size_t)seeds, sizeof *ratio, gs_by_value);
    r.ratio_median = ratio[seeds / 2];
    free(ratio);
    return r;
}

struct gs_streams {
    int ended, tasks;
    double wait_s[GS_STAGES];   /* the longest of a task, by stage */
    double hunger_s[GS_STAGES]; /* the longest while something waited and nothing started */
};

enum gs_load {
    GS_ARRIVING, /* over a day: the fleet is full to about 0.7 */
    GS_FULL,     /* all there from the start, parts and runs enough for days */
    GS_LARGE     /* the same, runs of 24 only, on 24 slots: one side or the other */
};

UNUSED static struct gs_streams gs_streams_run(uint64_t seed, enum gs_load load)
{
    int64_t limit = load == GS_LARGE ? 24 : 24 + (int64_t)(seed % 9);
    struct gs *s = gs_new(seed, limit, GS_LOG_NORMAL, false);
    (void)gs_stage(s, 1);
    int large = gs_stage(s, 24);
    int small = gs_stage(s, 8);
    const double day_s = load == GS_ARRIVING ? 86400 : 0;
    for (int i = 0; i < 300; i++) {
        gs_part(s, GS_NOW + (usec_t)(day_s * 1e6 * i / 300));
    }
    for (int i = 0; i < (load == GS_ARRIVING ? 4 : 12); i++) {
        (void)gs_run_task(s, large, GS_NOW + (usec_t)(day_s * 1e6 * rng_unit(&s->rng)),
                          5400 * USEC_PER_SEC);
    }
    for (int i = 0; i < (load == GS_LARGE ? 0 : 12); i++) {
        (void)gs_run_task(s, small, GS_NOW + (usec_t)(day_s * 1e6 * rng_unit(&s->rng)),
                          3600 * USEC_PER_SEC);
    }
    int64_t steps = 0;
    while (gs_step(s) && ++steps < 200000) {
    }
    struct gs_streams r = {.tasks = s->tasks_n};
    for (int i = 1; i <= s->tasks_n; i++) {
        const struct gs_task *t = &s->task[i];
        usec_t start_us = t->start_us > 0 ? t->start_us : s->view.now_us;
        r.ended += t->end_us > 0 && t->end_us <= s->view.now_us;
        r.wait_s[t->stage_i] = fmax(r.wait_s[t->stage_i], (double)(start_us - t->arrive_us) / 1e6);
    }
    for (int i = 0; i < GS_STAGES; i++) {
        r.hunger_s[i] = (double)s->hunger_us[i] / 1e6;
    }
    gs_free(s);
    return r;
}

/* The worst of many seeds. */
UNUSED static struct gs_streams gs_streams_worst(uint64_t first, int seeds, enum gs_load load)
{
    struct gs_streams r = {0};
    for (int i = 0; i < seeds; i++) {
        struct gs_streams one = gs_streams_run(first + (uint64_t)i, load);
        r.ended += one.ended;
        r.tasks += one.tasks;
        for (int k = 0; k < GS_STAGES; k++) {
            r.wait_s[k] = fmax(r.wait_s[k], one.wait_s[k]);
            r.hunger_s[k] = fmax(r.hunger_s[k], one.hunger_s[k]);
        }
    }
    return r;
}
