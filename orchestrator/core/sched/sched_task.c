/* What one task requests: its ladder rung, volume, run time and pool, and the money it reserves. */
#include "core/money/cost.h"
#include "sched_work.h"

static int limit_find(const struct spec *spec, const char *instance_type)
{
    for (int i = 0; i < spec->instances_n; i++) {
        if (strcmp(spec->instances[i].instance_type, instance_type) == 0) {
            return i;
        }
    }
    return -1;
}

/* What a retry changed, no more than the quota allows (-1: not known) unless the file itself asks
 * for more: it was changed before the quota was known, or was larger. */
static int64_t within(int64_t changed, int64_t of_stage, int64_t quota)
{
    return quota < 0 ? changed : MIN(changed, MAX(of_stage, quota));
}

enum wait_reason sched_prepare(const struct sched_work *w, int stage_i, int group,
                               const struct ready_queue_task *task, struct sched_try *ret)
{
    const struct sched_stage *s = &w->view->stages[stage_i];
    struct sched_try t = {.stage_i = stage_i,
                          .group = group,
                          .task = *task,
                          .subnet_i = -1,
                          .slots_i = -1,
                          .pool_i = -1,
                          .limit_i = -1,
                          .volume_gb = s->stage->volume_gb,
                          .max_runtime_s = s->stage->max_runtime_s,
                          .min_runtime_s = s->stage->min_runtime_s};
    int rung = 0;
    int volume_gb = 0;
    int64_t runtime_s = 0;
    if (w->view->change_of != NULL &&
        w->view->change_of(w->view->ctx, task->task_id, &rung, &volume_gb, &runtime_s)) {
        t.changed = true;
        t.rung = rung >= 0 && rung < s->stage->instance_type_n ? rung : 0;
        if (volume_gb > 0) {
            t.volume_gb = (int)within(volume_gb, t.volume_gb, w->account.volume_gb);
        }
        if (runtime_s > 0) {
            runtime_s = within(runtime_s, t.max_runtime_s, w->account.longest_run_s);
            /* extended after a timeout: less would only time out again */
            t.min_runtime_s = runtime_s > t.max_runtime_s ? runtime_s : t.min_runtime_s;
            t.max_runtime_s = runtime_s;
        }
    }
    t.max_runtime_s = quota_ledger_job_run_s(&w->account, t.max_runtime_s, spec_goes_on(s->stage));
    t.min_runtime_s = MIN(t.min_runtime_s, t.max_runtime_s);
    enum wait_reason why = sched_warm_pool_match(w, &t) ? WAIT_NONE : sched_ladder(w, &t);
    if (why == WAIT_NONE) {
        t.limit_i = limit_find(s->spec, s->stage->instance_type[t.rung]);
    }
    *ret = t;
    return why;
}

musd_t sched_spent(const struct sched_work *w, int64_t task_id)
{
    return w->view->spent_of == NULL ? 0 : w->view->spent_of(w->view->ctx, task_id);
}

/* What its own cap leaves of a task; INT64_MAX: it has none. */
static musd_t own_left(const struct sched_work *w, const struct sched_try *t)
{
    musd_t cap = w->view->stages[t->stage_i].part_cap_musd;
    return cap == INT64_MAX ? INT64_MAX : cap - sched_spent(w, t->task.task_id);
}

bool sched_own_cap_short(const struct sched_work *w, const struct sched_try *t)
{
    musd_t left = own_left(w, t);
    musd_t price = t->slots_i < 0 ? -1 : w->slots[t->slots_i].price_musd_per_hour;
    if (left == INT64_MAX || price < 0) {
        return false;
    }
    int64_t fits_s =
        cost_runtime_that_fits(price, w->view->stages[t->stage_i].stage->instance_count, 0, left);
    return fits_s < MAX(1, t->min_runtime_s);
}

enum wait_reason sched_money_short(const struct sched_money *left, musd_t musd_per_hour, int64_t n,
                                   int64_t least_s)
{
    const musd_t of[] = {left->shared, left->stage, left->part};
    const enum wait_reason why[] = {WAIT_BUDGET, WAIT_STAGE_BUDGET, WAIT_PART_BUDGET};
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        if (cost_runtime_that_fits(musd_per_hour, n, 0, of[i]) < MAX(1, least_s)) {
            return why[i];
        }
    }
    return WAIT_NONE;
}

/* Check that the worst case fits every cap, with a shorter run time if necessary. */
enum wait_reason sched_check_money(const struct sched_work *w, struct sched_try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    const struct sched_campaign *c = &w->campaigns[s->campaign_i];
    musd_t price = w->slots[t->slots_i].price_musd_per_hour;
    if (price < 0) {
        return WAIT_PRICE_UNKNOWN;
    }
    const struct sched_money of = {
        .shared = MIN(c->left_musd, MIN(w->projects[c->project_i].left_musd, w->left)),
        .stage = w->stages[t->stage_i].left_musd,
        .part = own_left(w, t)};
    musd_t left = MIN(of.shared, MIN(of.stage, of.part));
    int64_t n = s->stage->instance_count;
    sched_warm_pool_keep(w, t);
    int64_t fits_s = cost_runtime_that_fits(price, n, t->keep_alive_s, left);
    /* give up the keep-alive to start now */
    if (fits_s < t->max_runtime_s && t->keep_alive_s > 0) {
        t->keep_alive_s = 0;
        t->print = 0;
        fits_s = cost_runtime_that_fits(price, n, 0, left);
    }
    if (fits_s < t->min_runtime_s || fits_s < 1) {
        return sched_money_short(&of, price, n, t->min_runtime_s);
    }
    t->max_runtime_s = MIN(t->max_runtime_s, fits_s);
    struct err ignored = ERR_INIT;
    return cost_worst_case(price, n, t->max_runtime_s, t->keep_alive_s, &t->reserve_musd, &ignored)
               ? WAIT_NONE
               : WAIT_BUDGET;
}
