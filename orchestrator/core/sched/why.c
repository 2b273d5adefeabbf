/* Why a waiting task is not running, according to the last plan. */
#include "sched.h"

/* Its index in plan->own, which is sorted by stage and task; -1: it was not examined. */
static int own_find(const struct sched_plan *plan, int stage_i, int64_t task_id)
{
    int from = 0;
    int to = plan->own_n;
    while (from < to) {
        int at = from + (to - from) / 2;
        const struct sched_own *o = &plan->own[at];
        if (o->stage_i < stage_i || (o->stage_i == stage_i && o->task_id < task_id)) {
            from = at + 1;
        } else {
            to = at;
        }
    }
    return from < plan->own_n && plan->own[from].stage_i == stage_i &&
                   plan->own[from].task_id == task_id
               ? from
               : -1;
}

enum wait_reason sched_why(const struct sched_view *view, const struct sched_plan *plan,
                           int stage_i, const struct ready_queue_task *task)
{
    ASSERT(stage_i >= 0 && stage_i < view->stages_n);
    const struct sched_stage *s = &view->stages[stage_i];
    if (!s->may_start) {
        return s->why_not != WAIT_NONE ? s->why_not : WAIT_NEW;
    }
    if (task->not_before_us > view->now_us) {
        return WAIT_BACKOFF;
    }
    int own_i = own_find(plan, stage_i, task->task_id);
    if (own_i >= 0) {
        return plan->own[own_i].reason;
    }
    /* The task may start, but the plan saw nothing more to start: the task came after the plan, or
     * its reason was not kept. */
    enum wait_reason rest = plan->rest[stage_i];
    if (rest != WAIT_NONE && rest != WAIT_BACKOFF) {
        return rest;
    }
    return plan->own_n == SCHED_OWN_MAX && plan->reason[stage_i] != WAIT_NONE
               ? plan->reason[stage_i]
               : WAIT_NEW;
}
