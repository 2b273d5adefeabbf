/* What people want of campaigns, and the ends of stages and campaigns, become states: the rules of
 * the controller's campaign_life.c over counters. */
#include "sim_world.h"

static bool ended(const struct db_stage *s)
{
    return s->counts[TASK_WAITING] == 0 && s->counts[TASK_ACTIVE] == 0 && s->counts[TASK_HELD] == 0;
}

static enum stage_state stage_to(struct world *w, struct ctl *c, int stage)
{
    const struct db_stage *s = STAGE(w, stage);
    const struct db_campaign *dc = CAMPAIGN(w, s->campaign);
    if (stage_state_terminal(s->state) || dc->state == CAMPAIGN_PLANNED) {
        return s->state;
    }
    if (dc->wanted == WANTED_CANCEL) {
        return s->counts[TASK_ACTIVE] == 0 && s->counts[TASK_WAITING] == 0 ? STAGE_CANCELLED
                                                                           : s->state;
    }
    if (s->state == STAGE_BLOCKED) {
        enum stage_state need = s->needs >= 0 ? STAGE(w, s->needs)->state : STAGE_SUCCEEDED;
        return need == STAGE_SUCCEEDED      ? STAGE_RUNNING
               : stage_state_terminal(need) ? STAGE_SKIPPED
                                            : STAGE_BLOCKED;
    }
    if (ended(s)) {
        int64_t allowed = w->stage[stage].allow_failed_ppm * s->tasks_n;
        return s->counts[TASK_FAILED] * 1000000 > allowed ? STAGE_FAILED : STAGE_SUCCEEDED;
    }
    if (s->state == STAGE_RUNNING && c->mem[stage].breaker.tripped) {
        return STAGE_HELD;
    }
    return s->state;
}

static enum campaign_state end_of(struct world *w, const struct db_campaign *dc)
{
    enum campaign_state end = CAMPAIGN_SUCCEEDED;
    for (int i = dc->stage0; i < dc->stage0 + dc->stages_n; i++) {
        enum stage_state s = STAGE(w, i)->state;
        if (!stage_state_terminal(s)) {
            return CAMPAIGN_RUNNING;
        }
        if (s == STAGE_FAILED) {
            end = CAMPAIGN_FAILED;
        }
        if (s == STAGE_CANCELLED) {
            return CAMPAIGN_CANCELLED;
        }
    }
    return end;
}

static int64_t active_of(struct world *w, const struct db_campaign *dc)
{
    int64_t n = 0;
    for (int i = dc->stage0; i < dc->stage0 + dc->stages_n; i++) {
        n += STAGE(w, i)->counts[TASK_ACTIVE];
    }
    return n;
}

static enum campaign_state campaign_to(struct world *w, const struct db_campaign *dc)
{
    enum campaign_state end = end_of(w, dc);
    enum campaign_state to = dc->state;
    int64_t live = active_of(w, dc);
    if (campaign_state_terminal(dc->state)) {
        return dc->state;
    }
    if (dc->state == CAMPAIGN_PLANNED) {
        to = CAMPAIGN_RUNNING;
    } else if (end != CAMPAIGN_RUNNING && live == 0) {
        to = end;
    } else if (dc->wanted == WANTED_RUN) {
        to = dc->budget_held ? CAMPAIGN_HELD : CAMPAIGN_RUNNING;
    } else if (dc->wanted != WANTED_CANCEL) {
        to = live == 0 ? CAMPAIGN_PAUSED : CAMPAIGN_DRAINING;
    }
    return to == dc->state || campaign_edge(dc->state, to) ? to : CAMPAIGN_RUNNING;
}

/* Attempts of a campaign that is cancelled or paused are wanted no more. */
static bool stop_unwanted(struct world *w, struct ctl *c, int campaign)
{
    enum wanted wanted = CAMPAIGN(w, campaign)->wanted;
    bool any = false;
    const struct db_campaign *dc = CAMPAIGN(w, campaign);
    bool broke = dc->budget_held && dc->at_limit == AT_LIMIT_STOP;
    if ((wanted == WANTED_RUN || wanted == WANTED_DRAIN) && !broke) {
        return true;
    }
    for (size_t i = 0; i < c->live_n; i++) {
        any |= c->live[i].p.wanted &&
               c->stage[TASK_STAGE(w, c->live[i].row.task)].campaign == campaign;
    }
    if (!any) {
        return true;
    }
    if (!db_begin(w, c)) {
        return false;
    }
    for (size_t i = 0; i < c->live_n; i++) {
        if (c->stage[TASK_STAGE(w, c->live[i].row.task)].campaign == campaign) {
            ((struct db_attempt *)db_touch(w, T_ATTEMPT, (size_t)c->live[i].id))->unwanted = true;
        }
    }
    if (!db_commit(w, c)) {
        return false;
    }
    for (size_t i = c->live_n; i-- > 0 && c->leading;) {
        struct live *a = &c->live[i];
        if (!a->p.wanted || c->stage[TASK_STAGE(w, a->row.task)].campaign != campaign) {
            continue;
        }
        if (wanted == WANTED_CANCEL && a->p.state == ATTEMPT_RUNNING) {
            SOMETIMES(w, CANCELLED_WHILE_RUNNING);
        }
        a->stopped_by_us = true;
        live_fact(w, c, a->id, &(struct fact){.kind = FACT_UNWANTED, .at_us = ctl_boot(w, c)});
    }
    return c->leading;
}

/* During a hold after a failover nothing reaches its end: a job without a row may still turn up. */
static bool cancel_waiting(struct world *w, struct ctl *c, int campaign)
{
    const struct db_campaign *dc = CAMPAIGN(w, campaign);
    if (dc->wanted != WANTED_CANCEL || c->hold) {
        return true;
    }
    for (int s = dc->stage0; s < dc->stage0 + dc->stages_n; s++) {
        struct ready_queue_task t;
        if (ready_queue_n(c->mem[s].ready) == 0) {
            continue;
        }
        if (!db_begin(w, c)) {
            return false;
        }
        while (ready_queue_pop(c->mem[s].ready, USEC_NEVER - 1, &t)) {
            rows_task_state(w, (int)t.task_id - 1, TASK_CANCELLED);
        }
        if (!db_commit(w, c)) {
            return false;
        }
        view_copy(w, c, false);
        c->look_at_db = true;
    }
    return true;
}

static bool move_states(struct world *w, struct ctl *c, int campaign)
{
    const struct db_campaign *dc = CAMPAIGN(w, campaign);
    bool any = false;
    if (!db_begin(w, c)) {
        return false;
    }
    for (int i = dc->stage0; i < dc->stage0 + dc->stages_n; i++) {
        enum stage_state to = stage_to(w, c, i);
        if (to != STAGE(w, i)->state) {
            any = true;
            (void)rows_stage_state(w, i, to);
            STAGE(w, i)->tripped = to == STAGE_HELD;
            if (to == STAGE_HELD) {
                judge_tripped(w, i);
            }
        }
    }
    enum campaign_state to = any ? dc->state : campaign_to(w, dc);
    if (to != dc->state) {
        any = true;
        if (to == CAMPAIGN_HELD) {
            SOMETIMES(w, BUDGET_HELD);
        }
        (void)rows_campaign_state(w, campaign, to);
    }
    if (!any) {
        db_abort(w);
        return true;
    }
    if (!db_commit(w, c)) {
        return false;
    }
    view_copy(w, c, false);
    c->decide = c->look_at_db = true; /* one move may allow the next */
    return true;
}

static bool needs_move(struct world *w, struct ctl *c, int campaign)
{
    const struct db_campaign *dc = CAMPAIGN(w, campaign);
    for (int i = dc->stage0; i < dc->stage0 + dc->stages_n; i++) {
        if (stage_to(w, c, i) != STAGE(w, i)->state) {
            return true;
        }
    }
    return campaign_to(w, dc) != dc->state;
}

/* A wish for many parts: retry what failed, or skip it; what ended goes on. */
static bool carry_out(struct world *w, struct ctl *c, int op)
{
    struct db_op *o = db_row(w, T_OP, (size_t)op);
    const struct db_campaign *dc = CAMPAIGN(w, o->campaign);
    bool reopened = false;
    if (!db_begin(w, c)) {
        return false;
    }
    ((struct db_op *)db_touch(w, T_OP, (size_t)op))->state = OPERATION_DONE;
    for (int s = dc->stage0; s < dc->stage0 + dc->stages_n; s++) {
        if (dc->state == CAMPAIGN_CANCELLED || dc->wanted == WANTED_CANCEL ||
            STAGE(w, s)->counts[TASK_FAILED] == 0) {
            continue;
        }
        bool open = !stage_state_terminal(STAGE(w, s)->state) ||
                    (STAGE(w, s)->state == STAGE_FAILED && !o->skip);
        bool can = !campaign_state_terminal(dc->state) || dc->state == CAMPAIGN_FAILED;
        if (!open || !can) { /* what has succeeded with a few failed parts stays as it is */
            continue;
        }
        if (!o->skip && stage_state_terminal(STAGE(w, s)->state)) {
            (void)rows_stage_state(w, s, STAGE_RUNNING);
        }
        if (!o->skip && campaign_state_terminal(dc->state)) {
            SOMETIMES(w, REOPENED);
            reopened = true;
            (void)rows_campaign_state(w, o->campaign, CAMPAIGN_RUNNING);
        }
        const struct db_stage *ds = STAGE(w, s);
        for (int t = ds->task0; t < ds->task0 + ds->tasks_n; t++) {
            if (TASK(w, t)->state != TASK_FAILED) {
                continue;
            }
            rows_task_state(w, t, o->skip ? TASK_SKIPPED : TASK_WAITING);
            struct db_task *dt = db_touch(w, T_TASK, (size_t)t);
            memset(dt->tries, 0, sizeof dt->tries);
            memset(dt->judged, 0, sizeof dt->judged);
            dt->attempts = 0;
            dt->not_before_us = 0;
            dt->same = 0;
            if (!o->skip && c->taken[o->campaign] && !reopened) {
                ready_add(w, c, t);
            }
        }
    }
    c->taken[o->campaign] &= !reopened;
    if (!db_commit(w, c)) {
        return false;
    }
    view_copy(w, c, false);
    c->decide = c->look_at_db = true;
    return true;
}

bool life_tick(struct world *w, struct ctl *c)
{
    for (size_t i = 0; i < w->db.t[T_OP].n; i++) {
        const struct db_op *o = db_row(w, T_OP, i);
        if (o->state == OPERATION_ACCEPTED && !c->hold && !carry_out(w, c, (int)i)) {
            return false;
        }
    }
    for (int i = 0; i < c->campaigns_n; i++) {
        if (campaign_state_terminal(c->campaign[i].state)) {
            continue;
        }
        if (!stop_unwanted(w, c, i) || !cancel_waiting(w, c, i) ||
            (!c->hold && needs_move(w, c, i) && !move_states(w, c, i))) {
            return false;
        }
    }
    return true;
}
