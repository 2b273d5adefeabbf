/* What people want of a campaign, and the ends of stages and campaigns, become states. Looks at
 * counters only, never at parts; every move is along lifecycle.c's edges. */
#include "attempt.h"
#include "common/clock.h"
#include "common/log.h"
#include "ctl.h"
#include <stdio.h>

#define CANCEL_BATCH 1000

/* One planned write; carried out in one transaction with its fellows, then applied to the view. */
struct move {
    struct live_campaign *campaign;
    struct live_stage *stage; /* NULL: of the campaign itself */
    int to;                   /* campaign_state or stage_state */
    char reason[400];
};
#define MOVES_MAX (1 + SPEC_STAGES_MAX)

static bool ended(const struct live_stage *ls)
{
    const int64_t *n = ls->row.counts;
    return ls->row.closed && ls->row.taken == ls->row.tasks && n[TASK_WAITING] == 0 &&
           n[TASK_ACTIVE] == 0 && n[TASK_HELD] == 0;
}

static bool too_many_failed(const struct live_stage *ls)
{
    int64_t allowed = ls->spec != NULL ? ls->spec->allow_failed_ppm : 0;
    return ls->row.counts[TASK_FAILED] * 1000000 > allowed * ls->row.taken;
}

/* BLOCKED until every stage it needs has succeeded; *ret_dead when one of them never will. */
static bool needs_met(const struct live_campaign *lc, const struct live_stage *ls, bool *ret_dead)
{
    bool met = true;
    *ret_dead = false;
    for (int i = 0; ls->spec != NULL && i < ls->spec->needs_n; i++) {
        for (int k = 0; k < lc->stages_n; k++) {
            const struct stage_row *need = &lc->stages[k].row;
            if (strcmp(need->name, ls->spec->needs[i]) != 0) {
                continue;
            }
            bool good = need->state == STAGE_SUCCEEDED;
            met &= good;
            *ret_dead |= !good && stage_state_terminal(need->state);
        }
    }
    return met;
}

static void say(struct move *m, const char *reason)
{
    (void)snprintf(m->reason, sizeof m->reason, "%s", reason);
}

/* A stage that runs, or that its breaker holds till a person lets it go on. */
static void plan_running(struct live_campaign *lc, struct live_stage *ls, struct move *m)
{
    if (ended(ls)) {
        m->to = too_many_failed(ls) ? STAGE_FAILED : STAGE_SUCCEEDED;
        say(m, m->to == STAGE_FAILED ? "more failed parts than allow_failed" : "");
    } else if (ls->row.state == STAGE_RUNNING && ls->breaker.tripped) {
        m->to = STAGE_HELD;
        stage_history_trip_text(lc, ls, m->reason, sizeof m->reason);
    } else if (ls->row.state == STAGE_HELD && ls->row.resumes > ls->row.resumes_taken) {
        m->to = STAGE_RUNNING;
    }
}

static void plan_stage(struct live_campaign *lc, struct live_stage *ls, struct move *moves, int *n)
{
    bool dead = false;
    struct move m = {.campaign = lc, .stage = ls, .to = (int)ls->row.state};
    if (stage_state_terminal(ls->row.state) || lc->row.state == CAMPAIGN_PLANNED) {
        return;
    }
    if (lc->row.wanted == WANTED_CANCEL) {
        if (ls->row.counts[TASK_ACTIVE] == 0 && ls->row.counts[TASK_WAITING] == 0) {
            m.to = STAGE_CANCELLED;
        }
    } else if (ls->row.state == STAGE_BLOCKED) {
        if (needs_met(lc, ls, &dead)) {
            m.to = STAGE_RUNNING;
        } else if (dead) {
            m.to = STAGE_SKIPPED;
            say(&m, "a stage it needs did not succeed");
        }
    } else {
        plan_running(lc, ls, &m);
    }
    if (m.to != (int)ls->row.state) {
        moves[(*n)++] = m;
    }
}

static enum campaign_state end_of(const struct live_campaign *lc)
{
    enum campaign_state end = CAMPAIGN_SUCCEEDED;
    for (int i = 0; i < lc->stages_n; i++) {
        enum stage_state s = lc->stages[i].row.state;
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

/* Held by its breakers: no stage of it can go on without a person. */
static const struct live_stage *stuck_at(const struct live_campaign *lc)
{
    const struct live_stage *held = NULL;
    for (int i = 0; i < lc->stages_n; i++) {
        enum stage_state s = lc->stages[i].row.state;
        if (s == STAGE_RUNNING) {
            return NULL;
        }
        held = s == STAGE_HELD ? &lc->stages[i] : held;
    }
    return held;
}

/* What at_limit asks for, once: a campaign that was held or stopped waits for a person. */
static enum budget_action at_limit(struct live_campaign *lc)
{
    const struct campaign_row *r = &lc->row;
    bool drains = r->at_limit == AT_LIMIT_DRAIN;
    enum budget_action a =
        budget_at_limit(r->at_limit, drains ? lc->budget_short : lc->budget_spent, lc->live);
    if (!drains && a != BUDGET_GO_ON) {
        lc->waits_for_person = true;
    }
    return lc->waits_for_person
               ? (r->at_limit == AT_LIMIT_STOP ? BUDGET_STOP_AND_HOLD : BUDGET_HOLD)
               : a;
}

static void plan_wanted(struct live_campaign *lc, struct move *m)
{
    const struct live_stage *stuck = stuck_at(lc);
    m->to = CAMPAIGN_RUNNING;
    if (at_limit(lc) != BUDGET_GO_ON) {
        m->to = CAMPAIGN_HELD;
        say(m, "budget");
    } else if (stuck != NULL && lc->live == 0) {
        m->to = CAMPAIGN_HELD;
        (void)snprintf(m->reason, sizeof m->reason, "stage %s: %.300s", stuck->row.name,
                       stuck->row.reason);
    }
}

static void plan_campaign(struct live_campaign *lc, struct move *moves, int *n)
{
    enum campaign_state now = lc->row.state;
    struct move m = {.campaign = lc, .to = (int)now};
    enum campaign_state end = end_of(lc);
    if (now == CAMPAIGN_PLANNED) {
        m.to = CAMPAIGN_RUNNING;
    } else if (end != CAMPAIGN_RUNNING && lc->live == 0) {
        m.to = (int)end;
    } else if (lc->row.wanted == WANTED_RUN) {
        plan_wanted(lc, &m);
    } else if (lc->row.wanted != WANTED_CANCEL) {
        m.to = lc->live == 0 ? CAMPAIGN_PAUSED : CAMPAIGN_DRAINING;
    }
    enum campaign_state to = (enum campaign_state)m.to;
    if (to != now && !campaign_state_terminal(now) && !campaign_edge(now, to)) {
        m.to = CAMPAIGN_RUNNING; /* by way of it */
        to = CAMPAIGN_RUNNING;
    }
    if (to != now && campaign_edge(now, to)) {
        moves[(*n)++] = m;
    }
}

struct write_arg {
    struct move *moves;
    int n;
};

static bool write_moves(struct controller *c, void *arg, struct err *err)
{
    struct write_arg *w = arg;
    for (int i = 0; i < w->n; i++) {
        const struct move *m = &w->moves[i];
        const struct campaign_row *r = &m->campaign->row;
        bool resumes =
            m->stage != NULL && m->stage->row.state == STAGE_HELD && m->to == STAGE_RUNNING;
        if (resumes && !history_resume(c, m->stage, err)) {
            return false;
        }
        bool ok = m->stage != NULL
                      ? store_stage_state(c->store, m->stage->row.id, m->stage->row.state,
                                          (enum stage_state)m->to, m->reason, err)
                      : store_campaign_state(c->store, r->id, r->state, (enum campaign_state)m->to,
                                             m->reason, r->version, err);
        if (!ok) {
            return false;
        }
    }
    return true;
}

static void apply(struct controller *c, const struct move *m)
{
    if (m->stage != NULL) {
        log_event(LOG_INFO, "stage_moved", LF_I("campaign", m->campaign->row.id),
                  LF_S("stage", m->stage->row.name),
                  LF_S("to", stage_state_name((enum stage_state)m->to)));
        stage_set_state(m->stage, (enum stage_state)m->to);
        (void)snprintf(m->stage->row.reason, sizeof m->stage->row.reason, "%s", m->reason);
    } else {
        log_event(LOG_INFO, "campaign_moved", LF_I("campaign", m->campaign->row.id),
                  LF_S("to", campaign_state_name((enum campaign_state)m->to)),
                  LF_S("reason", m->reason));
        campaign_set_state(m->campaign, (enum campaign_state)m->to);
    }
    c->state.decide = true;
    c->state.look_at_db = true; /* one move may allow the next */
}

static bool write_unwanted(struct controller *c, void *arg, struct err *err)
{
    const struct live_campaign *lc = arg;
    return store_attempts_unwant(c->store, lc->row.id, err);
}

/* Live attempts of a campaign that is cancelled or paused are wanted no more. Written first: a
 * leader that takes over after a resume must know whose stop it sees. */
static bool stop_unwanted(struct controller *c, struct live_campaign *lc)
{
    bool any = false;
    bool spent = lc->row.wanted == WANTED_RUN && at_limit(lc) == BUDGET_STOP_AND_HOLD;
    if (lc->row.wanted != WANTED_CANCEL && lc->row.wanted != WANTED_PAUSE && !spent) {
        return true;
    }
    for (size_t i = 0; i < c->state.attempts_n; i++) {
        any |= c->state.attempts[i]->campaign == lc && !c->state.attempts[i]->row.unwanted;
    }
    if (any && !leader_tx(c, write_unwanted, lc)) {
        return false;
    }
    for (size_t i = 0; any && i < c->state.attempts_n && c->leading; i++) {
        if (c->state.attempts[i]->campaign == lc) {
            c->state.attempts[i]->row.unwanted = true;
            attempt_unwant(c->state.attempts[i]);
        }
    }
    return c->leading;
}

struct cancel_arg {
    struct live_campaign *campaign;
    struct live_stage *stage;
    int64_t ids[CANCEL_BATCH];
    size_t n, moved;
};

static bool cancel_batch(struct controller *c, void *arg, struct err *err)
{
    struct cancel_arg *ca = arg;
    return store_tasks_move(c->store, ca->campaign->row.id, ca->stage->row.id, TASK_WAITING,
                            TASK_CANCELLED, CAUSE_NONE, ca->ids, ca->n, &ca->moved, NULL, err);
}

static bool cancel_waiting(struct controller *c, struct live_campaign *lc)
{
    if (lc->row.wanted != WANTED_CANCEL) {
        return true;
    }
    struct cancel_arg *ca = xcalloc(1, sizeof *ca);
    bool ok = true;
    for (int i = 0; i < lc->stages_n && ok; i++) {
        struct ready_queue_task t;
        *ca = (struct cancel_arg){.campaign = lc, .stage = &lc->stages[i]};
        while (ca->n < CANCEL_BATCH && ready_queue_pop(ca->stage->ready, USEC_NEVER - 1, &t)) {
            ca->ids[ca->n++] = t.task_id;
        }
        if (ca->n == 0) {
            continue;
        }
        ok = leader_tx(c, cancel_batch, ca);
        if (ok) {
            task_counts_move(lc, ca->stage, TASK_WAITING, TASK_CANCELLED, (int64_t)ca->moved);
            c->state.look_at_db = true;
        }
    }
    free(ca);
    return ok;
}

static bool live_on(struct controller *c, struct live_campaign *lc)
{
    struct move moves[MOVES_MAX];
    int n = 0;
    if (!stop_unwanted(c, lc) || !cancel_waiting(c, lc)) {
        return false;
    }
    for (int i = 0; i < lc->stages_n && i < SPEC_STAGES_MAX; i++) {
        plan_stage(lc, &lc->stages[i], moves, &n);
    }
    if (n == 0) {
        plan_campaign(lc, moves, &n);
    }
    if (n == 0) {
        return true;
    }
    struct write_arg w = {.moves = moves, .n = n};
    if (!leader_tx(c, write_moves, &w)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        apply(c, &moves[i]);
    }
    return true;
}

bool campaign_life_tick(struct controller *c)
{
    for (size_t i = c->state.campaigns_n; i-- > 0;) {
        struct live_campaign *lc = c->state.campaigns[i];
        if (!live_on(c, lc)) {
            return false;
        }
        if (campaign_state_terminal(lc->row.state) && lc->live == 0 &&
            !leader_state_has_pool_of(&c->state, lc)) {
            leader_state_drop_campaign(&c->state, lc);
        }
    }
    return true;
}
