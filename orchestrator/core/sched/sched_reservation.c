/* Multi-instance tasks against smaller tasks of lower rank.
 *
 * The first waiting task of a stage with instance_count > 1 that could have its instances gets a
 * reservation. Until it starts, the reservation limits every task of its priority or below: such a
 * task runs only when the promise stays likely enough, given all ends together (reservation.h).
 * Reservations are ordered by priority and age; later ones take the runs of earlier ones into
 * account.
 *
 * Neither side starves: a reservation outranks smaller tasks of its priority; after its start the
 * stage reserves again only when the smaller tasks that waited have started as many instances
 * (owed). */
#include "common/cleanup.h"
#include "sched_backfill.h"

#define ROOM_PERCENT  75  /* of the time to the target; 60 to 90 were measured */
#define SEARCHES_MAX  256 /* searches for smaller tasks per plan */
#define TURN_ANY      (INT64_MAX - 1)
#define TURN_LAST     INT64_MAX
#define TURN_AGAIN_US USEC_PER_SEC

static bool owes(const struct sched_stage *s)
{
    return s->stage->instance_count > 1 && s->reservation != NULL && s->reservation->owed > 0;
}

static int by_line(const void *a, const void *b)
{
    const struct backfill_line *x = a;
    const struct backfill_line *y = b;
    return sched_backfill_ahead(x, y) ? -1 : sched_backfill_ahead(y, x) ? 1 : 0;
}

/* The reservations kept from earlier plans, in order. */
static void reopen(struct sched_work *w, struct backfill_line *kept, int max)
{
    int n = 0;
    for (int i = 0; i < w->view->stages_n; i++) {
        const struct sched_stage *s = &w->view->stages[i];
        struct ready_queue_task first;
        struct sched_try t;
        int group = 0;
        if (s->stage->instance_count <= 1 || s->reservation == NULL ||
            s->reservation->task_id == 0) {
            continue;
        }
        ASSERT(n < max);
        if (!w->stages[i].closed && ready_queue_first(s->ready, w->view->now_us, &first, &group) &&
            sched_prepare(w, i, group, &first, &t) == WAIT_NONE) {
            sched_backfill_describe(w, &t, &kept[n]);
            n += sched_backfill_could(w, &kept[n]);
        }
        if (n == 0 || kept[n - 1].stage_i != i) {
            s->reservation->task_id = 0;
        }
    }
    qsort(kept, (size_t)n, sizeof *kept, by_line);
    for (int i = 0; i < n; i++) {
        (void)sched_backfill_reserve(w, &kept[i]);
    }
}

void sched_reservations_open(struct sched_work *w)
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
    struct sched_reservations *g = w->reservations = xcalloc(1, sizeof *g);
    g->at = xcalloc((size_t)n, sizeof *g->at);
    g->users = xmalloc(users * sizeof *g->users);
    g->scratch = xmalloc((users + (size_t)n + 1) * sizeof *g->scratch);
    for (int i = 0; i < v->jobs_n; i++) {
        struct user *u = &g->users[g->users_n++]; /* mostly nobody asks when it ends */
        u->job = &v->jobs[i];
        u->slots_i = u->job->slots_i;
        u->campaign_i = u->job->campaign_i;
    }
    AUTO_FREE struct backfill_line *kept = xcalloc((size_t)n, sizeof *kept);
    reopen(w, kept, n);
    for (int i = 0; i < v->stages_n; i++) {
        w->stages[i].turn = owes(&v->stages[i]) ? TURN_LAST : TURN_ANY;
    }
    for (int i = 0; i < g->n; i++) {
        w->stages[g->at[i].stage_i].turn = g->at[i].kept->since_us;
    }
}

void sched_reservations_close(struct sched_work *w)
{
    if (w->reservations == NULL) {
        return;
    }
    for (int i = 0; i < w->reservations->n; i++) {
        struct backfill_line *r = &w->reservations->at[i];
        if (!r->gone && !r->confirmed) {
            sched_backfill_drop(r);
        }
    }
    free(w->reservations->at);
    free(w->reservations->users);
    free(w->reservations->scratch);
    free(w->reservations);
    w->reservations = NULL;
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

bool sched_reservation_yields(const struct sched_work *w, int stage_i)
{
    const struct sched_stage *s = &w->view->stages[stage_i];
    for (int i = 0; w->reservations != NULL && i < w->reservations->n; i++) {
        if (w->reservations->at[i].stage_i == stage_i && w->reservations->at[i].started &&
            ready_queue_n(s->ready) > 0) {
            w->plan->wake_us = MIN(w->plan->wake_us, w->view->now_us + TURN_AGAIN_US);
            return true; /* the next plan handles the following tasks */
        }
    }
    if (!owes(s) || sched_backfill_find(w, stage_i) != NULL) {
        return false;
    }
    for (int i = 0; i < w->view->stages_n; i++) {
        const struct sched_stage *o = &w->view->stages[i];
        if (i != stage_i && o->priority == s->priority && w->stages[i].closed &&
            wait_reason_row(w->plan->reason[i])->turn && !owes(o) &&
            sched_backfill_find(w, i) == NULL && share_slots(w, stage_i, i)) {
            return true;
        }
    }
    s->reservation->owed = 0;
    return false;
}

enum wait_reason sched_reservation_check(const struct sched_work *w, const struct sched_try *t)
{
    if (w->reservations == NULL || w->reservations->n == 0) {
        return WAIT_NONE;
    }
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    const struct backfill_line *own = sched_backfill_find(w, t->stage_i);
    struct reservation_end end;
    sched_backfill_task_end(w, t, w->view->now_us, &end);
    for (int i = 0; i < w->reservations->n; i++) {
        const struct backfill_line *r = &w->reservations->at[i];
        if (r->gone || r == own || s->priority > r->priority ||
            (own != NULL && sched_backfill_ahead(own, r))) {
            continue;
        }
        for (enum room_kind kind = ROOM_TYPE; kind < ROOMS; kind++) {
            const struct room *m = &r->room[kind];
            if (m->on && sched_backfill_inside(w, r, kind, t->slots_i, s->campaign_i) &&
                !reservation_may_pass(r->kept, &m->odds, &end,
                                      m->usable - r->instances - m->late)) {
                return WAIT_RESERVED;
            }
        }
    }
    return WAIT_NONE;
}

enum wait_reason sched_reservation_waits(struct sched_work *w, struct sched_try *t,
                                         enum wait_reason why)
{
    if (w->reservations == NULL || w->view->stages[t->stage_i].stage->instance_count <= 1) {
        return why;
    }
    struct backfill_line *r = sched_backfill_find(w, t->stage_i);
    enum wait_gang gang = wait_reason_row(why)->gang;
    if (gang == WAIT_GANG_KEEPS && r != NULL) {
        r->confirmed = true;
        return why;
    }
    if (r != NULL && r->confirmed) {
        return why; /* the stage's first task has the reservation */
    }
    if (gang == WAIT_GANG_GATHERS) {
        enum wait_reason money = sched_check_money(w, t);
        struct backfill_line like;
        sched_backfill_describe(w, t, &like);
        if (money == WAIT_NONE && sched_backfill_could(w, &like)) {
            r = r != NULL ? r : sched_backfill_reserve(w, &like);
            r->kept->task_id = t->task.task_id;
            r->confirmed = true;
            return WAIT_GANG;
        }
        why = money != WAIT_NONE ? money : why;
    }
    if (r != NULL && r->kept->task_id == t->task.task_id) {
        sched_backfill_drop(r);
    }
    return why;
}

/* The earliest target that limits this task; USEC_NEVER: no limit. */
static usec_t held_against(const struct sched_work *w, const struct sched_try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    usec_t target_us = USEC_NEVER;
    for (int i = 0; i < w->reservations->n; i++) {
        const struct backfill_line *r = &w->reservations->at[i];
        bool touches = false;
        for (enum room_kind kind = ROOM_TYPE; kind < ROOMS; kind++) {
            touches = touches || (r->room[kind].on &&
                                  sched_backfill_inside(w, r, kind, t->slots_i, s->campaign_i));
        }
        if (!r->gone && touches && s->priority <= r->priority) {
            target_us = MIN(target_us, r->kept->target_us);
        }
    }
    return target_us;
}

/* True when its median end is well before the target, so the slot has time for another task. Only a
 * short last part ends near its expected time. */
static bool leaves_room(const struct sched_work *w, const struct sched_try *t, usec_t target_us)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    int64_t start_s = s->cold_start_s > 0 ? s->cold_start_s : SCHED_COLD_START_S;
    int64_t takes_us =
        start_s * USEC_PER_SEC + duration_quantile_us(s->duration, t->task.size_mb, 50);
    return takes_us <= (target_us - w->view->now_us) / 100 * ROOM_PERCENT;
}

/* The largest size up to `most` that may start; 0: none may. Smaller sizes end earlier. */
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
    return sched_reservation_check(w, t) == WAIT_NONE;
}

bool sched_reservation_smaller(struct sched_work *w, const struct sched_try *t,
                               enum wait_reason why, struct ready_queue_task *ret)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    if (w->reservations == NULL || s->stage->instance_count > 1 || s->duration == NULL ||
        !duration_known(s->duration) || t->task.size_mb == 0 || t->task.size_mb == UINT32_MAX ||
        (why != WAIT_NONE && why != WAIT_RESERVED)) {
        return false;
    }
    usec_t target_us = held_against(w, t);
    struct reservation_end end;
    sched_backfill_task_end(w, t, w->view->now_us, &end);
    if (target_us == USEC_NEVER || w->reservations->searches++ >= SEARCHES_MAX ||
        (why == WAIT_NONE && reservation_end_p90(&end) > target_us)) {
        return false; /* there is no target, or nothing waits for its slots */
    }
    uint32_t fits =
        why == WAIT_NONE ? t->task.size_mb : largest(w, t, t->task.size_mb, passes, target_us);
    uint32_t roomy = largest(w, t, fits, leaves_room, target_us);
    if (why == WAIT_NONE && roomy == fits) {
        return false;
    }
    return (roomy > 0 && ready_queue_at_most(s->ready, t->group, w->view->now_us, roomy, ret)) ||
           (why != WAIT_NONE && fits > 0 &&
            ready_queue_at_most(s->ready, t->group, w->view->now_us, fits, ret));
}

/* Count the start of a smaller task against what multi-instance stages owe. */
static void pay_back(const struct sched_work *w, const struct sched_try *t)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    for (int i = 0; i < w->view->stages_n; i++) {
        const struct sched_stage *o = &w->view->stages[i];
        if (i != t->stage_i && owes(o) && o->priority == s->priority &&
            share_slots(w, i, t->stage_i)) {
            o->reservation->owed -= MIN(o->reservation->owed, s->stage->instance_count);
        }
    }
}

void sched_reservation_launched(struct sched_work *w, const struct sched_try *t)
{
    if (w->reservations == NULL) {
        return;
    }
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    struct sched_reservations *g = w->reservations;
    struct backfill_line *own = sched_backfill_find(w, t->stage_i);
    struct user *u = &g->users[g->users_n++];
    *u = (struct user){.slots_i = t->slots_i, .campaign_i = s->campaign_i};
    sched_backfill_task_end(w, t, w->view->now_us, &u->end);
    for (int i = 0; i < g->n; i++) {
        struct backfill_line *r = &g->at[i];
        if (r->gone || r == own || (own != NULL && sched_backfill_ahead(own, r))) {
            continue; /* later reservations have counted it */
        }
        for (enum room_kind kind = ROOM_TYPE; kind < ROOMS; kind++) {
            if (r->room[kind].on && sched_backfill_inside(w, r, kind, t->slots_i, s->campaign_i)) {
                sched_backfill_room_add(r, &r->room[kind], &u->end);
            }
        }
    }
    if (own != NULL) {
        sched_backfill_drop(own);
        own->started = true;
        own->kept->owed = own->instances;
    } else {
        pay_back(w, t);
    }
}
