/* Which task of a stage is next: the longest one, until so few are left that laying them out over
 * the slots freed by the stage's live jobs pays off. */
#include "sched_work.h"
#include "tail_packing.h"

#define TAIL_ROUNDS_LEFT 4 /* waiting tasks per slot; more changes nothing (measured) */

_Static_assert(DURATION_LONGEST_US <
                   INT64_MAX / (TAIL_PACKING_TASKS_MAX + TAIL_PACKING_SLOTS_MAX) / 2,
               "a layout of the longest times does not overflow");

/* How many more of this task's kind could start now. */
static int64_t free_jobs(const struct sched_work *w, int stage_i, int group,
                         const struct ready_queue_task *task)
{
    const struct sched_stage *s = &w->view->stages[stage_i];
    const struct sched_campaign *c = &w->campaigns[s->campaign_i];
    const struct sched_project *p = &w->projects[c->project_i];
    struct sched_try t;
    if (sched_prepare(w, stage_i, group, task, &t) != WAIT_NONE) {
        return 0;
    }
    int64_t each = s->stage->instance_count;
    int64_t n = quota_ledger_free(&w->slots[t.slots_i], &w->account, w->view->now_us) / each;
    n += sched_warm_pools(w, &t);
    if (t.limit_i >= 0) {
        n = MIN(n, (s->spec->instances[t.limit_i].n - c->type_held[t.limit_i]) / each);
    }
    const struct {
        int64_t limit, live;
    } limits[] = {{s->parts_limit, w->stages[stage_i].live},
                  {c->parts_limit, c->live},
                  {p->parts_limit, p->live},
                  {w->view->parts_limit, w->live}};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        n = limits[i].limit < 0 ? n : MIN(n, limits[i].limit - limits[i].live);
    }
    return MIN(n, w->tokens);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = 0;
    int64_t y = 0;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* When each slot of the stage comes free: those free now, then its live jobs' expected ends; 0 when
 * they are too many to lay out. */
static size_t slot_waits(const struct sched_work *w, int stage_i, int64_t free_n, int64_t *ret)
{
    size_t n = 0;
    for (; n < TAIL_PACKING_SLOTS_MAX && (int64_t)n < free_n; n++) {
        ret[n] = 0;
    }
    for (int i = 0; i < w->view->jobs_n; i++) {
        const struct sched_job *j = &w->view->jobs[i];
        if (j->stage_id != w->view->stages[stage_i].stage_id || j->end_p50_us == USEC_NEVER) {
            continue;
        }
        if (n == TAIL_PACKING_SLOTS_MAX) {
            return 0;
        }
        ret[n++] = MIN(MAX(1, j->end_p50_us - w->view->now_us), DURATION_LONGEST_US);
    }
    qsort(ret, n, sizeof *ret, by_time);
    return n;
}

struct sized {
    int64_t run_us;
    struct ready_queue_task task;
};

static int longer_first(const void *a, const void *b)
{
    const struct sized *x = a;
    const struct sized *y = b;
    return x->run_us != y->run_us
               ? (x->run_us < y->run_us) - (x->run_us > y->run_us)
               : (x->task.task_id > y->task.task_id) - (x->task.task_id < y->task.task_id);
}

/* The waiting tasks of a group with their expected run times, longest first; 0: too many, or not
 * known. */
static size_t waiting(const struct sched_work *w, int stage_i, int group, size_t slots_n,
                      struct sized *ret)
{
    const struct sched_stage *s = &w->view->stages[stage_i];
    struct ready_queue_task due[TAIL_PACKING_TASKS_MAX];
    size_t max = MIN((size_t)TAIL_PACKING_TASKS_MAX, slots_n * TAIL_ROUNDS_LEFT);
    size_t n = ready_queue_group_due(s->ready, group, w->view->now_us, due, max);
    if (n > max) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        ret[i].task = due[i];
        ret[i].run_us = duration_quantile_us(s->duration, due[i].size_mb, 50);
        if (ret[i].run_us <= 0) {
            return 0;
        }
    }
    qsort(ret, n, sizeof *ret, longer_first);
    return n;
}

static void look_ahead(struct sched_work *w, int stage_i, int group,
                       const struct ready_queue_task *first)
{
    const struct sched_stage *s = &w->view->stages[stage_i];
    struct sched_stage_left *left = &w->stages[stage_i];
    if (left->tail_asked || s->duration == NULL || !duration_known(s->duration) ||
        w->tails_n == SCHED_TAILS_MAX) {
        return;
    }
    left->tail_asked = true;
    int64_t wait_us[TAIL_PACKING_SLOTS_MAX];
    int64_t free_n = free_jobs(w, stage_i, group, first);
    size_t slots_n = free_n > 0 ? slot_waits(w, stage_i, free_n, wait_us) : 0;
    struct sized tasks[TAIL_PACKING_TASKS_MAX];
    size_t n = slots_n > 1 ? waiting(w, stage_i, group, slots_n, tasks) : 0;
    if (n == 0 || (int64_t)n <= free_n) {
        return; /* nothing to lay out, or all tasks start now */
    }
    int64_t run_us[TAIL_PACKING_TASKS_MAX];
    int chosen[TAIL_PACKING_SLOTS_MAX];
    for (size_t i = 0; i < n; i++) {
        run_us[i] = tasks[i].run_us;
    }
    size_t chosen_n = tail_packing_choose(run_us, n, wait_us, slots_n, chosen);
    if (w->tail == NULL) {
        w->tail = xmalloc(SCHED_TAILS_MAX * TAIL_PACKING_SLOTS_MAX * sizeof *w->tail);
    }
    w->tails_n++;
    left->tail_i = w->tail_n;
    left->tail_n = (int)chosen_n;
    for (size_t i = 0; i < chosen_n; i++) {
        w->tail[w->tail_n++] = tasks[chosen[i]].task;
    }
}

bool sched_next(struct sched_work *w, int stage_i, struct ready_queue_task *ret, int *ret_group)
{
    struct sched_stage_left *left = &w->stages[stage_i];
    if (left->tail_n > 0) {
        *ret = w->tail[left->tail_i];
        *ret_group = left->tail_group;
        return true;
    }
    if (!ready_queue_first(w->view->stages[stage_i].ready, w->view->now_us, ret, ret_group)) {
        return false;
    }
    look_ahead(w, stage_i, *ret_group, ret);
    if (left->tail_n > 0) {
        left->tail_group = *ret_group;
        *ret = w->tail[left->tail_i];
    }
    return true;
}

void sched_next_pop(struct sched_work *w, int stage_i, const struct ready_queue_task *task)
{
    struct sched_stage_left *left = &w->stages[stage_i];
    bool there = ready_queue_take(w->view->stages[stage_i].ready, task->task_id);
    ASSERT(there);
    if (left->tail_n > 0) {
        left->tail_i++;
        left->tail_n--;
    }
}
