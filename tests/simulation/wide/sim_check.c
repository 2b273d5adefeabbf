/* The judge: checks each event when it happens. It sees everything and trusts SageMaker's log
 * more than the rows. It remembers an intent when its transaction is applied, also when the
 * store loses it later. */
#include "sim_world.h"
#include <stdarg.h>
#include <stdio.h>

void judge_init(struct world *w)
{
    struct judge *g = &w->judge;
    g->by_name_cap = 1024;
    g->by_name = xmalloc(g->by_name_cap * sizeof *g->by_name);
    memset(g->by_name, 0xff, g->by_name_cap * sizeof *g->by_name);
    g->billable = xcalloc(TASKS_MAX, sizeof *g->billable);
    g->jobs_ended = xcalloc(TASKS_MAX, sizeof *g->jobs_ended);
    g->conflicts = xcalloc(TASKS_MAX, sizeof *g->conflicts);
    g->not_before_us = xcalloc(TASKS_MAX, sizeof *g->not_before_us);
    g->failed_us = xcalloc(TASKS_MAX, sizeof *g->failed_us);
    g->told_total[MARKET_ON_DEMAND] = g->told_total[MARKET_SPOT] = -1;
}

void judge_done(struct world *w)
{
    free(w->judge.intents);
    free(w->judge.by_name);
    free(w->judge.billable);
    free(w->judge.jobs_ended);
    free(w->judge.conflicts);
    free(w->judge.not_before_us);
    free(w->judge.failed_us);
}

void wrong(struct world *w, const char *invariant, const char *fmt, ...)
{
    struct judge *g = &w->judge;
    if (g->broken) {
        return;
    }
    g->broken = true;
    (void)snprintf(g->invariant, sizeof g->invariant, "%s", invariant);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(g->what, sizeof g->what, fmt, args);
    va_end(args);
    tell(w, -1, "BROKEN %s: %s", invariant, g->what);
}

static size_t slot_of(const struct judge *g, uint64_t name_hash)
{
    size_t i = name_hash & (g->by_name_cap - 1);
    while (g->by_name[i] >= 0 && g->intents[g->by_name[i]].name_hash != name_hash) {
        i = (i + 1) & (g->by_name_cap - 1);
    }
    return i;
}

struct intent_seen *judge_intent(struct world *w, uint64_t name_hash)
{
    struct judge *g = &w->judge;
    int32_t i = g->by_name[slot_of(g, name_hash)];
    return i >= 0 ? &g->intents[i] : NULL;
}

static struct intent_seen *intent_add(struct world *w, uint64_t name_hash)
{
    struct judge *g = &w->judge;
    if (g->intents_n == g->intents_cap) {
        g->intents_cap = MAX(256, g->intents_cap * 2);
        g->intents = xrealloc(g->intents, g->intents_cap * sizeof *g->intents);
    }
    if ((g->intents_n + 1) * 2 > g->by_name_cap) {
        g->by_name_cap *= 2;
        g->by_name = xrealloc(g->by_name, g->by_name_cap * sizeof *g->by_name);
        memset(g->by_name, 0xff, g->by_name_cap * sizeof *g->by_name);
        for (size_t i = 0; i < g->intents_n; i++) {
            g->by_name[slot_of(g, g->intents[i].name_hash)] = (int32_t)i;
        }
    }
    struct intent_seen *in = &g->intents[g->intents_n];
    *in = (struct intent_seen){.name_hash = name_hash, .job = -1};
    g->by_name[slot_of(g, name_hash)] = (int32_t)g->intents_n++;
    return in;
}

/* Our own count of the worst case: a second more at any price is a micro-USD at most. */
static musd_t worst_case(const struct db_attempt *a)
{
    int64_t s = a->max_runtime_s + 120 + 900 + a->keep_alive_s;
    int64_t twice = a->price_musd * s * a->instances * 2 + 3600;
    return twice / 7200;
}

static void check_room(struct world *w, int attempt, const struct db_attempt *a)
{
    const struct db_slots *s = SLOTS(w, a->type);
    struct budget *b[BUDGET_LEVELS];
    if (a->epoch == ((struct db_lease *)db_row(w, T_LEASE, 0))->epoch &&
        s->held + s->warm_idle > s->quota) {
        wrong(w, "I4",
              "attempt %d: %lld instances of %s are held, %lld in pools, the quota is %lld",
              attempt, (long long)s->held, w->types[a->type], (long long)s->warm_idle,
              (long long)s->quota);
    }
    const struct judge *g = &w->judge;
    enum market market = market_of(w, a->type);
    int64_t all = 0;
    for (int t = 0; t < w->kinds; t++) {
        all += market_of(w, t) == market ? SLOTS(w, t)->held + SLOTS(w, t)->warm_idle : 0;
    }
    if (a->epoch == ((struct db_lease *)db_row(w, T_LEASE, 0))->epoch &&
        g->told_total[market] >= 0 && all > g->told_total[market]) {
        wrong(w, "I4", "attempt %d: %lld instances are held in all, the quota is %lld", attempt,
              (long long)all, (long long)g->told_total[market]);
    }
    if ((g->told_per_job >= 0 && a->instances > g->told_per_job) ||
        (g->told_run_s >= 0 && a->max_runtime_s > g->told_run_s) ||
        (g->told_volume_gb >= 0 && a->volume_gb > g->told_volume_gb)) {
        wrong(w, "I4", "attempt %d of %d instances, %lld s and %d GB is more than one job may be",
              attempt, a->instances, (long long)a->max_runtime_s, a->volume_gb);
    }
    rows_budgets(w, a->task, false, b);
    for (int l = 0; l < BUDGET_LEVELS; l++) {
        if (b[l]->cap_musd >= 0 && b[l]->reserved_musd + b[l]->spent_musd > b[l]->cap_musd) {
            wrong(w, "I5", "attempt %d: %lld reserved and %lld spent are over the cap %lld (%d)",
                  attempt, (long long)b[l]->reserved_musd, (long long)b[l]->spent_musd,
                  (long long)b[l]->cap_musd, l);
        }
    }
    if (a->reserved_musd != worst_case(a)) {
        wrong(w, "I5", "attempt %d reserves %lld, its worst case is %lld", attempt,
              (long long)a->reserved_musd, (long long)worst_case(a));
    }
}

void judge_committed(struct world *w, int attempt)
{
    const struct db_attempt *a = ATTEMPT(w, attempt);
    w->judge.about = a->task;
    int campaign = STAGE(w, TASK_STAGE(w, a->task))->campaign;
    struct intent_seen *in = judge_intent(w, a->name_hash);
    bool adopted = a->state != ATTEMPT_INTENDED;
    if (in != NULL && !in->lost) {
        wrong(w, "I2", "the name %s is intended twice", a->name.s);
    }
    if (in != NULL) {
        w->judge.lost_jobs -= in->lost && in->job >= 0;
        if (in->job >= 0 && !adopted) {
            wrong(w, "I20", "%s is intended again although its job exists", a->name.s);
        }
    } else {
        in = intent_add(w, a->name_hash);
    }
    in->request = a->request;
    in->row = *a;
    in->id = attempt;
    in->task = a->task;
    in->n = a->n;
    in->campaign = campaign;
    in->committed_us = w->now_us;
    in->lost = false;
    if (adopted) {
        return;
    }
    if (w->judge.cancel_acked_us[campaign] > 0) {
        wrong(w, "I11", "%s is intended after the cancel of campaign %d", a->name.s, campaign);
    }
    check_room(w, attempt, a);
    judge_canary(w, attempt);
    judge_retry(w, attempt);
    judge_back_off(w, attempt);
}

void judge_lost(struct world *w, int attempt)
{
    struct intent_seen *in = judge_intent(w, ATTEMPT(w, attempt)->name_hash);
    ASSERT(in != NULL && !in->lost);
    in->lost = true;
    w->judge.lost_jobs += in->job >= 0;
}

void judge_adopted(struct world *w, int attempt)
{
    const struct intent_seen *in = judge_intent(w, ATTEMPT(w, attempt)->name_hash);
    if (in == NULL || in->job < 0) {
        wrong(w, "I20", "attempt %d is adopted without a job", attempt);
    }
}

void judge_cancel(struct world *w, int campaign)
{
    w->judge.cancel_acked_us[campaign] = MAX(1, w->now_us);
}

void judge_wire(struct world *w, const struct call *k)
{
    struct judge *g = &w->judge;
    struct intent_seen *in = judge_intent(w, k->name_hash);
    if (in == NULL || in->lost || in->request != k->request || in->committed_us > w->now_us) {
        wrong(w, "I2", "a Create of attempt %d is on the wire without its committed intent",
              k->attempt);
        return;
    }
    g->about = in->task;
    if (ATTEMPT(w, k->attempt)->unwanted) {
        wrong(w, "I11", "a Create of %s is sent although it is wanted no more", in->row.name.s);
    }
    const struct ctl *c = &w->ctl[k->ctl];
    if (ctl_boot(w, c) >= c->lease_end_us) {
        wrong(w, "I12", "a Create of %s is sent after its leader's lease has ended",
              in->row.name.s);
    }
    in->first_sent_us = in->sends++ == 0 ? w->now_us : in->first_sent_us;
    g->wire[g->wire_n++ % WIRE_KEPT] = w->now_us;
    int64_t most = (int64_t)(1.1 * (w->cfg.create_rate * 60 + w->cfg.create_burst)) + 1;
    if (g->wire_n > (size_t)most && w->now_us - g->led_us > MINUTE &&
        w->now_us - g->wire[(g->wire_n - 1 - (size_t)most) % WIRE_KEPT] < MINUTE) {
        wrong(w, "I14", "more than %lld Creates in a minute", (long long)most);
    }
}

void judge_accepted(struct world *w, int job, const struct call *k)
{
    struct judge *g = &w->judge;
    struct intent_seen *in = judge_intent(w, k->name_hash);
    ASSERT(in != NULL);
    w->aws.jobs[job].intent = (int)(in - g->intents);
    g->about = in->task;
    in->job = job;
    g->lost_jobs += in->lost;
    if (!in->lost && attempt_state_terminal(ATTEMPT(w, in->id)->state)) {
        wrong(w, "I3", "the job %s appears after its attempt had ended as %s", in->row.name.s,
              attempt_state_name(ATTEMPT(w, in->id)->state));
    }
    if (++g->billable[in->task] > 1) {
        wrong(w, "I1", "task %d has two jobs that are billed: %s is the second", in->task,
              in->row.name.s);
    }
}

void judge_job_over(struct world *w, int job)
{
    const struct job *j = &w->aws.jobs[job];
    if (j->intent >= 0) {
        int task = w->judge.intents[j->intent].task;
        w->judge.billable[task]--;
        w->judge.jobs_ended[task]++;
    }
}

/* Compares the recorded end of an attempt with its job. */
static void check_end(struct world *w, int attempt, enum attempt_state to)
{
    const struct db_attempt *a = ATTEMPT(w, attempt);
    const struct intent_seen *in = judge_intent(w, a->name_hash);
    const struct job *j = in != NULL && in->job >= 0 ? &w->aws.jobs[in->job] : NULL;
    if (to == ATTEMPT_VOID) {
        SOMETIMES(w, VOIDED);
        if (j != NULL) {
            wrong(w, "I1", "%s is voided although its job exists", a->name.s);
        }
    } else if (to == ATTEMPT_CONFLICT) {
        SOMETIMES(w, CONFLICT);
        w->judge.conflicts[a->task]++;
        if (in == NULL || !in->conflict) {
            wrong(w, "I3", "%s is taken for somebody else's job", a->name.s);
        }
    } else if (j == NULL || !j->over) {
        wrong(w, "I15", "%s is %s although its job %s", a->name.s, attempt_state_name(to),
              j == NULL ? "never was" : "lives");
    } else if (to == ATTEMPT_SUCCEEDED && (j->v.status != JOB_COMPLETED || j->short_output)) {
        wrong(w, "I17", "%s has succeeded without whole output", a->name.s);
    }
}

void judge_attempt_moved(struct world *w, int attempt, enum attempt_state from,
                         enum attempt_state to)
{
    w->judge.about = ATTEMPT(w, attempt)->task;
    if (!attempt_edge(from, to) || attempt_state_terminal(from)) {
        wrong(w, "I9", "attempt %d moves from %s to %s", attempt, attempt_state_name(from),
              attempt_state_name(to));
        return;
    }
    w->cover->attempt[from][to]++;
    const struct intent_seen *in = judge_intent(w, ATTEMPT(w, attempt)->name_hash);
    if (to >= ATTEMPT_SUBMITTED && to <= ATTEMPT_STOPPING && (in == NULL || in->job < 0)) {
        wrong(w, "I15", "attempt %d is %s, its job never was", attempt, attempt_state_name(to));
    }
    if (to == ATTEMPT_VERIFYING || (attempt_state_terminal(to) && from != ATTEMPT_VERIFYING)) {
        w->judge.lives++;
        check_end(w, attempt, to);
    } else if (to == ATTEMPT_SUCCEEDED) {
        check_end(w, attempt, to);
    }
}

/* After seven half-lives less than half an instance is left of at most 24 foreign ones. */
#define FORGOTTEN_US (71 * MINUTE)

static bool still_believed(const struct sched_view *v, int64_t foreign, usec_t foreign_us)
{
    int64_t age_us = v->now_us > foreign_us ? v->now_us - foreign_us : foreign_us - v->now_us;
    return foreign > 0 && age_us < FORGOTTEN_US;
}

/* Free instances, counted independently, when only the quotas of type and account limit them. */
static int64_t surely_free(const struct sched_view *v, const struct sched_plan *p, int slots_i)
{
    const struct quota_ledger *s = &v->slots[slots_i];
    const struct quota_ledger_total *total = &v->account->total[s->market];
    if (still_believed(v, s->foreign, s->foreign_us) || s->refused_limit >= 0 || s->quota < 0 ||
        still_believed(v, total->foreign, total->foreign_us)) {
        return 0;
    }
    int64_t limit = s->operator_limit < 0 ? s->quota : MIN(s->quota, s->operator_limit);
    int64_t n = limit - s->held - s->warm_idle;
    int64_t all = total->limit < 0 ? INT64_MAX : total->limit;
    for (int t = 0; t < v->slots_n && total->limit >= 0; t++) {
        all -= v->slots[t].market == s->market ? v->slots[t].held + v->slots[t].warm_idle : 0;
    }
    for (int i = 0; i < p->launches_n; i++) {
        const struct sched_launch *l = &p->launches[i];
        int64_t taken = l->pool_i < 0 ? v->stages[l->stage_i].stage->instance_count : 0;
        n -= l->slots_i == slots_i ? taken : 0;
        all -= v->slots[l->slots_i].market == s->market ? taken : 0;
    }
    return MIN(n, all);
}

/* A stage of one type with one instance a job waits for "slots": none is free, and no stage of
 * lower rank has got one. */
static void check_waits(struct world *w, const struct sched_view *v, const struct sched_plan *p,
                        int i)
{
    const struct sched_stage *s = &v->stages[i];
    if (p->reason[i] != WAIT_SLOTS || s->stage->instance_type_n > 1 ||
        s->stage->instance_count > 1) {
        return;
    }
    for (int t = 0; t < v->slots_n; t++) {
        if (strcmp(v->slots[t].instance_type, s->stage->instance_type[0]) != 0 ||
            (v->slots[t].market == MARKET_SPOT) != s->stage->spot) {
            continue;
        }
        if (surely_free(v, p, t) > 0) {
            wrong(w, "I18", "stage %lld waits for slots although %lld of %s are free",
                  (long long)s->stage_id, (long long)surely_free(v, p, t), w->types[t]);
        }
        for (int k = 0; k < p->launches_n; k++) {
            const struct sched_stage *o = &v->stages[p->launches[k].stage_i];
            if (p->launches[k].slots_i == t && o->priority < s->priority &&
                p->launches[k].pool_i < 0) {
                wrong(w, "I18", "a part of priority %d starts before one of priority %d",
                      o->priority, s->priority);
            }
        }
    }
}

void judge_plan(struct world *w, struct ctl *c, const struct sched_view *v,
                const struct sched_plan *p)
{
    w->judge.about = -1;
    for (int i = 0; i < p->launches_n; i++) {
        if (!v->stages[p->launches[i].stage_i].may_start) {
            wrong(w, "I11", "a part starts of a stage that may not start any");
        }
    }
    if (p->launches_n > v->tokens) {
        wrong(w, "I14", "%d parts start where the rate allows %lld", p->launches_n,
              (long long)v->tokens);
    }
    for (int i = 0; i < v->stages_n; i++) {
        if (p->reason[i] == WAIT_NONE && ready_queue_n(v->stages[i].ready) > 0) {
            wrong(w, "I18", "stage %lld waits without a reason", (long long)v->stages[i].stage_id);
        }
        check_waits(w, v, p, i);
    }
    judge_plan_limits(w, c, v, p);
    judge_unsent(w, c, p->launches_n);
}
