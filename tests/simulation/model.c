/* The moves of the exhaustive check's world. Everything a controller decides is asked of
 * protocol_*; the code here only carries, loses, delays and checks. */
#include "model.h"

#define TICK_US USEC_PER_SEC
#define NOW_US  (1000 * TICK_US)

static const struct protocol_config proto = {.signature_window_us = WINDOW * TICK_US};

/* --- memory of a controller <-> the protocol's struct
 * --------------------------------------------*/

#define FLAGS(F)                                                                                   \
    F(0, wanted)                                                                                   \
    F(1, ambiguous)                                                                                \
    F(2, signed_ever)                                                                              \
    F(3, create_in_flight)                                                                         \
    F(4, describe_in_flight) F(5, stop_in_flight) F(6, verify_in_flight) F(7, stop_sent)           \
        F(8, look_now) F(9, not_found)

static void unpack(const struct memory *m, struct protocol_attempt *ret)
{
    unsigned flags = m->flags_lo | (unsigned)m->flags_hi << 8;
    *ret = (struct protocol_attempt){.state = (enum attempt_state)m->state,
                                     .failures = m->failures,
                                     .void_after_us = NOW_US + m->window * TICK_US,
                                     .modified = m->modified,
                                     .refused = (enum cause)m->refused};
#define F(bit, field) ret->field = (flags >> bit & 1) != 0;
    FLAGS(F)
#undef F
}

static void pack(struct memory *m, const struct protocol_attempt *a)
{
    unsigned flags = 0;
#define F(bit, field) flags |= (unsigned)a->field << bit;
    FLAGS(F)
#undef F
    int64_t window = (a->void_after_us - NOW_US) / TICK_US;
    m->state = (uint8_t)a->state;
    m->flags_lo = (uint8_t)(flags & 255);
    m->flags_hi = (uint8_t)(flags >> 8);
    m->failures = (uint8_t)MIN(a->failures, 2);
    m->window = (int8_t)MAX(window, PAST);
    m->modified = (uint8_t)a->modified;
    m->refused = (uint8_t)a->refused;
}

/* --- the world
 * -----------------------------------------------------------------------------------*/

bool model_alive(uint8_t job)
{
    return job == MODEL_STARTING || job == MODEL_RUNNING || job == MODEL_STOPPING;
}

int model_newest(const struct part *p)
{
    int n = 0;
    while (n < TRIES && p->row[n] != ROW_NONE) {
        n++;
    }
    return n;
}

void model_init(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->holder = CTLS;
    for (int p = 0; p < PARTS; p++) {
        memset(w->part[p].row, ROW_NONE, sizeof w->part[p].row);
    }
}

/* Nobody waits for this Create any more; what is already on its way may land as long as its
 * signature lasts. Several of one name are one: the longest. */
static void orphan(struct world *w, int p, struct memory *m)
{
    if (m->send == SEND_SENT) {
        uint8_t *o = &w->part[p].orphan[m->n - 1];
        *o = MAX(*o, m->send_valid);
    }
    m->send = m->send_valid = m->answer = 0;
}

static void forget(struct world *w, int c, int p)
{
    struct memory *m = &w->ctl[c].part[p];
    orphan(w, p, m);
    memset(m, 0, sizeof *m);
}

/* A crash, or a transaction that found another epoch: what was in memory is gone. */
static void step_down(struct world *w, int c)
{
    for (int p = 0; p < PARTS; p++) {
        forget(w, c, p);
    }
    memset(&w->ctl[c], 0, sizeof w->ctl[c]);
}

/* Order of the states a job passes; this world has no spot interruption, so none may go back. */
static int rank(enum attempt_state s)
{
    static const int ranks[ATTEMPT_STATE_COUNT] = {
        [ATTEMPT_UNKNOWN] = 1,   [ATTEMPT_SUBMITTED] = 2, [ATTEMPT_STARTING] = 3,
        [ATTEMPT_RUNNING] = 4,   [ATTEMPT_UPLOADING] = 5, [ATTEMPT_STOPPING] = 6,
        [ATTEMPT_VERIFYING] = 7, [ATTEMPT_SUCCEEDED] = 8, [ATTEMPT_FAILED] = 8,
        [ATTEMPT_STOPPED] = 8,   [ATTEMPT_CONFLICT] = 8,  [ATTEMPT_VOID] = 8,
    };
    return ranks[s];
}

static void end_of_attempt(struct world *w, int p, int n, enum attempt_state state,
                           enum cause cause)
{
    bool denied = state == ATTEMPT_VOID && cause == CAUSE_ACCESS_DENIED;
    if (state == ATTEMPT_SUCCEEDED || state == ATTEMPT_CONFLICT || denied || n == TRIES) {
        w->part[p].ended = 1;
    }
}

/* The record transaction: behind the lease check, `state = $from`, slots in the same commit. */
static void record(struct world *w, int c, int p, const struct protocol_attempt *a,
                   const struct protocol_effect *e, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    int n = m->n;
    if (!e->changed) {
        pack(m, a);
        return;
    }
    if (w->holder != c) {
        step_down(w, c);
        return;
    }
    uint8_t *row = &w->part[p].row[n - 1];
    if (*row != e->from || !attempt_edge(e->from, a->state)) {
        *ret_wrong = "a record leaves a state the row is not in, or along no edge";
        return;
    }
    if (rank(a->state) <= rank(e->from)) {
        *ret_wrong = "an attempt moves back";
        return;
    }
    if (e->settle != (e->release_slot && w->part[p].job[n - 1] != MODEL_NONE &&
                      a->state != ATTEMPT_CONFLICT && a->state != ATTEMPT_VOID)) {
        *ret_wrong = "money is settled for no job, or not settled for one";
        return;
    }
    *row = (uint8_t)a->state;
    if (e->release_slot) {
        if (w->held == 0) {
            *ret_wrong = "a slot is released that nobody holds";
            return;
        }
        w->held--;
    }
    pack(m, a);
    if (e->task_ends) {
        end_of_attempt(w, p, n, a->state, e->cause);
        forget(w, c, p);
    }
}

static void step(struct world *w, int c, int p, const struct fact *f, const char **ret_wrong)
{
    struct protocol_attempt a;
    struct protocol_effect e;
    unpack(&w->ctl[c].part[p], &a);
    protocol_step(&a, f, &proto, &e);
    record(w, c, p, &a, &e, ret_wrong);
}

static void tick_memory(struct memory *m)
{
    if (m->send_valid > 0) {
        m->send_valid--;
    }
    if (m->n == 0) {
        return;
    }
    /* Keep "the Describe was sent after the window" true or false when both are long ago. */
    bool after = m->look != LOOK_NONE && -(int)m->look_age > m->window;
    int floor = m->look != LOOK_NONE && !after ? PAST + 1 : PAST;
    if (m->window > floor) {
        m->window--;
    }
    if (m->look != LOOK_NONE) {
        m->look_age = 1;
    }
}

static void move_tick(struct world *w)
{
    w->lease = (uint8_t)(w->lease > 0 ? w->lease - 1 : 0);
    for (int p = 0; p < PARTS; p++) {
        for (int n = 0; n < TRIES; n++) {
            uint8_t *o = &w->part[p].orphan[n];
            *o = (uint8_t)(*o > 0 ? *o - 1 : 0);
            w->part[p].fresh[n] = 0;
        }
    }
    for (int c = 0; c < CTLS; c++) {
        uint8_t *lease = &w->ctl[c].lease;
        *lease = (uint8_t)(*lease > 0 ? *lease - 1 : 0);
        for (int p = 0; p < PARTS; p++) {
            tick_memory(&w->ctl[c].part[p]);
        }
    }
}

bool model_part_over(const struct part *p)
{
    int n = model_newest(p);
    bool idle = n == 0 || attempt_state_terminal((enum attempt_state)p->row[n - 1]);
    return p->ended || (p->cancelled && idle);
}

static bool move_job(struct world *w, int p, int n, uint8_t to)
{
    uint8_t *job = &w->part[p].job[n];
    bool runs = *job == MODEL_STARTING || *job == MODEL_RUNNING;
    bool can = false;
    if (to == MODEL_RUNNING) {
        can = *job == MODEL_STARTING;
    } else if (to == MODEL_COMPLETED) {
        can = *job == MODEL_RUNNING || *job == MODEL_STOPPING;
    } else if (to == MODEL_FAILED) {
        can = runs;
    } else if (to == MODEL_STOPPED) {
        can = *job == MODEL_STOPPING;
    }
    *job = can ? to : *job;
    return can;
}

static void create_job(struct world *w, int p, int n)
{
    w->part[p].job[n] = MODEL_STARTING;
    w->part[p].fresh[n] = 1;
}

/* --- leadership
 * ----------------------------------------------------------------------------------*/

static bool move_take_over(struct world *w, int c, const struct model_config *cfg,
                           const char **ret_wrong)
{
    struct controller *me = &w->ctl[c];
    bool gone = w->holder == CTLS || w->ctl[w->holder].role != ROLE_LEADER; /* its process died */
    if (me->role != ROLE_STANDBY || (!gone && w->lease > 0)) {
        return false;
    }
    w->holder = (uint8_t)c;
    w->lease = LEASE;
    me->role = ROLE_LEADER;
    me->lease = LEASE;
    for (int p = 0; p < cfg->parts; p++) {
        int n = model_newest(&w->part[p]);
        if (n == 0 || attempt_state_terminal((enum attempt_state)w->part[p].row[n - 1])) {
            continue;
        }
        struct protocol_attempt a;
        struct protocol_effect e;
        /* The older lease ended by now: lapsed, or its process is dead and signs no more. */
        protocol_taken_over((enum attempt_state)w->part[p].row[n - 1], !w->part[p].cancelled,
                            NOW_US, &proto, &a, &e);
        me->part[p].n = (uint8_t)n;
        record(w, c, p, &a, &e, ret_wrong);
    }
    return true;
}

static bool move_renew(struct world *w, int c)
{
    struct controller *me = &w->ctl[c];
    if (me->role != ROLE_LEADER) {
        return false;
    }
    if (w->holder != c) {
        step_down(w, c);
        return true;
    }
    bool news = w->lease != LEASE || me->lease != LEASE;
    w->lease = me->lease = LEASE;
    return news;
}

/* --- one controller, one part
 * --------------------------------------------------------------------*/

static bool move_intend(struct world *w, int c, int p, int v, const struct model_config *cfg)
{
    struct part *part = &w->part[p];
    int n = model_newest(part);
    enum attempt_state last = n > 0 ? (enum attempt_state)part->row[n - 1] : ATTEMPT_VOID;
    if (w->ctl[c].role != ROLE_LEADER || part->ended || part->cancelled || n == TRIES ||
        !protocol_may_renew(n, last) || !protocol_may_intend(w->held, 1, cfg->limit)) {
        return false;
    }
    if (w->holder != c) {
        step_down(w, c);
        return true;
    }
    part->row[n] = ATTEMPT_INTENDED;
    w->held++;
    struct memory *m = &w->ctl[c].part[p];
    forget(w, c, p);
    struct protocol_attempt a;
    protocol_intended(&a);
    m->n = (uint8_t)(n + 1);
    pack(m, &a);
    if (v == 1) {
        step_down(w, c); /* it cannot know what was committed: it starts from the rows again */
    }
    return true;
}

static bool act_create(struct world *w, int c, int p, const struct protocol_attempt *a,
                       const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    if (!a->wanted || a->refused != CAUSE_NONE) {
        *ret_wrong = "a Create is signed for an attempt given up";
        return true;
    }
    pack(m, a);
    if (!protocol_may_sign(NOW_US + w->ctl[c].lease * TICK_US, NOW_US)) {
        struct fact unsent = {.kind = FACT_CREATE_UNSENT, .at_us = NOW_US};
        step(w, c, p, &unsent, ret_wrong);
        return true;
    }
    m->send = SEND_SIGNED;
    m->send_valid = WINDOW + 1;
    struct fact f = {.kind = FACT_CREATE_SIGNED, .at_us = NOW_US};
    step(w, c, p, &f, ret_wrong);
    return true;
}

/* v 0: taken, and we hear of it; 1: taken, the answer is lost; 2: lost on its way. */
static bool act_stop(struct world *w, int c, int p, int v, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    uint8_t *job = &w->part[p].job[m->n - 1];
    struct fact f = {.kind = v == 0 ? FACT_STOP_OK : FACT_STOP_FAILED, .at_us = NOW_US};
    if (v > 2) {
        return false;
    }
    if (*job == MODEL_NONE) {
        f.kind = FACT_STOP_FAILED;
    } else if (v < 2 && (*job == MODEL_STARTING || *job == MODEL_RUNNING)) {
        *job = MODEL_STOPPING;
    }
    step(w, c, p, &f, ret_wrong);
    return true;
}

/* v 0: whole, 1: short, 2: the check could not be made. */
static bool act_verify(struct world *w, int c, int p, int v, const char **ret_wrong)
{
    if (v > 2) {
        return false;
    }
    struct fact f = {.kind = v == 2 ? FACT_VERIFY_FAILED : FACT_VERIFIED,
                     .at_us = NOW_US,
                     .cause = v == 1 ? CAUSE_SHORT_OUTPUT : CAUSE_NONE};
    step(w, c, p, &f, ret_wrong);
    return true;
}

static bool move_act(struct world *w, int c, int p, int v, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    struct protocol_attempt a;
    int64_t wake_us;
    if (m->n == 0) {
        return false;
    }
    unpack(m, &a);
    enum protocol_action action = protocol_next(&a, NOW_US, &proto, &wake_us);
    if (action == ACT_NONE || (v > 0 && action != ACT_STOP && action != ACT_VERIFY)) {
        return false;
    }
    switch (action) {
    case ACT_CREATE:
        return act_create(w, c, p, &a, ret_wrong);
    case ACT_DESCRIBE:
        pack(m, &a);
        m->look = LOOK_SENT;
        m->look_age = 0;
        return true;
    case ACT_STOP:
        pack(m, &a);
        return act_stop(w, c, p, v, ret_wrong);
    case ACT_VERIFY:
        pack(m, &a);
        return act_verify(w, c, p, v, ret_wrong);
    case ACT_VOID:
        pack(m, &a);
        step(w, c, p, &(struct fact){.kind = FACT_VOID, .at_us = NOW_US}, ret_wrong);
        return true;
    case ACT_NONE:
        return false;
    }
    return false;
}

static bool move_arrive(struct world *w, int c, int p, int v)
{
    struct memory *m = &w->ctl[c].part[p];
    if (m->send != SEND_SENT) {
        return false;
    }
    bool used = w->part[p].job[m->n - 1] != MODEL_NONE;
    if ((v == ANSWER_OK && (used || m->send_valid == 0)) ||
        (v == ANSWER_IN_USE && (!used || m->send_valid == 0)) ||
        (m->send_valid == 0 && v != ANSWER_THROTTLED)) { /* an expired signature is refused */
        return false;
    }
    if (v == ANSWER_OK) {
        create_job(w, p, m->n - 1);
    }
    m->send = SEND_ANSWERED;
    m->send_valid = 0;
    m->answer = (uint8_t)v;
    return true;
}

static bool move_reply(struct world *w, int c, int p, int v, const char **ret_wrong)
{
    static const struct fact facts[ANSWER_N] = {
        [ANSWER_OK] = {.kind = FACT_CREATE_OK},
        [ANSWER_IN_USE] = {.kind = FACT_CREATE_IN_USE},
        [ANSWER_QUOTA] = {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_QUOTA},
        [ANSWER_THROTTLED] = {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_THROTTLED},
        [ANSWER_DENIED] = {.kind = FACT_CREATE_REFUSED, .cause = CAUSE_ACCESS_DENIED},
    };
    struct memory *m = &w->ctl[c].part[p];
    if (m->send != SEND_ANSWERED) {
        return false;
    }
    struct fact f = facts[m->answer];
    if (v == 1) {
        f = (struct fact){.kind = FACT_CREATE_UNKNOWN};
    }
    f.at_us = NOW_US;
    m->send = m->answer = 0;
    step(w, c, p, &f, ret_wrong);
    return true;
}

static struct job_seen seen(uint8_t job)
{
    static const struct job_seen as[] = {
        [MODEL_STARTING] = {JOB_IN_PROGRESS, PHASE_STARTING, true, MODEL_STARTING},
        [MODEL_RUNNING] = {JOB_IN_PROGRESS, PHASE_RUNNING, true, MODEL_RUNNING},
        [MODEL_STOPPING] = {JOB_STOPPING, PHASE_STOPPING, true, MODEL_STOPPING},
        [MODEL_COMPLETED] = {JOB_COMPLETED, PHASE_ENDED, true, MODEL_COMPLETED},
        [MODEL_FAILED] = {JOB_FAILED, PHASE_ENDED, true, MODEL_FAILED},
        [MODEL_STOPPED] = {JOB_STOPPED, PHASE_ENDED, true, MODEL_STOPPED},
        [MODEL_FOREIGN] = {JOB_IN_PROGRESS, PHASE_RUNNING, false, MODEL_RUNNING},
    };
    return as[job];
}

/* What an eventually consistent read may still say; MODEL_FOREIGN: nothing older than the truth. */
static uint8_t older(const struct part *p, int n)
{
    if (p->fresh[n] && model_alive(p->job[n])) {
        return MODEL_NONE;
    }
    if (p->job[n] == MODEL_RUNNING || p->job[n] == MODEL_STOPPING) {
        return MODEL_STARTING;
    }
    return p->job[n] > MODEL_STOPPING && p->job[n] < MODEL_FOREIGN ? MODEL_RUNNING : MODEL_FOREIGN;
}

static bool move_looked(struct world *w, int c, int p, int v, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    if (m->look == LOOK_NONE) {
        return false;
    }
    uint8_t truth = w->part[p].job[m->n - 1];
    struct fact f = {.kind = FACT_DESCRIBED, .at_us = NOW_US};
    if (m->look == LOOK_NOT_FOUND) {
        if (v != 0) {
            return false;
        }
        truth = MODEL_NONE;
    } else if (v == 1) {
        truth = older(&w->part[p], m->n - 1);
        if (truth == MODEL_FOREIGN) {
            return false;
        }
    } else if (v == 2) {
        f.kind = FACT_DESCRIBE_FAILED;
    } else if (v == 3) {
        m->look = LOOK_NOT_FOUND;
        return truth == MODEL_NONE;
    }
    if (f.kind == FACT_DESCRIBED && truth == MODEL_NONE) {
        f.kind = FACT_NOT_FOUND;
        f.at_us = NOW_US - m->look_age * TICK_US;
    } else if (f.kind == FACT_DESCRIBED) {
        f.job = seen(truth);
    }
    m->look = m->look_age = 0;
    step(w, c, p, &f, ret_wrong);
    return true;
}

/* A List names a job without its environment: whose it is cannot be seen in it. */
static bool move_list(struct world *w, int c, int p, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    if (m->n == 0 || w->part[p].job[m->n - 1] == MODEL_NONE) {
        return false;
    }
    struct fact f = {.kind = FACT_LISTED, .at_us = NOW_US, .job = seen(w->part[p].job[m->n - 1])};
    f.job.ours = true;
    step(w, c, p, &f, ret_wrong);
    return true;
}

static bool move_send(struct world *w, int c, int p, int v, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    if (m->send != SEND_SIGNED) {
        return false;
    }
    if (v == 0) {
        m->send = SEND_SENT;
        return true;
    }
    m->send = m->send_valid = 0;
    step(w, c, p, &(struct fact){.kind = FACT_CREATE_UNSENT, .at_us = NOW_US}, ret_wrong);
    return true;
}

static bool move_time_out(struct world *w, int c, int p, const char **ret_wrong)
{
    struct memory *m = &w->ctl[c].part[p];
    if (m->send != SEND_SENT) {
        return false;
    }
    orphan(w, p, m);
    step(w, c, p, &(struct fact){.kind = FACT_CREATE_UNKNOWN, .at_us = NOW_US}, ret_wrong);
    return true;
}

static bool move_take_cancel(struct world *w, int c, int p, const char **ret_wrong)
{
    const struct memory *m = &w->ctl[c].part[p];
    if (m->n == 0 || !w->part[p].cancelled || (m->flags_lo & 1) == 0) {
        return false;
    }
    step(w, c, p, &(struct fact){.kind = FACT_UNWANTED, .at_us = NOW_US}, ret_wrong);
    return true;
}

static bool move_foreign(struct world *w, int p)
{
    int n = model_newest(&w->part[p]);
    if (w->foreign_done || n == 0 || w->part[p].job[n - 1] != MODEL_NONE) {
        return false;
    }
    w->part[p].job[n - 1] = MODEL_FOREIGN;
    w->foreign_done = 1;
    return true;
}

bool model_apply(struct world *w, struct move m, const struct model_config *cfg,
                 const char **ret_wrong)
{
    struct part *part = &w->part[m.p];
    switch ((enum move_kind)m.kind) {
    case MOVE_TICK:
        move_tick(w);
        return true;
    case MOVE_CANCEL:
        if (part->cancelled || model_part_over(part)) {
            return false;
        }
        part->cancelled = 1;
        return true;
    case MOVE_FOREIGN:
        return move_foreign(w, m.p);
    case MOVE_JOB:
        return move_job(w, m.p, m.c, m.v);
    case MOVE_LAND:
        if (part->orphan[m.c] == 0 || part->job[m.c] != MODEL_NONE) {
            return false;
        }
        create_job(w, m.p, m.c);
        return true;
    case MOVE_CRASH:
        if (!cfg->crashes || w->ctl[m.c].role != ROLE_LEADER) {
            return false;
        }
        step_down(w, m.c);
        return true;
    case MOVE_TAKE_OVER:
        return move_take_over(w, m.c, cfg, ret_wrong);
    case MOVE_RENEW:
        return move_renew(w, m.c);
    case MOVE_TAKE_CANCEL:
        return move_take_cancel(w, m.c, m.p, ret_wrong);
    case MOVE_INTEND:
        return move_intend(w, m.c, m.p, m.v, cfg);
    case MOVE_ACT:
        return move_act(w, m.c, m.p, m.v, ret_wrong);
    case MOVE_SEND:
        return move_send(w, m.c, m.p, m.v, ret_wrong);
    case MOVE_ARRIVE:
        return move_arrive(w, m.c, m.p, m.v);
    case MOVE_TIME_OUT:
        return move_time_out(w, m.c, m.p, ret_wrong);
    case MOVE_REPLY:
        return move_reply(w, m.c, m.p, m.v, ret_wrong);
    case MOVE_LOOKED:
        return move_looked(w, m.c, m.p, m.v, ret_wrong);
    case MOVE_LIST:
        return move_list(w, m.c, m.p, ret_wrong);
    case MOVE_KINDS:
        return false;
    }
    return false;
}
