/* Which jobs hold instances until when, and what that means for each reservation. */
#include "sched_backfill.h"
#include "core/money/cost.h"

#define CHANCE_P50 0.5
#define CHANCE_P95 0.95

bool sched_backfill_inside(const struct sched_work *w, const struct backfill_line *r,
                           enum room_kind kind, int slots_i, int campaign_i)
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

/* Our instances that fit in a room when nothing is held, and those held by jobs. An idle pool does
 * not count: it is ended when it blocks. */
static void measure(const struct sched_work *w, const struct backfill_line *r, enum room_kind kind,
                    int64_t *ret_usable, int64_t *ret_held)
{
    const struct quota_ledger *s = &w->slots[r->slots_i];
    const struct quota_ledger_total *total = &w->account.total[s->market];
    *ret_usable = 0;
    *ret_held = 0;
    switch (kind) {
    case ROOM_TYPE: {
        struct quota_ledger empty = *s;
        struct quota_ledger_account open = w->account;
        empty.held = 0;
        empty.warm_idle = 0;
        open.total[s->market].limit = -1;
        *ret_usable = quota_ledger_free(&empty, &open, w->view->now_us);
        *ret_held = s->held;
        break;
    }
    case ROOM_TOTAL:
        *ret_usable = total->limit - quota_ledger_total_foreign(total, w->view->now_us);
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

static void job_end(const struct sched_view *v, const struct sched_job *j,
                    struct reservation_end *ret)
{
    bool model = j->duration != NULL && duration_known(j->duration);
    if (!model && j->end_p50_us != USEC_NEVER && j->end_p90_us != USEC_NEVER && j->end_p90_us > 0) {
        reservation_end_spread(j->instances, MAX(j->end_p50_us, v->now_us),
                               MAX(j->end_p90_us, v->now_us), ret);
        return;
    }
    reservation_end_model(j->duration, j->size_mb, j->instances, j->run_from_us,
                          j->last_us > 0 ? j->last_us : USEC_NEVER, v->now_us, ret);
}

/* The end of a task that would start at this time. */
void sched_backfill_task_end(const struct sched_work *w, const struct sched_try *t, usec_t at_us,
                             struct reservation_end *ret)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    int64_t start_s = t->pool_i >= 0 ? s->warm_start_s : s->cold_start_s;
    start_s = start_s > 0 ? start_s : SCHED_COLD_START_S;
    usec_t from_us = USEC_NEVER;
    usec_t last_us = USEC_NEVER;
    if (!add_i64(at_us, start_s * USEC_PER_SEC, &from_us) ||
        !add_i64(from_us, (t->max_runtime_s + COST_STOP_GRACE_S) * USEC_PER_SEC, &last_us)) {
        last_us = USEC_NEVER;
    }
    reservation_end_model(s->duration, t->task.size_mb, s->stage->instance_count, from_us, last_us,
                          w->view->now_us, ret);
}

bool sched_backfill_ahead(const struct backfill_line *a, const struct backfill_line *b)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    return a->kept->since_us != b->kept->since_us ? a->kept->since_us < b->kept->since_us
                                                  : a->stage_i < b->stage_i;
}

struct backfill_line *sched_backfill_find(const struct sched_work *w, int stage_i)
{
    for (int i = 0; w->reservations != NULL && i < w->reservations->n; i++) {
        if (w->reservations->at[i].stage_i == stage_i && !w->reservations->at[i].gone) {
            return &w->reservations->at[i];
        }
    }
    return NULL;
}

/* When an earlier reservation's own run will be over: it starts at its target. */
static void reserved_end(const struct sched_work *w, const struct backfill_line *r,
                         struct reservation_end *ret)
{
    const struct sched_stage *s = &w->view->stages[r->stage_i];
    struct sched_try t = {.stage_i = r->stage_i,
                          .pool_i = -1,
                          .max_runtime_s = s->stage->max_runtime_s,
                          .task.size_mb = r->size_mb};
    if (r->kept->target_us == USEC_NEVER) {
        reservation_end_at(r->instances, USEC_NEVER, ret);
        return;
    }
    sched_backfill_task_end(w, &t, MAX(r->kept->target_us, w->view->now_us), ret);
}

/* Collect everything that holds instances in this room before r may start. */
static size_t users_of(const struct sched_work *w, const struct backfill_line *r,
                       enum room_kind kind, int64_t held, struct reservation_end *ret)
{
    struct sched_reservations *g = w->reservations;
    size_t n = 0;
    for (int i = 0; i < g->users_n; i++) {
        struct user *u = &g->users[i];
        if (!sched_backfill_inside(w, r, kind, u->slots_i, u->campaign_i)) {
            continue;
        }
        if (u->job != NULL) {
            job_end(w->view, u->job, &u->end);
            u->job = NULL;
        }
        ret[n++] = u->end;
        held -= u->end.instances;
    }
    if (held > 0) { /* about which nothing is known */
        reservation_end_at((int)MIN(held, INT32_MAX), USEC_NEVER, &ret[n++]);
    }
    for (int i = 0; i < g->n; i++) {
        const struct backfill_line *o = &g->at[i];
        if (o != r && !o->gone && sched_backfill_ahead(o, r) &&
            sched_backfill_inside(w, r, kind, o->slots_i, o->campaign_i)) {
            reserved_end(w, o, &ret[n++]);
        }
    }
    return n;
}

void sched_backfill_room_add(const struct backfill_line *r, struct room *m,
                             const struct reservation_end *end)
{
    usec_t target_us = r->kept->target_us;
    bool in_time = target_us != USEC_NEVER && end->learned && reservation_end_p90(end) <= target_us;
    m->late += in_time ? 0 : end->instances;
    if (target_us != USEC_NEVER) {
        reservation_odds_add(&m->odds, end->instances, reservation_end_by(end, target_us));
    }
}

/* Compute P50, P95, target and, on the first call, the promise. All rooms must be free by then. */
static void expect(const struct sched_work *w, struct backfill_line *r)
{
    struct reservation *k = r->kept;
    bool promise = k->promised_us == USEC_NEVER;
    usec_t times[3] = {w->view->now_us, w->view->now_us, w->view->now_us};
    static const double chances[3] = {CHANCE_P50, CHANCE_P95, RESERVATION_PROMISE};
    for (enum room_kind kind = ROOM_TYPE; kind < ROOMS; kind++) {
        if (!r->room[kind].on) {
            continue;
        }
        int64_t usable, held;
        measure(w, r, kind, &usable, &held);
        size_t n = users_of(w, r, kind, held, w->reservations->scratch);
        for (int i = 0; i < 3; i++) {
            usec_t t;
            bool ever = reservation_start(usable - r->instances, w->reservations->scratch, n,
                                          chances[i], w->view->now_us, &t);
            times[i] = ever ? MAX(times[i], t) : USEC_NEVER;
        }
    }
    k->expected_us = times[0];
    k->latest_us = times[1];
    k->promised_us = promise ? times[2] : k->promised_us;
    /* The target never moves later, or each backfilled part would delay it a little. A missed
     * target is set again. */
    bool ahead_still = !promise && k->target_us > w->view->now_us;
    k->target_us = MIN(MIN(k->promised_us, times[2]), ahead_still ? k->target_us : USEC_NEVER);
}

bool sched_backfill_could(const struct sched_work *w, struct backfill_line *r)
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

void sched_backfill_describe(const struct sched_work *w, const struct sched_try *t,
                             struct backfill_line *ret)
{
    const struct sched_stage *s = &w->view->stages[t->stage_i];
    *ret = (struct backfill_line){.stage_i = t->stage_i,
                                  .slots_i = t->slots_i,
                                  .campaign_i = s->campaign_i,
                                  .limit_i = t->limit_i,
                                  .priority = s->priority,
                                  .instances = s->stage->instance_count,
                                  .size_mb = t->task.size_mb,
                                  .kept = s->reservation};
}

/* Add the reservation: times, probabilities and spare instances. Later reservations take it into
 * account. */
struct backfill_line *sched_backfill_reserve(struct sched_work *w, const struct backfill_line *like)
{
    struct sched_reservations *g = w->reservations;
    int at = 0;
    while (at < g->n && g->at[at].stage_i != like->stage_i) {
        at++;
    }
    /* one per stage: the reservation of a task that is gone has ended */
    struct backfill_line *r = &g->at[at];
    g->n = MAX(g->n, at + 1);
    *r = *like;
    r->kept = r->kept != NULL ? r->kept : &r->own;
    if (r->kept->task_id == 0) {
        *r->kept = (struct reservation){.since_us = w->view->now_us,
                                        .promised_us = USEC_NEVER,
                                        .target_us = USEC_NEVER,
                                        .owed = r->kept->owed};
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
        reservation_odds_init(&m->odds, m->usable - r->instances);
        size_t n = users_of(w, r, kind, held, g->scratch);
        for (size_t i = 0; i < n; i++) {
            sched_backfill_room_add(r, m, &g->scratch[i]);
        }
    }
    for (int i = 0; i < g->n; i++) {
        struct backfill_line *o = &g->at[i];
        for (enum room_kind kind = ROOM_TYPE; kind < ROOMS; kind++) {
            if (o != r && !o->gone && sched_backfill_ahead(r, o) && o->room[kind].on &&
                sched_backfill_inside(w, o, kind, r->slots_i, r->campaign_i)) {
                struct reservation_end end;
                reserved_end(w, r, &end);
                sched_backfill_room_add(o, &o->room[kind], &end);
            }
        }
    }
    return r;
}

void sched_backfill_drop(struct backfill_line *r)
{
    r->gone = true;
    r->kept->task_id = 0;
}
