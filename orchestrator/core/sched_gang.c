/* Tasks of several instances against smaller ones of lower rank.
 *
 * The first waiting task of a stage that needs several instances and could have them gets a
 * reservation. It holds against every task of its priority or below, until it starts: such a task
 * runs only when, by the odds of all ends together, the promise stays good (gang.h). Reservations
 * stand in line by priority and age; the later reckon with the earlier ones' runs.
 *
 * What must have room at the start of a gang is counted apart: the slots of its type, the quota
 * over all types, the campaign's own limit of that type. A task is held against those it would use.
 *
 * Neither side starves: a reservation outranks smaller tasks of its priority; once it has had its
 * turn its stage reserves again only after smaller tasks that waited have started as many instances
 * (owed). */
#include "common/cleanup.h"
#include "sched_work.h"

#define COLD_START_S  180 /* until a stage's own is learned */
#define STOP_GRACE_S  120
#define ROOM_PERCENT  75  /* of the time to the target: measured from 60 to 90 */
#define SEARCHES_MAX  256 /* for smaller tasks, a plan */
#define CHANCE_P50    0.5
#define CHANCE_P95    0.95
#define TURN_ANY      (INT64_MAX - 1)
#define TURN_LAST     INT64_MAX
#define TURN_AGAIN_US USEC_PER_SEC

enum room_kind { ROOM_TYPE, ROOM_TOTAL, ROOM_LIMIT, ROOMS };

struct room {
    bool on;
    int64_t usable; /* instances of ours it holds at most */
    /* Instances whose P90 end lies after the target, or is no more than a bound: what merely must
     * end by then may hold up a gang that could start long before. */
    int64_t late;
    struct gang_odds odds; /* at the target */
};
struct reservation {
    int stage_i, slots_i, campaign_i, limit_i, priority, instances;
    uint32_t size_mb;
    bool confirmed; /* its task was looked at in this plan and still waits for slots */
    bool gone;      /* started or dropped */
    bool started;   /* in this plan */
    struct gang *kept;
    struct gang own; /* where nobody keeps one */
    struct room room[ROOMS];
};
struct user { /* somebody who holds instances, and until when */
    int slots_i, campaign_i;
    struct gang_end end;
};
struct sched_gangs {
    struct reservation *at; /* room for one a stage of several instances */
    int n;
    struct user *users; /* live jobs, then the launches of this plan */
    int users_n;
    struct gang_end *scratch; /* room for every user and reservation */
    int searches;
};

/* --- who uses what ---------------------------------------------------------------------------- */

static bool inside(const struct sched_work *w, const struct reservation *r, enum room_kind kind,
                   int slots_i, int campaign_i)
{
    switch (kind) {
    case ROOM_TYPE:
        return slots_i == r->slots_i;
    case ROOM_TOTAL:
        return w->slots[slots_i].market == w->slots[r->slots_i].market;
    case ROOM_LIMIT:
        return slots_i == r->slots_i && campaign_i == r->campaign_i;
    case ROOMS:
        break;
    }
    return false;
}

/* How many instances of ours a room holds when nothing is held, and how many are held by jobs. An
 * idle pool is no job: one that stands in the way is ended. */
static void measure(const struct sched_work *w, const struct reservation *r, enum room_kind kind,
                    int64_t *ret_usable, int64_t *ret_held)
{
    const struct slots *s = &w->slots[r->slots_i];
    const struct slots_total *total = &w->account.total[s->market];
    *ret_usable = 0;
    *ret_held = 0;
    switch (kind) {
    case ROOM_TYPE: {
        struct slots empty = *s;
        struct slots_account open = w->account;
        empty.held = 0;
        empty.warm_idle = 0;
        open.total[s->market].limit = -1;
        *ret_usable = slots_free(&empty, &open, w->view->now_us);
        *ret_held = s->held;
        break;
    }
    case ROOM_TOTAL:
        *ret_usable = total->limit - slots_total_foreign(total, w->view->now_us);
        *ret_held = total->held;
        for (int i = 0; i < w->view->slots_n; i++) {
            *ret_held -= w->slots[i].market == s->market ? w->slots[i].warm_idle : 0;
        }
        break;
    case ROOM_LIMIT:
        *ret_usable = w->view->stages[r->stage_i].spec->instances[r->limit_i].n;
        *ret_held = w->campaigns[r->campaign_i].type_held[r->limit_i];
        break;
    case ROOMS:
        break;
    }
}

static void job_end(const struct sched_view *v, const struct sched_job *j, struct gang_end *ret)
{
    bool model = j->duration != NULL && duration_known(j->duration);
    if (!model && j->end_p50_us != USEC_NEVER && j->end_p90_us != USEC_NEVER && j->end_p90_us > 0) {
        gang_end_spread(j->instances, MAX(j->end_p50_us, v->now_us), MAX(j->end_p90_us, v->now_us),
                        ret);
        return;
    }
    gang_end_model(j->duration, j->size_mb, j->instances, j->run_from_us,
                   j->last_us > 0 ? j->last_us : USEC_NEVER, v->now_us, ret);
}

/* The end of a task that would start at this time. */
static void task_end(const struct sched_work *w, const struct sched_try *t, usec_t at_us,
                     struct gang_end *ret)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    int64_t start_s = t->pool_i >= 0 ? s->warm_start_s : s->cold_start_s;
    start_s = start_s > 0 ? start_s : COLD_START_S;
    usec_t from_us = at_us + start_s * USEC_PER_SEC;
    usec_t last_us = from_us + (t->max_runtime_s + STOP_GRACE_S) * USEC_PER_SEC;
    gang_end_model(s->duration, t->task.size_mb, s->stage->instance_count, from_us, last_us,
                   w->view->now_us, ret);
}

/* --- the line --------------------------------------------------------------------------------- */

static bool ahead(const struct reservation *a, const struct reservation *b)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    return a->kept->since_us != b->kept->since_us ? a->kept->since_us < b->kept->since_us
                                                  : a->stage_i < b->stage_i;
}

static struct reservation *find(const struct sched_work *w, int stage_i)
{
    for (int i = 0; w->gangs != NULL && i < w->gangs->n; i++) {
        if (w->gangs->at[i].stage_i == stage_i && !w->gangs->at[i].gone) {
            return &w->gangs->at[i];
        }
    }
    return NULL;
}

/* When an earlier reservation's own run will be over: it starts at its target. */
static void reserved_end(const struct sched_work *w, const struct reservation *r,
                         struct gang_end *ret)
{
    const struct sched_stage *s = &w->view->stages[r->stage_i];
    struct sched_try t = {.stage_i = r->stage_i,
                          .pool_i = -1,
                          .max_runtime_s = s->stage->max_runtime_s,
                          .task.size_mb = r->size_mb};
    if (r->kept->target_us == USEC_NEVER) {
        gang_end_at(r->instances, USEC_NEVER, ret);
        return;
    }
    task_end(w, &t, MAX(r->kept->target_us, w->view->now_us), ret);
}

/* Everything that holds instances in this room before r may start. */
static size_t users_of(const struct sched_work *w, const struct reservation *r, enum room_kind kind,
                       int64_t held, struct gang_end *ret)
{
    const struct sched_gangs *g = w->gangs;
    size_t n = 0;
    for (int i = 0; i < g->users_n; i++) {
        if (inside(w, r, kind, g->users[i].slots_i, g->users[i].campaign_i)) {
            ret[n++] = g->users[i].end;
            held -= g->users[i].end.instances;
        }
    }
    if (held > 0) { /* of which nothing is known */
        gang_end_at((int)MIN(held, INT32_MAX), USEC_NEVER, &ret[n++]);
    }
    for (int i = 0; i < g->n; i++) {
        const struct reservation *o = &g->at[i];
        if (o != r && !o->gone && ahead(o, r) && inside(w, r, kind, o->slots_i, o->campaign_i)) {
            reserved_end(w, o, &ret[n++]);
        }
    }
    return n;
}

static void room_add(const struct reservation *r, struct room *m, const struct gang_end *end)
{
    usec_t target_us = r->kept->target_us;
    bool in_time = target_us != USEC_NEVER && end->learned && gang_end_p90(end) <= target_us;
    m->late += in_time ? 0 : end->instances;
    if (target_us != USEC_NEVER) {
        gang_odds_add(&m->odds, end->instances, gang_end_by(end, target_us));
    }
}

/* P50, P95, target and, when there is none yet, the promise: all rooms must be there. */
static void expect(const struct sched_work *w, struct reservation *r)
{
    struct gang *k = r->kept;
    bool promise = k->promised_us == USEC_NEVER;
    usec_t times[3] = {w->view->now_us, w->view->now_us, w->view->now_us};
    static const double chances[3] = {CHANCE_P50, CHANCE_P95, GANG_PROMISE};
    for (enum room_kind kind = ROOM_TYPE; kind < ROOMS; kind++) {
        if (!r->room[kind].on) {
            continue;
        }
        int64_t usable, held;
        measure(w, r, kind, &usable, &held);
        size_t n = users_of(w, r, kind, held, w->gangs->scratch);
        for (int i = 0; i < 3; i++) {
            usec_t t;
            bool ever = gang_start(usable - r->instances, w->gangs->scratch, n, chances[i],
                                   w->view->now_us, &t);
            times[i] = ever ? MAX(times[i], t) : USEC_NEVER;
        }
    }
    k->expected_us = times[0];
    k->latest_us = times[1];
    k->promised_us = promise ? times[2] : k->promised_us;
    k->target_us = MIN(k->promised_us, times[2]);
}

static bool could(const struct sched_work *w, struct reservation *r)
{
    for (enum room_kind kind = ROOM_TYPE; kind < ROOMS; kind++) {
        struct room *m = &r->room[kind];
        int64_t held;
        m->on = kind == ROOM_TYPE ||
                (kind == ROOM_TOTAL && w->account.total[w->slots[r->slots_i].market].limit >= 0) ||
                (kind == ROOM_LIMIT && r->limit_i >= 0);
        if (m->on) {
            measure(w, r, kind, &m->usable, &held);
            if (m->usable < r->instances) {
                return false;
            }
        }
    }
    return true;
}

static void describe(const struct sched_work *w, const struct sched_try *t, struct reservation *ret)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    *ret = (struct reservation){.stage_i = t->stage_i,
                                .slots_i = t->slots_i,
                                .campaign_i = s->campaign_i,
                                .limit_i = t->limit_i,
                                .priority = s->priority,
                                .instances = s->stage->instance_count,
                                .size_mb = t->task.size_mb,
                                .kept = s->gang};
}

/* Puts it in line: times, odds and what is spare; those behind it reckon with it from now on. */
static struct reservation *reserve(struct sched_work *w, const struct reservation *like)
{
    struct sched_gangs *g = w->gangs;
    int at = 0;
    while (at < g->n && g->at[at].stage_i != like->stage_i) {
        at++;
    }
    struct reservation *r = &g->at[at]; /* one a stage: that of a task that is gone is over */
    g->n = MAX(g->n, at + 1);
    *r = *like;
    r->kept = r->kept != NULL ? r->kept : &r->own;
    if (r->kept->task_id == 0) {
        *r->kept = (struct gang){
            .since_us = w->view->now_us, .promised_us = USEC_NEVER, .owed = r->kept->owed};
    }
    r->kept->instances = r->instances;
    expect(w, r);
    for (enum room_kind kind = ROOM_TYPE; kind < ROOMS; kind++) {
        struct room *m = &r->room[kind];
        int64_t held;
        if (!m->on) {
            continue;
        }
        measure(w, r, kind, &m->usable, &held);
        gang_odds_init(&m->odds, m->usable - r->instances);
        size_t n = users_of(w, r, kind, held, g->scratch);
        for (size_t i = 0; i < n; i++) {
            room_add(r, m, &g->scratch[i]);
        }
    }
    for (int i = 0; i < g->n; i++) {
        struct reservation *o = &g->at[i];
        for (enum room_kind kind = ROOM_TYPE; kind < ROOMS; kind++) {
            if (o != r && !o->gone && ahead(r, o) && o->room[kind].on &&
                inside(w, o, kind, r->slots_i, r->campaign_i)) {
                struct gang_end end;
                reserved_end(w, r, &end);
                room_add(o, &o->room[kind], &end);
            }
        }
    }
    return r;
}

static void drop(struct reservation *r)
{
    r->gone = true;
    r->kept->task_id = 0;
}

/* --- for the plan ----------------------------------------------------------------------------- */

static bool owes(const struct sched_stage *s)
{
    return s->stage->instance_count > 1 && s->gang != NULL && s->gang->owed > 0;
}

static int by_line(const void *a, const void *b)
{
    const struct reservation *x = a;
    const struct reservation *y = b;
    return ahead(x, y) ? -1 : ahead(y, x) ? 1 : 0;
}

/* Those kept from earlier plans, in line. */
static void reopen(struct sched_work *w, struct reservation *kept, int max)
{
    int n = 0;
    for (int i = 0; i < w->view->stages_n; i++) {
        const struct sched_stage *s = &w->view->stages[i];
        struct ready_task first;
        struct sched_try t;
        if (s->stage->instance_count <= 1 || s->gang == NULL || s->gang->task_id == 0) {
            continue;
        }
        ASSERT(n < max);
        if (!w->stages[i].closed && ready_peek(s->ready, w->view->now_us, &first) &&
            sched_prepare(w, i, &first, &t) == WAIT_NONE) {
            describe(w, &t, &kept[n]);
            n += could(w, &kept[n]);
        }
        if (n == 0 || kept[n - 1].stage_i != i) {
            s->gang->task_id = 0;
        }
    }
    qsort(kept, (size_t)n, sizeof *kept, by_line);
    for (int i = 0; i < n; i++) {
        (void)reserve(w, &kept[i]);
    }
}

void sched_gangs_open(struct sched_work *w)
{
    const struct sched_view *v = w->view;
    int n = 0;
    for (int i = 0; i < v->stages_n; i++) {
        n += v->stages[i].stage->instance_count > 1;
    }
    if (n == 0) {
        return;
    }
    size_t users = (size_t)v->jobs_n + SCHED_LAUNCHES_MAX;
    struct sched_gangs *g = w->gangs = xcalloc(1, sizeof *g);
    g->at = xcalloc((size_t)n, sizeof *g->at);
    g->users = xmalloc(users * sizeof *g->users);
    g->scratch = xmalloc((users + (size_t)n + 1) * sizeof *g->scratch);
    for (int i = 0; i < v->jobs_n; i++) {
        const struct sched_job *j = &v->jobs[i];
        struct user *u = &g->users[g->users_n++];
        *u = (struct user){.slots_i = j->slots_i, .campaign_i = j->campaign_i};
        job_end(v, j, &u->end);
    }
    AUTO_FREE struct reservation *kept = xcalloc((size_t)n, sizeof *kept);
    reopen(w, kept, n);
    for (int i = 0; i < v->stages_n; i++) {
        w->stages[i].turn = owes(&v->stages[i]) ? TURN_LAST : TURN_ANY;
    }
    for (int i = 0; i < g->n; i++) {
        w->stages[g->at[i].stage_i].turn = g->at[i].kept->since_us;
    }
}

void sched_gangs_close(struct sched_work *w)
{
    if (w->gangs == NULL) {
        return;
    }
    for (int i = 0; i < w->gangs->n; i++) {
        struct reservation *r = &w->gangs->at[i];
        if (!r->gone && !r->confirmed) {
            drop(r);
        }
    }
    free(w->gangs->at);
    free(w->gangs->users);
    free(w->gangs->scratch);
    free(w->gangs);
    w->gangs = NULL;
}

static bool share_slots(const struct sched_work *w, int a, int b)
{
    for (int i = 0; i < w->view->stages[a].stage->instance_type_n; i++) {
        for (int k = 0; k < w->view->stages[b].stage->instance_type_n; k++) {
            if (w->stages[a].slots_i[i] == w->stages[b].slots_i[k]) {
                return true;
            }
        }
    }
    return false;
}

/* Does a stage wait for nothing but slots and its turn? */
static bool wants_slots(enum wait_reason why)
{
    return why == WAIT_SLOTS || why == WAIT_RESERVED || why == WAIT_RATE || why == WAIT_ORDER ||
           why == WAIT_HAND_OVER;
}

bool sched_gang_yields(const struct sched_work *w, int stage_i)
{
    const struct sched_stage *s = &w->view->stages[stage_i];
    for (int i = 0; w->gangs != NULL && i < w->gangs->n; i++) {
        if (w->gangs->at[i].stage_i == stage_i && w->gangs->at[i].started &&
            ready_n(s->ready) > 0) {
            w->plan->wake_us = MIN(w->plan->wake_us, w->view->now_us + TURN_AGAIN_US);
            return true; /* whoever comes next, the next plan sees */
        }
    }
    if (!owes(s) || find(w, stage_i) != NULL) {
        return false;
    }
    for (int i = 0; i < w->view->stages_n; i++) {
        const struct sched_stage *o = &w->view->stages[i];
        if (i != stage_i && o->priority == s->priority && w->stages[i].closed &&
            wants_slots(w->plan->reason[i]) && !owes(o) && find(w, i) == NULL &&
            share_slots(w, stage_i, i)) {
            return true;
        }
    }
    s->gang->owed = 0;
    return false;
}

enum wait_reason sched_gang_check(const struct sched_work *w, const struct sched_try *t)
{
    if (w->gangs == NULL || w->gangs->n == 0) {
        return WAIT_NONE;
    }
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    const struct reservation *own = find(w, t->stage_i);
    struct gang_end end;
    task_end(w, t, w->view->now_us, &end);
    for (int i = 0; i < w->gangs->n; i++) {
        const struct reservation *r = &w->gangs->at[i];
        if (r->gone || r == own || s->priority > r->priority || (own != NULL && ahead(own, r))) {
            continue;
        }
        for (enum room_kind kind = ROOM_TYPE; kind < ROOMS; kind++) {
            const struct room *m = &r->room[kind];
            if (m->on && inside(w, r, kind, t->slots_i, s->campaign_i) &&
                !gang_may_pass(r->kept, &m->odds, &end, m->usable - r->instances - m->late)) {
                return WAIT_RESERVED;
            }
        }
    }
    return WAIT_NONE;
}

enum wait_reason sched_gang_waits(struct sched_work *w, struct sched_try *t, enum wait_reason why)
{
    if (w->gangs == NULL || w->view->stages[t->stage_i].stage->instance_count <= 1) {
        return why;
    }
    struct reservation *r = find(w, t->stage_i);
    if ((why == WAIT_RATE || why == WAIT_HAND_OVER) && r != NULL) {
        r->confirmed = true;
        return why;
    }
    if (r != NULL && r->confirmed) {
        return why; /* the stage's first one has it */
    }
    bool for_slots = why == WAIT_SLOTS || why == WAIT_RESERVED || why == WAIT_TYPE_LIMIT;
    if (for_slots) {
        enum wait_reason money = sched_check_money(w, t);
        struct reservation like;
        describe(w, t, &like);
        if (money == WAIT_NONE && could(w, &like)) {
            r = r != NULL ? r : reserve(w, &like);
            r->kept->task_id = t->task.task_id;
            r->confirmed = true;
            return WAIT_GANG;
        }
        why = money != WAIT_NONE ? money : why;
    }
    if (r != NULL && r->kept->task_id == t->task.task_id) {
        drop(r);
    }
    return why;
}

/* The earliest target this task is held against; USEC_NEVER: none. */
static usec_t held_against(const struct sched_work *w, const struct sched_try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    usec_t target_us = USEC_NEVER;
    for (int i = 0; i < w->gangs->n; i++) {
        const struct reservation *r = &w->gangs->at[i];
        bool touches = false;
        for (enum room_kind kind = ROOM_TYPE; kind < ROOMS; kind++) {
            touches =
                touches || (r->room[kind].on && inside(w, r, kind, t->slots_i, s->campaign_i));
        }
        if (!r->gone && touches && s->priority <= r->priority) {
            target_us = MIN(target_us, r->kept->target_us);
        }
    }
    return target_us;
}

/* Its median end lies well before the target, so that the slot has time for another one: only a
 * short last part ends near its expected time. */
static bool leaves_room(const struct sched_work *w, const struct sched_try *t, usec_t target_us)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    int64_t start_s = s->cold_start_s > 0 ? s->cold_start_s : COLD_START_S;
    int64_t takes_us =
        start_s * USEC_PER_SEC + duration_quantile_us(s->duration, t->task.size_mb, 50);
    return takes_us <= (target_us - w->view->now_us) / 100 * ROOM_PERCENT;
}

/* The largest size up to `most` for which it holds; 0: none. Small sizes end sooner. */
static uint32_t largest(const struct sched_work *w, const struct sched_try *t, uint32_t most,
                        bool (*holds)(const struct sched_work *, const struct sched_try *, usec_t),
                        usec_t target_us)
{
    struct sched_try smaller = *t;
    uint32_t low = 0;
    uint32_t high = most + 1;
    while (high - low > 1) {
        smaller.task.size_mb = low + (high - low) / 2;
        if (holds(w, &smaller, target_us)) {
            low = smaller.task.size_mb;
        } else {
            high = smaller.task.size_mb;
        }
    }
    return low;
}

static bool passes(const struct sched_work *w, const struct sched_try *t, usec_t target_us)
{
    (void)target_us;
    return sched_gang_check(w, t) == WAIT_NONE;
}

bool sched_gang_smaller(struct sched_work *w, const struct sched_try *t, enum wait_reason why,
                        struct ready_task *ret)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    if (w->gangs == NULL || s->stage->instance_count > 1 || s->duration == NULL ||
        !duration_known(s->duration) || t->task.size_mb == 0 || t->task.size_mb == UINT32_MAX ||
        (why != WAIT_NONE && why != WAIT_RESERVED)) {
        return false;
    }
    usec_t target_us = held_against(w, t);
    struct gang_end end;
    task_end(w, t, w->view->now_us, &end);
    if (target_us == USEC_NEVER || w->gangs->searches++ >= SEARCHES_MAX ||
        (why == WAIT_NONE && gang_end_p90(&end) > target_us)) {
        return false; /* nothing to be in time for, or it goes where nobody waits */
    }
    uint32_t fits =
        why == WAIT_NONE ? t->task.size_mb : largest(w, t, t->task.size_mb, passes, target_us);
    uint32_t roomy = largest(w, t, fits, leaves_room, target_us);
    if (why == WAIT_NONE && roomy == fits) {
        return false;
    }
    return (roomy > 0 && ready_at_most(s->ready, w->view->now_us, roomy, ret)) ||
           (why != WAIT_NONE && fits > 0 && ready_at_most(s->ready, w->view->now_us, fits, ret));
}

/* Smaller tasks that waited while gangs had their turn get theirs. */
static void pay_back(const struct sched_work *w, const struct sched_try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    for (int i = 0; i < w->view->stages_n; i++) {
        const struct sched_stage *o = &w->view->stages[i];
        if (i != t->stage_i && owes(o) && o->priority == s->priority &&
            share_slots(w, i, t->stage_i)) {
            o->gang->owed -= MIN(o->gang->owed, s->stage->instance_count);
        }
    }
}

void sched_gang_launched(struct sched_work *w, const struct sched_try *t)
{
    if (w->gangs == NULL) {
        return;
    }
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    struct sched_gangs *g = w->gangs;
    struct reservation *own = find(w, t->stage_i);
    struct user *u = &g->users[g->users_n++];
    *u = (struct user){.slots_i = t->slots_i, .campaign_i = s->campaign_i};
    task_end(w, t, w->view->now_us, &u->end);
    for (int i = 0; i < g->n; i++) {
        struct reservation *r = &g->at[i];
        if (r->gone || r == own || (own != NULL && ahead(own, r))) {
            continue; /* those behind it have reckoned with it */
        }
        for (enum room_kind kind = ROOM_TYPE; kind < ROOMS; kind++) {
            if (r->room[kind].on && inside(w, r, kind, t->slots_i, s->campaign_i)) {
                room_add(r, &r->room[kind], &u->end);
            }
        }
    }
    if (own != NULL) {
        drop(own);
        own->started = true;
        own->kept->owed = own->instances;
    } else {
        pay_back(w, t);
    }
}
