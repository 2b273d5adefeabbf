/* Where a task goes: the first rung of its stage's ladder that can ever hold it. */
#include "sched_work.h"

enum wait_reason sched_place(const struct sched_work *w, struct sched_try *t)
{
    const struct spec_stage *stage = w->view->stages[t->stage_i].stage;
    enum wait_reason first = WAIT_NONE;
    for (int i = t->rung; i < stage->instance_type_n; i++) {
        int slots_i = w->stages[t->stage_i].slots_i[i];
        enum wait_reason why =
            slots_i < 0 ? WAIT_QUOTA_UNREADABLE
                        : slots_can_ever(&w->slots[slots_i], &w->account, stage->instance_count,
                                         t->max_runtime_s, t->volume_gb);
        if (why == WAIT_NONE) {
            t->rung = i;
            t->subnet_i = -1;
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
