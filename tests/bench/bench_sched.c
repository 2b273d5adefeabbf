/* What a decision costs beside a million waiting tasks: 25 campaigns of 4 stages in 5 projects, 10
 * instance types with warm quotas, 1,150 instances, 1,000 live jobs, jobs of 8 instances in one
 * stage of ten. Every pass sees a change: jobs end and leave pools, tasks come back to wait; in one
 * pass of fifty half of all that runs ends. And what a waiting task takes in memory. */
#include "common/rng.h"
#include "core/sched/sched.h"
#include <assert.h>
#include <malloc.h>
#include <stdio.h>
#include <time.h>

#define WAITING   1000000
#define LIVE      1150 /* instances */
#define PROJECTS  5
#define CAMPAIGNS 25
#define STAGES    100
#define TYPES     10
#define PASSES    4000
#define NOW       INT64_C(1700000000000000)

struct fleet {
    struct rng rng;
    struct sched_view view;
    struct spec spec;
    struct spec_stage spec_stage[STAGES];
    struct sched_stage stages[STAGES];
    struct sched_campaign campaigns[CAMPAIGNS];
    struct sched_project projects[PROJECTS];
    struct quota_ledger slots[TYPES];
    struct quota_ledger_account account;
    struct sched_job jobs[LIVE];
    struct sched_launch launches[LIVE]; /* beside jobs */
    struct warm_pool pools[LIVE];       /* expected and available */
    struct reservation reservations[STAGES];
    struct duration duration;
    struct sched_plan plan;
    int64_t next_id;
    double bytes_per_task;
};

static double now_ms(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static size_t heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static struct ready_queue_task task_new(struct fleet *f)
{
    return (struct ready_queue_task){.task_id = ++f->next_id,
                                     .seq = (uint32_t)f->next_id,
                                     .size_mb = (uint32_t)rng_below(&f->rng, 4000)};
}

/* The queues as a leader reads them: in pages, half of them of one stage. */
static void fill_queues(struct fleet *f)
{
    enum { PAGE = 5000 };
    static_assert(WAITING % PAGE == 0, "whole pages");
    struct ready_queue_task *page = xmalloc(PAGE * sizeof *page);
    size_t before = heap_bytes();
    for (int s = 0; s < STAGES; s++) {
        f->stages[s].ready = ready_queue_new();
    }
    for (int k = 0; k < WAITING / PAGE; k++) {
        int s = k % 2 == 0 ? 0 : 1 + k / 2 % (STAGES - 1);
        for (int i = 0; i < PAGE; i++) {
            page[i] = task_new(f);
            page[i].not_before_us = rng_chance(&f->rng, 0.01) ? NOW + i * USEC_PER_SEC : 0;
        }
        ready_queue_push_many(f->stages[s].ready, page, PAGE);
    }
    f->bytes_per_task = (double)(heap_bytes() - before) / WAITING;
    free(page);
}

static void fill_stages(struct fleet *f)
{
    for (int s = 0; s < STAGES; s++) {
        int c = s / (STAGES / CAMPAIGNS);
        f->spec_stage[s] = (struct spec_stage){
            .instance_type = {f->slots[s % TYPES].instance_type,
                              f->slots[(s + 1) % TYPES].instance_type},
            .instance_type_n = 2,
            .instance_count = s % 10 == 7 ? 8 : 1,
            .volume_gb = 30,
            .max_runtime_s = 86400,
            .min_runtime_s = 3600,
            .budget_musd = -1,
            .per_task_musd = -1,
        };
        f->stages[s] = (struct sched_stage){
            .campaign_id = c + 1,
            .stage_id = s + 1,
            .spec = &f->spec,
            .stage = &f->spec_stage[s],
            .may_start = true,
            .priority = 50 + c % 2,
            .campaign_i = c,
            .parts_limit = -1,
            .stage_left_musd = INT64_MAX,
            .part_cap_musd = INT64_MAX,
            .duration = &f->duration,
            .warm = {.keep_alive_s = -1, .max_idle_cost_musd = -1},
            .reservation = &f->reservations[s],
        };
    }
}

/* One task in a hundred was moved down the ladder by an attempt before. */
static bool change_of(void *ctx, int64_t task_id, int *rung, int *volume_gb, int64_t *runtime_s)
{
    (void)ctx;
    *rung = 1;
    *volume_gb = 60;
    *runtime_s = 0;
    return task_id % 100 == 0;
}

static void fill(struct fleet *f)
{
    rng_seed(&f->rng, 1);
    f->account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    for (int i = 0; i < TYPES; i++) {
        f->slots[i] = (struct quota_ledger){.quota = LIVE / TYPES,
                                            .warm_quota = LIVE / TYPES / 2,
                                            .operator_limit = -1,
                                            .refused_limit = -1,
                                            .price_musd_per_hour = 3672000};
        (void)snprintf(f->slots[i].instance_type, sizeof f->slots[i].instance_type,
                       "ml.t%d.18xlarge", i);
    }
    for (int i = 0; i < PROJECTS; i++) {
        f->projects[i] = (struct sched_project){
            .project_id = i + 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    }
    for (int i = 0; i < CAMPAIGNS; i++) {
        f->campaigns[i] = (struct sched_campaign){.campaign_id = i + 1,
                                                  .project_i = i % PROJECTS,
                                                  .weight = 100 + i,
                                                  .parts_limit = -1,
                                                  .left_musd = INT64_MAX};
    }
    duration_init(&f->duration, 0);
    for (uint32_t i = 0; i < DURATION_KEPT; i++) {
        duration_learn(&f->duration, 100 + i, (int64_t)(100 + i + i % 7) * USEC_PER_SEC);
    }
    duration_fit(&f->duration);
    fill_stages(f);
    fill_queues(f);
    f->view = (struct sched_view){.now_us = NOW,
                                  .parts_limit = -1,
                                  .left_musd = INT64_MAX,
                                  .stages = f->stages,
                                  .stages_n = STAGES,
                                  .campaigns = f->campaigns,
                                  .campaigns_n = CAMPAIGNS,
                                  .projects = f->projects,
                                  .projects_n = PROJECTS,
                                  .slots = f->slots,
                                  .slots_n = TYPES,
                                  .account = &f->account,
                                  .jobs = f->jobs,
                                  .pools = f->pools,
                                  .change_of = change_of};
}

static void count(struct fleet *f, const struct sched_job *j, int by)
{
    struct sched_campaign *c = &f->campaigns[j->campaign_i];
    struct sched_project *p = &f->projects[c->project_i];
    int n = by * j->instances;
    f->slots[j->slots_i].held += n;
    f->account.total[MARKET_ON_DEMAND].held += n;
    f->stages[j->stage_id - 1].live += by;
    c->live += by;
    c->held += n;
    c->last_start_us = by > 0 ? f->view.now_us : c->last_start_us;
    p->live += by;
    p->held += n;
    f->view.live += by;
}

/* An available pool is taken, ended or gone: its instances are no longer idle. */
static void pool_drop(struct fleet *f, int i)
{
    f->slots[f->pools[i].slots_i].warm_idle -= f->pools[i].instances;
    f->slots[f->pools[i].slots_i].warm_held -= f->pools[i].instances;
    f->account.total[MARKET_ON_DEMAND].held -= f->pools[i].instances;
    f->pools[i].state = POOL_TERMINATED;
}

static void pools_pack(struct fleet *f)
{
    int n = 0;
    for (int i = 0; i < f->view.pools_n; i++) {
        if (f->pools[i].state == POOL_AVAILABLE && f->pools[i].expires_us <= f->view.now_us) {
            pool_drop(f, i);
        }
        if (f->pools[i].state != POOL_TERMINATED) {
            f->pools[n++] = f->pools[i];
        }
    }
    f->view.pools_n = n;
}

static void pool_add(struct fleet *f, const struct sched_job *j, const struct sched_launch *l)
{
    const struct sched_stage *s = &f->stages[l->stage_i];
    ASSERT(f->view.pools_n < LIVE);
    f->pools[f->view.pools_n++] = (struct warm_pool){
        .attempt_id = j->attempt_id,
        .campaign_id = s->campaign_id,
        .stage_id = s->stage_id,
        .fingerprint =
            warm_pool_fingerprint_of(s->stage, l->instance_type_i, l->volume_gb, l->subnet_i),
        .slots_i = l->slots_i,
        .instances = j->instances,
        .state = POOL_EXPECTED,
        .keep_alive_s = l->keep_alive_s,
        .available_us = j->end_p50_us,
        .expires_us = USEC_NEVER,
        .price_musd_per_hour = f->slots[l->slots_i].price_musd_per_hour,
    };
    f->slots[l->slots_i].warm_held += j->instances;
}

static void started(struct fleet *f)
{
    for (int i = 0; i < f->plan.pool_ends_n; i++) {
        pool_drop(f, f->plan.pool_ends[i].pool_i);
    }
    for (int i = 0; i < f->plan.launches_n; i++) {
        const struct sched_launch *l = &f->plan.launches[i];
        const struct sched_stage *s = &f->stages[l->stage_i];
        usec_t end_us = f->view.now_us + duration_quantile_us(&f->duration, l->task.size_mb, 50);
        if (l->pool_i >= 0) {
            pool_drop(f, l->pool_i);
        }
        ASSERT(f->view.jobs_n < LIVE);
        struct sched_job *j = &f->jobs[f->view.jobs_n];
        f->launches[f->view.jobs_n++] = *l;
        *j = (struct sched_job){.attempt_id = l->task.task_id,
                                .task_id = l->task.task_id,
                                .stage_id = s->stage_id,
                                .campaign_i = s->campaign_i,
                                .slots_i = l->slots_i,
                                .instances = s->stage->instance_count,
                                .end_p50_us = end_us,
                                .end_p90_us = end_us + 60 * USEC_PER_SEC};
        count(f, j, 1);
    }
    pools_pack(f);
    for (int i = 0; i < f->plan.launches_n; i++) {
        if (f->plan.launches[i].keep_alive_s > 0) {
            int at = f->view.jobs_n - f->plan.launches_n + i;
            pool_add(f, &f->jobs[at], &f->launches[at]);
        }
    }
}

/* n jobs end: their pools are there, their tasks wait again, half of them after a back-off, so that
 * the queues keep their size. */
static void end_jobs(struct fleet *f, int n)
{
    for (int i = 0; i < n && f->view.jobs_n > 0; i++) {
        int at = (int)rng_below(&f->rng, (uint64_t)f->view.jobs_n);
        struct sched_job j = f->jobs[at];
        struct ready_queue_task t = f->launches[at].task;
        count(f, &j, -1);
        for (int k = 0; k < f->view.pools_n; k++) {
            if (f->pools[k].attempt_id == j.attempt_id && f->pools[k].state == POOL_EXPECTED) {
                f->pools[k].state = POOL_AVAILABLE;
                f->pools[k].available_us = f->view.now_us;
                f->pools[k].expires_us = f->view.now_us + f->pools[k].keep_alive_s * USEC_PER_SEC;
                f->slots[j.slots_i].warm_idle += j.instances;
                f->account.total[MARKET_ON_DEMAND].held += j.instances;
            }
        }
        t.not_before_us = rng_chance(&f->rng, 0.5) ? f->view.now_us + 30 * USEC_PER_SEC : 0;
        ready_queue_push(f->stages[j.stage_id - 1].ready, &t);
        f->jobs[at] = f->jobs[--f->view.jobs_n];
        f->launches[at] = f->launches[f->view.jobs_n];
    }
}

static int by_value(const void *a, const void *b)
{
    double x = 0;
    double y = 0;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

int main(void)
{
    struct fleet *f = xcalloc(1, sizeof *f);
    double *took_ms = xmalloc(PASSES * sizeof *took_ms);
    int64_t launches = 0;
    int64_t taken = 0;
    fill(f);
    do {
        f->view.tokens = SCHED_LAUNCHES_MAX;
        sched_decide(&f->view, &f->plan);
        started(f);
    } while (f->plan.launches_n > 0);
    int64_t live = 0;
    for (int i = 0; i < PASSES; i++) {
        f->view.now_us += USEC_PER_SEC;
        f->view.tokens = SCHED_LAUNCHES_MAX;
        end_jobs(f, i % 50 == 49 ? f->view.jobs_n / 2 : 1 + (int)rng_below(&f->rng, 10));
        double start = now_ms();
        sched_decide(&f->view, &f->plan);
        took_ms[i] = now_ms() - start;
        launches += f->plan.launches_n;
        for (int k = 0; k < f->plan.launches_n; k++) {
            taken += f->plan.launches[k].pool_i >= 0;
        }
        started(f);
        live += f->view.jobs_n;
    }
    qsort(took_ms, PASSES, sizeof *took_ms, by_value);
    (void)printf(
        "{\"name\":\"decision_ms_p99_1m\",\"value\":%.3f,\"unit\":\"ms\",\"n\":%d,\"note\":"
        "\"CPU time of sched_decide, %d waiting in %d stages, %lld live jobs, each pass after "
        "a change; median %.3f, worst %.3f; %.1f starts a pass, %.0f %% on warm pools\"}\n",
        took_ms[PASSES * 99 / 100], PASSES, WAITING, STAGES, (long long)(live / PASSES),
        took_ms[PASSES / 2], took_ms[PASSES - 1], (double)launches / PASSES,
        100.0 * (double)taken / (double)launches);
    (void)printf("{\"name\":\"bytes_per_waiting_task\",\"value\":%.1f,\"unit\":\"bytes\",\"n\":%d,"
                 "\"note\":\"heap of the ready queues after loading by pages\"}\n",
                 f->bytes_per_task, WAITING);
    for (int s = 0; s < STAGES; s++) {
        ready_queue_free(f->stages[s].ready);
    }
    sched_plan_done(&f->plan);
    free(took_ms);
    free(f);
    return 0;
}
