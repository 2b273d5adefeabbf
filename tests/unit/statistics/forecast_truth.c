/* Aim: an honest opponent for forecasts. Method: one stage of one campaign, an event for each end,
 * sched_decide after each; durations are drawn when a try starts and shown to nobody before it has
 * ended. */
#include "forecast_truth.h"
#include <math.h>
#include <stdio.h>

#define T0    INT64_C(1700000000000000)
#define PRICE 3600000

struct part {
    uint32_t size_mb;
    enum { WAITS, LIVE, DONE } state;
    usec_t not_before_us, intended_us, run_from_us, end_us;
    bool ok;
};
struct truth {
    struct truth_how how;
    struct rng rng;
    usec_t now_us;
    double next_create_us;
    int done, live;
    musd_t spent_musd;
    struct part part[TRUTH_PARTS_MAX];
    struct spec spec;
    struct spec_stage stage;
    struct ready_queue *ready;
    struct quota_ledger slots;
    struct quota_ledger_account account;
    struct sched_campaign campaign;
    struct sched_project project;
    struct sched_stage sched_stage;
    struct sched_job jobs[TRUTH_PARTS_MAX];
    struct sched_plan plan;
    struct forecast_stage f_stage;
    struct forecast_campaign f_campaign;
    struct forecast_project f_project;
    struct forecast_part f_parts[TRUTH_PARTS_MAX];
    struct forecast_job f_jobs[TRUTH_PARTS_MAX];
    struct forecast_input input;
};

static double between(struct rng *rng, double low, double high)
{
    return low + (high - low) * rng_unit(rng);
}

static double between_log(struct rng *rng, double low, double high)
{
    return exp(between(rng, log(low), log(high)));
}

void truth_draw(uint64_t seed, struct truth_how *ret)
{
    struct rng r;
    rng_seed(&r, seed * 7919 + 1);
    struct truth_how h = {.slots = (int)between_log(&r, 4, 33)};
    h.parts = (int)between_log(&r, 3.0 * h.slots, MIN(15.0 * h.slots, 300.0));
    h.parts = MAX(h.parts, 30);
    h.size_median_mb = between_log(&r, 200, 3000);
    h.size_sigma = rng_chance(&r, 0.15) ? 0 : between(&r, 0.2, 0.8);
    double mean_s = between_log(&r, 300, 7200);
    double base = between(&r, 0, 0.6); /* share that does not grow with size */
    h.base_s = mean_s * base;
    h.per_mb_s = mean_s * (1 - base) / h.size_median_mb;
    h.noise_sigma = between_log(&r, 0.04, 0.4);
    h.wild = rng_chance(&r, 0.15) ? between(&r, 0.005, 0.03) : 0;
    h.wild_times = between(&r, 1.5, 3);
    h.fail = rng_chance(&r, 0.5) ? between(&r, 0.005, 0.08) : 0;
    h.fail_bend = rng_chance(&r, 0.5) ? 1 : 2;
    h.start_s = between(&r, 60, 240);
    h.start_sigma = between(&r, 0.05, 0.3);
    h.capacity = rng_chance(&r, 0.25) ? between(&r, 0.01, 0.10) : 0;
    h.capacity_s = between(&r, 300, 1800);
    h.creates_per_s = 1;
    *ret = h;
}

static void make_views(struct truth *t)
{
    t->account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    t->slots = (struct quota_ledger){.quota = t->how.slots,
                                     .operator_limit = -1,
                                     .refused_limit = -1,
                                     .price_musd_per_hour = PRICE};
    (void)snprintf(t->slots.instance_type, sizeof t->slots.instance_type, "ml.c5.18xlarge");
    t->spec.parts_limit = -1;
    t->stage = (struct spec_stage){.name = "download",
                                   .instance_type = {"ml.c5.18xlarge"},
                                   .instance_type_n = 1,
                                   .instance_count = 1,
                                   .volume_gb = 30,
                                   .max_runtime_s = 864000,
                                   .min_runtime_s = 864000,
                                   .budget_musd = -1,
                                   .per_task_musd = -1};
    t->campaign = (struct sched_campaign){
        .campaign_id = 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    t->project = (struct sched_project){
        .project_id = 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    t->sched_stage = (struct sched_stage){.campaign_id = 1,
                                          .stage_id = 1,
                                          .spec = &t->spec,
                                          .stage = &t->stage,
                                          .ready = t->ready,
                                          .may_start = true,
                                          .priority = 50,
                                          .parts_limit = -1,
                                          .stage_left_musd = INT64_MAX,
                                          .part_cap_musd = INT64_MAX,
                                          .duration = &t->f_stage.duration};
}

struct truth *truth_new(const struct truth_how *how, uint64_t seed, int64_t expect_us)
{
    ASSERT(how->parts <= TRUTH_PARTS_MAX);
    struct truth *t = xcalloc(1, sizeof *t);
    t->how = *how;
    rng_seed(&t->rng, seed);
    t->now_us = T0;
    t->next_create_us = (double)T0;
    t->ready = ready_queue_new();
    make_views(t);
    duration_init(&t->f_stage.duration, expect_us);
    duration_init(&t->f_stage.start, 0);
    double sum = 0;
    for (int i = 0; i < how->parts; i++) {
        double mb = how->size_median_mb * exp(how->size_sigma * rng_normal(&t->rng));
        t->part[i].size_mb = (uint32_t)fmax(1, mb);
        sum += t->part[i].size_mb;
        ready_queue_push(t->ready, &(struct ready_queue_task){.task_id = i + 1,
                                                              .seq = (uint32_t)i,
                                                              .size_mb = t->part[i].size_mb});
    }
    duration_expect_size(&t->f_stage.duration, (uint32_t)(sum / how->parts));
    return t;
}

void truth_free(struct truth *t)
{
    ready_queue_free(t->ready);
    sched_plan_done(&t->plan);
    free(t);
}

double truth_mean_s(const struct truth *t)
{
    double sum = 0;
    for (int i = 0; i < t->how.parts; i++) {
        sum += t->how.base_s + t->how.per_mb_s * t->part[i].size_mb;
    }
    return sum / t->how.parts * exp(t->how.noise_sigma * t->how.noise_sigma / 2);
}

static void start(struct truth *t, const struct ready_queue_task *task)
{
    struct part *p = &t->part[task->seq];
    const struct truth_how *h = &t->how;
    double send_us = fmax((double)t->now_us, t->next_create_us);
    t->next_create_us = send_us + 1e6 / h->creates_per_s;
    double wait_s = h->start_s * exp(h->start_sigma * rng_normal(&t->rng));
    if (rng_chance(&t->rng, h->capacity)) {
        wait_s -= h->capacity_s * log(1 - rng_unit(&t->rng));
    }
    double run_s =
        (h->base_s + h->per_mb_s * p->size_mb) * exp(h->noise_sigma * rng_normal(&t->rng));
    if (rng_chance(&t->rng, h->wild)) {
        run_s *= h->wild_times;
    }
    p->ok = !rng_chance(&t->rng, h->fail);
    if (!p->ok) {
        run_s *= pow(rng_unit(&t->rng), h->fail_bend);
    }
    p->state = LIVE;
    p->intended_us = t->now_us;
    p->run_from_us = (usec_t)(send_us + wait_s * 1e6);
    p->end_us = p->run_from_us + (int64_t)fmax(1e6, run_s * 1e6);
    t->live++;
    t->slots.held++;
    t->campaign.live++;
    t->campaign.held++;
    t->project.live++;
    t->project.held++;
}

static void decide(struct truth *t)
{
    duration_fit(&t->f_stage.duration);
    int jobs_n = 0;
    for (int i = 0; i < t->how.parts; i++) {
        const struct part *p = &t->part[i];
        if (p->state != LIVE) {
            continue;
        }
        const struct duration *d = &t->f_stage.duration;
        int64_t ran_us = MAX(t->now_us - p->run_from_us, 0);
        bool known = duration_known(d);
        usec_t from_us = MAX(t->now_us, p->run_from_us);
        t->jobs[jobs_n++] = (struct sched_job){
            .attempt_id = i + 1,
            .task_id = i + 1,
            .stage_id = 1,
            .instances = 1,
            .end_p50_us =
                known ? from_us + duration_remaining_us(d, p->size_mb, ran_us, 50) : USEC_NEVER,
            .end_p90_us =
                known ? from_us + duration_remaining_us(d, p->size_mb, ran_us, 90) : USEC_NEVER,
            .duration = known ? d : NULL,
            .size_mb = p->size_mb,
            .run_from_us = p->run_from_us};
    }
    double room_us = (double)t->now_us + 2e6 - fmax((double)t->now_us, t->next_create_us);
    t->sched_stage.live = t->live;
    struct sched_view v = {
        .now_us = t->now_us,
        .tokens = room_us < 0 ? 0 : 1 + (int64_t)(room_us / 1e6 * t->how.creates_per_s),
        .parts_limit = -1,
        .live = t->live,
        .left_musd = INT64_MAX,
        .stages = &t->sched_stage,
        .stages_n = 1,
        .campaigns = &t->campaign,
        .campaigns_n = 1,
        .projects = &t->project,
        .projects_n = 1,
        .slots = &t->slots,
        .slots_n = 1,
        .account = &t->account,
        .jobs = t->jobs,
        .jobs_n = jobs_n};
    sched_decide(&v, &t->plan);
    for (int i = 0; i < t->plan.launches_n; i++) {
        start(t, &t->plan.launches[i].task);
    }
}

static void end(struct truth *t, int i)
{
    struct part *p = &t->part[i];
    t->live--;
    t->slots.held--;
    t->campaign.live--;
    t->campaign.held--;
    t->project.live--;
    t->project.held--;
    t->spent_musd += PRICE * ((p->end_us - p->run_from_us + 999999) / 1000000) / 3600;
    duration_learn(&t->f_stage.start, 0, p->run_from_us - p->intended_us);
    t->f_stage.tries++;
    if (p->ok) {
        p->state = DONE;
        t->done++;
        duration_learn(&t->f_stage.duration, p->size_mb, p->end_us - p->run_from_us);
        return;
    }
    t->f_stage.failed_tries++;
    p->state = WAITS;
    p->not_before_us = t->now_us + 60 * USEC_PER_SEC;
    ready_queue_push(t->ready, &(struct ready_queue_task){.task_id = i + 1,
                                                          .not_before_us = p->not_before_us,
                                                          .seq = (uint32_t)i,
                                                          .size_mb = p->size_mb});
}

bool truth_until(struct truth *t, int done)
{
    if (t->done == t->how.parts) {
        return false;
    }
    while (t->done < MIN(done, t->how.parts)) {
        decide(t);
        usec_t next_us = ready_queue_next_us(t->ready);
        if (t->plan.launches_n > 0 || t->plan.reason[0] == WAIT_RATE) {
            next_us = MIN(next_us, t->now_us + USEC_PER_SEC);
        }
        for (int i = 0; i < t->how.parts; i++) {
            if (t->part[i].state == LIVE) {
                next_us = MIN(next_us, t->part[i].end_us);
            }
        }
        ASSERT(next_us != USEC_NEVER);
        t->now_us = MAX(next_us, t->now_us);
        for (int i = 0; i < t->how.parts; i++) {
            if (t->part[i].state == LIVE && t->part[i].end_us <= t->now_us) {
                end(t, i);
            }
        }
    }
    return true;
}

int truth_done(const struct truth *t)
{
    return t->done;
}

usec_t truth_now(const struct truth *t)
{
    return t->now_us;
}

musd_t truth_spent(const struct truth *t)
{
    return t->spent_musd;
}

const struct forecast_input *truth_input(struct truth *t)
{
    struct forecast_stage *s = &t->f_stage;
    s->parts_n = 0;
    s->jobs_n = 0;
    for (int i = 0; i < t->how.parts; i++) {
        const struct part *p = &t->part[i];
        if (p->state == WAITS) {
            t->f_parts[s->parts_n++] = (struct forecast_part){.task_id = i + 1,
                                                              .not_before_us = p->not_before_us,
                                                              .seq = (uint32_t)i,
                                                              .size_mb = p->size_mb};
        } else if (p->state == LIVE) {
            t->f_jobs[s->jobs_n++] = (struct forecast_job){
                .task_id = i + 1,
                .intended_us = p->intended_us,
                .started_us = p->run_from_us <= t->now_us ? p->run_from_us : 0,
                .size_mb = p->size_mb,
                .instances = 1};
        }
    }
    s->campaign_id = 1;
    s->stage_id = 1;
    s->spec = &t->spec;
    s->stage = &t->stage;
    s->may_start = true;
    s->parts = t->f_parts;
    s->jobs = t->f_jobs;
    s->parts_limit = -1;
    s->left_musd = s->part_cap_musd = INT64_MAX;
    s->cold_start_s = (int64_t)t->how.start_s; /* of earlier campaigns; capacity is not foreseen */
    s->retry_wait_s = 60;
    t->f_campaign = (struct forecast_campaign){.campaign_id = 1,
                                               .priority = 50,
                                               .weight = 100,
                                               .parts_limit = -1,
                                               .left_musd = INT64_MAX,
                                               .spent_musd = t->spent_musd};
    t->f_project = (struct forecast_project){
        .project_id = 1, .weight = 100, .parts_limit = -1, .left_musd = INT64_MAX};
    t->input = (struct forecast_input){.now_us = t->now_us,
                                       .seed = (uint64_t)t->done,
                                       .creates_per_s = t->how.creates_per_s,
                                       .stages = s,
                                       .stages_n = 1,
                                       .campaigns = &t->f_campaign,
                                       .campaigns_n = 1,
                                       .projects = &t->f_project,
                                       .projects_n = 1,
                                       .slots = &t->slots,
                                       .slots_n = 1,
                                       .account = &t->account,
                                       .parts_limit = -1,
                                       .left_musd = INT64_MAX};
    return &t->input;
}
