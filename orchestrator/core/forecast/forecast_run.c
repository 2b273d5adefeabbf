/* One run in virtual time: tries end, failed ones return to their queue, stages open when those
 * they need have ended, and after each event an engine decides what starts. */
#include "core/money/cost.h"
#include "core/sched/wait_reason.h"
#include "forecast_work.h"

#define FOREIGN_LOOK_US (60 * USEC_PER_SEC)
#define LOOK_AT_TIME    512 /* steps between two looks at the time that is left */

void forecast_pass_init(struct forecast_pass *r, const struct forecast_setup *f)
{
    const struct forecast_input *in = &f->in;
    *r = (struct forecast_pass){
        .f = f,
        .slots = xcalloc((size_t)in->slots_n + 1, sizeof *r->slots),
        .campaigns = xcalloc((size_t)in->campaigns_n, sizeof *r->campaigns),
        .projects = xcalloc((size_t)in->projects_n, sizeof *r->projects),
        .stage = xcalloc((size_t)in->stages_n + 1, sizeof *r->stage),
        .waited_slots = xcalloc((size_t)in->slots_n + 1, sizeof *r->waited_slots),
    };
    for (int i = 0; i < in->stages_n; i++) {
        r->stage[i].ready = ready_queue_new();
        r->stage[i].tries = xcalloc(f->stage[i].parts_n + 1, 1);
    }
    if (f->engine == FORECAST_ENGINE_SCHED) {
        forecast_sched_init(r);
    }
}

void forecast_pass_free(struct forecast_pass *r)
{
    for (int i = 0; r->stage != NULL && i < r->f->in.stages_n; i++) {
        ready_queue_free(r->stage[i].ready);
        free(r->stage[i].tries);
    }
    free(r->slots);
    free(r->campaigns);
    free(r->projects);
    free(r->stage);
    free(r->waited_slots);
    free(r->lives);
    free(r->events);
    forecast_sched_free(r);
    *r = (struct forecast_pass){0};
}

static void stage_end(struct forecast_pass *r, int stage_i)
{
    r->stage[stage_i].ended = true;
    r->stage[stage_i].end_us = r->now_us;
    for (int i = 0; i < r->f->in.stages_n; i++) {
        const struct forecast_stage *in = &r->f->in.stages[i];
        for (int k = 0; k < in->needs_n; k++) {
            r->stage[i].needs -= in->needs[k] == stage_i;
        }
        if (r->stage[i].needs == 0 && !r->stage[i].open) {
            r->stage[i].open = true;
            if (r->stage[i].left == 0) {
                stage_end(r, i); /* depth: the stages of one chain */
            }
        }
    }
}

static void settle(struct forecast_pass *r, const struct forecast_live *l)
{
    int64_t ran_us = l->end_us - l->run_from_us - l->unpaid_us;
    int64_t seconds = MAX((ran_us + USEC_PER_SEC - 1) / USEC_PER_SEC, 1) * l->instances;
    r->stage[l->stage_i].seconds[l->rung] += seconds;
    if (!r->f->stage[l->stage_i].counts_money) {
        return;
    }
    musd_t cost = 0;
    struct err ignored = ERR_INIT;
    musd_t price = l->slots_i < 0 ? 0 : MAX(r->slots[l->slots_i].price_musd_per_hour, 0);
    if (!cost_of_seconds(price, seconds, &cost, &ignored)) {
        cost = l->reserve_musd;
    }
    forecast_give_money(r, l, l->reserve_musd - cost);
}

static void end_attempt(struct forecast_pass *r, uint32_t at)
{
    struct forecast_live *l = &r->lives[at];
    const struct forecast_stage_setup *stage = &r->f->stage[l->stage_i];
    struct forecast_stage_pass *run = &r->stage[l->stage_i];
    settle(r, l);
    forecast_count_live(r, l, -1);
    forecast_hold_slots(r, l, -1);
    bool over = l->ok || ++run->tries[l->part] >= FORECAST_TRIES_MAX;
    if (over) {
        if (--run->left == 0 && run->open) {
            stage_end(r, l->stage_i);
        }
    } else {
        const struct forecast_part *p = &stage->parts[l->part];
        ready_queue_push(run->ready,
                         &(struct ready_queue_task){
                             .task_id = p->task_id,
                             .not_before_us = r->now_us + stage->in->retry_wait_s * USEC_PER_SEC,
                             .seq = l->part,
                             .size_mb = forecast_key(r->f, p)});
    }
    l->used = false;
    l->next_free = r->free_head;
    r->free_head = at;
}

static void reset_shares(struct forecast_pass *r)
{
    const struct forecast_input *in = &r->f->in;
    for (int i = 0; i < in->campaigns_n; i++) {
        const struct forecast_campaign *c = &in->campaigns[i];
        r->campaigns[i] = (struct sched_campaign){.campaign_id = c->campaign_id,
                                                  .project_i = c->project_i,
                                                  .weight = c->weight,
                                                  .parts_limit = c->parts_limit,
                                                  .left_musd = c->left_musd};
    }
    for (int i = 0; i < in->projects_n; i++) {
        const struct forecast_project *p = &in->projects[i];
        r->projects[i] = (struct sched_project){.project_id = p->project_id,
                                                .weight = p->weight,
                                                .parts_limit = p->parts_limit,
                                                .left_musd = p->left_musd};
    }
    for (int i = 0; i < in->slots_n; i++) {
        r->slots[i] = in->slots[i];
        /* Idle instances are available to any task: in the forecast they block nothing. */
        int64_t idle = MAX(r->slots[i].warm_idle, 0);
        r->slots[i].warm_idle = 0;
        r->account.total[r->slots[i].market].held -= idle;
        /* A price is missing: the time is forecast, the cost is not (price_known). */
        r->slots[i].price_musd_per_hour = MAX(r->slots[i].price_musd_per_hour, 0);
    }
}

static void reset_stage(struct forecast_pass *r, int i)
{
    const struct forecast_stage_setup *s = &r->f->stage[i];
    struct forecast_stage_pass *run = &r->stage[i];
    run->cursor = 0;
    ready_queue_clear(run->ready);
    memset(run->tries, 0, s->parts_n);
    run->left = (int64_t)s->parts_n;
    run->live = 0;
    run->left_musd = s->in->left_musd;
    run->needs = s->in->needs_n;
    run->open = run->needs == 0;
    run->ended = false;
    run->start_us = s->in->jobs_n > 0 ? r->now_us : USEC_NEVER;
    run->end_us = USEC_NEVER;
    memset(run->seconds, 0, sizeof run->seconds);
    run->reason = WAIT_NONE;
    bool all = r->f->engine == FORECAST_ENGINE_SCHED;
    for (size_t k = all ? 0 : s->due_n; k < s->due_n + s->late_n; k++) {
        struct ready_queue_task t = forecast_task_of(r, i, k);
        ready_queue_push(run->ready, &t);
    }
    run->cursor = all ? s->due_n : 0;
}

static void reset(struct forecast_pass *r, int run_i)
{
    const struct forecast_input *in = &r->f->in;
    r->now_us = in->now_us;
    r->create_us = (double)USEC_PER_SEC / in->creates_per_s;
    r->next_create_us = (double)in->now_us;
    r->live = 0;
    r->left_musd = in->left_musd;
    r->account = *in->account;
    r->lives_n = r->events_n = r->nth = 0;
    r->free_head = UINT32_MAX;
    r->why_start_us = USEC_NEVER;
    memset(r->waited, 0, sizeof r->waited);
    memset(r->waited_slots, 0, (size_t)in->slots_n * sizeof *r->waited_slots);
    forecast_world_draw(r, run_i);
    reset_shares(r);
    for (int i = 0; i < in->stages_n; i++) {
        reset_stage(r, i);
        for (size_t k = 0; k < r->f->stage[i].in->jobs_n; k++) {
            forecast_start_job(r, i, k);
        }
    }
    for (int i = 0; i < in->stages_n; i++) {
        if (r->stage[i].open && r->stage[i].left == 0 && !r->stage[i].ended) {
            stage_end(r, i);
        }
    }
}

#define FOR_EVER_US (INT64_C(100) * 366 * 24 * 3600 * USEC_PER_SEC) /* binds more than any wait */

static enum forecast_binding binding_of(enum wait_reason why)
{
    static const enum forecast_binding bindings[] = {
        [WAIT_BINDS_NONE] = FORECAST_BINDS_NONE,
        [WAIT_BINDS_SLOTS] = FORECAST_BINDS_SLOTS,
        [WAIT_BINDS_CONCURRENCY] = FORECAST_BINDS_CONCURRENCY,
        [WAIT_BINDS_RATE] = FORECAST_BINDS_RATE,
        [WAIT_BINDS_MONEY] = FORECAST_BINDS_MONEY,
    };
    return bindings[wait_reason_row(why)->binds];
}

/* Add the waiting time of the target's parts, by what they wait for. */
static void count_waiting(struct forecast_pass *r, int64_t us)
{
    for (int i = 0; i < r->f->in.stages_n; i++) {
        const struct forecast_stage_setup *s = &r->f->stage[i];
        if (!s->target || r->stage[i].reason == WAIT_NONE) {
            continue;
        }
        enum forecast_binding b = binding_of(r->stage[i].reason);
        r->waited[b] += (double)us;
        if (b == FORECAST_BINDS_SLOTS && s->slots_i[0] >= 0) {
            r->waited_slots[s->slots_i[0]] += (double)us;
        }
    }
}

static bool target_left(const struct forecast_pass *r)
{
    for (int i = 0; i < r->f->in.stages_n; i++) {
        if (r->f->stage[i].target && !r->stage[i].ended) {
            return true;
        }
    }
    return false;
}

/* Foreign use decays without an event of ours. */
static usec_t foreign_wake(const struct forecast_pass *r)
{
    for (int i = 0; i < r->f->in.slots_n; i++) {
        if (quota_ledger_foreign(&r->slots[i], r->now_us) > 0) {
            return r->now_us + FOREIGN_LOOK_US;
        }
    }
    for (int m = 0; m < MARKET_COUNT; m++) {
        if (quota_ledger_total_foreign(&r->account.total[m], r->now_us) > 0) {
            return r->now_us + FOREIGN_LOOK_US;
        }
    }
    return USEC_NEVER;
}

static bool expired(const struct forecast_input *in)
{
    return in->expired != NULL && in->expired(in->expired_ctx);
}

bool forecast_pass(struct forecast_pass *r, int run_i)
{
    reset(r, run_i);
    /* The bound holds for any engine: a maximum of tries per part and of decisions per event. */
    size_t steps = (r->f->parts_n + 1000) * FORECAST_TRIES_MAX * 4;
    for (size_t n = 0; target_left(r) && n < steps; n++) {
        if (n % LOOK_AT_TIME == 0 && expired(&r->f->in)) {
            return false;
        }
        usec_t wake_us = r->f->engine == FORECAST_ENGINE_SCHED ? forecast_decide_sched(r)
                                                               : forecast_decide_kernel(r);
        wake_us = MIN(MAX(wake_us, r->now_us + 1), foreign_wake(r));
        usec_t next_us = r->events_n > 0 ? MIN(r->events[0].at_us, wake_us) : wake_us;
        if (next_us == USEC_NEVER) {
            count_waiting(r, FOR_EVER_US); /* nothing will change: what is left never starts */
            return true;
        }
        next_us = MAX(next_us, r->now_us);
        count_waiting(r, next_us - r->now_us);
        r->now_us = next_us;
        while (r->events_n > 0 && r->events[0].at_us <= r->now_us) {
            end_attempt(r, forecast_event_pop(r).live);
        }
    }
    return true;
}
