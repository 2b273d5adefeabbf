/* Tasks of several instances against smaller ones of lower rank. */
#include "sched_work.h"

enum wait_reason sched_gang_check(const struct sched_work *w, const struct sched_try *t)
{
    return w->slots_kept[t->slots_i] ? WAIT_ORDER : WAIT_NONE;
}

void sched_gang_waits(struct sched_work *w, const struct sched_try *t)
{
    const struct slots *s = &w->slots[t->slots_i];
    int64_t n = w->view->stages[t->stage_i].stage->instance_count;
    /* Slots of others never come back by our doing: then nothing is kept for it. */
    if (n > 1 && n <= slots_limit(s, &w->account) - slots_foreign(s, w->view->now_us)) {
        w->slots_kept[t->slots_i] = true;
    }
}
