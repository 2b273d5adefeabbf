/* Warm pools on a virtual clock, second by second: sched_decide on one side, on the other a small
 * SageMaker that hands a pool to whatever matches, keeps quotas, and is seen one tick late. Used by
 * bench_warm.c (the figures) and tests/unit/statistics/test_warm_pool_sim.c (the bounds).
 *
 * What SageMaker compares is here one number a stage, the volume; the world never asks for a
 * fingerprint. */
#pragma once
#include "common/rng.h"
#include "core/sched/sched.h"

#define WW_PARTS   128
#define WW_SLOTS   18
#define WW_TICK_S  10 /* what happens at SageMaker is seen this much later */
#define WW_COLD_S  180
#define WW_WARM_S  20
#define WW_UP_S    15 /* of upload at the end of a job */
#define WW_SEEDS   200
#define WW_START   INT64_C(1700000000)
#define WW_JOBS    1024
#define WW_STAGES  3
#define WW_PRICE   3672000
#define WW_TASKS   (WW_STAGES * WW_PARTS + 1)
#define WW_LONGEST (WW_START + 86400)
#define WW_NEVER   (WW_LONGEST * 2)

enum ww_policy {
    WW_SCHED, /* keep_alive: auto */
    WW_NONE,  /* keep_alive: off */
    WW_ALWAYS /* 3600 s on every job, never ended: the plain way to use pools */
};
struct ww_case {
    enum ww_policy policy;
    int stages;       /* campaigns of one stage each, WW_PARTS parts in all */
    bool alike;       /* their jobs match each other's pools */
    double fails;     /* of the tries fail: half of them leave a pool, half do not */
    double disk_full; /* of the tries end so: the next has twice the volume */
    int slots, warm_quota;
    bool knows; /* how long a part takes, from its size */
};
struct ww_job { /* one attempt; seconds; truth but for the fields of `seen` */
    int64_t task_id;
    int stage_i, volume_gb;
    int64_t keep_alive_s, created_s, run_s, start_s, ends_s;
    bool reused, fails, disk_full;
    /* its pool: there from ends_s on, when it leaves one */
    bool pool;
    int64_t pool_gone_s; /* reused, expired or ended; WW_NEVER so far */
    int took;            /* the job whose pool it got, -1 none */
    struct {             /* by the controller */
        bool ended, pool_over, ending, used;
        int64_t guess_s; /* expected end */
        int meant;       /* the job whose pool it was intended for, -1 none */
    } seen;
};
struct ww_result {
    int64_t makespan_s, idle_s, start_s; /* idle, start: instance-seconds of pools and of starts */
    int after_first, reused; /* launches after the first wave, and those that were warm */
    int at_full;             /* of these with every slot of the quota in use */
    int refused;             /* Creates beyond the quota */
    int awaited;             /* plans with a stage that waits for a pool */
    int64_t outlived_s;      /* longest time of a pool without a waiting task that matches it */
    int ended, expired, jobs;
};
struct ww {
    const struct ww_case *c;
    struct rng rng;
    int64_t now_s;
    double tokens;
    struct ww_job jobs[WW_JOBS];
    int jobs_n;
    struct {
        uint32_t size_mb;
        int64_t run_s;
        int stage_i, volume_gb;
        bool waiting, done;
    } task[WW_TASKS];
    int left;                            /* tasks not done */
    int64_t wanted_s[WW_STAGES * 2 + 1]; /* by volume - 30: when a task last waited for it */
    struct sched_view view;
    struct spec spec;
    struct spec_stage spec_stage[WW_STAGES];
    struct sched_stage stage[WW_STAGES];
    struct sched_campaign campaign[WW_STAGES];
    struct sched_project project;
    struct quota_ledger slots;
    struct quota_ledger_account account;
    struct warm_pool pools[WW_JOBS];
    int pool_job[WW_JOBS];
    struct duration duration;
    struct sched_plan plan;
    bool look;      /* something is to be decided */
    usec_t wake_us; /* of the last plan */
    struct ww_result r;
};

static inline bool ww_pool_there(const struct ww *w, const struct ww_job *j)
{
    return j->pool && j->ends_s <= w->now_s && j->pool_gone_s > w->now_s;
}

/* Instances that count against the quota of the type: jobs and pools. */
static inline int ww_used(const struct ww *w)
{
    int n = 0;
    for (int i = 0; i < w->jobs_n; i++) {
        n += w->jobs[i].ends_s > w->now_s || ww_pool_there(w, &w->jobs[i]);
    }
    return n;
}

/* Any pool that matches, as SageMaker pleases. */
static inline struct ww_job *ww_match(struct ww *w, int volume_gb)
{
    struct ww_job *found = NULL;
    uint64_t n = 0;
    for (int i = 0; i < w->jobs_n; i++) {
        if (ww_pool_there(w, &w->jobs[i]) && w->jobs[i].volume_gb == volume_gb &&
            rng_below(&w->rng, ++n) == 0) {
            found = &w->jobs[i];
        }
    }
    return found;
}

static inline void ww_pool_over(struct ww *w, struct ww_job *j)
{
    int64_t wanted_s = w->wanted_s[j->volume_gb - 30];
    j->pool_gone_s = w->now_s;
    w->r.idle_s += w->now_s - j->ends_s;
    w->r.outlived_s = MAX(w->r.outlived_s, w->now_s - MAX(wanted_s, j->ends_s));
}

/* False: refused, over the quota. */
static inline bool ww_create(struct ww *w, struct ww_job *j)
{
    struct ww_job *pool = ww_match(w, j->volume_gb);
    int used = ww_used(w);
    if (pool == NULL && used >= w->c->slots) {
        w->r.refused++;
        return false;
    }
    if (pool != NULL) {
        pool->pool_gone_s = w->now_s;
        w->r.idle_s += w->now_s - pool->ends_s;
    }
    bool after = w->r.jobs >= w->c->slots;
    w->r.after_first += after;
    w->r.reused += after && pool != NULL;
    w->r.at_full += after && pool != NULL && used >= w->c->slots;
    w->r.jobs++;
    j->reused = pool != NULL;
    j->took = pool != NULL ? (int)(pool - w->jobs) : -1;
    j->created_s = w->now_s;
    j->start_s = pool != NULL ? WW_WARM_S : WW_COLD_S - 20 + (int64_t)rng_below(&w->rng, 41);
    w->r.start_s += j->start_s;
    j->ends_s = w->now_s + j->start_s + j->run_s + WW_UP_S;
    j->pool_gone_s = WW_NEVER;
    return true;
}

/* What happens at this second: jobs end and leave pools, pools expire. */
static inline void ww_happen(struct ww *w)
{
    int kept = 0;
    for (int i = 0; i < w->jobs_n; i++) {
        kept += ww_pool_there(w, &w->jobs[i]) && w->jobs[i].ends_s < w->now_s;
    }
    for (int i = 0; i < w->jobs_n; i++) {
        struct ww_job *j = &w->jobs[i];
        if (j->ends_s == w->now_s) {
            bool healthy = !j->fails || rng_chance(&w->rng, 0.5);
            j->pool = j->keep_alive_s > 0 && healthy && kept < w->c->warm_quota;
            kept += j->pool;
        }
        if (ww_pool_there(w, j) && w->now_s >= j->ends_s + j->keep_alive_s) {
            w->r.expired++;
            ww_pool_over(w, j);
        }
    }
}

static inline bool ww_change_of(void *ctx, int64_t task_id, int *rung, int *volume_gb,
                                int64_t *runtime_s)
{
    const struct ww *w = ctx;
    int volume = w->task[task_id].volume_gb;
    if (volume == w->spec_stage[w->task[task_id].stage_i].volume_gb) {
        return false;
    }
    *rung = 0;
    *runtime_s = 0;
    *volume_gb = volume;
    return true;
}

static inline void ww_wait(struct ww *w, int64_t task_id, int64_t not_before_s)
{
    w->task[task_id].waiting = true;
    ready_queue_push(w->stage[w->task[task_id].stage_i].ready,
                     &(struct ready_queue_task){.task_id = task_id,
                                                .seq = (uint32_t)task_id,
                                                .size_mb = w->task[task_id].size_mb,
                                                .not_before_us = not_before_s * USEC_PER_SEC});
}

/* Describe names the pool a job really got. When it was meant for another, the two are exchanged:
 * who was meant for the one it got is now meant for the one it did not take. */
static inline void ww_see_reused(struct ww *w, struct ww_job *j)
{
    struct ww_job *other = NULL;
    for (int i = 0; i < w->jobs_n && j->took >= 0; i++) {
        other = w->jobs[i].seen.meant == j->took ? &w->jobs[i] : other;
    }
    if (other != NULL) {
        other->seen.meant = j->seen.meant;
    } else if (j->seen.meant >= 0) {
        w->jobs[j->seen.meant].seen.used = false;
    }
    if (j->took >= 0) {
        w->jobs[j->took].seen.used = true;
    }
    j->seen.meant = j->took;
    w->look = true;
}

/* What was true a tick ago is seen now. */
static inline void ww_see(struct ww *w)
{
    int64_t then_s = w->now_s - WW_TICK_S;
    for (int i = 0; i < w->jobs_n; i++) {
        struct ww_job *j = &w->jobs[i];
        if (j->created_s == then_s && j->took != j->seen.meant) {
            ww_see_reused(w, j);
        }
        if (!j->seen.ended && j->ends_s - WW_UP_S == then_s) {
            j->seen.guess_s = w->now_s; /* it uploads */
            w->look = true;
        }
        if (!j->seen.ended && j->ends_s <= then_s) {
            j->seen.ended = true;
            j->seen.pool_over = !j->pool;
            w->look = true;
            if (j->fails || j->disk_full) {
                w->task[j->task_id].volume_gb += j->disk_full ? WW_STAGES : 0;
                ww_wait(w, j->task_id, w->now_s + (j->fails ? 30 : 0));
            } else {
                w->task[j->task_id].done = true;
                w->left--;
            }
        }
        if (j->seen.ended && !j->seen.pool_over && j->pool_gone_s <= then_s && !j->seen.used) {
            j->seen.pool_over = true;
            w->look = true;
        }
    }
}

static inline void ww_add_pool(struct ww *w, const struct ww_job *j)
{
    struct spec_stage like = w->spec_stage[j->stage_i];
    int n = w->view.pools_n++;
    w->pool_job[n] = (int)(j - w->jobs);
    w->pools[n] = (struct warm_pool){
        .attempt_id = 1 + (j - w->jobs),
        .campaign_id = j->stage_i + 1,
        .stage_id = j->stage_i + 1,
        .fingerprint = warm_pool_fingerprint_of(&like, 0, j->volume_gb, -1),
        .instances = 1,
        .state = j->seen.ended ? POOL_AVAILABLE : POOL_EXPECTED,
        .keep_alive_s = j->keep_alive_s,
        .available_us = (j->seen.ended ? j->ends_s : j->seen.guess_s) * USEC_PER_SEC,
        .expires_us = (j->ends_s + j->keep_alive_s) * USEC_PER_SEC,
        .price_musd_per_hour = WW_PRICE,
        .ending = j->seen.ending,
        .stays = w->c->policy == WW_ALWAYS};
}

static inline void ww_view(struct ww *w)
{
    w->view.now_us = w->now_s * USEC_PER_SEC;
    w->view.tokens = (int64_t)w->tokens;
    w->view.pools_n = 0;
    w->slots.held = w->slots.warm_idle = w->slots.warm_held = 0;
    for (int i = 0; i < WW_STAGES; i++) {
        w->stage[i].live = w->campaign[i].live = w->campaign[i].held = 0;
    }
    for (int i = 0; i < w->jobs_n; i++) {
        const struct ww_job *j = &w->jobs[i];
        bool live = !j->seen.ended;
        bool pool = j->keep_alive_s > 0 && !j->seen.pool_over && !j->seen.used;
        w->slots.held += live;
        w->slots.warm_idle += !live && pool;
        w->slots.warm_held += pool;
        w->stage[j->stage_i].live += live;
        w->campaign[j->stage_i].live = w->campaign[j->stage_i].held = w->stage[j->stage_i].live;
        if (pool) {
            ww_add_pool(w, j);
        }
    }
    w->view.live = w->project.live = w->project.held = w->slots.held;
    w->account.total[MARKET_ON_DEMAND].held = w->slots.held + w->slots.warm_idle;
}

static inline void ww_launch(struct ww *w, const struct sched_launch *l)
{
    int64_t id = l->task.task_id;
    ASSERT(w->jobs_n < WW_JOBS);
    struct ww_job *j = &w->jobs[w->jobs_n];
    *j = (struct ww_job){.task_id = id,
                         .stage_i = l->stage_i,
                         .volume_gb = l->volume_gb,
                         .keep_alive_s = l->keep_alive_s,
                         .run_s = w->task[id].run_s,
                         .fails = rng_chance(&w->rng, w->c->fails)};
    j->disk_full =
        !j->fails && rng_chance(&w->rng, w->c->disk_full) && l->volume_gb < 30 + WW_STAGES;
    w->tokens -= 1;
    if (!ww_create(w, j)) {
        ww_wait(w, id, w->now_s + 10);
        return;
    }
    w->task[id].waiting = false;
    w->jobs_n++;
    int64_t run_s = w->c->knows ? w->task[id].size_mb : 0;
    j->seen.guess_s = run_s > 0 ? w->now_s + j->start_s + run_s + WW_UP_S : WW_NEVER;
    j->seen.meant = l->pool_i >= 0 ? w->pool_job[l->pool_i] : -1;
    if (l->pool_i >= 0) { /* its slots are this job's now */
        w->jobs[w->pool_job[l->pool_i]].seen.used = true;
    }
}

static inline void ww_decide(struct ww *w)
{
    ww_view(w);
    sched_decide(&w->view, &w->plan);
    for (int i = 0; i < w->plan.launches_n; i++) {
        ww_launch(w, &w->plan.launches[i]);
    }
    for (int i = 0; i < w->plan.pool_ends_n; i++) {
        struct ww_job *j = &w->jobs[w->pool_job[w->plan.pool_ends[i].pool_i]];
        j->seen.ending = true;
        if (ww_pool_there(w, j)) { /* else somebody was faster: the update is refused */
            w->r.ended++;
            ww_pool_over(w, j);
        }
    }
    w->look = false;
    for (int i = 0; i < w->view.stages_n; i++) {
        w->look = w->look || w->plan.reason[i] == WAIT_RATE;
        w->r.awaited += w->plan.reason[i] == WAIT_HAND_OVER;
    }
    w->wake_us = w->plan.wake_us;
}

static inline void ww_init_stages(struct ww *w)
{
    int64_t keep_alive_s = w->c->policy == WW_SCHED ? -1 : w->c->policy == WW_NONE ? 0 : 3600;
    for (int i = 0; i < w->c->stages; i++) {
        w->campaign[i] = (struct sched_campaign){
            .campaign_id = i + 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
        w->spec_stage[i] = (struct spec_stage){.role = "role",
                                               .instance_type = {w->slots.instance_type},
                                               .instance_type_n = 1,
                                               .instance_count = 1,
                                               .volume_gb = 30 + (w->c->alike ? 0 : i),
                                               .max_runtime_s = 7200,
                                               .min_runtime_s = 7200,
                                               .budget_musd = -1,
                                               .per_task_musd = -1};
        w->stage[i] = (struct sched_stage){.campaign_id = i + 1,
                                           .stage_id = i + 1,
                                           .spec = &w->spec,
                                           .stage = &w->spec_stage[i],
                                           .ready = ready_queue_new(),
                                           .may_start = true,
                                           .campaign_i = i,
                                           .parts_limit = -1,
                                           .stage_left_musd = INT64_MAX,
                                           .part_cap_musd = INT64_MAX,
                                           .duration = w->c->knows ? &w->duration : NULL,
                                           .warm = {keep_alive_s, -1, w->c->policy != WW_ALWAYS}};
    }
}

static inline void ww_init(struct ww *w, const struct ww_case *c, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->c = c;
    w->now_s = WW_START;
    w->tokens = 2;
    w->look = true;
    rng_seed(&w->rng, seed);
    w->slots = (struct quota_ledger){.instance_type = "ml.c5.18xlarge",
                                     .quota = c->slots,
                                     .warm_quota = c->warm_quota,
                                     .operator_limit = -1,
                                     .refused_limit = -1,
                                     .price_musd_per_hour = WW_PRICE};
    w->account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    w->project = (struct sched_project){
        .project_id = 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    duration_init(&w->duration, 0);
    for (uint32_t mb = 100; mb <= 1200; mb += 100) { /* a second a megabyte */
        duration_learn(&w->duration, mb, (int64_t)mb * USEC_PER_SEC);
    }
    duration_fit(&w->duration);
    ww_init_stages(w);
    w->view = (struct sched_view){.parts_limit = -1,
                                  .left_musd = INT64_MAX,
                                  .stages = w->stage,
                                  .stages_n = c->stages,
                                  .campaigns = w->campaign,
                                  .campaigns_n = c->stages,
                                  .projects = &w->project,
                                  .projects_n = 1,
                                  .slots = &w->slots,
                                  .slots_n = 1,
                                  .account = &w->account,
                                  .pools = w->pools,
                                  .change_of = ww_change_of,
                                  .ctx = w};
    for (int64_t id = 1; id <= WW_PARTS; id++) { /* about 10 min; size tells it within 20 % */
        w->task[id].size_mb = 450 + (uint32_t)rng_below(&w->rng, 301);
        double off = 0.8 + 0.4 * rng_unit(&w->rng);
        w->task[id].run_s = (int64_t)(w->task[id].size_mb * off);
        w->task[id].stage_i = (int)(id % c->stages);
        w->task[id].volume_gb = w->spec_stage[w->task[id].stage_i].volume_gb;
        ww_wait(w, id, 0);
    }
    w->left = WW_PARTS;
}

static inline bool ww_pools_left(const struct ww *w)
{
    for (int i = 0; i < w->jobs_n; i++) {
        if (ww_pool_there(w, &w->jobs[i])) {
            return true;
        }
    }
    return false;
}

/* Until all parts are done and all pools gone. False: it did not come to an end. */
static inline bool ww_run(struct ww *w, const struct ww_case *c, uint64_t seed)
{
    ww_init(w, c, seed);
    for (; (w->left > 0 || ww_pools_left(w)) && w->now_s < WW_LONGEST; w->now_s++) {
        w->tokens = MIN(2.0, w->tokens + 1);
        for (int64_t id = 1; id <= WW_PARTS; id++) {
            if (w->task[id].waiting) {
                w->wanted_s[w->task[id].volume_gb - 30] = w->now_s;
            }
        }
        ww_happen(w);
        ww_see(w);
        ASSERT(ww_used(w) <= c->slots);
        if (w->look || w->wake_us <= w->now_s * USEC_PER_SEC) {
            ww_decide(w);
        }
        w->r.makespan_s = w->left > 0 ? w->now_s - WW_START : w->r.makespan_s;
    }
    for (int i = 0; i < c->stages; i++) {
        ready_queue_free(w->stage[i].ready);
    }
    sched_plan_done(&w->plan);
    return w->left == 0 && w->now_s < WW_LONGEST;
}
