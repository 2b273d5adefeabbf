/* Record: what the protocol concluded becomes rows, in batches, and only then changes the view. */
#include "sim_world.h"

/* The task's fate when its attempt ended. */
static void decide_task(struct world *w, struct ctl *c, const struct live *a,
                        const struct protocol_effect *e, struct record *r)
{
    const struct db_task *t = TASK(w, a->row.task);
    const struct db_campaign *dc = &c->campaign[c->stage[t->stage].campaign];
    struct retry_state now = {.attempts = t->attempts};
    struct retry_decision d;
    r->task_moves = true;
    if (a->p.state == ATTEMPT_SUCCEEDED) {
        r->task_to = TASK_DONE;
        r->task_counts = true;
        if (!a->p.wanted) {
            SOMETIMES(w, COMPLETED_AFTER_CANCEL);
        }
        return;
    }
    bool hung = a->row.hung && dc->wanted == WANTED_RUN && a->p.state != ATTEMPT_VOID;
    if (!a->p.wanted && !hung) {
        /* In a hold after a failover a later job of it may still turn up: not ended yet. */
        bool ends = dc->wanted == WANTED_CANCEL && !c->hold;
        r->task_to = ends ? TASK_CANCELLED : TASK_WAITING;
        r->cause = CAUSE_NONE;
        return;
    }
    for (int i = 0; i < CAUSE_COUNT; i++) {
        now.tries[i] = t->tries[i];
    }
    now.instance_type_i = t->type_i;
    now.volume_gb = t->volume_gb;
    now.max_runtime_s = t->max_runtime_s;
    r->cause = hung ? CAUSE_TIMEOUT : e->cause != CAUSE_NONE ? e->cause : CAUSE_UNKNOWN;
    r->ran = a->p.state == ATTEMPT_FAILED && (a->seen.started != 0 || a->seen.billable_s > 0);
    now.ran = r->ran;
    now.attempts += retry_counts_in(&w->stage[t->stage], r->cause, r->ran); /* this one too */
    retry_decide(&w->stage[t->stage], r->cause, &now, &c->rng, &d);
    w->cover->causes[r->cause]++;
    r->task_counts = d.counts;
    r->task_to = d.retry ? TASK_WAITING : TASK_FAILED;
    r->signature = d.counts ? a->signature : 0;
    r->changed = d.retry;
    if (d.retry) {
        r->not_before_us = ctl_wall(w, c) + d.wait_us;
        r->next = d.next;
        if (d.changed) {
            SOMETIMES(w, RETRY_CHANGED);
        }
    }
    int same = r->signature != 0 && t->signature == r->signature ? t->same + 1 : 1;
    if (d.counts && d.retry && breaker_quarantines(&c->mem[t->stage].breaker, &w->rules, same)) {
        SOMETIMES(w, QUARANTINED);
        r->task_to = TASK_FAILED;
    }
}

/* Cost of the run, and what stays reserved or is already known of its pool. */
static void settle(struct world *w, struct live *a, struct record *r)
{
    struct err err = ERR_INIT;
    const struct job_view *v = &a->seen;
    r->billable_s =
        cost_billable_s(v->billable_s, v->started, v->ended, a->row.instances, &r->estimated);
    if (!cost_of_seconds(a->row.price_musd, r->billable_s, &r->cost_musd, &err)) {
        wrong(w, "I24", "cost overflows: %s", err.message);
    }
    if (!a->row.has_pool || !v->has_pool) {
        return;
    }
    if (v->pool == POOL_AVAILABLE) {
        r->pool_since_us = v->ended;
        if (!cost_of_seconds(a->row.price_musd, a->row.keep_alive_s * a->row.instances,
                             &r->keep_musd, &err)) {
            wrong(w, "I24", "keep-alive overflows: %s", err.message);
        }
    } else {
        r->idle_s = v->retained_s * a->row.instances;
        r->reused_by = v->pool == POOL_REUSED ? v->reused_by : 0;
    }
}

static void fill(struct world *w, struct ctl *c, struct live *a, const struct protocol_effect *e,
                 struct record *r)
{
    *r = (struct record){.attempt = a->id,
                         .from = e->changed ? e->from : a->p.state,
                         .to = a->p.state,
                         .cause = e->cause,
                         .started_us = a->seen.started,
                         .ended_us = a->seen.ended,
                         .release = e->release_slot,
                         .settle = e->settle,
                         .in_use = a->seen.has_pool && a->seen.pool == POOL_IN_USE};
    if (e->release_slot && e->settle) {
        settle(w, a, r);
    }
    if (e->task_ends) {
        decide_task(w, c, a, e, r);
    }
}

static bool ends_in_records(const struct ctl *c, int attempt)
{
    bool over = false;
    for (size_t i = 0; i < c->pending_n; i++) {
        over |= c->pending[i].attempt == attempt && c->pending[i].task_moves;
    }
    return over;
}

void record_push(struct world *w, struct ctl *c, struct live *a, const struct protocol_effect *e)
{
    int attempt = a->id;
    if (a->recording) {
        bool over = ends_in_records(c, attempt);
        if (!record_flush(w, c) || over || live_get(c, attempt) == NULL) {
            return; /* the attempt is gone: with the leadership, or by its own end */
        }
        a = live_get(c, attempt);
    }
    if (c->pending_n == c->pending_cap) {
        c->pending_cap = MAX(64, c->pending_cap * 2);
        c->pending = xrealloc(c->pending, c->pending_cap * sizeof *c->pending);
    }
    fill(w, c, a, e, &c->pending[c->pending_n++]);
    a->recording = true;
}

/* The stage's breaker hears of ends; it may trip. */
static void tell_breaker(struct world *w, struct ctl *c, const struct live *a,
                         const struct record *r)
{
    struct stage_mem *m = &c->mem[TASK_STAGE(w, a->row.task)];
    bool good = r->to == ATTEMPT_SUCCEEDED;
    if (good) {
        duration_learn(&m->duration, w->size_mb[a->row.task], a->seen.ended - a->seen.started);
    }
    if (breaker_ended(&m->breaker, &w->rules, a->id + 1, good ? CAUSE_NONE : CAUSE_UNKNOWN,
                      r->cause != CAUSE_NONE && (r->ran || retry_counts(r->cause)), a->signature)) {
        SOMETIMES(w, BREAKER_TRIPPED);
        c->look_at_db = true;
    }
    if (r->cause == CAUSE_CAPACITY && r->to == ATTEMPT_FAILED) {
        int stage = TASK_STAGE(w, a->row.task);
        capacity_ladder_refused(&m->place, &w->stage[stage], a->row.rung, a->row.subnet_i,
                                ctl_wall(w, c));
    }
}

static void committed(struct world *w, struct ctl *c, const struct record *r)
{
    struct live *a = live_get(c, r->attempt);
    ASSERT(a != NULL);
    a->row = *ATTEMPT(w, r->attempt);
    a->recording = false;
    if (r->task_moves) {
        tell_breaker(w, c, a, r);
        if (r->task_to == TASK_WAITING) {
            ready_add(w, c, a->row.task);
        }
        bool pool = a->row.has_pool;
        live_remove(c, r->attempt);
        if (pool) {
            pools_add(w, c, r->attempt);
        }
        c->look_at_db = true; /* the stage or the campaign may have ended */
    }
    c->decide = c->act = true;
}

bool record_flush(struct world *w, struct ctl *c)
{
    if (c->pending_n == 0) {
        return c->leading;
    }
    if (!db_begin(w, c)) {
        return false;
    }
    for (size_t i = 0; i < c->pending_n; i++) {
        if (!rows_record(w, c, &c->pending[i])) {
            wrong(w, "I9", "attempt %d is not in state %s: memory and rows differ",
                  c->pending[i].attempt, attempt_state_name(c->pending[i].from));
            ctl_lose(w, c, "rows are not as remembered");
            return false;
        }
    }
    if (!db_commit(w, c)) {
        return false;
    }
    view_copy(w, c, false);
    size_t n = c->pending_n;
    c->pending_n = 0;
    for (size_t i = 0; i < n; i++) {
        committed(w, c, &c->pending[i]);
    }
    return true;
}
