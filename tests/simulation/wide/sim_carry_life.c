/* Carries the lives of campaigns and what people ask for in bulk, as controller/campaign_life.c,
 * operations.c and history.c do. */
#include "core/leader/attempt.h"
#include "core/leader/campaign_life.h"
#include "core/leader/operations.h"
#include "core/leader/rows_read.h"
#include "core/leader/stage_history.h"
#include "sim_world.h"

#define CANCEL_BATCH    64
#define OPERATION_BATCH 64

/* The next attempts of a held stage begin with a canary again. */
static int64_t write_resume(struct world *w, const struct live_stage *ls)
{
    struct db_stage *d = db_touch(w, T_STAGE, (size_t)row_of_id(ls->row.id));
    int64_t last = 0;
    for (size_t i = w->db.t[T_ATTEMPT].n; i-- > 0 && last == 0;) {
        last = id_of(TASK_STAGE(w, ATTEMPT(w, i)->task)) == ls->row.id ? id_of((int)i) : 0;
    }
    d->breaker_since = (int)last;
    d->breaker_passed = false;
    d->resumes_taken = ls->row.resumes;
    d->reset_us = SIM_EPOCH_US + w->now_us;
    return last;
}

static bool write_move(struct world *w, struct live_campaign *lc, struct campaign_life_move *m)
{
    int campaign = row_of_id(lc->row.id);
    int stage = row_of_id(m->stage_id);
    if (m->stage_id == 0) {
        bool budget = strcmp(m->reason, "budget") == 0;
        judge_campaign_moves(w, lc, (enum campaign_state)m->to, budget);
        bool own_cap = strncmp(m->reason, "budget ", 7) == 0;
        judge_own_budget(w, lc, own_cap);
        w->cover->sites[SITE_BUDGET_HELD] += budget;
        struct db_campaign *d = db_touch(w, T_CAMPAIGN, (size_t)campaign);
        d->own_cap_held = own_cap;
        d->money_held = budget;
        d->taken_version = MAX(d->taken_version, lc->row.version);
        return (int)d->state == m->from &&
               rows_campaign_state(w, campaign, (enum campaign_state)m->to);
    }
    if (STAGE(w, stage)->state == STAGE_HELD && m->to == STAGE_RUNNING) {
        judge_resumes(w, stage);
    }
    if (m->resumes) {
        m->last_attempt_id = write_resume(w, leader_state_stage(lc, m->stage_id));
    }
    if ((int)STAGE(w, stage)->state != m->from ||
        !rows_stage_state(w, stage, (enum stage_state)m->to)) {
        return false;
    }
    if (m->to == STAGE_HELD) {
        judge_tripped(w, stage);
    }
    return true;
}

static bool move_states(struct world *w, struct ctl *c, struct live_campaign *lc,
                        struct campaign_life_writes *life)
{
    if (!db_begin(w, c)) {
        return false;
    }
    for (int i = 0; i < life->n; i++) {
        if (!write_move(w, lc, &life->moves[i])) {
            wrong(w, "I9", "campaign %lld or a stage of it is not in the state that is remembered",
                  (long long)lc->row.id);
        }
    }
    if (!db_commit(w, c)) {
        return false;
    }
    for (int i = 0; i < life->n; i++) {
        campaign_life_apply(&c->state, lc, &life->moves[i]);
    }
    return true;
}

static void unwant(struct world *w, struct ctl *c, struct live_attempt *a)
{
    struct fact fact;
    if (leader_attempt_unwant(&c->state, a, ctl_boot(w, c), &fact)) {
        carry_fact(w, c, a->row.id, &fact);
    }
}

static bool stop_unwanted(struct world *w, struct ctl *c, struct live_campaign *lc)
{
    if (!db_begin(w, c)) {
        return false;
    }
    judge_unwanted(w, lc);
    for (size_t i = 0; i < c->state.attempts_n; i++) { /* all of them are in memory */
        const struct live_attempt *a = c->state.attempts[i];
        size_t row = (size_t)row_of_id(a->row.id);
        if (a->campaign == lc && !attempt_state_terminal(ATTEMPT(w, row)->state)) {
            ((struct db_attempt *)db_touch(w, T_ATTEMPT, row))->unwanted = true;
            w->cover->sites[SITE_CANCELLED_WHILE_RUNNING] +=
                lc->row.wanted == WANTED_CANCEL && a->p.state == ATTEMPT_RUNNING;
        }
    }
    if (!db_commit(w, c)) {
        return false;
    }
    campaign_life_apply_unwant(&c->state, lc);
    for (size_t i = 0; i < c->state.attempts_n && c->leading; i++) {
        if (c->state.attempts[i]->campaign == lc) {
            unwant(w, c, c->state.attempts[i]);
        }
    }
    return c->leading;
}

static bool cancel_waiting(struct world *w, struct ctl *c, struct live_campaign *lc,
                           const struct campaign_life_cancel *cancel)
{
    size_t moved = 0;
    bool ok = db_begin(w, c);
    for (size_t i = 0; i < cancel->n && ok; i++) {
        int task = row_of_id(cancel->tasks[i].task_id);
        if (TASK(w, task)->state == TASK_WAITING) {
            rows_task_state(w, task, cancel->to);
            moved++;
        }
    }
    ok = ok && db_commit(w, c);
    if (c->leading) {
        campaign_life_apply_cancel(&c->state, lc, cancel, ok, moved);
    }
    return ok;
}

/* False: the step could not be written. */
static bool carry_step(struct world *w, struct ctl *c, struct live_campaign *lc,
                       enum campaign_life_step step, struct campaign_life_look *look)
{
    switch (step) {
    case LIFE_UNWANT:
        return stop_unwanted(w, c, lc);
    case LIFE_CANCEL:
        return cancel_waiting(w, c, lc, &look->cancel);
    case LIFE_MOVE:
        return c->hold || move_states(w, c, lc, &look->writes);
    case LIFE_SEEN:
        break;
    }
    return true;
}

static bool live_on(struct world *w, struct ctl *c, struct live_campaign *lc)
{
    struct ready_queue_task tasks[CANCEL_BATCH];
    struct campaign_life_look look; /* not cleared: asked at every look */
    look.cancel.tasks = tasks;
    look.cancel_max = CANCEL_BATCH;
    enum campaign_life_step step = LIFE_UNWANT;
    do {
        step = campaign_life_next(&c->state, lc, step, &look);
        if (!carry_step(w, c, lc, step, &look)) {
            return false;
        }
    } while (step++ < LIFE_MOVE);
    return true;
}

struct page { /* failed tasks of one stage */
    struct task_row rows[OPERATION_BATCH];
    int64_t ids[OPERATION_BATCH];
    size_t n;
};

static void read_page(struct world *w, const struct db_op *op, struct page *ret)
{
    const struct db_campaign *dc = CAMPAIGN(w, op->campaign);
    ret->n = 0;
    for (int s = dc->stage0; s < dc->stage0 + dc->stages_n && ret->n == 0; s++) {
        const struct db_stage *ds = STAGE(w, s);
        for (int t = ds->task0; t < ds->task0 + ds->tasks_n && ret->n < OPERATION_BATCH; t++) {
            if (TASK(w, t)->state == TASK_FAILED) {
                ret->ids[ret->n] = id_of(t);
                ret->rows[ret->n++] = (struct task_row){.id = id_of(t),
                                                        .stage_id = id_of(s),
                                                        .seq = t - ds->task0,
                                                        .state = TASK_FAILED,
                                                        .size = task_size(w, t)};
            }
        }
    }
}

static void write_tasks(struct world *w, const struct page *p, const struct operation_writes *ow)
{
    for (size_t i = 0; i < p->n; i++) {
        int task = row_of_id(p->ids[i]);
        rows_task_state(w, task, ow->task_to);
        struct db_task *t = db_touch(w, T_TASK, (size_t)task);
        memset(t->judged, 0, sizeof t->judged);
        judge_person_retries(w, task);
        if (ow->verb == VERB_RETRY) {
            memset(t->tries, 0, sizeof t->tries);
            t->attempts = t->same = 0;
            t->not_before_us = 0;
        }
    }
}

static void write_page(struct world *w, struct live_campaign *lc, const struct page *p,
                       struct operation_writes *ow)
{
    int campaign = row_of_id(lc->row.id);
    if (ow->stage_reopens) {
        (void)rows_stage_state(w, row_of_id(ow->stage_id), STAGE_RUNNING);
    }
    if (ow->resumes) {
        ow->last_attempt_id = write_resume(w, leader_state_stage(lc, ow->stage_id));
    }
    if (ow->campaign_reopens) {
        SOMETIMES(w, REOPENED);
        (void)rows_campaign_state(w, campaign, CAMPAIGN_RUNNING);
        struct db_campaign *d = db_touch(w, T_CAMPAIGN, (size_t)campaign);
        d->taken_version = MAX(d->taken_version, lc->row.version);
    }
    write_tasks(w, p, ow);
}

static bool carry_out(struct world *w, struct ctl *c, int op)
{
    const struct db_op *o = db_row(w, T_OP, (size_t)op);
    struct live_campaign *lc = leader_state_campaign(&c->state, id_of(o->campaign));
    struct operation_writes ow = {0};
    struct page p;
    if (!db_begin(w, c)) {
        return false;
    }
    lc = lc != NULL ? lc : load_campaign(w, c, o->campaign);
    struct db_op *row = db_touch(w, T_OP, (size_t)op);
    read_page(w, row, &p);
    row->state = p.n == 0 ? OPERATION_DONE : OPERATION_RUNNING;
    if (p.n > 0) {
        operation_plan(lc, leader_state_stage(lc, p.rows[0].stage_id),
                       &(struct operation_order){.verb = row->skip ? VERB_SKIP : VERB_RETRY}, &ow);
        if (verb_refused(ow.answer)) {
            row->state = OPERATION_CANCELLED;
            p.n = 0;
        } else {
            write_page(w, lc, &p, &ow);
        }
    }
    if (!db_commit(w, c)) {
        return false;
    }
    if (p.n > 0) {
        operation_apply(&c->state, lc, &ow, p.rows, p.n, p.ids, p.n, ctl_wall(w, c));
        if (!rows_fresh(lc)) {
            load_reopened(w, c, lc);
        }
    }
    return true;
}

bool carry_life(struct world *w, struct ctl *c)
{
    stage_history_tick(&c->state, ctl_boot(w, c));
    for (size_t i = 0; i < w->db.t[T_OP].n; i++) {
        enum operation_state state = ((struct db_op *)db_row(w, T_OP, i))->state;
        bool open = state == OPERATION_ACCEPTED || state == OPERATION_RUNNING;
        if (open && !c->hold && !carry_out(w, c, (int)i)) {
            return false;
        }
    }
    for (size_t i = c->state.campaigns_n; i-- > 0;) {
        struct live_campaign *lc = c->state.campaigns[i];
        if (!live_on(w, c, lc)) {
            return false;
        }
        if (campaign_life_over(lc)) {
            leader_state_drop_campaign(&c->state, lc);
        }
    }
    return true;
}
