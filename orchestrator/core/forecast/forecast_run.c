/* One run in virtual time: live jobs end, failed tries return to their queue, stages open when
 * those they need have ended, and after each event an engine decides what starts. */
#include "core/money/cost.h"
#include "forecast_work.h"

#define WAKE_AHEAD_US   (2 * USEC_PER_SEC) /* look-ahead of the token count */
#define FOREIGN_LOOK_US (60 * USEC_PER_SEC)
#define LOST_AT         0.5 /* share of its run that a try lost to spot has done */

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

static bool sooner(const struct forecast_event *a, const struct forecast_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->nth < b->nth;
}

static void event_push(struct forecast_pass *r, usec_t at_us, uint32_t live)
{
    if (r->events_n == r->events_cap) {
        r->events_cap = MAX(r->events_cap * 2, 64U);
        r->events = xrealloc(r->events, r->events_cap * sizeof *r->events);
    }
    struct forecast_event e = {.at_us = at_us, .live = live, .nth = r->nth++};
    uint32_t i = r->events_n++;
    while (i > 0 && sooner(&e, &r->events[(i - 1) / 2])) {
        r->events[i] = r->events[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    r->events[i] = e;
}

static struct forecast_event event_pop(struct forecast_pass *r)
{
    struct forecast_event first = r->events[0];
    struct forecast_event e = r->events[--r->events_n];
    uint32_t i = 0;
    for (uint32_t child = 1; child < r->events_n; child = 2 * i + 1) {
        if (child + 1 < r->events_n && sooner(&r->events[child + 1], &r->events[child])) {
            child++;
        }
        if (!sooner(&r->events[child], &e)) {
            break;
        }
        r->events[i] = r->events[child];
        i = child;
    }
    r->events[i] = e;
    return first;
}

static uint32_t live_new(struct forecast_pass *r)
{
    if (r->free_head != UINT32_MAX) {
        uint32_t i = r->free_head;
        r->free_head = r->lives[i].next_free;
        return i;
    }
    if (r->lives_n == r->lives_cap) {
        r->lives_cap = MAX(r->lives_cap * 2, 64U);
        r->lives = xrealloc(r->lives, r->lives_cap * sizeof *r->lives);
    }
    return r->lives_n++;
}

static void count_live(struct forecast_pass *r, const struct forecast_live *l, int64_t n)
{
    const struct forecast_stage *in = r->f->stage[l->stage_i].in;
    struct sched_campaign *c = &r->campaigns[in->campaign_i];
    struct sched_project *p = &r->projects[c->project_i];
    int64_t instances = n * l->instances;
    r->live += n;
    r->stage[l->stage_i].live += n;
    c->live += n;
    c->held += instances;
    p->live += n;
    p->held += instances;
    if (l->limit_i >= 0) {
        c->type_held[l->limit_i] += instances;
    }
}

static void hold_slots(struct forecast_pass *r, const struct forecast_live *l, int64_t n)
{
    if (l->slots_i >= 0) {
        r->slots[l->slots_i].held += n * l->instances;
        r->account.total[r->slots[l->slots_i].market].held += n * l->instances;
    }
}

static void add_left(musd_t *left, musd_t musd)
{
    *left = *left == INT64_MAX ? *left : *left + musd;
}

static void give_money(struct forecast_pass *r, const struct forecast_live *l, musd_t musd)
{
    const struct forecast_stage *in = r->f->stage[l->stage_i].in;
    struct sched_campaign *c = &r->campaigns[in->campaign_i];
    add_left(&r->stage[l->stage_i].left_musd, musd);
    add_left(&c->left_musd, musd);
    add_left(&r->projects[c->project_i].left_musd, musd);
    add_left(&r->left_musd, musd);
}

/* How a try goes: run time and whether it ends well, given that it has run for elapsed_us. */
static int64_t try_run_us(const struct forecast_pass *r, int stage_i, const struct forecast_part *p,
                          uint32_t try_n, int64_t elapsed_us, int64_t max_runtime_s, bool *ret_ok)
{
    const struct forecast_stage_pass *s = &r->stage[stage_i];
    double u = forecast_unit(r, stage_i, p->task_id, try_n, FORECAST_DURATION);
    int64_t whole = duration_at_us(&s->world, p->size_mb, elapsed_us, u);
    double fails = forecast_unit(r, stage_i, p->task_id, try_n, FORECAST_FAIL);
    /* A failure happens at any moment of the run: a try that has come this far is less likely to
     * fail. */
    double passed = elapsed_us > 0 ? (double)elapsed_us / (double)whole : 0;
    *ret_ok = true;
    int64_t us = whole;
    if (fails < s->fail * (1 - passed) / (1 - s->fail * passed)) {
        double at = forecast_unit(r, stage_i, p->task_id, try_n, FORECAST_FAIL_AT);
        us = elapsed_us + (int64_t)(at * (double)(whole - elapsed_us));
        *ret_ok = false;
    }
    if (r->f->in.spot_loss > 0 &&
        forecast_unit(r, stage_i, p->task_id, try_n, FORECAST_LOSS) < r->f->in.spot_loss) {
        us = MAX(MIN(us, (int64_t)(LOST_AT * (double)whole)), elapsed_us + 1);
        *ret_ok = false;
    }
    int64_t most = MIN(max_runtime_s, INT64_MAX / USEC_PER_SEC) * USEC_PER_SEC;
    if (us > most) {
        us = MAX(most, elapsed_us);
        *ret_ok = false;
    }
    return MAX(us, 1);
}

static int64_t start_wait_us(const struct forecast_pass *r, int stage_i,
                             const struct forecast_part *p, uint32_t try_n, int64_t elapsed_us)
{
    const struct forecast_stage_setup *s = &r->f->stage[stage_i];
    if (s->start == NULL) {
        return MAX(s->in->cold_start_s * USEC_PER_SEC, elapsed_us);
    }
    double u = forecast_unit(r, stage_i, p->task_id, try_n, FORECAST_START);
    return duration_at_us(&r->stage[stage_i].start, 0, elapsed_us, u);
}

void forecast_start(struct forecast_pass *r, const struct forecast_start *s,
                    const struct ready_queue_task *t)
{
    const struct forecast_stage_setup *stage = &r->f->stage[s->stage_i];
    struct forecast_stage_pass *run = &r->stage[s->stage_i];
    const struct forecast_part *p = &stage->parts[t->seq];
    uint32_t try_n = 1U + run->tries[t->seq];
    double send_us = MAX((double)r->now_us, r->next_create_us);
    r->next_create_us = send_us + r->create_us;
    uint32_t at = live_new(r);
    struct forecast_live *l = &r->lives[at];
    *l = (struct forecast_live){.task_id = t->task_id,
                                .reserve_musd = s->reserve_musd,
                                .part = t->seq,
                                .stage_i = s->stage_i,
                                .slots_i = s->slots_i,
                                .rung = s->rung,
                                .limit_i = s->limit_i,
                                .instances = stage->in->stage->instance_count,
                                .used = true};
    l->run_from_us = (usec_t)send_us + start_wait_us(r, s->stage_i, p, try_n, 0);
    l->end_us = l->run_from_us + try_run_us(r, s->stage_i, p, try_n, 0, s->max_runtime_s, &l->ok);
    count_live(r, l, 1);
    hold_slots(r, l, 1);
    if (stage->counts_money) {
        give_money(r, l, -l->reserve_musd);
    }
    event_push(r, l->end_us, at);
    struct sched_campaign *c = &r->campaigns[stage->in->campaign_i];
    c->last_start_us = r->now_us;
    r->projects[c->project_i].last_start_us = r->now_us;
    run->start_us = MIN(run->start_us, r->now_us);
    if (stage->target && t->task_id == r->f->in.why_task_id) {
        r->why_start_us = MIN(r->why_start_us, r->now_us);
    }
}

/* A job of the input: its slots and money are already held. */
static void start_job(struct forecast_pass *r, int stage_i, size_t job_i)
{
    const struct forecast_stage_setup *stage = &r->f->stage[stage_i];
    const struct forecast_job *j = &stage->in->jobs[job_i];
    size_t part = stage->due_n + stage->late_n + job_i;
    const struct forecast_part *p = &stage->parts[part];
    uint32_t at = live_new(r);
    struct forecast_live *l = &r->lives[at];
    *l = (struct forecast_live){.task_id = j->task_id,
                                .reserve_musd = j->reserve_musd,
                                .part = (uint32_t)part,
                                .stage_i = stage_i,
                                .slots_i = j->slots_i,
                                .limit_i = -1,
                                .instances = j->instances,
                                .used = true};
    for (int k = 0; k < stage->in->stage->instance_type_n; k++) {
        if (j->slots_i >= 0 && stage->slots_i[k] == j->slots_i) {
            l->rung = k;
            l->limit_i = stage->limit_i[k];
            break;
        }
    }
    int64_t ran_us = 0;
    if (j->started_us > 0) {
        l->run_from_us = MIN(j->started_us, r->now_us);
        ran_us = r->now_us - l->run_from_us;
    } else {
        int64_t waited_us = MAX(r->now_us - j->intended_us, 0);
        l->run_from_us = r->now_us - waited_us + start_wait_us(r, stage_i, p, 0, waited_us);
    }
    int64_t most_s = MAX(stage->in->stage->max_runtime_s, ran_us / USEC_PER_SEC + 1);
    l->end_us = l->run_from_us + try_run_us(r, stage_i, p, 0, ran_us, most_s, &l->ok);
    count_live(r, l, 1);
    event_push(r, l->end_us, at);
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
    int64_t ran_us = l->end_us - l->run_from_us;
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
    give_money(r, l, l->reserve_musd - cost);
}

static void end_attempt(struct forecast_pass *r, uint32_t at)
{
    struct forecast_live *l = &r->lives[at];
    const struct forecast_stage_setup *stage = &r->f->stage[l->stage_i];
    struct forecast_stage_pass *run = &r->stage[l->stage_i];
    settle(r, l);
    count_live(r, l, -1);
    hold_slots(r, l, -1);
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

static struct ready_queue_task task_of(const struct forecast_pass *r, int stage_i, size_t part)
{
    const struct forecast_part *p = &r->f->stage[stage_i].parts[part];
    return (struct ready_queue_task){.task_id = p->task_id,
                                     .not_before_us = p->not_before_us,
                                     .seq = (uint32_t)part,
                                     .size_mb = forecast_key(r->f, p)};
}

/* True when the front of the sorted parts comes before the first of `ready`. */
static bool front(struct forecast_pass *r, int stage_i, struct ready_queue_task *ret,
                  bool *ret_sorted)
{
    struct forecast_stage_pass *run = &r->stage[stage_i];
    bool other = ready_queue_peek(run->ready, r->now_us, ret);
    *ret_sorted = false;
    if (run->cursor < r->f->stage[stage_i].due_n) {
        struct ready_queue_task t = task_of(r, stage_i, run->cursor);
        *ret_sorted = !other || (t.size_mb != ret->size_mb ? t.size_mb > ret->size_mb
                                                           : t.task_id < ret->task_id);
        if (*ret_sorted) {
            *ret = t;
        }
        return true;
    }
    return other;
}

bool forecast_peek(struct forecast_pass *r, int stage_i, struct ready_queue_task *ret)
{
    bool sorted;
    return front(r, stage_i, ret, &sorted);
}

void forecast_pop(struct forecast_pass *r, int stage_i)
{
    struct ready_queue_task t;
    bool sorted = false;
    bool there = front(r, stage_i, &t, &sorted);
    ASSERT(there);
    if (sorted) {
        r->stage[stage_i].cursor++;
    } else {
        there = ready_queue_pop(r->stage[stage_i].ready, r->now_us, &t);
        ASSERT(there);
    }
}

size_t forecast_waiting_n(const struct forecast_pass *r, int stage_i)
{
    const struct forecast_stage_pass *run = &r->stage[stage_i];
    return r->f->stage[stage_i].due_n - run->cursor + ready_queue_n(run->ready);
}

int64_t forecast_tokens(const struct forecast_pass *r)
{
    double next_us = MAX((double)r->now_us, r->next_create_us);
    double room_us = (double)(r->now_us + WAKE_AHEAD_US) - next_us;
    return room_us < 0 ? 0 : 1 + (int64_t)MIN(room_us / r->create_us, 1e6);
}

usec_t forecast_rate_wake(const struct forecast_pass *r)
{
    return (usec_t)r->next_create_us - WAKE_AHEAD_US + 1;
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
    musd_t budget = s->in->stage->budget_musd;
    run->cursor = 0;
    ready_queue_clear(run->ready);
    memset(run->tries, 0, s->parts_n);
    run->left = (int64_t)s->parts_n;
    run->live = 0;
    run->left_musd = budget < 0 ? INT64_MAX : budget - s->in->committed_musd;
    run->needs = s->in->needs_n;
    run->open = run->needs == 0;
    run->ended = false;
    run->start_us = s->in->jobs_n > 0 ? r->now_us : USEC_NEVER;
    run->end_us = USEC_NEVER;
    memset(run->seconds, 0, sizeof run->seconds);
    run->reason = WAIT_NONE;
    bool all = r->f->engine == FORECAST_ENGINE_SCHED;
    for (size_t k = all ? 0 : s->due_n; k < s->due_n + s->late_n; k++) {
        struct ready_queue_task t = task_of(r, i, k);
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
            start_job(r, i, k);
        }
    }
    for (int i = 0; i < in->stages_n; i++) {
        if (r->stage[i].open && r->stage[i].left == 0 && !r->stage[i].ended) {
            stage_end(r, i);
        }
    }
}

static enum forecast_binding binding_of(enum wait_reason why)
{
    static const enum forecast_binding by_reason[WAIT_REASON_COUNT] = {
        [WAIT_CONCURRENCY] = FORECAST_BINDS_CONCURRENCY,
        [WAIT_STAGE_LIMIT] = FORECAST_BINDS_CONCURRENCY,
        [WAIT_PROJECT_LIMIT] = FORECAST_BINDS_CONCURRENCY,
        [WAIT_GLOBAL_LIMIT] = FORECAST_BINDS_CONCURRENCY,
        [WAIT_TYPE_LIMIT] = FORECAST_BINDS_CONCURRENCY,
        [WAIT_SLOTS] = FORECAST_BINDS_SLOTS,
        [WAIT_ORDER] = FORECAST_BINDS_SLOTS,
        [WAIT_RESERVED] = FORECAST_BINDS_SLOTS,
        [WAIT_GANG] = FORECAST_BINDS_SLOTS,
        [WAIT_QUOTA_TOO_SMALL] = FORECAST_BINDS_SLOTS,
        [WAIT_QUOTA_UNREADABLE] = FORECAST_BINDS_SLOTS,
        [WAIT_RATE] = FORECAST_BINDS_RATE,
        [WAIT_BUDGET] = FORECAST_BINDS_MONEY,
    };
    return by_reason[why];
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

void forecast_pass(struct forecast_pass *r, int run_i)
{
    reset(r, run_i);
    /* The bound holds for any engine: a maximum of tries per part and of decisions per event. */
    size_t steps = (r->f->parts_n + 1000) * FORECAST_TRIES_MAX * 4;
    while (target_left(r) && steps-- > 0) {
        usec_t wake_us = r->f->engine == FORECAST_ENGINE_SCHED ? forecast_decide_sched(r)
                                                               : forecast_decide_kernel(r);
        wake_us = MIN(MAX(wake_us, r->now_us + 1), foreign_wake(r));
        usec_t next_us = r->events_n > 0 ? MIN(r->events[0].at_us, wake_us) : wake_us;
        if (next_us == USEC_NEVER) {
            return; /* nothing will change any more: what is left never starts */
        }
        next_us = MAX(next_us, r->now_us);
        count_waiting(r, next_us - r->now_us);
        r->now_us = next_us;
        while (r->events_n > 0 && r->events[0].at_us <= r->now_us) {
            end_attempt(r, event_pop(r).live);
        }
    }
}
