/* The exhaustive check's world: its store, its time, its leadership. protocol_* makes every
 * decision of a controller; the code here carries, loses, delays and checks. */
#include "world.h"
#include "world_calls.h"

struct world_coverage world_coverage;

const struct protocol_config world_proto = {.signature_window_us = WINDOW * TICK_US};

#define FLAGS(F)                                                                                   \
    F(0, wanted)                                                                                   \
    F(1, ambiguous)                                                                                \
    F(2, signed_ever)                                                                              \
    F(3, create_in_flight)                                                                         \
    F(4, describe_in_flight)                                                                       \
    F(5, stop_in_flight)                                                                           \
    F(6, verify_in_flight)                                                                         \
    F(7, stop_sent) F(8, look_now) F(9, not_found) F(10, was_there) F(11, look_first)

void world_unpack(const struct memory *m, struct protocol_attempt *ret)
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

void world_pack(struct memory *m, const struct protocol_attempt *a)
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
    m->known = a->state == ATTEMPT_UNKNOWN ? m->known : 0;
}

const struct world_coverage *world_covered(void)
{
    return &world_coverage;
}

bool world_alive(uint8_t job)
{
    return job == WORLD_STARTING || job == WORLD_RUNNING || job == WORLD_STOPPING;
}

bool world_free(uint8_t job)
{
    return job == WORLD_NONE || job == WORLD_DELETED;
}

int world_newest(const struct part *p)
{
    int n = 0;
    while (n < TRIES && p->row[n] != ROW_NONE) {
        n++;
    }
    return n;
}

void world_init(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->holder = CTLS;
    for (int p = 0; p < PARTS; p++) {
        memset(w->part[p].row, ROW_NONE, sizeof w->part[p].row);
    }
}

/* The controller forgets this Create. The request may still arrive while its signature is valid.
 * Of several with one name the one that is valid longest is kept. */
void world_orphan(struct world *w, int p, struct memory *m)
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
    world_orphan(w, p, m);
    memset(m, 0, sizeof *m);
}

/* A crash, or a transaction that found another epoch: memory is cleared. */
static void step_down(struct world *w, int c)
{
    for (int p = 0; p < PARTS; p++) {
        forget(w, c, p);
    }
    memset(&w->ctl[c], 0, sizeof w->ctl[c]);
}

/* Order of the states of a job; this world has no spot interruption, so a job never goes back. */
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
        world_pack(m, a);
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
    if (e->settle != (e->release_slot && w->part[p].job[n - 1] != WORLD_NONE &&
                      a->state != ATTEMPT_CONFLICT && a->state != ATTEMPT_VOID)) {
        *ret_wrong = "money is settled for no job, or not settled for one";
        return;
    }
    if (a->state == ATTEMPT_VOID && m->known) {
        *ret_wrong = "an attempt is void whose job was seen";
        return;
    }
    world_coverage.edges[*row][a->state] = true;
    *row = (uint8_t)a->state;
    if (e->release_slot) {
        if (w->held == 0) {
            *ret_wrong = "a slot is released that is not held";
            return;
        }
        w->held--;
    }
    world_pack(m, a);
    if (e->task_ends) {
        end_of_attempt(w, p, n, a->state, e->cause);
        forget(w, c, p);
    }
}

void world_step(struct world *w, int c, int p, const struct fact *f, const char **ret_wrong)
{
    struct protocol_attempt a;
    struct protocol_effect e;
    world_coverage.facts |= 1U << f->kind;
    world_unpack(&w->ctl[c].part[p], &a);
    protocol_step(&a, f, &world_proto, &e);
    record(w, c, p, &a, &e, ret_wrong);
    struct memory *m = &w->ctl[c].part[p];
    bool tells = f->kind == FACT_LISTED || f->kind == FACT_CREATE_IN_USE;
    if (tells && m->n > 0 && m->state == ATTEMPT_UNKNOWN) {
        m->known = 1;
    }
}

static void tick_memory(struct memory *m)
{
    if (m->send_valid > 0) {
        m->send_valid--;
    }
    if (m->n == 0) {
        return;
    }
    /* Caps both times, so that states repeat; whether the Describe came after the window stays. */
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

bool world_part_over(const struct part *p)
{
    int n = world_newest(p);
    bool idle = n == 0 || attempt_state_terminal((enum attempt_state)p->row[n - 1]);
    return p->ended || (p->cancelled && idle);
}

static bool move_job(struct world *w, int p, int n, uint8_t to)
{
    uint8_t *job = &w->part[p].job[n];
    bool runs = *job == WORLD_STARTING || *job == WORLD_RUNNING;
    bool can = false;
    if (to == WORLD_RUNNING) {
        can = *job == WORLD_STARTING;
    } else if (to == WORLD_COMPLETED) {
        can = *job == WORLD_RUNNING || *job == WORLD_STOPPING;
    } else if (to == WORLD_FAILED || to == WORLD_STOPPING) { /* stopped by hand, not by us */
        can = runs;
    } else if (to == WORLD_STOPPED) {
        can = *job == WORLD_STOPPING;
    } else if (to == WORLD_DELETED) {
        bool ended = *job > WORLD_STOPPING && *job < WORLD_FOREIGN;
        uint8_t was = *job;
        *job = ended ? WORLD_DELETED : was;
        can = ended && !world_may_land(w, p, n);
        *job = was;
    }
    *job = can ? to : *job;
    return can;
}

void world_create_job(struct world *w, int p, int n)
{
    w->part[p].job[n] = WORLD_STARTING;
    w->part[p].fresh[n] = 1;
}

static bool move_take_over(struct world *w, int c, const struct world_config *cfg,
                           const char **ret_wrong)
{
    struct model_controller *me = &w->ctl[c];
    bool gone = w->holder == CTLS || w->ctl[w->holder].role != ROLE_LEADER; /* its process died */
    if (me->role != ROLE_STANDBY || (!gone && w->lease > 0)) {
        return false;
    }
    w->holder = (uint8_t)c;
    w->lease = LEASE;
    me->role = ROLE_LEADER;
    me->lease = LEASE;
    for (int p = 0; p < cfg->parts; p++) {
        int n = world_newest(&w->part[p]);
        if (n == 0 || attempt_state_terminal((enum attempt_state)w->part[p].row[n - 1])) {
            continue;
        }
        struct protocol_attempt a;
        struct protocol_effect e;
        /* The older lease has ended: it lapsed, or its process is dead and signs nothing more. */
        protocol_taken_over((enum attempt_state)w->part[p].row[n - 1], CAUSE_NONE,
                            !w->part[p].cancelled, NOW_US, &world_proto, &a, &e);
        me->part[p].n = (uint8_t)n;
        record(w, c, p, &a, &e, ret_wrong);
    }
    return true;
}

static bool move_renew(struct world *w, int c)
{
    struct model_controller *me = &w->ctl[c];
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

/* The checks of the intent's transaction (sql/queries): a number is used only after the attempt
 * before it ended without success, and a slot only below the limit. */
static bool rows_allow(const struct world *w, int n, enum attempt_state newest,
                       const struct world_config *cfg)
{
    bool next = n == 0 || (attempt_state_terminal(newest) && newest != ATTEMPT_SUCCEEDED);
    return next && w->held < cfg->limit;
}

static bool move_intend(struct world *w, int c, int p, int v, const struct world_config *cfg)
{
    struct part *part = &w->part[p];
    int n = world_newest(part);
    enum attempt_state last = n > 0 ? (enum attempt_state)part->row[n - 1] : ATTEMPT_VOID;
    if (w->ctl[c].role != ROLE_LEADER || part->ended || part->cancelled || n == TRIES ||
        !rows_allow(w, n, last, cfg)) {
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
    world_pack(m, &a);
    if (v == 1) {
        step_down(w, c); /* what was committed is unknown, so it reads the rows again */
    }
    return true;
}

static bool move_foreign(struct world *w, int p)
{
    int n = world_newest(&w->part[p]);
    if (w->foreign_done || n == 0 || w->part[p].job[n - 1] != WORLD_NONE) {
        return false;
    }
    w->part[p].job[n - 1] = WORLD_FOREIGN;
    w->foreign_done = 1;
    return true;
}

bool world_apply(struct world *w, struct move m, const struct world_config *cfg,
                 const char **ret_wrong)
{
    struct part *part = &w->part[m.p];
    switch ((enum move_kind)m.kind) {
    case MOVE_TICK:
        move_tick(w);
        return true;
    case MOVE_CANCEL:
        if (part->cancelled || world_part_over(part)) {
            return false;
        }
        part->cancelled = 1;
        return true;
    case MOVE_FOREIGN:
        return move_foreign(w, m.p);
    case MOVE_JOB:
        return move_job(w, m.p, m.c, m.v);
    case MOVE_LAND:
        if (part->orphan[m.c] == 0 || !world_free(part->job[m.c])) {
            return false;
        }
        world_create_job(w, m.p, m.c);
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
        return call_take_cancel(w, m.c, m.p, ret_wrong);
    case MOVE_INTEND:
        return move_intend(w, m.c, m.p, m.v, cfg);
    case MOVE_ACT:
        return call_act(w, m.c, m.p, m.v, ret_wrong);
    case MOVE_SEND:
        return call_send(w, m.c, m.p, m.v, ret_wrong);
    case MOVE_ARRIVE:
        return call_arrive(w, m.c, m.p, m.v);
    case MOVE_TIME_OUT:
        return call_time_out(w, m.c, m.p, ret_wrong);
    case MOVE_REPLY:
        return call_reply(w, m.c, m.p, m.v, ret_wrong);
    case MOVE_LOOKED:
        return call_looked(w, m.c, m.p, m.v, ret_wrong);
    case MOVE_LIST:
        return call_list(w, m.c, m.p, ret_wrong);
    case MOVE_KINDS:
        return false;
    }
    return false;
}
