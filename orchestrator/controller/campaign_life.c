/* See campaign_life.h: plan, write, apply, log. */
#include "campaign_life.h"
#include "attempt.h"
#include "common/log.h"
#include "core/leader/campaign_life.h"
#include "core/leader/stage_gate.h"
#include "history.h"
#include "lease.h"
#include "output_check.h"
#include "parking.h"
#include "shell.h"
#include "store/leader/attempts.h"
#include "store/leader/campaigns.h"
#include "store/leader/metrics.h"
#include "store/leader/tasks.h"

#define CANCEL_BATCH 1000

struct life_arg {
    struct live_campaign *campaign;
    struct campaign_life_writes *w;
};

static bool write_stage(struct controller *c, struct live_stage *ls, struct campaign_life_move *m,
                        struct err *err)
{
    if (m->resumes && !history_resume(c, ls, &m->last_attempt_id, err)) {
        return false;
    }
    return store_stage_state(c->store, ls->row.id, (enum stage_state)m->from,
                             (enum stage_state)m->to, m->reason, err);
}

static bool write_moves(struct controller *c, void *arg, struct err *err)
{
    struct life_arg *a = arg;
    const struct campaign_row *r = &a->campaign->row;
    for (int i = 0; i < a->w->n; i++) {
        struct campaign_life_move *m = &a->w->moves[i];
        struct live_stage *ls =
            m->stage_id != 0 ? leader_state_stage(a->campaign, m->stage_id) : NULL;
        bool ok = ls != NULL ? write_stage(c, ls, m, err)
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
    const struct live_campaign *campaign;
    const struct campaign_life_cancel *w;
    size_t moved;
};

static bool write_cancelled(struct controller *c, void *arg, struct err *err)
{
    struct cancel_arg *a = arg;
    int64_t ids[CANCEL_BATCH];
    for (size_t i = 0; i < a->w->n; i++) {
        ids[i] = a->w->tasks[i].task_id;
    }
    int64_t campaign = a->campaign->row.id;
    return a->w->to == TASK_FAILED
               ? store_tasks_fail(c->store, campaign, a->w->stage_id, a->w->cause, a->w->message,
                                  ids, a->w->n, &a->moved, err)
               : store_tasks_move(c->store, campaign, a->w->stage_id, a->w->from, a->w->to,
                                  a->w->cause, ids, a->w->n, &a->moved, NULL, err);
}

/* One batch a look: a million tasks neither block the tick nor a reader. */
static bool cancel_waiting(struct controller *c, struct live_campaign *lc,
                           const struct campaign_life_cancel *w)
{
    struct cancel_arg a = {.campaign = lc, .w = w};
    bool ok = parking_tx(c, PARKING_CAMPAIGN(lc->row.id), write_cancelled, &a);
    if (c->leading) {
        campaign_life_apply_cancel(&c->state, lc, w, ok, a.moved);
    }
    return ok;
}

static bool move_states(struct controller *c, struct live_campaign *lc,
                        struct campaign_life_writes *w)
{
    struct life_arg a = {.campaign = lc, .w = w};
    if (!parking_tx(c, PARKING_CAMPAIGN(lc->row.id), write_moves, &a)) {
        return false;
    }
    for (int i = 0; i < w->n; i++) {
        campaign_life_apply(&c->state, lc, &w->moves[i]);
        log_move(lc, &w->moves[i]);
    }
    return true;
}

static bool carry(struct controller *c, struct live_campaign *lc, enum campaign_life_step step,
                  struct campaign_life_look *look)
{
    switch (step) {
    case LIFE_UNWANT:
        return stop_unwanted(c, lc);
    case LIFE_CANCEL:
        return cancel_waiting(c, lc, &look->cancel);
    case LIFE_MOVE:
        return move_states(c, lc, &look->writes);
    case LIFE_SEEN:
        break;
    }
    return false;
}

static void live_on(struct controller *c, struct live_campaign *lc)
{
    struct ready_queue_task tasks[CANCEL_BATCH];
    struct campaign_life_look look = {.cancel = {.tasks = tasks}, .cancel_max = CANCEL_BATCH};
    enum campaign_life_step step = campaign_life_next(&c->state, lc, LIFE_UNWANT, &look);
    while (carry(c, lc, step, &look)) {
        step = campaign_life_next(&c->state, lc, (enum campaign_life_step)(step + 1), &look);
    }
    if (campaign_life_went_through(lc, step)) {
        parking_done(c, campaign_life_subject(lc));
    }
}

struct gate_arg {
    const struct live_stage *stage;
    struct gate_run *runs; /* [GATE_RUNS_MAX + 1] */
    size_t n;
    bool complete;
};

static bool read_gate(struct controller *c, void *arg, struct err *err)
{
    struct gate_arg *a = arg;
    return view_gate_values(c->store, a->stage->row.id, a->stage->spec->gate.metric, a->runs,
                            GATE_RUNS_MAX + 1, &a->n, &a->complete, err);
}

static void judge_gates(struct controller *c, struct live_campaign *lc)
{
    for (int i = 0; i < lc->stages_n && c->leading; i++) {
        struct gate_arg a = {.stage = &lc->stages[i]};
        if (!stage_gate_asks(lc, &lc->stages[i])) {
            continue;
        }
        a.runs = xcalloc(GATE_RUNS_MAX + 1, sizeof *a.runs);
        if (parking_tx(c, campaign_life_subject(lc), read_gate, &a)) {
            stage_gate_judge(lc, &lc->stages[i], a.runs, a.n, a.complete);
        }
        free(a.runs);
    }
}

bool campaign_life_tick(struct controller *c)
{
    for (size_t i = c->state.campaigns_n; i-- > 0;) {
        struct live_campaign *lc = c->state.campaigns[i];
        if (parking_due(c, campaign_life_subject(lc))) {
            judge_gates(c, lc);
        }
        if (c->leading && parking_due(c, campaign_life_subject(lc))) {
            live_on(c, lc);
        }
        if (!c->leading) {
            return false;
        }
        if (campaign_life_over(lc)) {
            int64_t id = lc->row.id;
            leader_state_drop_campaign(&c->state, lc);
            parking_done(c, PARKING_CAMPAIGN(id)); /* and its spec, if unreadable, is not needed */
            parking_drop(&c->state, id);
        }
    }
    return true;
}
