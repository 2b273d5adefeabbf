/* See campaign_life.h. Every move is along lifecycle.c's edges. */
#include "campaign_life.h"
#include "attempt.h"
#include "awake.h"
#include "filesystem_use.h"
#include "input_listing.h"
#include "rows_read.h"
#include "stage_gate.h"
#include "stage_history.h"
#include <stdio.h>

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

/* True when every stage it needs has succeeded; *ret_dead when one of them has ended otherwise. */
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

static void say(struct campaign_life_move *m, const char *reason)
{
    (void)snprintf(m->reason, sizeof m->reason, "%s", reason);
}

/* A stage succeeds, and by what when not all is well. */
static void say_good(const struct live_stage *ls, struct campaign_life_move *m)
{
    int64_t failed = ls->row.counts[TASK_FAILED];
    if (ls->row.gate_override) {
        say(m, "gate overridden");
    } else if (failed > 0) {
        (void)snprintf(m->reason, sizeof m->reason,
                       "%lld of %lld parts failed, within allow_failed", (long long)failed,
                       (long long)ls->row.taken);
    }
}

/* All its parts have ended. */
static void plan_end(const struct live_stage *ls, struct campaign_life_move *m)
{
    const char *why;
    if (too_many_failed(ls)) {
        m->to = STAGE_FAILED;
        say(m, "more failed parts than allow_failed");
    } else if (stage_gate_open(ls)) {
        m->to = STAGE_SUCCEEDED;
        say_good(ls, m);
    } else if (stage_gate_holds(ls, &why)) {
        m->to = STAGE_HELD;
        say(m, why);
    }
}

/* It has come into service and passed its test, or can be used and was filled; its time goes on
 * without the stage. */
static void plan_endpoint(const struct live_stage *ls, struct campaign_life_move *m)
{
    if (ls->endpoint == ENDPOINT_SERVES) {
        m->to = STAGE_SUCCEEDED;
    } else if (ls->endpoint == ENDPOINT_GAVE_UP) {
        m->to = STAGE_FAILED;
        say(m, ls->endpoint_why);
    }
}

/* A stage that runs, or that its breaker holds until a person lets it go on. */
static void plan_running(const struct live_campaign *lc, const struct live_stage *ls,
                         struct campaign_life_move *m)
{
    if (ls->spec != NULL && ls->spec->kind != SPEC_KIND_JOBS) {
        plan_endpoint(ls, m);
    } else if (ended(ls)) {
        plan_end(ls, m);
    } else if (ls->row.state == STAGE_RUNNING && ls->breaker.tripped) {
        m->to = STAGE_HELD;
        stage_history_trip_text(lc, ls, m->reason, sizeof m->reason);
    } else if (ls->row.state == STAGE_HELD && ls->row.resumes > ls->row.resumes_taken) {
        m->to = STAGE_RUNNING;
        m->resumes = true;
    }
}

/* A stage was skipped because one it needs had failed; a retry of that one lets it wait again. */
static void plan_needs(const struct live_campaign *lc, const struct live_stage *ls,
                       struct campaign_life_move *m)
{
    bool dead = false;
    bool met = needs_met(lc, ls, &dead);
    if (ls->row.state == STAGE_SKIPPED) {
        m->to = dead ? STAGE_SKIPPED : STAGE_BLOCKED;
    } else if (met) {
        m->to = STAGE_RUNNING;
    } else if (dead) {
        m->to = STAGE_SKIPPED;
        say(m, "a stage it needs did not succeed");
    }
}

/* The first stage whose input is in this state; NULL: none. */
static const struct live_stage *input_is(const struct live_campaign *lc, enum input_known input)
{
    for (int i = 0; i < lc->stages_n; i++) {
        if (lc->stages[i].row.input == input) {
            return &lc->stages[i];
        }
    }
    return NULL;
}

/* The input of a stage could not be listed. As a submit is refused as a whole, nothing of its
 * campaign starts. */
static void plan_refused(const struct live_stage *ls, const struct live_stage *refused,
                         struct campaign_life_move *m)
{
    if (ls->row.input == INPUT_REFUSED) {
        m->to = STAGE_FAILED;
        input_listing_text(m->reason, sizeof m->reason, ls->row.input_problem);
    } else {
        m->to = STAGE_SKIPPED;
        (void)snprintf(m->reason, sizeof m->reason, "the input of stage %s could not be listed",
                       refused->row.name);
    }
}

static void plan_stage(const struct live_campaign *lc, const struct live_stage *ls,
                       struct campaign_life_writes *w)
{
    enum stage_state now = ls->row.state;
    bool cancel = lc->row.wanted == WANTED_CANCEL;
    const struct live_stage *refused = input_is(lc, INPUT_REFUSED);
    if (lc->row.state == CAMPAIGN_PLANNED || campaign_state_terminal(lc->row.state)) {
        return;
    }
    struct campaign_life_move *m = &w->moves[w->n]; /* not cleared: asked at every look */
    m->stage_id = ls->row.id;
    m->from = m->to = (int)now;
    m->resumes = false;
    m->reason[0] = '\0';
    /* Skipped comes before the other terminal states.
     * NOLINTNEXTLINE(bugprone-branch-clone) */
    if (now == STAGE_SKIPPED && !cancel && refused == NULL) {
        plan_needs(lc, ls, m);
    } else if (stage_state_terminal(now)) {
        return;
    } else if (cancel) {
        const int64_t *n = ls->row.counts;
        if (n[TASK_ACTIVE] == 0 && n[TASK_WAITING] == 0 && n[TASK_HELD] == 0 &&
            !ls->endpoint_there) {
            m->to = STAGE_CANCELLED;
        }
    } else if (now == STAGE_BLOCKED && refused != NULL) {
        plan_refused(ls, refused, m);
    } else if (now == STAGE_BLOCKED) {
        plan_needs(lc, ls, m);
    } else {
        plan_running(lc, ls, m);
    }
    w->n += m->to != m->from;
}

static enum campaign_state end_of(const struct live_campaign *lc)
{
    enum campaign_state end = CAMPAIGN_SUCCEEDED;
    for (int i = 0; i < lc->stages_n; i++) {
        enum stage_state s = lc->stages[i].row.state;
        if (!stage_state_terminal(s)) {
            return CAMPAIGN_RUNNING;
        }
        if (s == STAGE_CANCELLED) {
            end = CAMPAIGN_CANCELLED;
        } else if (s == STAGE_FAILED && end != CAMPAIGN_CANCELLED) {
            end = CAMPAIGN_FAILED;
        }
    }
    return end;
}

/* Is it cancelled while an endpoint of it is still billed, or is a file system on its way out that
 * goes when its last stage ends? One that is kept for a retry is not, once its row says so. */
static bool waits_for_endpoint(const struct live_campaign *lc)
{
    bool cancel = lc->row.wanted == WANTED_CANCEL;
    bool there = false;
    for (int i = 0; i < lc->stages_n; i++) {
        const struct spec_stage *sp = lc->stages[i].spec;
        bool goes = sp != NULL && sp->filesystem != NULL && !sp->filesystem->keep &&
                    !lc->stages[i].filesystem_kept;
        there |= lc->stages[i].endpoint_there && (cancel || goes);
    }
    return there;
}

/* No stage of it can go on without a person: its breaker or its gate holds each, or its own cap. */
static const struct live_stage *stuck_at(const struct live_campaign *lc)
{
    const struct live_stage *stuck = NULL;
    for (int i = 0; i < lc->stages_n; i++) {
        const struct live_stage *ls = &lc->stages[i];
        if (ls->row.state == STAGE_RUNNING && ls->cap_short == WAIT_NONE) {
            return NULL;
        }
        bool open = ls->row.state == STAGE_RUNNING || ls->row.state == STAGE_HELD;
        stuck = open ? ls : stuck;
    }
    return stuck;
}

static void say_stuck(struct campaign_life_move *m, const struct live_stage *ls)
{
    if (ls->row.state == STAGE_RUNNING) {
        (void)snprintf(m->reason, sizeof m->reason, "budget %sof stage %s",
                       ls->cap_short == WAIT_PART_BUDGET ? "per part " : "", ls->row.name);
    } else {
        (void)snprintf(m->reason, sizeof m->reason, "stage %s: %.300s", ls->row.name,
                       ls->row.reason);
    }
}

/* What at_limit asks for, once: a campaign that was held or stopped waits for a person. */
static enum budget_action at_limit(const struct live_campaign *lc, bool *ret_waits)
{
    const struct campaign_row *r = &lc->row;
    bool drains = r->at_limit == AT_LIMIT_DRAIN;
    /* Nothing runs that could give money back, and what is left pays for none of the parts. */
    bool stuck =
        lc->budget_short && lc->budget_stuck && lc->live == 0 && lc->row.reserved_musd == 0;
    bool falls_short = drains ? lc->budget_short && !lc->budget_goes_on : lc->budget_spent || stuck;
    enum budget_action a = budget_at_limit(r->at_limit, falls_short, lc->live);
    *ret_waits = lc->waits_for_person || (!drains && a != BUDGET_GO_ON);
    return *ret_waits ? (r->at_limit == AT_LIMIT_STOP ? BUDGET_STOP_AND_HOLD : BUDGET_HOLD) : a;
}

static void plan_wanted(const struct live_campaign *lc, struct campaign_life_writes *w,
                        struct campaign_life_move *m)
{
    const struct live_stage *stuck = stuck_at(lc);
    m->to = CAMPAIGN_RUNNING;
    if (at_limit(lc, &w->waits_for_person) != BUDGET_GO_ON) {
        m->to = CAMPAIGN_HELD;
        say(m, "budget");
    } else if (stuck != NULL && lc->live == 0) {
        m->to = CAMPAIGN_HELD;
        say_stuck(m, stuck);
    }
}

/* It is accepted, and an input of it is still being listed. */
static bool waits_for_input(const struct live_campaign *lc)
{
    return lc->row.wanted != WANTED_CANCEL && input_is(lc, INPUT_LISTED) != NULL &&
           input_is(lc, INPUT_REFUSED) == NULL;
}

/* It fails because of an input: of which stage, and why. */
static void say_input(const struct live_campaign *lc, struct campaign_life_move *m)
{
    const struct live_stage *refused = input_is(lc, INPUT_REFUSED);
    if (m->to == CAMPAIGN_FAILED && refused != NULL) {
        char input[sizeof m->reason - 60];
        input_listing_text(input, sizeof input, refused->row.input_problem);
        (void)snprintf(m->reason, sizeof m->reason, "stage %.40s: %s", refused->row.name, input);
    }
}

static void plan_campaign(const struct live_campaign *lc, struct campaign_life_writes *w)
{
    enum campaign_state now = lc->row.state;
    struct campaign_life_move *m = &w->moves[w->n];
    m->stage_id = 0;
    m->from = m->to = (int)now;
    m->resumes = false;
    m->reason[0] = '\0';
    enum campaign_state end = end_of(lc);
    if (now == CAMPAIGN_PLANNED && waits_for_input(lc)) {
        return;
    }
    if (now == CAMPAIGN_PLANNED) {
        m->to = CAMPAIGN_RUNNING;
    } else if (end != CAMPAIGN_RUNNING && lc->live == 0) {
        m->to = waits_for_endpoint(lc) ? m->from : (int)end;
    } else if (lc->row.wanted == WANTED_RUN) {
        plan_wanted(lc, w, m);
    } else if (lc->row.wanted != WANTED_CANCEL) {
        m->to = lc->live == 0 ? CAMPAIGN_PAUSED : CAMPAIGN_DRAINING;
    }
    say_input(lc, m);
    w->n += m->to != m->from;
}

void campaign_life_plan(const struct live_campaign *lc, struct campaign_life_writes *ret)
{
    ret->n = 0;
    ret->waits_for_person = lc->waits_for_person;
    if (campaign_state_terminal(lc->row.state)) {
        return; /* only a person's retry leads out of an end */
    }
    if (lc->spec_unreadable && lc->row.wanted != WANTED_CANCEL) {
        return; /* what needs what is not known */
    }
    for (int i = 0; i < lc->stages_n && i < SPEC_STAGES_MAX; i++) {
        plan_stage(lc, &lc->stages[i], ret);
    }
    if (ret->n == 0) {
        plan_campaign(lc, ret);
    }
}

void campaign_life_apply(struct leader_state *s, struct live_campaign *lc,
                         const struct campaign_life_move *m)
{
    struct live_stage *ls = m->stage_id != 0 ? leader_state_stage(lc, m->stage_id) : NULL;
    if (ls != NULL && m->resumes) {
        stage_history_resumed(ls, m->last_attempt_id);
    }
    if (ls != NULL) {
        s->tries_unread |= stage_state_terminal(ls->row.state);
        stage_set_state(lc, ls, (enum stage_state)m->to);
        (void)snprintf(ls->row.reason, sizeof ls->row.reason, "%s", m->reason);
    } else {
        campaign_set_state(lc, (enum campaign_state)m->to);
    }
    s->decide = true;
    s->look_at_db = true;
}

bool campaign_life_plan_unwant(const struct leader_state *s, const struct live_campaign *lc,
                               bool *ret_waits)
{
    enum wanted wanted = lc->row.wanted;
    *ret_waits = lc->waits_for_person;
    bool spent = wanted == WANTED_RUN && at_limit(lc, ret_waits) == BUDGET_STOP_AND_HOLD;
    if (wanted != WANTED_CANCEL && wanted != WANTED_PAUSE && !spent) {
        return false;
    }
    for (size_t i = 0; i < s->attempts_n; i++) {
        if (s->attempts[i]->campaign == lc && !s->attempts[i]->row.unwanted) {
            return true;
        }
    }
    return false;
}

void campaign_life_apply_unwant(struct leader_state *s, const struct live_campaign *lc)
{
    for (size_t i = 0; i < s->attempts_n; i++) {
        if (s->attempts[i]->campaign == lc) {
            s->attempts[i]->row.unwanted = true;
        }
    }
}

void campaign_life_want_again(struct leader_state *s, const struct live_campaign *lc)
{
    for (size_t i = 0; i < s->attempts_n; i++) {
        if (s->attempts[i]->campaign == lc) {
            leader_attempt_weigh(s, s->attempts[i]);
        }
    }
}

/* What its parts that wait become. False: they go on waiting. */
static bool gives_up(const struct leader_state *s, const struct live_campaign *lc,
                     const struct live_stage *ls, struct campaign_life_cancel *ret)
{
    bool runs = ls->row.state == STAGE_RUNNING || ls->row.state == STAGE_HELD;
    *ret = (struct campaign_life_cancel){.stage_id = ls->row.id,
                                         .tasks = ret->tasks,
                                         .from = TASK_WAITING,
                                         .to = TASK_CANCELLED,
                                         .cause = CAUSE_NONE};
    const struct live_stage *lost = leader_filesystem_lost(s, lc, ls->spec);
    if (lc->row.wanted == WANTED_RUN && runs && lost != NULL) {
        ret->to = TASK_FAILED;
        ret->cause = CAUSE_BAD_INPUT;
        (void)snprintf(ret->message, sizeof ret->message,
                       "the file system of stage %s is gone: its time was over, or somebody "
                       "deleted it",
                       lost->row.name);
        return true;
    }
    return lc->row.wanted == WANTED_CANCEL;
}

static void take_batch(struct ready_queue *q, size_t max, struct campaign_life_cancel *ret)
{
    while (ret->n < max && ready_queue_pop(q, USEC_NEVER - 1, &ret->tasks[ret->n])) {
        ret->n++;
    }
}

bool campaign_life_plan_cancel(const struct leader_state *s, struct live_campaign *lc, size_t max,
                               struct campaign_life_cancel *ret)
{
    ret->n = 0;
    for (int i = 0; i < lc->stages_n && ret->n == 0; i++) {
        struct live_stage *ls = &lc->stages[i];
        if (!gives_up(s, lc, ls, ret)) {
            continue;
        }
        take_batch(ls->ready, max, ret);
        ret->ready_n = ret->n;
        take_batch(ls->unchecked, max, ret);
        if (ret->n == 0 && ret->to == TASK_CANCELLED) {
            ret->from = TASK_HELD;
            take_batch(ls->held, max, ret);
        }
    }
    return ret->n > 0;
}

void campaign_life_apply_cancel(struct leader_state *s, struct live_campaign *lc,
                                const struct campaign_life_cancel *w, bool written, size_t moved)
{
    struct live_stage *ls = leader_state_stage(lc, w->stage_id);
    if (written) {
        task_counts_move(lc, ls, w->from, w->to, (int64_t)moved);
        s->look_at_db = true;
        if (moved < w->n) { /* rows are gone, or not as they should be: the next look tells */
            rows_queue_anew(lc);
        }
    } else {
        ready_queue_push_many(ls->ready, w->tasks, w->ready_n);
        ready_queue_push_many(w->from == TASK_HELD ? ls->held : ls->unchecked,
                              w->tasks + w->ready_n, w->n - w->ready_n);
    }
}

struct parking_subject campaign_life_subject(const struct live_campaign *lc)
{
    return lc->spec_unreadable ? PARKING_LOCK(lc->row.id) : PARKING_CAMPAIGN(lc->row.id);
}

static void set_waits(struct live_campaign *lc, bool waits)
{
    if (lc->waits_for_person != waits) {
        lc->waits_for_person = waits;
        campaign_wake(lc);
    }
}

enum campaign_life_step campaign_life_next(struct leader_state *s, struct live_campaign *lc,
                                           enum campaign_life_step from,
                                           struct campaign_life_look *ret)
{
    if (from <= LIFE_UNWANT) {
        bool waits;
        bool unwant = campaign_life_plan_unwant(s, lc, &waits);
        set_waits(lc, waits);
        if (unwant) {
            return LIFE_UNWANT;
        }
        campaign_life_want_again(s, lc);
    }
    if (from <= LIFE_CANCEL && campaign_life_plan_cancel(s, lc, ret->cancel_max, &ret->cancel)) {
        return LIFE_CANCEL;
    }
    if (from <= LIFE_MOVE) {
        campaign_life_plan(lc, &ret->writes);
        set_waits(lc, ret->writes.waits_for_person);
        return ret->writes.n > 0 ? LIFE_MOVE : LIFE_SEEN;
    }
    return LIFE_SEEN;
}

bool campaign_life_went_through(const struct live_campaign *lc, enum campaign_life_step reached)
{
    return reached == LIFE_SEEN && rows_fresh(lc);
}

bool campaign_life_over(const struct live_campaign *lc)
{
    return campaign_state_terminal(lc->row.state) && lc->live == 0 && lc->pools_n == 0;
}
