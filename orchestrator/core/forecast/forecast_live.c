/* The tries and queues of one run: what starts, how long it goes, what it holds, what waits. */
#include "common/heap.h"
#include "core/money/cost.h"
#include "forecast_work.h"

#define WAKE_AHEAD_US (2 * USEC_PER_SEC) /* look-ahead of the token count */
#define LOST_AT       0.5                /* share of its run that a try lost to spot has done */

#define BUCKET_DRAWS     3    /* parts of a bucket whose times are drawn */
#define BUCKET_MOST_US   1e17 /* bounds without a meaning: sums of them do not overflow */
#define BUCKET_MOST_MUSD (INT64_MAX / 1024 / 1024)

static bool sooner(const struct forecast_event *a, const struct forecast_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->nth < b->nth;
}
#define SOONER(ctx, a, b) sooner(a, b)
HEAP_DEFINE(event, struct forecast_event, void *, SOONER, HEAP_PUT);

static void event_push(struct forecast_pass *r, usec_t at_us, uint32_t live)
{
    ARRAY_ROOM(r->events, r->events_n, r->events_cap);
    r->events[r->events_n] = (struct forecast_event){.at_us = at_us, .live = live, .nth = r->nth++};
    event_up(NULL, r->events, r->events_n++);
}

struct forecast_event forecast_event_pop(struct forecast_pass *r)
{
    struct forecast_event first = r->events[0];
    r->events[0] = r->events[--r->events_n];
    event_down(NULL, r->events, r->events_n, 0);
    return first;
}

static uint32_t live_new(struct forecast_pass *r)
{
    if (r->free_head != UINT32_MAX) {
        uint32_t i = r->free_head;
        r->free_head = r->lives[i].next_free;
        return i;
    }
    ARRAY_ROOM(r->lives, r->lives_n, r->lives_cap);
    return r->lives_n++;
}

void forecast_count_live(struct forecast_pass *r, const struct forecast_live *l, int64_t n)
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

void forecast_hold_slots(struct forecast_pass *r, const struct forecast_live *l, int64_t n)
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

void forecast_give_money(struct forecast_pass *r, const struct forecast_live *l, musd_t musd)
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

/* The parts of a bucket, one after the other. Of some of them the times are drawn, with all their
 * tries; the others take as long on average. Returns how many Creates they need. */
static double bucket_run(const struct forecast_pass *r, const struct forecast_start *s,
                         const struct forecast_part *p, uint32_t of, struct forecast_live *l)
{
    uint32_t draws = MIN(of, (uint32_t)BUCKET_DRAWS);
    double scale = (double)of / draws;
    double span_us = 0;
    double waits_us = 0;
    double tries = 0;
    for (uint32_t i = 0; i < draws; i++) {
        bool ok = false;
        for (uint32_t n = 1; n <= FORECAST_TRIES_MAX && !ok; n++) {
            uint32_t try_n = i * FORECAST_TRIES_MAX + n;
            waits_us += (double)start_wait_us(r, s->stage_i, p, try_n, 0);
            span_us += (double)try_run_us(r, s->stage_i, p, try_n, 0, s->max_runtime_s, &ok);
            tries++;
        }
    }
    l->ok = true;
    l->unpaid_us = (int64_t)MIN(waits_us * scale, BUCKET_MOST_US);
    l->end_us = l->run_from_us + l->unpaid_us + (int64_t)MIN(span_us * scale, BUCKET_MOST_US);
    return tries * scale;
}

/* What all parts of a bucket but the one that runs cost; it is known as soon as it starts. */
static musd_t bucket_cost(const struct forecast_pass *r, const struct forecast_live *l)
{
    musd_t cost = 0;
    struct err ignored = ERR_INIT;
    int64_t paid_us = l->end_us - l->run_from_us - l->unpaid_us;
    musd_t price = l->slots_i < 0 ? 0 : r->slots[l->slots_i].price_musd_per_hour;
    return cost_of_seconds(price, paid_us / USEC_PER_SEC * l->instances, &cost, &ignored) &&
                   cost < BUCKET_MOST_MUSD
               ? cost
               : BUCKET_MOST_MUSD;
}

void forecast_start(struct forecast_pass *r, const struct forecast_start *s,
                    const struct ready_queue_task *t)
{
    const struct forecast_stage_setup *stage = &r->f->stage[s->stage_i];
    struct forecast_stage_pass *run = &r->stage[s->stage_i];
    const struct forecast_part *p = &stage->parts[t->seq];
    uint32_t try_n = 1U + run->tries[t->seq];
    uint32_t of = stage->bucket != NULL && t->seq < stage->due_n ? stage->bucket[t->seq] : 1;
    double creates = 1;
    double send_us = MAX((double)r->now_us, r->next_create_us);
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
    l->run_from_us = (usec_t)send_us;
    if (of > 1) {
        creates = bucket_run(r, s, p, of, l);
    } else {
        l->run_from_us += start_wait_us(r, s->stage_i, p, try_n, 0);
        l->end_us =
            l->run_from_us + try_run_us(r, s->stage_i, p, try_n, 0, s->max_runtime_s, &l->ok);
    }
    r->next_create_us = send_us + creates * r->create_us;
    forecast_count_live(r, l, 1);
    forecast_hold_slots(r, l, 1);
    if (stage->counts_money) {
        l->reserve_musd += of > 1 ? bucket_cost(r, l) : 0;
        forecast_give_money(r, l, -l->reserve_musd);
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
void forecast_start_job(struct forecast_pass *r, int stage_i, size_t job_i)
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
    forecast_count_live(r, l, 1);
    event_push(r, l->end_us, at);
}

struct ready_queue_task forecast_task_of(const struct forecast_pass *r, int stage_i, size_t part)
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
        struct ready_queue_task t = forecast_task_of(r, stage_i, run->cursor);
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
