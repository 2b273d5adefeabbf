/* The scheduler itself in virtual time: sched_decide gets the run as a view, as from the leader,
 * and its launches are started. It knows the durations fitted now, not those the run has drawn. */
#include "core/sched/tail_packing.h"
#include "forecast_work.h"

struct forecast_view {
    struct sched_plan plan;
    struct sched_view view;
    struct sched_stage *stages;
    struct reservation *reservations;
    struct sched_job *jobs;
    bool any_gang;
};

void forecast_sched_init(struct forecast_pass *r)
{
    const struct forecast_input *in = &r->f->in;
    struct forecast_view *s = xmalloc(sizeof *s);
    memset(s, 0, sizeof *s);
    s->stages = xcalloc((size_t)in->stages_n + 1, sizeof *s->stages);
    s->reservations = xcalloc((size_t)in->stages_n + 1, sizeof *s->reservations);
    s->jobs = xcalloc(r->f->parts_n + 1, sizeof *s->jobs);
    for (int i = 0; i < in->stages_n; i++) {
        const struct forecast_stage_setup *st = &r->f->stage[i];
        s->any_gang = s->any_gang || st->in->stage->instance_count > 1;
        s->stages[i] = (struct sched_stage){
            .campaign_id = st->in->campaign_id,
            .stage_id = st->in->stage_id,
            .spec = st->in->spec,
            .stage = st->in->stage,
            .ready = r->stage[i].ready,
            .why_not = WAIT_STAGE_BLOCKED,
            .priority = in->campaigns[st->in->campaign_i].priority,
            .campaign_i = st->in->campaign_i,
            .parts_limit = st->in->parts_limit,
            .part_cap_musd = st->in->part_cap_musd,
            /* First in, first out: the order keys are not sizes. */
            .duration = in->fifo ? NULL : st->duration,
            .reservation = &s->reservations[i],
            .cold_start_s = st->in->cold_start_s,
        };
    }
    s->view = (struct sched_view){
        .parts_limit = in->parts_limit,
        .stages = s->stages,
        .stages_n = in->stages_n,
        .campaigns = r->campaigns,
        .campaigns_n = in->campaigns_n,
        .projects = r->projects,
        .projects_n = in->projects_n,
        .slots = r->slots,
        .slots_n = in->slots_n,
        .account = &r->account,
        .jobs = s->jobs,
    };
    r->sched = s;
}

void forecast_sched_free(struct forecast_pass *r)
{
    if (r->sched != NULL) {
        sched_plan_done(&r->sched->plan);
        free(r->sched->stages);
        free(r->sched->reservations);
        free(r->sched->jobs);
        free(r->sched);
        r->sched = NULL;
    }
}

/* True when the ends of jobs matter: for multi-instance tasks and for the tail of a stage, but not
 * in the long middle of a large stage. */
static bool jobs_matter(const struct forecast_pass *r)
{
    for (int i = 0; i < r->f->in.stages_n; i++) {
        size_t n = r->stage[i].open ? ready_queue_n(r->stage[i].ready) : 0;
        if (n > 0 && (r->sched->any_gang || n <= TAIL_PACKING_TASKS_MAX)) {
            return true;
        }
    }
    return false;
}

/* Live jobs as the leader sees them: their ends come from the models fitted now. */
static void show_jobs(struct forecast_pass *r)
{
    struct forecast_view *s = r->sched;
    s->view.jobs_n = 0;
    bool matter = jobs_matter(r);
    for (uint32_t i = 0; matter && i < r->lives_n; i++) {
        const struct forecast_live *l = &r->lives[i];
        if (!l->used || l->slots_i < 0) {
            continue;
        }
        const struct forecast_stage_setup *st = &r->f->stage[l->stage_i];
        uint32_t size_mb = st->parts[l->part].size_mb;
        usec_t from_us = MAX(l->run_from_us, r->now_us);
        int64_t ran_us = from_us - l->run_from_us;
        s->jobs[s->view.jobs_n++] = (struct sched_job){
            .attempt_id = i + 1,
            .task_id = l->task_id,
            .stage_id = st->in->stage_id,
            .campaign_i = st->in->campaign_i,
            .slots_i = l->slots_i,
            .instances = l->instances,
            .end_p50_us = from_us + duration_remaining_us(st->duration, size_mb, ran_us, 50),
            .end_p90_us = from_us + duration_remaining_us(st->duration, size_mb, ran_us, 90),
            .duration = st->duration,
            .size_mb = size_mb,
            .run_from_us = l->run_from_us,
        };
    }
}

static usec_t decide_once(struct forecast_pass *r)
{
    struct forecast_view *s = r->sched;
    s->view.now_us = r->now_us;
    s->view.tokens = forecast_tokens(r);
    s->view.live = r->live;
    s->view.left_musd = r->left_musd;
    for (int i = 0; i < s->view.stages_n; i++) {
        s->stages[i].may_start = r->stage[i].open;
        s->stages[i].live = r->stage[i].live;
        s->stages[i].stage_left_musd = r->stage[i].left_musd;
    }
    show_jobs(r);
    sched_decide(&s->view, &s->plan);
    for (int i = 0; i < s->plan.launches_n; i++) {
        const struct sched_launch *l = &s->plan.launches[i];
        forecast_start(
            r,
            &(struct forecast_start){.stage_i = l->stage_i,
                                     .slots_i = l->slots_i,
                                     .rung = l->instance_type_i,
                                     .limit_i = r->f->stage[l->stage_i].limit_i[l->instance_type_i],
                                     .max_runtime_s = l->max_runtime_s,
                                     .reserve_musd = l->reserve_musd},
            &l->task);
    }
    usec_t wake_us = s->plan.wake_us;
    for (int i = 0; i < s->view.stages_n; i++) {
        r->stage[i].reason = s->plan.reason[i];
        if (s->plan.reason[i] == WAIT_RATE) {
            wake_us = MIN(wake_us, forecast_rate_wake(r));
        }
    }
    return wake_us;
}

usec_t forecast_decide_sched(struct forecast_pass *r)
{
    usec_t wake_us = decide_once(r);
    while (r->sched->plan.launches_n == SCHED_LAUNCHES_MAX) {
        wake_us = decide_once(r);
    }
    return wake_us;
}
