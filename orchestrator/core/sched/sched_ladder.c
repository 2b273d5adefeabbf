/* Where a task goes: the first rung of its stage's ladder that can ever hold it and is thought to
 * have capacity. A rung that is only full is waited for, because the next one may cost more. */
#include "sched_work.h"

struct rungs_asked {
    const struct sched_work *w;
    const struct sched_try *t;
    enum wait_reason first; /* why the first unfit rung does not fit */
    bool stopped;           /* a quota cannot be read: wait, because it may be large enough */
    int fit_n;
};

static bool fits(void *ctx, int instance_type_i)
{
    struct rungs_asked *a = ctx;
    const struct spec_stage *stage = a->w->view->stages[a->t->stage_i].stage;
    int slots_i = a->w->stages[a->t->stage_i].slots_i[instance_type_i];
    if (a->stopped) {
        return false;
    }
    enum wait_reason why =
        slots_i < 0
            ? WAIT_QUOTA_UNREADABLE
            : quota_ledger_can_ever(&a->w->slots[slots_i], &a->w->account, stage->instance_count,
                                    a->t->max_runtime_s, a->t->volume_gb);
    a->stopped = why == WAIT_QUOTA_UNREADABLE;
    a->first = a->first == WAIT_NONE ? why : a->first;
    a->fit_n += why == WAIT_NONE;
    return why == WAIT_NONE;
}

/* The first rung from `from` on that can hold it and is thought to have capacity. */
static bool choose(const struct sched_try *t, int from, struct rungs_asked *ret_asked,
                   struct capacity_ladder_choice *ret)
{
    const struct sched_work *w = ret_asked->w;
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    const struct sched_stage_left *left = &w->stages[t->stage_i];
    return capacity_ladder_choose(left->ladder != NULL ? left->ladder : s->ladder, s->stage, from,
                                  w->view->now_us, fits, ret_asked, ret);
}

enum wait_reason sched_ladder(const struct sched_work *w, struct sched_try *t)
{
    const struct sched_stage_left *left = &w->stages[t->stage_i];
    struct rungs_asked asked = {.w = w, .t = t};
    struct capacity_ladder_choice choice;
    bool chosen = choose(t, t->rung, &asked, &choice);
    if (!chosen && asked.fit_n == 0 && !asked.stopped && t->rung > 0) {
        /* moved here, and since then the quota has shrunk: one above may hold it still */
        asked = (struct rungs_asked){.w = w, .t = t};
        chosen = choose(t, 0, &asked, &choice);
    }
    if (chosen) {
        t->rung = choice.instance_type_i;
        t->subnet_i = choice.subnet_i;
        t->slots_i = left->slots_i[choice.instance_type_i];
        t->probe = choice.probe;
        return WAIT_NONE;
    }
    if (asked.fit_n == 0) {
        return asked.first;
    }
    w->plan->wake_us = MIN(w->plan->wake_us, choice.open_us);
    return WAIT_CAPACITY;
}

void sched_ladder_launched(struct sched_work *w, const struct sched_try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    struct sched_stage_left *left = &w->stages[t->stage_i];
    if (!t->probe) {
        return;
    }
    if (left->ladder == NULL) {
        left->ladder = xmalloc(sizeof *left->ladder);
        *left->ladder = *s->ladder;
    }
    capacity_ladder_started(left->ladder, s->stage, t->rung, t->subnet_i, w->view->now_us);
}
