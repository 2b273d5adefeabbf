/* Carries what a stage's attempts teach from and to its rows; core/leader decides what that is. */
#include "history.h"
#include "common/cleanup.h"
#include "lease.h"
#include "shell.h"

static bool load_breaker(struct controller *c, struct live_stage *ls, struct err *err)
{
    AUTO_FREE struct breaker_row *rows = NULL;
    size_t n = 0;
    if (!view_breaker(c->store, ls->row.id, ls->row.breaker_since, BREAKER_OF_MAX, &rows, &n,
                      err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        stage_history_saw_breaker_row(ls, &rows[i]);
    }
    return true;
}

static bool load_durations(struct controller *c, struct live_stage *ls, struct err *err)
{
    AUTO_FREE struct duration_row *rows = NULL;
    size_t n = 0;
    if (!view_durations(c->store, ls->row.campaign_id, ls->row.id, DURATION_KEPT, &rows, &n, err)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        stage_history_saw_duration(ls, rows[i].size, rows[i].run_us);
    }
    return true;
}

static bool load_promise(struct controller *c, struct live_stage *ls, struct err *err)
{
    AUTO_FREE struct promise_row *rows = NULL;
    size_t n = 0;
    if (!view_promises(c->store, ls->row.campaign_id, &rows, &n, err)) {
        return false;
    }
    stage_history_take_promises(ls, rows, n);
    return true;
}

bool history_load(struct controller *c, struct live_stage *ls, struct err *err)
{
    stage_history_init(ls);
    return load_breaker(c, ls, err) && load_durations(c, ls, err) && load_promise(c, ls, err);
}

bool history_resume(struct controller *c, struct live_stage *ls, int64_t *ret_last, struct err *err)
{
    return stage_last_attempt(c->store, ls->row.id, ret_last, err) &&
           store_stage_breaker(c->store, ls->row.id, *ret_last, false, ls->row.resumes, err);
}

static bool write_stage(struct controller *c, struct live_stage *ls, struct err *err)
{
    struct stage_history_write w;
    if (!stage_history_plan(ls, &w)) {
        return true;
    }
    if (w.passed && !store_stage_breaker(c->store, ls->row.id, ls->row.breaker_since, true,
                                         ls->row.resumes_taken, err)) {
        return false;
    }
    return !w.promise_moves ||
           (w.promise.task_id != 0 ? store_promise_put(c->store, &w.promise, err)
                                   : store_promise_drop(c->store, ls->row.id, err));
}

bool history_write(struct controller *c, struct live_campaign *lc, struct err *err)
{
    for (int k = 0; k < lc->stages_n; k++) {
        if (!write_stage(c, &lc->stages[k], err)) {
            return false;
        }
    }
    return true;
}

void history_written(struct live_campaign *lc)
{
    struct stage_history_write w;
    for (int k = 0; k < lc->stages_n; k++) {
        if (stage_history_plan(&lc->stages[k], &w)) {
            stage_history_apply(&lc->stages[k], &w);
        }
    }
}

bool history_write_slots(struct controller *c, usec_t now_us, struct err *err)
{
    struct quota_learning_write w;
    for (size_t i = 0; i < c->state.slots_n; i++) {
        const struct live_slots *ls = &c->state.slots[i];
        if (quota_learning_plan(ls, now_us, &w) &&
            !store_slots_learned(c->store, ls->s.instance_type, ls->s.market, w.foreign,
                                 w.foreign_us, w.refused_limit, err)) {
            return false;
        }
    }
    return true;
}

void history_slots_written(struct controller *c, usec_t now_us)
{
    struct quota_learning_write w;
    for (size_t i = 0; i < c->state.slots_n; i++) {
        if (quota_learning_plan(&c->state.slots[i], now_us, &w)) {
            quota_learning_apply(&c->state.slots[i], &w);
        }
    }
}
