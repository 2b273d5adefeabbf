/* Whether everything one task needs is available, and counting what it uses. */
#include "sched_work.h"

static bool full(int64_t limit, int64_t live)
{
    return limit >= 0 && live >= limit;
}

/* Limits on parts at once: the canary, then stage, campaign, project and global limits. */
static enum wait_reason check_limits(const struct sched_work *w, const struct sched_try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    const struct sched_campaign *c = &w->campaigns[s->campaign_i];
    const struct sched_project *p = &w->projects[c->project_i];
    if (w->stages[t->stage_i].canary <= 0) {
        return s->breaker->tripped ? WAIT_BREAKER : WAIT_CANARY;
    }
    if (full(s->parts_limit, w->stages[t->stage_i].live)) {
        return WAIT_STAGE_LIMIT;
    }
    if (full(c->parts_limit, c->live)) {
        return WAIT_CONCURRENCY;
    }
    if (full(p->parts_limit, p->live)) {
        return WAIT_PROJECT_LIMIT;
    }
    return full(w->view->parts_limit, w->live) ? WAIT_GLOBAL_LIMIT : WAIT_NONE;
}

static enum wait_reason check_slots(const struct sched_work *w, const struct sched_try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    int64_t n = s->stage->instance_count;
    if (t->limit_i >= 0 &&
        w->campaigns[s->campaign_i].type_held[t->limit_i] + n > s->spec->instances[t->limit_i].n) {
        return WAIT_TYPE_LIMIT;
    }
    if (t->pool_i < 0) {
        bool fits = n <= quota_ledger_free(&w->slots[t->slots_i], &w->account, w->view->now_us);
        if (sched_warm_pool_wait(w, t, fits)) {
            return WAIT_HAND_OVER;
        }
        if (!fits) {
            return WAIT_SLOTS;
        }
    }
    return sched_reservation_check(w, t);
}

enum wait_reason sched_check(const struct sched_work *w, struct sched_try *t)
{
    enum wait_reason why = check_limits(w, t);
    if (why == WAIT_NONE) {
        why = check_slots(w, t);
    }
    if (why == WAIT_NONE) {
        why = sched_check_money(w, t);
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

void sched_take(struct sched_work *w, const struct sched_try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    struct sched_campaign *c = &w->campaigns[s->campaign_i];
    struct sched_project *p = &w->projects[c->project_i];
    int64_t n = s->stage->instance_count;
    w->tokens--;
    w->slots[t->slots_i].held += n;
    w->account.total[w->slots[t->slots_i].market].held += n;
    w->live++;
    p->last_start_us = w->view->now_us;
    c->last_start_us = w->view->now_us;
    p->live++;
    p->held += n;
    c->live++;
    c->held += n;
    w->stages[t->stage_i].live++;
    w->stages[t->stage_i].canary -= w->stages[t->stage_i].canary == INT64_MAX ? 0 : 1;
    if (t->limit_i >= 0) {
        c->type_held[t->limit_i] += n;
    }
    w->left = minus(w->left, t->reserve_musd);
    p->left_musd = minus(p->left_musd, t->reserve_musd);
    c->left_musd = minus(c->left_musd, t->reserve_musd);
    w->stages[t->stage_i].left_musd = minus(w->stages[t->stage_i].left_musd, t->reserve_musd);
}
