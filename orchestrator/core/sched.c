/* The plan of one tick: again and again the stage of highest rank, its first waiting task, the
 * checks in one order, and either a launch or a reason. */
#include "sched.h"
#include "cost.h"
#include "rank.h"

struct aside { /* a task passed over by a look-ahead, pushed back at the end */
    int stage_i;
    struct ready_task task;
};

/* What is left while the plan grows; the view itself stays as it is. */
struct work {
    const struct sched_view *view;
    struct sched_plan *plan;
    int64_t tokens;
    int64_t *slots_held;     /* [slots_n], foreign use included */
    bool *slots_kept;        /* [slots_n]: for a task of several instances that waits */
    int64_t *live;           /* [campaigns_n] */
    musd_t *left;            /* [campaigns_n] */
    int64_t *type_held;      /* [campaigns_n][16] */
    musd_t *stage_left;      /* [stages_n] */
    bool *closed;            /* [stages_n]: reason decided */
    enum wait_reason *first; /* [stages_n]: of the first task passed over, NONE so far */
    struct aside *asides;    /* [asides_n] */
    int asides_n;
};

/* One task with all it would take. */
struct
try {
    int stage_i;
    struct ready_task task;
    int rung;
    int slots_i;
    int limit_i; /* of spec->instances, -1 none */
    int volume_gb;
    int64_t max_runtime_s;
    int64_t min_runtime_s;
    musd_t reserve_musd;
    bool changed;
};

static int slots_find(const struct sched_view *v, const char *instance_type)
{
    for (int i = 0; i < v->slots_n; i++) {
        if (strcmp(v->slots[i].instance_type, instance_type) == 0) {
            return i;
        }
    }
    return -1;
}

static int limit_find(const struct spec *spec, const char *instance_type)
{
    for (int i = 0; i < spec->instances_n; i++) {
        if (strcmp(spec->instances[i].instance_type, instance_type) == 0) {
            return i;
        }
    }
    return -1;
}

/* The rung to use: as told, or the next one when this quota can never hold the job and a later one
 * can. */
static enum wait_reason choose_rung(const struct work *w, struct try *t)
{
    const struct spec_stage *stage = w->view->stages[t->stage_i].stage;
    enum wait_reason first = WAIT_NONE;
    for (int i = t->rung; i < stage->instance_type_n; i++) {
        int slots_i = slots_find(w->view, stage->instance_type[i]);
        enum wait_reason why = WAIT_NONE;
        if (slots_i < 0 || w->view->slots[slots_i].limit < 0) {
            why = WAIT_QUOTA_UNREADABLE;
        } else if (w->view->slots[slots_i].limit < stage->instance_count) {
            why = WAIT_QUOTA_TOO_SMALL;
        }
        if (why == WAIT_NONE) {
            t->rung = i;
            t->slots_i = slots_i;
            return WAIT_NONE;
        }
        first = first == WAIT_NONE ? why : first;
        if (why == WAIT_QUOTA_UNREADABLE) {
            break; /* it may be large enough: wait until it can be read */
        }
    }
    return first;
}

/* What the task asks for, an earlier attempt's changes included. */
static enum wait_reason prepare(const struct work *w, int stage_i, const struct ready_task *task,
                                struct try *t)
{
    const struct sched_stage *s = &w->view->stages[stage_i];
    *t = (struct try){.stage_i = stage_i,
                      .task = *task,
                      .volume_gb = s->stage->volume_gb,
                      .max_runtime_s = s->stage->max_runtime_s,
                      .min_runtime_s = s->stage->min_runtime_s};
    int rung = 0;
    int volume_gb = 0;
    int64_t runtime_s = 0;
    if (w->view->change_of != NULL &&
        w->view->change_of(w->view->ctx, task->task_id, &rung, &volume_gb, &runtime_s)) {
        t->changed = true;
        t->rung = rung >= 0 && rung < s->stage->instance_type_n ? rung : 0;
        t->volume_gb = volume_gb > 0 ? volume_gb : t->volume_gb;
        if (runtime_s > 0) {
            /* extended after a timeout: less would only time out again */
            t->min_runtime_s = runtime_s > t->max_runtime_s ? runtime_s : t->min_runtime_s;
            t->max_runtime_s = runtime_s;
        }
    }
    t->min_runtime_s = MIN(t->min_runtime_s, t->max_runtime_s);
    enum wait_reason why = choose_rung(w, t);
    if (why == WAIT_NONE) {
        t->limit_i = limit_find(s->spec, s->stage->instance_type[t->rung]);
    }
    return why;
}

static enum wait_reason check_slots(const struct work *w, const struct try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    const struct sched_slots *slots = &w->view->slots[t->slots_i];
    int64_t n = s->stage->instance_count;
    if (t->limit_i >= 0 &&
        w->type_held[s->campaign_i * 16 + t->limit_i] + n > s->spec->instances[t->limit_i].n) {
        return WAIT_TYPE_LIMIT;
    }
    if (w->slots_held[t->slots_i] + n > slots->limit) {
        return WAIT_SLOTS;
    }
    return w->slots_kept[t->slots_i] ? WAIT_ORDER : WAIT_NONE;
}

/* Does the worst case fit what every cap leaves, with a shorter run time if need be? */
static enum wait_reason check_money(const struct work *w, struct try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    musd_t price = w->view->slots[t->slots_i].price_musd_per_hour;
    if (price < 0) {
        return WAIT_PRICE_UNKNOWN;
    }
    musd_t left = MIN(w->left[s->campaign_i], w->stage_left[t->stage_i]);
    if (s->stage->per_task_musd >= 0) {
        musd_t spent =
            w->view->spent_of == NULL ? 0 : w->view->spent_of(w->view->ctx, t->task.task_id);
        left = MIN(left, s->stage->per_task_musd - spent);
    }
    int64_t n = s->stage->instance_count;
    int64_t fits_s = cost_runtime_that_fits(price, n, 0, left);
    if (fits_s < t->min_runtime_s || fits_s < 1) {
        return WAIT_BUDGET;
    }
    t->max_runtime_s = MIN(t->max_runtime_s, fits_s);
    struct err ignored = ERR_INIT;
    return cost_worst_case(price, n, t->max_runtime_s, 0, &t->reserve_musd, &ignored) ? WAIT_NONE
                                                                                      : WAIT_BUDGET;
}

/* All checks, in the order people are told about them. */
static enum wait_reason check(struct work *w, struct try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    if (s->campaign_limit >= 0 && w->live[s->campaign_i] >= s->campaign_limit) {
        return WAIT_CONCURRENCY;
    }
    enum wait_reason why = check_slots(w, t);
    if (why == WAIT_NONE) {
        why = check_money(w, t);
    }
    if (why == WAIT_NONE && (w->tokens <= 0 || w->plan->launches_n == SCHED_LAUNCHES_MAX)) {
        why = WAIT_RATE;
    }
    return why;
}

static musd_t minus(musd_t left, musd_t cost)
{
    return left == INT64_MAX ? left : left - cost;
}

static void launch(struct work *w, const struct try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    struct ready_task popped;
    bool there = ready_pop(s->ready, w->view->now_us, &popped);
    ASSERT(there && popped.task_id == t->task.task_id);
    w->plan->launches[w->plan->launches_n++] = (struct sched_launch){
        .stage_i = t->stage_i,
        .task = t->task,
        .slots_i = t->slots_i,
        .instance_type_i = t->rung,
        .volume_gb = t->volume_gb,
        .max_runtime_s = t->max_runtime_s,
        .reserve_musd = t->reserve_musd,
    };
    w->tokens--;
    w->slots_held[t->slots_i] += s->stage->instance_count;
    w->live[s->campaign_i]++;
    if (t->limit_i >= 0) {
        w->type_held[s->campaign_i * 16 + t->limit_i] += s->stage->instance_count;
    }
    w->left[s->campaign_i] = minus(w->left[s->campaign_i], t->reserve_musd);
    w->stage_left[t->stage_i] = minus(w->stage_left[t->stage_i], t->reserve_musd);
}

/* A task of several instances waits for slots of ours: nobody of lower rank takes them away. */
static void keep_for_gang(struct work *w, const struct try *t)
{
    const struct sched_slots *slots = &w->view->slots[t->slots_i];
    int64_t n = w->view->stages[t->stage_i].stage->instance_count;
    if (n > 1 && n <= slots->limit - slots->foreign) {
        w->slots_kept[t->slots_i] = true;
    }
}

static void close_stage(struct work *w, int stage_i, enum wait_reason why)
{
    w->closed[stage_i] = true;
    w->plan->reason[stage_i] = why;
}

/* Does the same reason hold for whatever stands behind this task in its stage? */
static bool holds_for_all(enum wait_reason why)
{
    return why == WAIT_CONCURRENCY || why == WAIT_RATE;
}

/* One launch of this stage, or its end in this plan with the reason of its first waiting task. */
static void step_stage(struct work *w, int stage_i)
{
    const struct sched_stage *s = &w->view->stages[stage_i];
    enum wait_reason *first = &w->first[stage_i];
    for (int looked = 0; looked <= SCHED_LOOK_AHEAD; looked++) {
        struct ready_task task;
        if (!ready_peek(s->ready, w->view->now_us, &task)) {
            enum wait_reason rest = ready_n(s->ready) > 0 ? WAIT_BACKOFF : WAIT_NONE;
            close_stage(w, stage_i, *first != WAIT_NONE ? *first : rest);
            return;
        }
        struct try t;
        enum wait_reason why = prepare(w, stage_i, &task, &t);
        bool placed = why == WAIT_NONE;
        why = placed ? check(w, &t) : why;
        if (why == WAIT_NONE) {
            launch(w, &t);
            return;
        }
        if (placed && why == WAIT_SLOTS) {
            keep_for_gang(w, &t);
        }
        *first = *first == WAIT_NONE ? why : *first;
        bool others_differ = t.changed || s->stage->instance_type_n > 1;
        if (holds_for_all(why) || !others_differ || looked == SCHED_LOOK_AHEAD) {
            close_stage(w, stage_i, *first);
            return;
        }
        bool there = ready_pop(s->ready, w->view->now_us, &task);
        ASSERT(there);
        w->asides[w->asides_n++] = (struct aside){stage_i, task};
    }
}

/* The open stage of highest rank, -1 when all are closed. */
static int next_stage(const struct work *w)
{
    int best = -1;
    struct rank_key best_key = {0};
    for (int i = 0; i < w->view->stages_n; i++) {
        if (w->closed[i]) {
            continue;
        }
        const struct sched_stage *s = &w->view->stages[i];
        struct rank_key key = {s->priority, w->live[s->campaign_i], s->campaign_id, s->stage_id};
        if (best < 0 || rank_before(&key, &best_key)) {
            best = i;
            best_key = key;
        }
    }
    return best;
}

static void work_init(struct work *w, const struct sched_view *v, struct sched_plan *plan)
{
    size_t stages = (size_t)v->stages_n;
    size_t campaigns = (size_t)v->campaigns_n;
    size_t slots = (size_t)v->slots_n;
    size_t asides = stages * (SCHED_LOOK_AHEAD + 1) + SCHED_LAUNCHES_MAX * (SCHED_LOOK_AHEAD + 1);
    *w = (struct work){
        .view = v,
        .plan = plan,
        .tokens = v->tokens,
        .slots_held = xcalloc(slots + 1, sizeof(int64_t)),
        .slots_kept = xcalloc(slots + 1, sizeof(bool)),
        .live = xcalloc(campaigns + 1, sizeof(int64_t)),
        .left = xcalloc(campaigns + 1, sizeof(musd_t)),
        .type_held = xcalloc(campaigns + 1, 16 * sizeof(int64_t)),
        .stage_left = xcalloc(stages + 1, sizeof(musd_t)),
        .closed = xcalloc(stages + 1, sizeof(bool)),
        .first = xcalloc(stages + 1, sizeof(enum wait_reason)),
        .asides = xmalloc(asides * sizeof(struct aside)),
    };
    for (size_t i = 0; i < slots; i++) {
        w->slots_held[i] = v->slots[i].held + v->slots[i].foreign;
    }
    for (size_t i = 0; i < campaigns; i++) {
        w->live[i] = v->campaigns[i].live;
        w->left[i] = v->campaigns[i].left_musd;
        memcpy(w->type_held + i * 16, v->campaigns[i].type_held, 16 * sizeof(int64_t));
    }
    for (int i = 0; i < v->stages_n; i++) {
        ASSERT(v->stages[i].campaign_i >= 0 && v->stages[i].campaign_i < v->campaigns_n);
        w->stage_left[i] = v->stages[i].stage_left_musd;
    }
}

static void work_done(struct work *w)
{
    for (int i = 0; i < w->asides_n; i++) {
        ready_push(w->view->stages[w->asides[i].stage_i].ready, &w->asides[i].task);
    }
    free(w->slots_held);
    free(w->slots_kept);
    free(w->live);
    free(w->left);
    free(w->type_held);
    free(w->stage_left);
    free(w->closed);
    free(w->first);
    free(w->asides);
}

void sched_decide(const struct sched_view *view, struct sched_plan *ret)
{
    ASSERT(view->stages_n >= 0 && view->stages_n <= SCHED_STAGES_MAX);
    ret->launches_n = 0;
    ret->wake_us = USEC_NEVER;
    CLEANUP(work_done)
    struct work w;
    work_init(&w, view, ret);
    for (int i = 0; i < view->stages_n; i++) {
        const struct sched_stage *s = &view->stages[i];
        if (!s->may_start || ready_n(s->ready) == 0) {
            close_stage(&w, i, ready_n(s->ready) == 0 ? WAIT_NONE : s->why_not);
        }
    }
    for (int i = next_stage(&w); i >= 0; i = next_stage(&w)) {
        step_stage(&w, i);
    }
    for (int i = 0; i < view->stages_n; i++) {
        if (view->stages[i].may_start) {
            ret->wake_us = MIN(ret->wake_us, ready_next_us(view->stages[i].ready));
        }
    }
}
