/* The judge of the leader's memory: between two events it equals the rows; otherwise a new
 * leader would decide differently. */
#include "core/sched/ready_queue.h"
#include "sim_world.h"

static void differs(struct world *w, const char *what, int64_t id, int64_t memory, int64_t row)
{
    if (memory != row) {
        wrong(w, "I9", "memory and rows differ: %s %lld is %lld, its row says %lld", what,
              (long long)id, (long long)memory, (long long)row);
    }
}

static void compare_stage(struct world *w, const struct live_stage *ls)
{
    const struct db_stage *d = STAGE(w, row_of_id(ls->row.id));
    int64_t id = ls->row.id;
    differs(w, "the state of stage", id, (int)ls->row.state, (int)d->state);
    differs(w, "what is reserved of stage", id, ls->row.reserved_musd, d->money.reserved_musd);
    differs(w, "what is spent of stage", id, ls->row.spent_musd, d->money.spent_musd);
    differs(w, "the reset of stage", id, ls->row.breaker_since, d->breaker_since);
    differs(w, "the resumes of stage", id, ls->row.resumes_taken, d->resumes_taken);
    for (int k = 0; k < TASK_STATE_COUNT; k++) {
        differs(w, task_state_name((enum task_state)k), id, ls->row.counts[k], d->counts[k]);
    }
    differs(w, "the queue of stage", id, (int64_t)ready_queue_n(ls->ready),
            d->counts[TASK_WAITING]);
}

static void compare_campaigns(struct world *w, const struct leader_state *s)
{
    for (size_t i = 0; i < s->campaigns_n; i++) {
        const struct live_campaign *lc = s->campaigns[i];
        const struct db_campaign *d = CAMPAIGN(w, row_of_id(lc->row.id));
        int64_t active = 0;
        differs(w, "the state of campaign", lc->row.id, (int)lc->row.state, (int)d->state);
        differs(w, "what is reserved of campaign", lc->row.id, lc->row.reserved_musd,
                d->money.reserved_musd);
        differs(w, "what is spent of campaign", lc->row.id, lc->row.spent_musd,
                d->money.spent_musd);
        differs(w, "the idle cost of campaign", lc->row.id, lc->row.warm_musd, d->idle_musd);
        for (int k = 0; k < lc->stages_n; k++) {
            compare_stage(w, &lc->stages[k]);
            active += lc->stages[k].row.counts[TASK_ACTIVE];
        }
        differs(w, "the active parts of campaign", lc->row.id, lc->live, active);
    }
    for (size_t i = 0; i < s->projects_n; i++) {
        const struct budget *b = i == 0 ? db_row(w, T_GLOBAL, 0) : db_row(w, T_PROJECT, i - 1);
        differs(w, "what is reserved of project", (int64_t)i, s->projects[i].reserved_musd,
                b->reserved_musd);
        differs(w, "what is spent of project", (int64_t)i, s->projects[i].spent_musd,
                b->spent_musd);
    }
}

static void compare_attempts(struct world *w, const struct leader_state *s)
{
    int64_t live = 0;
    for (size_t i = 0; i < w->db.t[T_ATTEMPT].n; i++) {
        live += !attempt_state_terminal(ATTEMPT(w, i)->state);
    }
    differs(w, "the number of attempts", 0, (int64_t)s->attempts_n, live);
    for (size_t i = 0; i < s->attempts_n; i++) {
        const struct live_attempt *a = s->attempts[i];
        int row = row_of_id(a->row.id);
        const struct db_attempt *d = ATTEMPT(w, row);
        const struct db_attempt *from = d->pool_of >= 0 ? ATTEMPT(w, d->pool_of) : NULL;
        bool taken = from != NULL && from->has_pool && from->taken_by == row;
        w->judge.about = d->task;
        differs(w, "the state of attempt", a->row.id, (int)a->row.state, (int)d->state);
        differs(w, "the slots of attempt", a->row.id, a->row.holds, d->holds);
        differs(w, "the wish for attempt", a->row.id, a->row.unwanted, d->unwanted);
        differs(w, "why we stop attempt", a->row.id, (int)a->row.stop_cause, (int)d->stop_cause);
        if (d->holds) { /* otherwise its pool has an account of its own */
            differs(w, "what is reserved of attempt", a->row.id, a->account.reserved_musd,
                    d->open_musd);
            differs(w, "the pool left by attempt", a->row.id, a->pool != NULL ? a->pool->row.id : 0,
                    d->has_pool ? a->row.id : 0);
        }
        differs(w, "the pool taken by attempt", a->row.id, a->taken != NULL ? a->taken->row.id : 0,
                taken ? id_of(d->pool_of) : 0);
    }
}

static void compare_pools(struct world *w, const struct leader_state *s)
{
    int64_t kept = 0;
    for (size_t i = 0; i < w->db.t[T_ATTEMPT].n; i++) {
        kept += ATTEMPT(w, i)->has_pool;
    }
    differs(w, "the number of pools", 0, (int64_t)s->pools_n, kept);
    for (size_t i = 0; i < s->pools_n; i++) {
        const struct live_pool *p = s->pools[i];
        const struct db_attempt *d = ATTEMPT(w, row_of_id(p->row.id));
        bool known = false;
        for (size_t k = 0; k < s->campaigns_n; k++) {
            known |= s->campaigns[k] == p->campaign;
        }
        differs(w, "the campaign of pool", p->row.id, known, true);
        differs(w, "the state of pool", p->row.id, (int)p->row.state, (int)d->pool);
        differs(w, "who took pool", p->row.id, p->row.taken_by, id_of(d->taken_by));
        if (p->attempt == NULL) {
            differs(w, "what is reserved of pool", p->row.id, p->account.reserved_musd,
                    d->open_musd);
        }
    }
    for (int t = 0; t < w->kinds; t++) {
        differs(w, "held instances of kind", t, s->slots[t].s.held, SLOTS(w, t)->held);
        differs(w, "idle instances of kind", t, s->slots[t].s.warm_idle, SLOTS(w, t)->warm_idle);
    }
}

static void compare_changes(struct world *w, const struct leader_state *s)
{
    for (size_t i = 0; i < s->changes_n; i++) {
        const struct task_change_row *ch = &s->changes[i];
        const struct db_task *t = TASK(w, row_of_id(ch->task_id));
        w->judge.about = row_of_id(ch->task_id);
        differs(w, "the type of part", ch->task_id, ch->instance_type_i, t->type_i);
        differs(w, "the volume of part", ch->task_id, ch->volume_gb, t->volume_gb);
        differs(w, "the time of part", ch->task_id, ch->max_runtime_s, t->max_runtime_s);
        differs(w, "the failures alike of part", ch->task_id, ch->same, t->same);
        if (w->stage[t->stage].per_task_musd >= 0) {
            differs(w, "what was spent on part", ch->task_id, ch->spent_musd,
                    rows_part_spent(w, row_of_id(ch->task_id)));
        }
        for (int k = 0; k < CAUSE_COUNT; k++) {
            differs(w, cause_name((enum cause)k), ch->task_id, MIN(ch->tries[k], 255), t->tries[k]);
        }
    }
}

/* Memory has a row of each part of its campaigns that retries changed. */
static void compare_kept(struct world *w, struct leader_state *s)
{
    for (size_t i = 0; i < s->campaigns_n; i++) {
        const struct live_campaign *lc = s->campaigns[i];
        for (int k = 0; k < lc->stages_n; k++) {
            const struct db_stage *d = STAGE(w, row_of_id(lc->stages[k].row.id));
            for (int t = d->task0; t < d->task0 + d->tasks_n; t++) {
                w->judge.about = t;
                differs(w, "what retries changed of part", id_of(t),
                        !TASK(w, t)->changed || leader_state_change(s, id_of(t), false) != NULL,
                        true);
            }
        }
    }
}

/* Between two events, outside a transaction. */
void judge_memory(struct world *w, struct ctl *c)
{
    struct leader_state *s = &c->state;
    const struct db_lease *l = db_row(w, T_LEASE, 0);
    if (!c->up || !c->leading || c->frozen || c->lost || s->records_n > 0 || l->epoch != c->epoch ||
        c->session != w->db.instance) {
        return;
    }
    compare_campaigns(w, s);
    compare_attempts(w, s);
    compare_pools(w, s);
    compare_changes(w, s);
    compare_kept(w, s);
    w->judge.about = -1;
}
