/* See campaign_life.h: plan, write, apply, log. */
#include "campaign_life.h"
#include "attempt.h"
#include "common/log.h"
#include "core/leader/campaign_life.h"
#include "history.h"
#include "lease.h"
#include "output_check.h"
#include "parking.h"
#include "shell.h"

#define CANCEL_BATCH 1000

struct life_arg {
    struct live_campaign *campaign;
    struct campaign_life_writes w;
    int64_t last[ARRAY_LEN(((struct campaign_life_writes *)NULL)->moves)]; /* of what resumes */
};

static bool write_stage(struct controller *c, struct live_stage *ls,
                        const struct campaign_life_move *m, int64_t *ret_last, struct err *err)
{
    if (m->resumes && !history_resume(c, ls, ret_last, err)) {
        return false;
    }
    return store_stage_state(c->store, ls->row.id, (enum stage_state)m->from,
                             (enum stage_state)m->to, m->reason, err);
}

static bool write_moves(struct controller *c, void *arg, struct err *err)
{
    struct life_arg *a = arg;
    const struct campaign_row *r = &a->campaign->row;
    for (int i = 0; i < a->w.n; i++) {
        const struct campaign_life_move *m = &a->w.moves[i];
        struct live_stage *ls =
            m->stage_id != 0 ? leader_state_stage(a->campaign, m->stage_id) : NULL;
        bool ok = ls != NULL ? write_stage(c, ls, m, &a->last[i], err)
                             : store_campaign_state(c->store, r->id, (enum campaign_state)m->from,
                                                    (enum campaign_state)m->to, m->reason,
                                                    r->version, err);
        if (!ok) {
            return false;
        }
    }
    return true;
}

static void log_move(const struct live_campaign *lc, const struct campaign_life_move *m)
{
    if (m->stage_id != 0) {
        log_event(LOG_INFO, "stage_moved", LF_I("campaign", lc->row.id), LF_I("stage", m->stage_id),
                  LF_S("to", stage_state_name((enum stage_state)m->to)));
    } else {
        log_event(LOG_INFO, "campaign_moved", LF_I("campaign", lc->row.id),
                  LF_S("to", campaign_state_name((enum campaign_state)m->to)),
                  LF_S("reason", m->reason));
    }
}

static bool write_unwanted(struct controller *c, void *arg, struct err *err)
{
    const struct live_campaign *lc = arg;
    return store_attempts_unwant(c->store, lc->row.id, err);
}

/* Written before the stop: a leader that takes over after a resume must know whose stop it sees. */
static bool stop_unwanted(struct controller *c, struct live_campaign *lc)
{
    if (!campaign_life_plan_unwant(&c->state, lc, &lc->waits_for_person)) {
        campaign_life_want_again(&c->state, lc);
        return true;
    }
    if (!parking_tx(c, PARKING_CAMPAIGN(lc->row.id), write_unwanted, lc)) {
        return false;
    }
    campaign_life_apply_unwant(&c->state, lc);
    for (size_t i = 0; i < c->state.attempts_n && c->leading; i++) {
        if (c->state.attempts[i]->campaign == lc) {
            attempt_unwant(c->state.attempts[i]);
        }
    }
    return c->leading;
}

struct cancel_arg {
    struct live_campaign *campaign;
    struct campaign_life_cancel w;
    size_t moved;
};

static bool write_cancelled(struct controller *c, void *arg, struct err *err)
{
    struct cancel_arg *a = arg;
    int64_t ids[CANCEL_BATCH];
    for (size_t i = 0; i < a->w.n; i++) {
        ids[i] = a->w.tasks[i].task_id;
    }
    return store_tasks_move(c->store, a->campaign->row.id, a->w.stage_id, TASK_WAITING,
                            TASK_CANCELLED, CAUSE_NONE, ids, a->w.n, &a->moved, NULL, err);
}

/* One batch a look: a million tasks neither block the tick nor a reader. */
static bool cancel_waiting(struct controller *c, struct live_campaign *lc)
{
    struct ready_queue_task tasks[CANCEL_BATCH];
    struct cancel_arg a = {.campaign = lc, .w = {.tasks = tasks}};
    if (!campaign_life_plan_cancel(lc, CANCEL_BATCH, &a.w)) {
        return true;
    }
    bool ok = parking_tx(c, PARKING_CAMPAIGN(lc->row.id), write_cancelled, &a);
    if (c->leading) {
        campaign_life_apply_cancel(&c->state, lc, &a.w, ok, a.moved);
    }
    return ok;
}

static void moved(struct controller *c, struct life_arg *a)
{
    struct live_campaign *lc = a->campaign;
    for (int i = 0; i < a->w.n; i++) {
        const struct campaign_life_move *m = &a->w.moves[i];
        if (m->resumes) {
            stage_history_resumed(leader_state_stage(lc, m->stage_id), a->last[i]);
        }
        campaign_life_apply(&c->state, lc, m);
        log_move(lc, m);
    }
}

static void live_on(struct controller *c, struct live_campaign *lc)
{
    struct life_arg a = {.campaign = lc};
    if (!stop_unwanted(c, lc) || !cancel_waiting(c, lc)) {
        return;
    }
    campaign_life_plan(lc, &a.w);
    lc->waits_for_person = a.w.waits_for_person;
    for (int i = 0; i < a.w.n; i++) {
        struct campaign_life_move *m = &a.w.moves[i];
        if (m->trips) {
            stage_history_trip_text(lc, leader_state_stage(lc, m->stage_id), m->reason,
                                    sizeof m->reason);
        }
    }
    if (a.w.n > 0 && parking_tx(c, PARKING_CAMPAIGN(lc->row.id), write_moves, &a)) {
        moved(c, &a);
    }
}

bool campaign_life_tick(struct controller *c)
{
    for (size_t i = c->state.campaigns_n; i-- > 0;) {
        struct live_campaign *lc = c->state.campaigns[i];
        int64_t id = lc->row.id;
        /* A campaign without a readable spec can still be stopped and cancelled at any time. */
        if (parking_due(c, lc->spec_unreadable ? PARKING_LOCK(id) : PARKING_CAMPAIGN(id))) {
            live_on(c, lc);
        }
        if (!c->leading) {
            return false;
        }
        if (campaign_life_over(&c->state, lc)) {
            parking_end(c, lc->row.id);
            leader_state_drop_campaign(&c->state, lc);
        }
    }
    return true;
}
