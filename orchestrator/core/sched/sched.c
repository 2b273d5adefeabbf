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
    sched_warm_pool_take(w, t);
    sched_ladder_launched(w, t);
    sched_reservation_launched(w, t);
}

/* `why`: of the tasks in groups that are still open. */
static void close_stage(struct sched_work *w, int stage_i, enum wait_reason why)
{
    struct sched_stage_left *left = &w->stages[stage_i];
    left->closed = true;
    w->plan->reason[stage_i] = left->first != WAIT_NONE ? left->first : why;
    w->plan->rest[stage_i] = left->plain != WAIT_NONE ? left->plain : why;
}

/* The first task of a group cannot start, so none of the group can until this plan is complete: all
 * ask for the same, and what is left only shrinks. */
static void shut_group(struct sched_work *w, const struct sched_try *t, enum wait_reason why)
{
    struct sched_stage_left *left = &w->stages[t->stage_i];
    ready_queue_shut(w->view->stages[t->stage_i].ready, t->group);
    left->first = left->first == WAIT_NONE ? why : left->first;
    left->plain = !t->changed || left->plain == WAIT_NONE ? why : left->plain;
    left->tail_n = 0; /* the tail was laid out for one group */
}

/* Its own cap leaves too little: it must not hide the others of its group, which have spent less.
 * False: enough were set apart in this plan. */
static bool set_apart(struct sched_work *w, const struct sched_try *t)
{
    struct sched_stage_left *left = &w->stages[t->stage_i];
    if (left->set_apart == SCHED_APART_MAX) {
        w->plan->wake_us = w->view->now_us;
        return false;
    }
    if (left->tail_n > 0) {
        left->tail_n = 0; /* it need not be the first of its group: go on in order */
        return true;
    }
    left->set_apart++;
    ready_queue_set_apart(w->view->stages[t->stage_i].ready, t->group,
                          sched_spent(w, t->task.task_id));
    return true;
}

/* Nothing of the stage is left to try in this plan: why what still waits does so. */
static enum wait_reason why_none_left(const struct sched_work *w, int stage_i)
{
    const struct ready_queue *ready = w->view->stages[stage_i].ready;
    if (ready_queue_n(ready) == 0) {
        return WAIT_NONE;
    }
    /* Those whose own cap leaves too little wait for a person; one that backs off does not. */
    return ready_queue_next_us(ready) == USEC_NEVER ? WAIT_PART_BUDGET : WAIT_BACKOFF;
}

/* A smaller task may start in its place when a reservation is near. */
static bool launch_smaller(struct sched_work *w, const struct sched_try *t, enum wait_reason why)
{
    struct ready_queue_task task;
    struct sched_try smaller;
    if (!sched_reservation_smaller(w, t, why, &task) ||
        sched_prepare(w, t->stage_i, t->group, &task, &smaller) != WAIT_NONE ||
        sched_check(w, &smaller) != WAIT_NONE) {
        return false;
    }
    w->stages[t->stage_i].tail_n = 0; /* the tail was laid out for these slots */
    launch(w, &smaller);
    return true;
}

/* One launch of this stage, or close the stage in this plan with the reason of its first waiting
 * task. The first task of each group is tried. */
static void step_stage(struct sched_work *w, int stage_i)
{
    if (sched_reservation_yields(w, stage_i)) {
        close_stage(w, stage_i, WAIT_ORDER);
        return;
    }
    struct ready_queue_task task;
    int group = 0;
    while (sched_next(w, stage_i, &task, &group)) {
        struct sched_try t;
        enum wait_reason why = sched_prepare(w, stage_i, group, &task, &t);
        bool placed = why == WAIT_NONE;
        why = placed ? sched_check(w, &t) : why;
        if (launch_smaller(w, &t, why)) {
            return;
        }
        if (why == WAIT_NONE) {
            launch(w, &t);
            return;
        }
        if (wait_reason_row(why)->binds == WAIT_BINDS_MONEY && sched_own_cap_short(w, &t)) {
            if (set_apart(w, &t)) {
                continue;
            }
            why = WAIT_ORDER; /* the next plan goes on with those behind it */
        }
        if (placed && why == WAIT_SLOTS) {
            sched_warm_pool_blocked(w, &t);
        }
        why = placed ? sched_reservation_waits(w, &t, why) : why;
        if (wait_reason_row(why)->holds == WAIT_HOLDS_STAGE) {
            close_stage(w, stage_i, why);
            return;
        }
        shut_group(w, &t, why);
    }
    close_stage(w, stage_i, why_none_left(w, stage_i));
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

struct sched_asked {
    const struct sched_view *view;
    const struct spec_stage *stage;
};

/* What an earlier attempt changed of a task, as far as it is a change. */
static void kind_of(void *ctx, int64_t task_id, struct ready_queue_kind *ret)
{
    const struct sched_asked *asked = ctx;
    const struct sched_view *v = asked->view;
    struct ready_queue_kind kind = {0};
    if (!v->change_of(v->ctx, task_id, &kind.rung, &kind.volume_gb, &kind.max_runtime_s)) {
        return;
    }
    bool on_ladder = kind.rung > 0 && kind.rung < asked->stage->instance_type_n;
    *ret = (struct ready_queue_kind){.rung = on_ladder ? kind.rung : 0,
                                     .volume_gb = MAX(0, kind.volume_gb),
                                     .max_runtime_s = MAX(0, kind.max_runtime_s)};
}

/* Does its own cap leave a task too little wherever it may go? Of rungs that are all shut the
 * cheapest counts: one that was set apart waits for capacity then, no longer for a person. */
static bool stays_apart(const struct sched_work *w, int stage_i,
                        const struct ready_queue_task *task)
{
    struct sched_try t;
    if (sched_prepare(w, stage_i, 0, task, &t) == WAIT_NONE) {
        return sched_own_cap_short(w, &t);
    }
    for (int i = 0; i < w->view->stages[stage_i].stage->instance_type_n; i++) {
        t.slots_i = w->stages[stage_i].slots_i[i];
        if (!sched_own_cap_short(w, &t)) {
            return false;
        }
    }
    return true;
}

/* Groups of the tasks that may start, with those whose own cap leaves enough again. */
static void open_queue(const struct sched_work *w, int stage_i)
{
    const struct sched_stage *s = &w->view->stages[stage_i];
    struct sched_asked asked = {.view = w->view, .stage = s->stage};
    ready_queue_kind_fn *fn = w->view->change_of != NULL ? kind_of : NULL;
    ready_queue_sort(s->ready, w->view->now_us, fn, &asked);
    struct ready_queue_task task;
    bool readmitted = false;
    for (int k = 0; ready_queue_apart(s->ready, k, &task); k++) {
        for (int n = 0; n < SCHED_APART_MAX && task.task_id != 0 && !stays_apart(w, stage_i, &task);
             n++) {
            ready_queue_readmit(s->ready, k);
            readmitted = ready_queue_apart(s->ready, k, &task);
        }
    }
    if (readmitted) {
        ready_queue_sort(s->ready, w->view->now_us, fn, &asked);
    }
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
        } else {
            open_queue(w, i);
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
    sched_warm_pool_init(w);
    stages_init(w);
}

static void work_done(struct sched_work *w)
{
    sched_warm_pool_done(w);
    for (int i = 0; i < w->view->stages_n; i++) {
        free(w->stages[i].ladder);
    }
    free(w->slots);
    free(w->projects);
    free(w->campaigns);
    free(w->stages);
    sched_order_free(w->order);
    free(w->tail);
}

static void plan_reserve(struct sched_plan *p, int stages_n)
{
    if (stages_n <= p->stages_cap && p->reason != NULL) {
        return;
    }
    p->stages_cap = MAX(16, stages_n);
    p->reason = xrealloc(p->reason, (size_t)p->stages_cap * sizeof *p->reason);
    p->rest = xrealloc(p->rest, (size_t)p->stages_cap * sizeof *p->rest);
}

void sched_plan_done(struct sched_plan *p)
{
    free(p->reason);
    free(p->rest);
    p->reason = p->rest = NULL;
    p->stages_cap = 0;
}

void sched_decide(const struct sched_view *view, struct sched_plan *ret)
{
    ASSERT(view->stages_n >= 0);
    ASSERT(view->projects_n > 0 || view->campaigns_n == 0);
    ret->launches_n = 0;
    ret->pool_ends_n = 0;
    ret->wake_us = USEC_NEVER;
    plan_reserve(ret, view->stages_n);
    CLEANUP(work_done)
    struct sched_work w;
    work_init(&w, view, ret);
    sched_reservations_open(&w);
    w.order = sched_order_new(&w);
    for (int i = sched_order_next(&w, w.order); i >= 0; i = sched_order_next(&w, w.order)) {
        step_stage(&w, i);
    }
    sched_reservations_close(&w);
    sched_warm_pool_ends(&w);
    for (int i = 0; i < view->stages_n; i++) {
        if (view->stages[i].may_start) {
            ret->wake_us = MIN(ret->wake_us, ready_queue_next_us(view->stages[i].ready));
        }
    }
}
