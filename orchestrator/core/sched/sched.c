/* The plan of one tick. Repeatedly takes the stage of highest rank and its first waiting task, runs
 * the checks in a fixed order, and produces either a launch or a wait reason. */
#include "common/cleanup.h"
#include "sched_work.h"

static void launch(struct sched_work *w, const struct sched_try *t)
{
    sched_next_pop(w, t->stage_i, &t->task);
    w->plan->launches[w->plan->launches_n++] = (struct sched_launch){
        .stage_i = t->stage_i,
        .task = t->task,
        .slots_i = t->slots_i,
        .instance_type_i = t->rung,
        .subnet_i = t->subnet_i,
        .pool_i = t->pool_i,
        .volume_gb = t->volume_gb,
        .max_runtime_s = t->max_runtime_s,
        .keep_alive_s = t->keep_alive_s,
        .reserve_musd = t->reserve_musd,
    };
    sched_take(w, t);
    sched_warm_take(w, t);
    sched_place_launched(w, t);
    sched_gang_launched(w, t);
}

/* `rest`: why the tasks after the examined ones wait. */
static void close_stage(struct sched_work *w, int stage_i, enum wait_reason rest)
{
    struct sched_stage_left *left = &w->stages[stage_i];
    left->closed = true;
    w->plan->reason[stage_i] = left->first != WAIT_NONE ? left->first : rest;
    w->plan->rest[stage_i] = rest;
}

static void pass_over(struct sched_work *w, const struct sched_try *t)
{
    sched_next_pop(w, t->stage_i, &t->task);
    w->asides[w->asides_n++] = (struct sched_aside){.stage_i = t->stage_i, .task = t->task};
    w->stages[t->stage_i].looked++;
}

/* A smaller task may start in its place when a reservation is near. */
static bool launch_smaller(struct sched_work *w, const struct sched_try *t, enum wait_reason why)
{
    struct ready_queue_task task;
    struct sched_try smaller;
    if (!sched_gang_smaller(w, t, why, &task) ||
        sched_prepare(w, t->stage_i, &task, &smaller) != WAIT_NONE ||
        sched_check(w, &smaller) != WAIT_NONE) {
        return false;
    }
    w->stages[t->stage_i].tail_n = 0; /* the tail was laid out for these slots */
    launch(w, &smaller);
    return true;
}

/* True when tasks behind this one may start although this one may not. */
static bool others_differ(const struct sched_work *w, const struct sched_try *t,
                          enum wait_reason why)
{
    const struct spec_stage *stage = w->view->stages[t->stage_i].stage;
    bool moved = w->view->change_of != NULL && stage->instance_type_n > 1;
    return t->changed || (moved && why != WAIT_CAPACITY) ||
           (why == WAIT_BUDGET && stage->per_task_musd >= 0);
}

/* True when the reason holds for every unchanged task of the stage until this plan is complete,
 * because the remaining resources only shrink and all unchanged tasks request the same. Then only
 * tasks changed by an earlier attempt are examined. */
static bool holds_for_plain(const struct sched_stage *s, const struct sched_try *t,
                            enum wait_reason why)
{
    return !t->changed && s->stage->instance_count == 1 &&
           wait_reason_row(why)->holds == WAIT_HOLDS_PLAIN;
}

/* One launch of this stage, or close the stage in this plan with the reason of its first waiting
 * task. */
static void step_stage(struct sched_work *w, int stage_i)
{
    const struct sched_stage *s = &w->view->stages[stage_i];
    struct sched_stage_left *left = &w->stages[stage_i];
    if (sched_gang_yields(w, stage_i)) {
        close_stage(w, stage_i, WAIT_ORDER);
        return;
    }
    for (;;) {
        struct ready_queue_task task;
        if (!sched_next(w, stage_i, &task)) {
            close_stage(w, stage_i, ready_queue_n(s->ready) > 0 ? WAIT_BACKOFF : WAIT_NONE);
            return;
        }
        if (left->looked > SCHED_LOOK_AHEAD) {
            close_stage(w, stage_i, WAIT_ORDER);
            return;
        }
        struct sched_try t = {.stage_i = stage_i, .task = task};
        if (left->plain != WAIT_NONE && !sched_changed(w, &task)) {
            pass_over(w, &t);
            continue;
        }
        enum wait_reason why = sched_prepare(w, stage_i, &task, &t);
        bool placed = why == WAIT_NONE;
        why = placed ? sched_check(w, &t) : why;
        if (launch_smaller(w, &t, why)) {
            return;
        }
        if (why == WAIT_NONE) {
            launch(w, &t);
            return;
        }
        if (placed && why == WAIT_SLOTS) {
            sched_warm_blocked(w, &t);
        }
        why = placed ? sched_gang_waits(w, &t, why) : why;
        if (wait_reason_row(why)->holds == WAIT_HOLDS_STAGE || !others_differ(w, &t, why)) {
            close_stage(w, stage_i, why);
            return;
        }
        left->plain = holds_for_plain(s, &t, why) ? why : left->plain;
        left->first = left->first == WAIT_NONE ? why : left->first;
        pass_over(w, &t);
    }
}

static int name_compare(const char *type_a, enum market a, const char *type_b, enum market b)
{
    return a != b ? (a > b) - (a < b) : strcmp(type_a, type_b);
}

static int slots_compare(const void *a, const void *b)
{
    const struct quota_ledger *const *x = a;
    const struct quota_ledger *const *y = b;
    return name_compare((*x)->instance_type, (*x)->market, (*y)->instance_type, (*y)->market);
}

static int slots_find(const struct sched_view *v, const struct quota_ledger *const *by_name,
                      const char *instance_type, enum market market)
{
    int from = 0;
    int to = v->slots_n;
    while (from < to) {
        int at = from + (to - from) / 2;
        const struct quota_ledger *s = by_name[at];
        int by = name_compare(s->instance_type, s->market, instance_type, market);
        if (by == 0) {
            return (int)(s - v->slots);
        }
        if (by < 0) {
            from = at + 1;
        } else {
            to = at;
        }
    }
    return -1;
}

static void stages_init(struct sched_work *w)
{
    const struct sched_view *v = w->view;
    AUTO_FREE const struct quota_ledger **by_name =
        xcalloc((size_t)v->slots_n + 1, sizeof(const struct quota_ledger *));
    for (int i = 0; i < v->slots_n; i++) {
        by_name[i] = &v->slots[i];
    }
    qsort(by_name, (size_t)v->slots_n, sizeof(const struct quota_ledger *), slots_compare);
    for (int i = 0; i < v->stages_n; i++) {
        const struct sched_stage *s = &v->stages[i];
        ASSERT(s->campaign_i >= 0 && s->campaign_i < v->campaigns_n);
        w->stages[i].live = s->live;
        w->stages[i].canary =
            s->breaker == NULL ? INT64_MAX : breaker_may_start(s->breaker, &s->breaker_rules);
        w->stages[i].left_musd = s->stage_left_musd;
        for (int k = 0; k < s->stage->instance_type_n; k++) {
            w->stages[i].slots_i[k] = slots_find(v, by_name, s->stage->instance_type[k],
                                                 s->stage->spot ? MARKET_SPOT : MARKET_ON_DEMAND);
        }
        if (!s->may_start || ready_queue_n(s->ready) == 0) {
            close_stage(w, i, ready_queue_n(s->ready) == 0 ? WAIT_NONE : s->why_not);
        }
    }
}

static void work_init(struct sched_work *w, const struct sched_view *v, struct sched_plan *plan)
{
    size_t stages = (size_t)v->stages_n;
    size_t campaigns = (size_t)v->campaigns_n;
    size_t projects = (size_t)v->projects_n;
    size_t slots = (size_t)v->slots_n;
    *w = (struct sched_work){
        .view = v,
        .plan = plan,
        .tokens = v->tokens,
        .live = v->live,
        .left = v->left_musd,
        .account = *v->account,
        .slots = xcalloc(slots + 1, sizeof *w->slots),
        .projects = xcalloc(projects + 1, sizeof *w->projects),
        .campaigns = xcalloc(campaigns + 1, sizeof *w->campaigns),
        .stages = xcalloc(stages + 1, sizeof *w->stages),
        .asides = xmalloc((stages * (SCHED_LOOK_AHEAD + 1) + 1) * sizeof *w->asides),
    };
    for (size_t i = 0; i < slots; i++) {
        w->slots[i] = v->slots[i];
    }
    for (size_t i = 0; i < projects; i++) {
        ASSERT(v->projects[i].weight >= 1);
        w->projects[i] = v->projects[i];
    }
    for (size_t i = 0; i < campaigns; i++) {
        ASSERT(v->campaigns[i].weight >= 1);
        ASSERT(v->campaigns[i].project_i >= 0 && v->campaigns[i].project_i < v->projects_n);
        w->campaigns[i] = v->campaigns[i];
    }
    sched_warm_init(w);
    stages_init(w);
}

static int aside_before(const void *a, const void *b)
{
    const struct sched_aside *x = a;
    const struct sched_aside *y = b;
    return x->stage_i != y->stage_i
               ? (x->stage_i > y->stage_i) - (x->stage_i < y->stage_i)
               : (x->task.task_id > y->task.task_id) - (x->task.task_id < y->task.task_id);
}

/* Tasks that were examined and passed over return to their queue. */
static void give_back(struct sched_work *w)
{
    qsort(w->asides, (size_t)w->asides_n, sizeof *w->asides, aside_before);
    for (int i = 0; i < w->asides_n; i++) {
        const struct sched_aside *a = &w->asides[i];
        ready_queue_push(w->view->stages[a->stage_i].ready, &a->task);
    }
}

static void work_done(struct sched_work *w)
{
    sched_warm_done(w);
    for (int i = 0; i < w->view->stages_n; i++) {
        free(w->stages[i].place);
    }
    free(w->slots);
    free(w->projects);
    free(w->campaigns);
    free(w->stages);
    sched_order_free(w->order);
    free(w->tail);
    free(w->asides);
}

void sched_decide(const struct sched_view *view, struct sched_plan *ret)
{
    ASSERT(view->stages_n >= 0 && view->stages_n <= SCHED_STAGES_MAX);
    ASSERT(view->projects_n > 0 || view->campaigns_n == 0);
    ret->launches_n = 0;
    ret->pool_ends_n = 0;
    ret->wake_us = USEC_NEVER;
    CLEANUP(work_done)
    struct sched_work w;
    work_init(&w, view, ret);
    sched_gangs_open(&w);
    w.order = sched_order_new(&w);
    for (int i = sched_order_next(&w, w.order); i >= 0; i = sched_order_next(&w, w.order)) {
        step_stage(&w, i);
    }
    sched_gangs_close(&w);
    give_back(&w);
    sched_warm_ends(&w);
    for (int i = 0; i < view->stages_n; i++) {
        if (view->stages[i].may_start) {
            ret->wake_us = MIN(ret->wake_us, ready_queue_next_us(view->stages[i].ready));
        }
    }
}
