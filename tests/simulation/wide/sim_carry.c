/* Carries facts to the protocol, records and intents to the store, as controller/attempt.c,
 * outcome.c and intents.c do: core/leader plans, the rows are written, core/leader applies. */
#include "core/leader/attempt.h"
#include "core/leader/intents.h"
#include "core/leader/outcome.h"
#include "core/leader/pool_life.h"
#include "core/leader/quota_learning.h"
#include "core/leader/record_queue.h"
#include "core/leader/stage_history.h"
#include "core/sched/ready_queue.h"
#include "sim_world.h"

void carry_fact(struct world *w, struct ctl *c, int64_t attempt_id, const struct fact *f)
{
    struct protocol_config pc;
    struct protocol_effect e;
    struct live_attempt *a = leader_state_attempt(&c->state, attempt_id);
    if (a == NULL) {
        return;
    }
    ctl_protocol(w, &pc);
    leader_attempt_fact(&c->state, a, f, &pc, &e);
    if (e.changed || e.task_ends || e.release_slot) {
        tell(w, row_of_id(a->row.task_id), "a%d %s -> %s%s%s", a->row.n, attempt_state_name(e.from),
             attempt_state_name(a->p.state), e.cause != CAUSE_NONE ? ": " : "",
             e.cause != CAUSE_NONE ? cause_name(e.cause) : "");
    }
    if (leader_attempt_records(&e)) {
        carry_record(w, c, a, &e);
    }
}

static void note_sites(struct world *w, const struct live_attempt *a,
                       const struct pending_record *p, const struct outcome_notes *n)
{
    if (n->cost_overflow || n->not_booked) {
        wrong(w, "I6", "%s cannot be booked: %s%s", a->row.name.s, n->cost_error.message,
              n->book_error.message);
    }
    if (n->set_aside) {
        SOMETIMES(w, QUARANTINED);
    }
    if (p->r.task_moves && p->r.to == ATTEMPT_SUCCEEDED && !a->p.wanted) {
        SOMETIMES(w, COMPLETED_AFTER_CANCEL);
    }
    if (p->r.task_moves && p->r.cause != CAUSE_NONE) {
        w->cover->causes[p->r.cause]++;
    }
    const struct spec_stage *s = a->stage->spec;
    const struct task_change_row *ch = &p->change;
    if (ch->task_id != 0 && (ch->instance_type_i != 0 || ch->max_runtime_s > s->max_runtime_s ||
                             ch->volume_gb > s->volume_gb)) {
        SOMETIMES(w, RETRY_CHANGED);
    }
}

void carry_record(struct world *w, struct ctl *c, struct live_attempt *a,
                  const struct protocol_effect *e)
{
    struct outcome_notes notes;
    struct pending_record p;
    leader_plan_record(&c->state, a, e, ctl_wall(w, c), &p, &notes);
    note_sites(w, a, &p, &notes);
    leader_push_record(&c->state, a, &p);
}

static void recorded(struct world *w, struct ctl *c, struct pending_record *p)
{
    struct live_attempt *a = leader_state_attempt(&c->state, p->r.attempt_id);
    bool known = a->accepted;
    struct record_applied then;
    leader_apply_record(&c->state, p, ctl_wall(w, c), ctl_boot(w, c), &then);
    if (then.ended_pool != NULL) {
        leader_state_remove_pool(&c->state, then.ended_pool);
    }
    if (a->accepted && !known) {
        judge_untaught(w); /* there was room for it, says SageMaker */
    }
    if (then.trips) {
        SOMETIMES(w, BREAKER_TRIPPED);
    }
    if (then.ended) {
        leader_state_remove_attempt(&c->state, a);
    }
}

static bool flush(struct world *w, struct ctl *c)
{
    size_t n = c->state.records_n;
    if (!db_begin(w, c)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct attempt_record row = leader_record_row(&c->state.records[i]);
        if (!rows_record(w, &row)) {
            wrong(w, "I9", "attempt %lld is not in state %s: memory and rows differ",
                  (long long)row.attempt_id, attempt_state_name(row.from));
            ctl_lose(w, c, "rows are not as remembered");
            return false;
        }
    }
    if (!db_commit(w, c)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        recorded(w, c, &c->state.records[i]);
    }
    ASSERT(c->state.records_n == n);
    c->state.records_n = 0;
    return true;
}

static void kept_facts(struct world *w, struct ctl *c)
{
    struct fact f;
    for (size_t i = 0; i < c->state.attempts_n; i++) {
        struct live_attempt *a = c->state.attempts[i];
        while (leader_attempt_kept_fact(a, &f)) {
            carry_fact(w, c, a->row.id, &f);
        }
    }
}

bool carry_records(struct world *w, struct ctl *c)
{
    while (c->leading && c->state.records_n > 0) {
        if (!flush(w, c)) {
            return false;
        }
        kept_facts(w, c);
    }
    return c->leading;
}

struct batch { /* what one intend transaction works on */
    struct leader_view f;
    struct intent intents[SCHED_LAUNCHES_MAX];
    struct task_input inputs[SCHED_LAUNCHES_MAX];
};

static void input_of(struct world *w, int task, struct task_input *ret)
{
    const struct db_task *t = TASK(w, task);
    *ret = (struct task_input){.id = id_of(task),
                               .stage_id = id_of(t->stage),
                               .seq = task - STAGE(w, t->stage)->task0,
                               .attempts = t->attempts,
                               .names = t->names,
                               .size = task_size(w, task)};
}

/* View and rows are of one instant unless an operator wrote in between. Otherwise a refusal by
 * the transaction shows a wrong decision. */
static void judge_refusal(struct world *w, const struct live_campaign *lc, const struct intent *in)
{
    SOMETIMES(w, INTENT_REFUSED);
    if (lc->row.version == CAMPAIGN(w, row_of_id(lc->row.id))->version) {
        wrong(w, "I4", "the scheduler proposed what the rows refuse: %s (task %d, %lld s)",
              in->refused, row_of_id(in->task_id), (long long)in->max_runtime_s);
    }
}

static bool write_intents(struct world *w, struct ctl *c, struct batch *b)
{
    int64_t next = id_of((int)w->db.t[T_ATTEMPT].n); /* attempt_ids */
    for (int i = 0; i < w->plan->launches_n; i++) {
        struct launch_facts f = leader_launch_facts(&b->f, w->plan, i, &b->inputs[i]);
        struct intent *in = &b->intents[i];
        input_of(w, row_of_id(f.launch->task.task_id), f.task);
        leader_plan_intent(&c->state, &f, next, SIM_PREFIX, b->f.view.now_us, in);
        rows_hash_text(rows_request(in), in->identity_hash);
        if (!rows_intend(w, c->epoch, in)) {
            return false;
        }
        next += in->taken;
        if (!in->taken) {
            judge_refusal(w, f.campaign, in);
        }
    }
    return true;
}

static void write_reasons(struct world *w, struct batch *b)
{
    for (int i = 0; i < b->f.view.stages_n; i++) {
        struct live_stage *ls = b->f.live_stages[i];
        if (ls->reason != w->plan->reason[i]) {
            ((struct db_stage *)db_touch(w, T_STAGE, (size_t)row_of_id(ls->row.id)))->reason =
                w->plan->reason[i];
            ls->reason = w->plan->reason[i];
        }
    }
}

static void write_history(struct world *w, struct ctl *c)
{
    for (size_t i = 0; i < c->state.slots_n; i++) {
        struct quota_learning_write q;
        if (quota_learning_plan(&c->state.slots[i], ctl_wall(w, c), &q)) {
            struct db_slots *d = db_touch(w, T_SLOTS, i);
            d->foreign = q.foreign;
            d->foreign_us = q.foreign_us;
            d->refused_limit = q.refused_limit;
            quota_learning_apply(&c->state.slots[i], &q);
        }
    }
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        struct live_campaign *lc = c->state.campaigns[i];
        for (int k = 0; k < lc->stages_n; k++) {
            struct stage_history_write h;
            if (stage_history_plan(&lc->stages[k], &h)) {
                struct db_stage *d = db_touch(w, T_STAGE, (size_t)row_of_id(lc->stages[k].row.id));
                d->breaker_passed |= h.passed;
                d->promise = h.promise_moves ? h.promise : d->promise;
                stage_history_apply(&lc->stages[k], &h);
            }
        }
    }
}

static void after_commit(struct world *w, struct ctl *c, struct batch *b)
{
    usec_t now_us = ctl_wall(w, c);
    for (int i = 0; i < w->plan->launches_n; i++) {
        struct launch_facts f = leader_launch_facts(&b->f, w->plan, i, &b->inputs[i]);
        struct live_stage *ls = b->f.live_stages[f.launch->stage_i];
        if (!b->intents[i].taken) {
            bool part = strcmp(b->intents[i].refused, "part_money") == 0;
            if (part) {
                const struct budget *m = &TASK(w, row_of_id(b->intents[i].task_id))->money;
                b->intents[i].part_spent_musd = m->reserved_musd + m->spent_musd;
                leader_part_spent(&c->state, &b->intents[i]);
            }
            (void)leader_put_back(&c->state, ls, &f.launch->task, f.task,
                                  part ? LAUNCH_PART_MONEY : LAUNCH_REFUSED, 0, now_us);
            continue;
        }
        struct live_attempt *a = leader_apply_intent(&c->state, &f, &b->intents[i], now_us);
        stage_history_started(a, now_us);
        w->cover->sites[SITE_POOL_TAKEN] += a->taken != NULL;
        w->cover->sites[SITE_RUNTIME_SHORTENED] += a->row.max_runtime_s < ls->spec->max_runtime_s;
        w->cover->sites[SITE_GANG_STARTED] += a->row.instances > 1;
    }
}

static bool writes_anything(struct world *w, struct ctl *c, const struct batch *b)
{
    bool writes = w->plan->launches_n > 0 || quota_learning_dirty(&c->state, ctl_wall(w, c)) ||
                  stage_history_dirty(&c->state);
    for (int i = 0; i < b->f.view.stages_n; i++) {
        writes |= b->f.live_stages[i]->reason != w->plan->reason[i];
    }
    return writes;
}

static void run_plan(struct world *w, struct ctl *c, struct batch *b)
{
    if (!writes_anything(w, c, b)) {
        return;
    }
    if (fault(w, FAULT_EDIT_IN_FLIGHT)) {
        op_strike(w, FAULT_OP_BUDGET);
    }
    if (!db_begin(w, c)) {
        return;
    }
    write_reasons(w, b);
    write_history(w, c);
    if (!write_intents(w, c, b)) {
        ctl_lose(w, c, "an intent could not be written");
    } else if (db_commit(w, c)) {
        after_commit(w, c, b);
    }
}

static void see_plan(struct world *w, struct ctl *c, const struct batch *b)
{
    judge_plan(w, c, &b->f.view, w->plan);
    for (int i = 0; i < w->plan->launches_n; i++) {
        trace(w, 0x1a4c4, (uint64_t)w->plan->launches[i].task.task_id);
    }
    c->decided_us = ctl_boot(w, c);
    c->decide_at_us = w->plan->wake_us == USEC_NEVER
                          ? INT64_MAX
                          : c->decided_us + MAX(0, w->plan->wake_us - b->f.view.now_us);
    c->rate_waits = false;
    for (int i = 0; i < b->f.view.stages_n; i++) {
        w->cover->reasons[w->plan->reason[i]]++;
        c->rate_waits |= w->plan->reason[i] == WAIT_RATE;
    }
}

/* No task waits and no pool is kept, so a plan would be empty. */
static bool idle(const struct ctl *c)
{
    size_t waiting = c->state.pools_n;
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        const struct live_campaign *lc = c->state.campaigns[i];
        for (int k = 0; k < lc->stages_n; k++) {
            waiting += ready_queue_n(lc->stages[k].ready);
        }
    }
    return waiting == 0;
}

void carry_intents(struct world *w, struct ctl *c)
{
    struct batch *b = w->batch;
    struct sched_plan *plan = w->plan;
    const struct live_campaign *overslept = sched_view_overslept(&c->state, ctl_wall(w, c));
    if (overslept != NULL) {
        wrong(w, "I18", "campaign %lld rests although a plan has to look at it",
              (long long)overslept->row.id);
    }
    if (idle(c)) {
        return;
    }
    sched_view_make(&c->state, ctl_wall(w, c),
                    call_pace_intents(&c->pace, sched_view_unsent(&c->state), ctl_boot(w, c)),
                    &b->f);
    sched_decide(&b->f.view, plan);
    see_plan(w, c, b);
    leader_note_money_short(&c->state, b->f.stages, b->f.live_campaigns, b->f.live_stages, plan,
                            b->f.view.stages_n);
    for (int i = 0; i < plan->pool_ends_n; i++) {
        const struct sched_pool_end *e = &plan->pool_ends[i];
        (void)leader_pool_want_end(&c->state, b->f.live_pools[e->pool_i], e->why);
    }
    run_plan(w, c, b);
    sched_view_done(&b->f);
}

struct batch *carry_batch_new(void)
{
    return xcalloc(1, sizeof(struct batch));
}
