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
    for (size_t i = 0; i < n; i++) {
        if (rows[i].stage_id == ls->row.id) {
            stage_history_take_promise(ls, &rows[i]);
        }
    }
    return true;
}

bool history_load(struct controller *c, struct live_stage *ls, struct err *err)
{
    stage_history_init(ls);
    return load_breaker(c, ls, err) && load_durations(c, ls, err) && load_promise(c, ls, err);
}

bool history_resume(struct controller *c, struct live_stage *ls, struct err *err)
{
    int64_t last = 0;
    if (!stage_last_attempt(c->store, ls->row.id, &last, err) ||
        !store_stage_breaker(c->store, ls->row.id, last, false, ls->row.resumes, err)) {
        return false;
    }
    stage_history_resumed(ls, last);
    return true;
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
    bool ok = !w.promise_moves ||
              (w.promise.task_id != 0 ? store_promise_put(c->store, &w.promise, err)
                                      : store_promise_drop(c->store, ls->row.id, err));
    if (ok) {
        stage_history_apply(ls, &w);
    }
    return ok;
}

static bool write_slots(struct controller *c, struct live_slots *ls, usec_t now_us, struct err *err)
{
    struct quota_learning_write w;
    if (!quota_learning_plan(ls, now_us, &w)) {
        return true;
    }
    if (!store_slots_learned(c->store, ls->s.instance_type, ls->s.market, w.foreign, w.foreign_us,
                             w.refused_limit, err)) {
        return false;
    }
    quota_learning_apply(ls, &w);
    return true;
}

bool history_write(struct controller *c, usec_t now_us, struct err *err)
{
    for (size_t i = 0; i < c->state.slots_n; i++) {
        if (!write_slots(c, &c->state.slots[i], now_us, err)) {
            return false;
        }
    }
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        struct live_campaign *lc = c->state.campaigns[i];
        for (int k = 0; k < lc->stages_n; k++) {
            if (!write_stage(c, &lc->stages[k], err)) {
                return false;
            }
        }
    }
    return true;
}
