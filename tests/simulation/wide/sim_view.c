/* What a leader keeps in memory: copies of rows, ready queues, live attempts, what it learned of
 * rungs, durations and failures. Read whole at takeover, then kept. */
#include "sim_world.h"
#include <stdio.h>

static void used_of(struct budget *to, const struct budget *from)
{
    to->reserved_musd = from->reserved_musd;
    to->spent_musd = from->spent_musd;
}

/* What this leader itself has written; what people want is seen at the next look. */
static void copy_ours(struct world *w, struct ctl *c)
{
    for (int i = 0; i < c->campaigns_n; i++) {
        const struct db_campaign *dc = CAMPAIGN(w, i);
        used_of(&c->campaign[i].money, &dc->money);
        c->campaign[i].state = dc->state;
        c->campaign[i].idle_musd = dc->idle_musd;
        c->campaign[i].budget_held = dc->budget_held;
        for (int s = dc->stage0; s < dc->stage0 + dc->stages_n; s++) {
            musd_t cap = c->stage[s].money.cap_musd;
            c->stage[s] = *STAGE(w, s);
            c->stage[s].money.cap_musd = cap;
        }
    }
    for (int i = 0; i < w->cfg.projects; i++) {
        used_of(&c->project[i], db_row(w, T_PROJECT, (size_t)i));
    }
    used_of(&c->global, db_row(w, T_GLOBAL, 0));
}

static void copy_all(struct world *w, struct ctl *c)
{
    c->campaigns_n = (int)w->db.t[T_CAMPAIGN].n;
    for (int i = 0; i < c->campaigns_n; i++) {
        c->campaign[i] = *CAMPAIGN(w, i);
    }
    for (int i = 0; i < (int)w->db.t[T_STAGE].n; i++) {
        c->stage[i] = *STAGE(w, i);
    }
    for (int i = 0; i < w->cfg.projects; i++) {
        c->project[i] = *(struct budget *)db_row(w, T_PROJECT, (size_t)i);
    }
    c->global = *(struct budget *)db_row(w, T_GLOBAL, 0);
}

void view_copy(struct world *w, struct ctl *c, bool wishes)
{
    if (wishes) {
        copy_all(w, c);
    } else {
        copy_ours(w, c);
    }
    for (int i = 0; i < w->kinds; i++) {
        c->slots[i].held = SLOTS(w, i)->held;
        c->slots[i].warm_idle = SLOTS(w, i)->warm_idle;
        c->slots[i].price_musd_per_hour = w->aws.price_known[i] ? w->aws.price[i] : -1;
    }
}

struct live *live_get(struct ctl *c, int attempt)
{
    if (attempt < 0 || (size_t)attempt >= c->live_of_cap || c->live_of[attempt] < 0) {
        return NULL;
    }
    return &c->live[c->live_of[attempt]];
}

static void live_index(struct ctl *c, int attempt, int at)
{
    if ((size_t)attempt >= c->live_of_cap) {
        size_t old = c->live_of_cap;
        c->live_of_cap = MAX(512, (size_t)attempt * 2);
        c->live_of = xrealloc(c->live_of, c->live_of_cap * sizeof *c->live_of);
        memset(c->live_of + old, 0xff, (c->live_of_cap - old) * sizeof *c->live_of);
    }
    c->live_of[attempt] = at;
}

struct live *live_add(struct world *w, struct ctl *c, int attempt, bool fresh)
{
    if (c->live_n == c->live_cap) {
        c->live_cap = MAX(64, c->live_cap * 2);
        c->live = xrealloc(c->live, c->live_cap * sizeof *c->live);
    }
    struct live *a = &c->live[c->live_n];
    *a = (struct live){.id = attempt, .row = *ATTEMPT(w, attempt)};
    live_index(c, attempt, (int)c->live_n++);
    if (fresh) {
        protocol_intended(&a->p);
        return a;
    }
    struct protocol_config pc;
    struct protocol_effect e;
    const struct db_campaign *dc = CAMPAIGN(w, STAGE(w, TASK_STAGE(w, a->row.task))->campaign);
    bool wanted = !a->row.unwanted && (dc->wanted == WANTED_RUN || dc->wanted == WANTED_DRAIN);
    ctl_protocol(w, &pc);
    a->stopped_by_us = a->row.unwanted;
    protocol_taken_over(a->row.state, wanted, ctl_boot(w, c) + w->cfg.lease_us, &pc, &a->p, &e);
    if (e.changed) {
        SOMETIMES(w, UNKNOWN_AT_TAKEOVER);
        record_push(w, c, a, &e);
    }
    return a;
}

void live_remove(struct ctl *c, int attempt)
{
    int at = c->live_of[attempt];
    ASSERT(at >= 0);
    c->live_of[attempt] = -1;
    c->live[at] = c->live[--c->live_n];
    if ((size_t)at < c->live_n) {
        c->live_of[c->live[at].id] = at;
    }
}

void live_fact(struct world *w, struct ctl *c, int attempt, const struct fact *f)
{
    struct protocol_config pc;
    struct protocol_effect e = {0};
    struct live *a = live_get(c, attempt);
    if (a == NULL) {
        return;
    }
    ctl_protocol(w, &pc);
    protocol_step(&a->p, f, &pc, &e);
    a->wake_us = 0;
    c->act = true;
    if (e.changed || e.task_ends || e.release_slot) {
        tell(w, a->row.task, "a%d %s -> %s%s%s", a->row.n, attempt_state_name(e.from),
             attempt_state_name(a->p.state), e.cause != CAUSE_NONE ? ": " : "",
             e.cause != CAUSE_NONE ? cause_name(e.cause) : "");
        record_push(w, c, a, &e); /* may lose the leadership, and the attempt with it: last */
    }
}

void ready_add(struct world *w, struct ctl *c, int task)
{
    const struct db_task *t = TASK(w, task);
    const struct db_stage *s = STAGE(w, t->stage);
    ready_queue_push(c->mem[t->stage].ready,
                     &(struct ready_queue_task){.task_id = task + 1,
                                                .not_before_us = t->not_before_us,
                                                .seq = (uint32_t)(task - s->task0),
                                                .size_mb = w->size_mb[task]});
}

void view_take(struct world *w, struct ctl *c, int campaign)
{
    const struct db_campaign *dc = CAMPAIGN(w, campaign);
    c->taken[campaign] = true;
    for (int s = dc->stage0; s < dc->stage0 + dc->stages_n; s++) {
        const struct db_stage *ds = STAGE(w, s);
        ready_queue_clear(c->mem[s].ready);
        for (int t = ds->task0; t < ds->task0 + ds->tasks_n; t++) {
            if (TASK(w, t)->state == TASK_WAITING) {
                ready_add(w, c, t);
            }
        }
    }
}

/* What is known of a stage beyond its rows is learned anew from its attempts. */
static void learn(struct world *w, struct ctl *c)
{
    for (int s = 0; s < STAGES_MAX; s++) {
        struct stage_mem *m = &c->mem[s];
        m->ready = m->ready == NULL ? ready_queue_new() : m->ready;
        ready_queue_clear(m->ready);
        if (s >= w->stages_n) {
            continue;
        }
        m->place = (struct capacity_ladder){0};
        m->gang = (struct reservation){0};
        breaker_init(&m->breaker);
        if ((size_t)s < w->db.t[T_STAGE].n && STAGE(w, s)->breaker_since > 0) {
            breaker_reset(&m->breaker, STAGE(w, s)->breaker_since);
        }
        duration_init(&m->duration, w->stage[s].expect_s * SEC);
    }
    for (size_t i = 0; i < w->db.t[T_ATTEMPT].n; i++) {
        const struct db_attempt *a = ATTEMPT(w, i);
        int s = TASK_STAGE(w, a->task);
        bool since = (int64_t)i + 1 > STAGE(w, s)->breaker_since;
        breaker_started(&c->mem[s].breaker, (int64_t)i + 1);
        if (!attempt_state_terminal(a->state)) {
            continue;
        }
        if (a->state == ATTEMPT_SUCCEEDED) {
            duration_learn(&c->mem[s].duration, w->size_mb[a->task], a->ended_us - a->started_us);
        }
        if (!since && a->ended_us < STAGE(w, s)->reset_us) { /* that was before */
            continue;
        }
        (void)breaker_ended(&c->mem[s].breaker, &w->rules, (int64_t)i + 1,
                            a->state == ATTEMPT_SUCCEEDED ? CAUSE_NONE : CAUSE_UNKNOWN, a->counted,
                            a->failed_signature);
    }
}

bool view_load(struct world *w, struct ctl *c)
{
    learn(w, c);
    for (int i = 0; i < w->kinds; i++) {
        struct quota_ledger *s = &c->slots[i];
        *s = (struct quota_ledger){.market = market_of(w, i),
                                   .quota = -1,
                                   .warm_quota = -1,
                                   .operator_limit = w->type_limit[i],
                                   .refused_limit = -1};
        (void)snprintf(s->instance_type, sizeof s->instance_type, "%s", w->types[i]);
    }
    c->account = (struct quota_ledger_account)QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    memset(c->taken, 0, sizeof c->taken);
    view_copy(w, c, true);
    for (int i = 0; i < c->campaigns_n; i++) {
        if (!campaign_state_terminal(c->campaign[i].state)) {
            view_take(w, c, i);
        }
    }
    for (size_t i = 0; i < w->db.t[T_ATTEMPT].n && c->leading; i++) {
        const struct db_attempt *a = ATTEMPT(w, i);
        if (!attempt_state_terminal(a->state)) {
            (void)live_add(w, c, (int)i, false);
        } else if (a->has_pool) {
            pools_add(w, c, (int)i);
        }
    }
    return c->leading && record_flush(w, c);
}

/* New campaigns, and what people want of old ones. */
bool view_look(struct world *w, struct ctl *c)
{
    if (!db_begin(w, c)) {
        return false;
    }
    for (int i = 0; i < (int)w->db.t[T_CAMPAIGN].n; i++) {
        c->decide |= i >= c->campaigns_n || c->campaign[i].version != CAMPAIGN(w, i)->version;
    }
    view_copy(w, c, true);
    db_abort(w); /* it only read */
    for (int i = 0; i < c->campaigns_n; i++) {
        if (!c->taken[i] && !campaign_state_terminal(c->campaign[i].state)) {
            view_take(w, c, i);
        }
    }
    return true;
}

void view_free(struct ctl *c)
{
    for (size_t i = 0; i < c->live_n; i++) {
        c->live_of[c->live[i].id] = -1;
    }
    c->live_n = c->pending_n = c->pool_n = 0;
    c->hold = false;
    c->clean_lists = 0;
}
