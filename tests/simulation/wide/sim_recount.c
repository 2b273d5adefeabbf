/* The judge's accounts: at intervals and at the end, every stored sum is recomputed from rows
 * and from SageMaker's log. */
#include "sim_world.h"
#include "tests/kit/ledger_model.h"

#define EVERY 1000

struct sums {
    musd_t reserved, spent;
};
struct count {
    int64_t tasks[STAGES_MAX][TASK_STATE_COUNT];
    int64_t held[KINDS_MAX], idle[KINDS_MAX];
    struct sums stage[STAGES_MAX], campaign[CAMPAIGNS_MAX], project[PROJECTS_MAX], global;
};

static void add(struct sums *s, musd_t reserved, musd_t spent)
{
    s->reserved += reserved;
    s->spent += spent;
}

static void count_attempts(struct world *w, struct count *n)
{
    for (size_t i = 0; i < w->db.t[T_ATTEMPT].n; i++) {
        const struct db_attempt *a = ATTEMPT(w, i);
        int stage = TASK_STAGE(w, a->task);
        int campaign = STAGE(w, stage)->campaign;
        bool live = attempt_holds_slot(a->state);
        if (live != a->holds) {
            wrong(w, "I7", "attempt %zu is %s and %s slots", i, attempt_state_name(a->state),
                  a->holds ? "holds" : "does not hold");
        }
        n->held[a->type] += a->holds ? a->instances : 0;
        bool idle = !live && a->has_pool && a->pool == POOL_AVAILABLE && a->taken_by < 0;
        n->idle[a->type] += idle ? a->instances : 0;
        musd_t r = a->open_musd, s = a->cost_musd + a->warm_musd;
        if (!live && !a->has_pool && (r != 0 || !a->settled)) {
            wrong(w, "I7", "attempt %zu has ended and keeps %lld reserved", i, (long long)r);
        }
        add(&n->stage[stage], r, s);
        add(&n->campaign[campaign], r, s);
        add(&n->project[CAMPAIGN(w, campaign)->project], r, s);
        add(&n->global, r, s);
    }
}

static void count_tasks(struct world *w, struct count *n)
{
    for (size_t i = 0; i < w->db.t[T_TASK].n; i++) {
        const struct db_task *t = TASK(w, i);
        n->tasks[t->stage][t->state]++;
        bool live = t->newest >= 0 && !attempt_state_terminal(ATTEMPT(w, t->newest)->state);
        if (live != (t->state == TASK_ACTIVE)) {
            wrong(w, "I17", "task %zu is %s, its newest attempt is %s", i,
                  task_state_name(t->state), live ? "live" : "not");
        }
    }
}

static void same(struct world *w, const char *what, size_t i, const struct budget *b,
                 const struct sums *s)
{
    if (b->reserved_musd != s->reserved || b->spent_musd != s->spent) {
        wrong(w, "I7", "%s %zu: %lld reserved and %lld spent, the attempts say %lld and %lld", what,
              i, (long long)b->reserved_musd, (long long)b->spent_musd, (long long)s->reserved,
              (long long)s->spent);
    }
}

static void compare(struct world *w, const struct count *n)
{
    for (size_t s = 0; s < w->db.t[T_STAGE].n; s++) {
        const struct db_stage *ds = STAGE(w, s);
        int64_t all = 0;
        same(w, "stage", s, &ds->money, &n->stage[s]);
        for (int k = 0; k < TASK_STATE_COUNT; k++) {
            all += ds->counts[k];
            if (ds->counts[k] != n->tasks[s][k]) {
                wrong(w, "I17", "stage %zu counts %lld parts %s, there are %lld", s,
                      (long long)ds->counts[k], task_state_name((enum task_state)k),
                      (long long)n->tasks[s][k]);
            }
        }
        if (all != ds->tasks_n) {
            wrong(w, "I17", "stage %zu has %lld of %d parts", s, (long long)all, ds->tasks_n);
        }
    }
    for (size_t i = 0; i < w->db.t[T_CAMPAIGN].n; i++) {
        same(w, "campaign", i, &CAMPAIGN(w, i)->money, &n->campaign[i]);
    }
    for (size_t i = 0; i < w->db.t[T_PROJECT].n; i++) {
        same(w, "project", i, db_row(w, T_PROJECT, i), &n->project[i]);
    }
    same(w, "global", 0, db_row(w, T_GLOBAL, 0), &n->global);
    for (int t = 0; t < w->kinds; t++) {
        const struct db_slots *s = SLOTS(w, t);
        if (s->held != n->held[t] || s->warm_idle != n->idle[t]) {
            wrong(w, "I4", "%s: %lld held and %lld in pools, the attempts say %lld and %lld",
                  w->types[t], (long long)s->held, (long long)s->warm_idle, (long long)n->held[t],
                  (long long)n->idle[t]);
        }
    }
}

static void balance(struct world *w, const struct count *n)
{
    int64_t sum[LEDGER_ACCOUNTS];
    const struct ledger_entry *e =
        (const struct ledger_entry *)(const void *)w->db.t[T_LEDGER].rows;
    if (!ledger_model_sum(e, w->db.t[T_LEDGER].n, sum)) {
        wrong(w, "I6", "the ledger does not add up");
    } else if (sum[LEDGER_RESERVED] != n->global.reserved || sum[LEDGER_SPENT] != n->global.spent ||
               sum[LEDGER_BUDGET] + sum[LEDGER_RESERVED] + sum[LEDGER_SPENT] != 0) {
        wrong(w, "I6", "the ledger says %lld reserved and %lld spent, the attempts %lld and %lld",
              (long long)sum[LEDGER_RESERVED], (long long)sum[LEDGER_SPENT],
              (long long)n->global.reserved, (long long)n->global.spent);
    }
}

/* After a takeover, standstill is measured from the objects' times by our clock; a clock that
 * jumped ahead hides it. */
static bool leader_clock_is_right(const struct world *w)
{
    for (int i = 0; i < w->cfg.ctls; i++) {
        if (w->ctl[i].wall_ahead_us > MINUTE) {
            return false;
        }
    }
    return true;
}

/* Without faults, a hung job of our worker is found in time. */
static void check_hung(struct world *w)
{
    if (!leader_clock_is_right(w)) {
        return;
    }
    int64_t calm_us = w->now_us - w->fault_until_us;
    for (size_t i = w->aws.jobs_n; w->calm && calm_us > 2 * HOUR && i-- > 0;) {
        const struct job *j = &w->aws.jobs[i];
        int64_t ran_us = SIM_EPOCH_US + w->now_us - j->v.modified;
        if (j->intent >= 0 && j->hung && j->v.phase == PHASE_RUNNING &&
            w->stage[TASK_STAGE(w, w->judge.intents[j->intent].task)].worker == WORKER_DOWNLOAD &&
            ran_us > j->hangs_at_us + 2 * HOUR) {
            wrong(w, "I18", "the job %s hangs for two hours and is not stopped", j->name.s);
        }
    }
}

void judge_recount(struct world *w)
{
    static struct count n;
    memset(&n, 0, sizeof n);
    w->judge.recounts++;
    w->judge.about = -1;
    count_attempts(w, &n);
    count_tasks(w, &n);
    compare(w, &n);
    balance(w, &n);
    check_hung(w);
    for (int i = 0; i < w->cfg.ctls; i++) {
        judge_memory(w, &w->ctl[i]);
    }
}

/* SageMaker never has more of our instances than our rows hold. */
static void check_covered(struct world *w)
{
    const struct db_slots *s = SLOTS(w, 0);
    for (int t = 0; t < w->kinds && w->judge.lost_jobs == 0; t++, s++) {
        if (w->aws.used[t] > s->held + s->warm_idle) {
            wrong(w, "I4",
                  "%lld instances of %s run at SageMaker, our rows hold %lld and %lld idle",
                  (long long)w->aws.used[t], w->types[t], (long long)s->held,
                  (long long)s->warm_idle);
        }
    }
}

/* When a part last waited, in the calm. */
static void note_waiting(struct world *w)
{
    for (size_t s = 0; s < w->db.t[T_STAGE].n; s++) {
        w->judge.waited_us = STAGE(w, s)->counts[TASK_WAITING] > 0 ? w->now_us : w->judge.waited_us;
    }
}

void judge_event(struct world *w)
{
    check_covered(w);
    if (w->calm && w->judge.events % 16 == 0) {
        note_waiting(w);
    }
    if (++w->judge.events % EVERY == 0) {
        judge_recount(w);
    }
}

/* The amount of an invoice line, rounded half up once. */
static musd_t line_musd(const struct job *j, int64_t seconds)
{
    int64_t twice = j->price_musd * seconds * 2 + 3600;
    return twice / 7200;
}

struct line {
    int64_t seconds[2];
    musd_t musd[2];
    int n[2];
};

static void check_invoice(struct world *w)
{
    size_t rows = w->db.t[T_ATTEMPT].n;
    struct line *lines = xcalloc(rows + 1, sizeof *lines);
    musd_t invoice = 0, ledger = 0;
    for (size_t i = 0; i < w->db.t[T_LEDGER].n; i++) {
        const struct ledger_entry *e = db_row(w, T_LEDGER, i);
        if (e->kind == LEDGER_SETTLE || e->kind == LEDGER_WARM) {
            struct line *l = &lines[row_of_id(e->attempt_id)];
            l->n[e->kind == LEDGER_WARM]++;
            l->seconds[e->kind == LEDGER_WARM] += e->seconds;
            l->musd[e->kind == LEDGER_WARM] += e->amount_musd;
            ledger += e->amount_musd;
        }
    }
    for (size_t i = 0; i < w->judge.intents_n; i++) {
        const struct intent_seen *in = &w->judge.intents[i];
        if (in->job < 0 || in->conflict) {
            continue;
        }
        const struct job *j = &w->aws.jobs[in->job];
        if (in->lost) {
            wrong(w, "I3", "the job %s has no row", j->name.s);
            continue;
        }
        const struct line *l = &lines[in->id];
        int64_t s[2] = {job_billed_s(w, j), job_idle_s(w, j)};
        for (int k = 0; k < 2; k++) {
            invoice += line_musd(j, s[k]);
            if (l->seconds[k] != s[k] || l->musd[k] != line_musd(j, s[k]) || l->n[k] > 1) {
                wrong(w, "I6",
                      "%s: the invoice has %lld %s seconds for %lld, the ledger %lld for "
                      "%lld in %d entries",
                      j->name.s, (long long)s[k], k == 0 ? "run" : "idle",
                      (long long)line_musd(j, s[k]), (long long)l->seconds[k],
                      (long long)l->musd[k], l->n[k]);
            }
        }
    }
    if (invoice != ledger) {
        wrong(w, "I6", "the invoice is %lld micro-USD, the ledger %lld", (long long)invoice,
              (long long)ledger);
    }
    free(lines);
}

bool judge_over(const struct world *w)
{
    if ((int)w->db.t[T_CAMPAIGN].n < w->campaigns_n) {
        return false;
    }
    for (size_t i = 0; i < w->db.t[T_CAMPAIGN].n; i++) {
        const struct db_campaign *c =
            &((const struct db_campaign *)(const void *)w->db.t[T_CAMPAIGN].rows)[i];
        if (!campaign_state_terminal(c->state)) {
            return false;
        }
    }
    const struct db_attempt *a = (const struct db_attempt *)(const void *)w->db.t[T_ATTEMPT].rows;
    for (size_t i = 0; i < w->db.t[T_ATTEMPT].n; i++) {
        if (!attempt_state_terminal(a[i].state) || a[i].has_pool) {
            return false;
        }
    }
    return true;
}

void judge_end(struct world *w)
{
    judge_recount(w);
    for (size_t i = 0; i < w->aws.jobs_n; i++) {
        const struct job *j = &w->aws.jobs[i];
        if (j->intent >= 0 && !j->over && !w->judge.intents[j->intent].conflict) {
            wrong(w, "I3", "the job %s outlives its campaign", j->name.s);
        }
    }
    for (size_t i = 0; i < w->db.t[T_TASK].n; i++) {
        const struct db_task *t = TASK(w, i);
        bool needless = STAGE(w, t->stage)->state == STAGE_SKIPPED;
        if (!task_state_terminal(t->state) && !needless) {
            wrong(w, "I18", "part %zu ends as %s", i, task_state_name(t->state));
        }
        if (t->attempts >
            w->judge.jobs_ended[i] + w->judge.conflicts[i] + (w->refused[i] ? t->names : 0)) {
            wrong(w, "I13", "part %zu counts %d attempts, %d jobs of it ended", i, t->attempts,
                  w->judge.jobs_ended[i]);
        }
    }
    for (size_t s = 0; s < w->db.t[T_STAGE].n; s++) {
        judge_skipped(w, (int)s);
    }
    for (int t = 0; t < w->kinds; t++) {
        if (SLOTS(w, t)->held != 0 || SLOTS(w, t)->warm_idle != 0) {
            wrong(w, "I4", "at the end %lld instances of %s are held", (long long)SLOTS(w, t)->held,
                  w->types[t]);
        }
    }
    check_invoice(w);
}
