/* The store's statements: each checks what the real ones check in their WHERE, then writes. All
 * happen inside a transaction; a false answer means the transaction is to be taken back. */
#include "sim_world.h"

uint64_t name_hash_of(const char *name)
{
    uint64_t h = 0xcbf29ce484222325;
    for (; *name != '\0'; name++) {
        h = (h ^ (uint8_t)*name) * 0x100000001b3;
    }
    return mix(h, 1);
}

void attempt_name_of(const struct world *w, int task, int n, struct job_name *ret)
{
    const struct db_task *t = &((const struct db_task *)(const void *)w->db.t[T_TASK].rows)[task];
    const struct db_stage *s =
        &((const struct db_stage *)(const void *)w->db.t[T_STAGE].rows)[t->stage];
    uint8_t id[32] = {0};
    uint64_t h =
        mix(mix((uint64_t)s->campaign, (uint64_t)t->stage), mix((uint64_t)task, (uint64_t)n));
    memcpy(id, &h, sizeof h);
    protocol_job_name(SIM_PREFIX, s->campaign, w->stage[t->stage].name, task - s->task0, n, id,
                      ret);
}

void rows_budgets(struct world *w, int task, bool touch, struct budget *ret[BUDGET_LEVELS])
{
    void *(*get)(struct world *, enum table, size_t) = touch ? db_touch : db_row;
    struct db_task *t = get(w, T_TASK, (size_t)task);
    struct db_stage *s = get(w, T_STAGE, (size_t)t->stage);
    struct db_campaign *c = get(w, T_CAMPAIGN, (size_t)s->campaign);
    ret[BUDGET_TASK] = &t->money;
    ret[BUDGET_STAGE] = &s->money;
    ret[BUDGET_CAMPAIGN] = &c->money;
    ret[BUDGET_PROJECT] = get(w, T_PROJECT, (size_t)c->project);
    ret[BUDGET_GLOBAL] = get(w, T_GLOBAL, 0);
}

void rows_task_state(struct world *w, int task, enum task_state to)
{
    struct db_task *t = db_touch(w, T_TASK, (size_t)task);
    struct db_stage *s = db_touch(w, T_STAGE, (size_t)t->stage);
    if (!task_edge(t->state, to)) {
        wrong(w, "I9", "task %d moves from %s to %s", task, task_state_name(t->state),
              task_state_name(to));
    }
    w->cover->task[t->state][to]++;
    trace(w, 0x7a5c, (uint64_t)task * 16 + to);
    s->counts[t->state]--;
    s->counts[to]++;
    t->state = to;
}

bool rows_stage_state(struct world *w, int stage, enum stage_state to)
{
    struct db_stage *s = db_touch(w, T_STAGE, (size_t)stage);
    if (!stage_edge(s->state, to)) {
        wrong(w, "I9", "stage %d moves from %s to %s", stage, stage_state_name(s->state),
              stage_state_name(to));
    }
    tell(w, -1, "campaign %d stage %s: %s -> %s", s->campaign, w->stage[stage].name,
         stage_state_name(s->state), stage_state_name(to));
    w->cover->stage[s->state][to]++;
    s->state = to;
    if (to == STAGE_HELD) {
        judge_held(w, stage);
    }
    return true;
}

bool rows_campaign_state(struct world *w, int campaign, enum campaign_state to)
{
    struct db_campaign *c = db_touch(w, T_CAMPAIGN, (size_t)campaign);
    if (!campaign_edge(c->state, to)) {
        wrong(w, "I9", "campaign %d moves from %s to %s", campaign, campaign_state_name(c->state),
              campaign_state_name(to));
    }
    tell(w, -1, "campaign %d: %s -> %s", campaign, campaign_state_name(c->state),
         campaign_state_name(to));
    w->cover->campaign[c->state][to]++;
    c->state = to;
    c->ended_us = campaign_state_terminal(to) ? w->now_us : 0;
    return true;
}

/* What the request would be, as one number: all that shapes its bytes. */
static uint64_t request_of(const struct db_attempt *a, int id)
{
    uint64_t h = mix(a->name_hash, (uint64_t)id);
    h = mix(h, (uint64_t)a->type << 32 | (uint64_t)a->instances);
    h = mix(h, (uint64_t)a->volume_gb << 32 | (uint64_t)(a->subnet_i + 1));
    return mix(h, (uint64_t)a->max_runtime_s << 16 ^ (uint64_t)a->keep_alive_s);
}

static void ledger_append(struct world *w, const struct ledger_entry *e, int n)
{
    for (int i = 0; i < n; i++) {
        size_t row = db_add(w, T_LEDGER);
        memcpy(db_row(w, T_LEDGER, row), &e[i], sizeof *e);
    }
}

static const char *refuses(struct world *w, const struct intent *in)
{
    const struct db_task *t = TASK(w, in->task);
    const struct db_stage *s = STAGE(w, in->stage);
    const struct db_campaign *c = CAMPAIGN(w, in->campaign);
    const struct db_slots *sl = SLOTS(w, in->type);
    struct budget *b[BUDGET_LEVELS];
    struct err err = ERR_INIT;
    if (c->wanted != WANTED_RUN || c->state != CAMPAIGN_RUNNING || s->state != STAGE_RUNNING) {
        return "campaign";
    }
    if (t->state != TASK_WAITING ||
        (t->newest >= 0 && !protocol_may_renew(t->names, ATTEMPT(w, t->newest)->state))) {
        return "task";
    }
    int64_t moved = in->pool >= 0 ? in->instances : 0;
    if (sl->held + sl->warm_idle - moved + in->instances > in->slot_limit) {
        return "slots";
    }
    if (in->pool >= 0 && ATTEMPT(w, in->pool)->pool != POOL_AVAILABLE) {
        return "pool";
    }
    rows_budgets(w, in->task, true, b); /* written only when it fits everywhere */
    return budget_reserve(b, in->reserve_musd, &err) ? NULL : "money";
}

/* The intent's row, reservation (made by refuses) and slots. */
bool rows_intend(struct world *w, struct ctl *c, struct intent *in)
{
    struct err err = ERR_INIT;
    struct ledger_entry e[LEDGER_ENTRIES_MAX];
    int n = 0;
    in->refused = refuses(w, in);
    if (in->refused != NULL) {
        return true;
    }
    size_t id = db_add(w, T_ATTEMPT);
    rows_task_state(w, in->task, TASK_ACTIVE);
    struct db_task *t = db_touch(w, T_TASK, (size_t)in->task);
    t->names++;
    t->newest = (int)id;
    struct db_attempt *a = ATTEMPT(w, id);
    *a = (struct db_attempt){.task = in->task,
                             .n = t->names,
                             .type = in->type,
                             .rung = in->rung,
                             .subnet_i = in->subnet_i,
                             .instances = in->instances,
                             .volume_gb = in->volume_gb,
                             .state = ATTEMPT_INTENDED,
                             .epoch = c->epoch,
                             .max_runtime_s = in->max_runtime_s,
                             .keep_alive_s = in->keep_alive_s,
                             .price_musd = in->price_musd,
                             .reserved_musd = in->reserve_musd,
                             .holds = true,
                             .intended_us = SIM_EPOCH_US + w->now_us,
                             .pool = POOL_EXPECTED,
                             .has_pool = in->keep_alive_s > 0,
                             .pool_of = in->pool};
    attempt_name_of(w, in->task, a->n, &a->name);
    a->name_hash = name_hash_of(a->name.s);
    a->request = request_of(a, (int)id);
    a->fingerprint =
        warm_pool_fingerprint_of(&w->stage[in->stage], in->rung, in->volume_gb, in->subnet_i);
    if (!ledger_reserve(&a->account, (int64_t)id, in->reserve_musd, e, &n, &err)) {
        wrong(w, "I6", "ledger_reserve: %s", err.message);
        return false;
    }
    ledger_append(w, e, n);
    struct db_slots *sl = db_touch(w, T_SLOTS, (size_t)in->type);
    sl->held += in->instances;
    in->attempt = (int)id;
    trace(w, 0x1417e4d, a->request);
    return true;
}

/* What the record of an ended attempt does to its task. */
static bool move_task(struct world *w, const struct record *r)
{
    const struct db_attempt *a = ATTEMPT(w, r->attempt);
    if (TASK(w, a->task)->state != TASK_ACTIVE || TASK(w, a->task)->newest != r->attempt) {
        return false;
    }
    rows_task_state(w, a->task, r->task_to);
    struct db_task *t = db_touch(w, T_TASK, (size_t)a->task);
    t->attempts += r->task_counts;
    judge_task_moved(w, a->task, r);
    t->not_before_us = r->not_before_us;
    if (r->changed) {
        t->changed = true;
        t->type_i = r->next.instance_type_i;
        t->volume_gb = r->next.volume_gb;
        t->max_runtime_s = r->next.max_runtime_s;
        for (int i = 0; i < CAUSE_COUNT; i++) {
            t->tries[i] = (uint8_t)MIN(r->next.tries[i], 255);
        }
    }
    if (r->task_counts && r->signature != 0) {
        t->same = (uint8_t)(t->signature == r->signature ? MIN(t->same + 1, 255) : 1);
        t->signature = r->signature;
    }
    return true;
}

/* One step of an attempt's account: the ledger's entries, and the budgets by as much. */
static bool book(struct world *w, int attempt, bool close, musd_t cost_musd, int64_t seconds,
                 bool estimated, musd_t keep_musd)
{
    struct err err = ERR_INIT;
    struct ledger_entry e[LEDGER_ENTRIES_MAX];
    struct budget *b[BUDGET_LEVELS];
    struct db_attempt *a = ATTEMPT(w, attempt);
    musd_t before = a->account.reserved_musd;
    bool overrun = false;
    int n = 0;
    bool ok = close ? ledger_close(&a->account, attempt, cost_musd, seconds, e, &n, &err)
                    : ledger_settle_job(&a->account, attempt, cost_musd, seconds, estimated,
                                        keep_musd, e, &n, &err);
    if (!ok) {
        wrong(w, "I6", "attempt %d cannot be booked: %s", attempt, err.message);
        return false;
    }
    rows_budgets(w, a->task, true, b);
    if (!budget_settle(b, before - a->account.reserved_musd, cost_musd, &overrun, &err)) {
        wrong(w, "I7", "attempt %d: %s", attempt, err.message);
        return false;
    }
    if (overrun) {
        wrong(w, "I5", "attempt %d cost %lld, of %lld reserved", attempt, (long long)cost_musd,
              (long long)before);
    }
    ledger_append(w, e, n);
    return true;
}

static void pool_state(struct world *w, struct db_attempt *a, enum pool_state to)
{
    if (!pool_edge(a->pool, to)) {
        wrong(w, "I9", "the pool of %s moves from %s to %s", a->name.s, pool_state_name(a->pool),
              pool_state_name(to));
    }
    w->cover->pool[a->pool][to]++;
    a->pool = to;
    a->has_pool = !pool_state_terminal(to);
}

/* Slots and money back, cost booked: once, at the step that leaves the states that hold them. What
 * a pool keeps stays reserved, its instances stay counted. */
static bool release(struct world *w, const struct record *r)
{
    struct db_attempt *a = ATTEMPT(w, r->attempt);
    struct db_slots *sl = db_touch(w, T_SLOTS, (size_t)a->type);
    musd_t idle_musd = 0;
    struct err err = ERR_INIT;
    bool keeps = r->keep_musd > 0;
    if (!a->holds) {
        wrong(w, "I7", "attempt %d gives its slots back twice", r->attempt);
        return false;
    }
    a->holds = false;
    sl->held -= a->instances;
    sl->warm_idle += keeps ? a->instances : 0;
    if (a->has_pool && keeps) {
        pool_state(w, a, POOL_AVAILABLE);
        a->pool_since_us = r->pool_since_us;
        a->pool_expires_us = r->pool_since_us + a->keep_alive_s * SEC;
    } else if (a->has_pool) {
        pool_state(w, a, r->reused_by != 0 ? POOL_REUSED : POOL_TERMINATED);
    }
    if (r->reused_by != 0 && !rows_reused(w, r->attempt, r->reused_by)) {
        return false;
    }
    if (!r->settle) {
        int from = a->pool_of; /* the pool it was to take may still be there */
        bool there = from >= 0 && ATTEMPT(w, from)->pool == POOL_AVAILABLE;
        if (there && ATTEMPT(w, from)->claimed) {
            SOMETIMES(w, POOL_CLAIM_UNDONE);
            if (!rows_claim(w, from, false)) {
                return false;
            }
        }
        return book(w, r->attempt, true, 0, 0, false, 0);
    }
    if (!cost_of_seconds(a->price_musd, r->idle_s, &idle_musd, &err) ||
        !book(w, r->attempt, false, r->cost_musd, r->billable_s, r->estimated,
              MAX(r->keep_musd, idle_musd))) {
        return false;
    }
    return keeps || book(w, r->attempt, true, idle_musd, r->idle_s, false, 0);
}

/* The instances of an available pool are counted with the attempt that takes them, or again with
 * the pool when that attempt came to nothing. */
bool rows_claim(struct world *w, int pool, bool claimed)
{
    struct db_attempt *a = db_touch(w, T_ATTEMPT, (size_t)pool);
    struct db_slots *sl = db_touch(w, T_SLOTS, (size_t)a->type);
    if (a->claimed == claimed) {
        wrong(w, "I4", "the pool of attempt %d is taken twice", pool);
        return false;
    }
    a->claimed = claimed;
    sl->warm_idle += claimed ? -a->instances : a->instances;
    return true;
}

bool rows_record(struct world *w, struct ctl *c, const struct record *r)
{
    (void)c;
    struct db_attempt *a = db_touch(w, T_ATTEMPT, (size_t)r->attempt);
    if (a->state != r->from) {
        return false;
    }
    if (r->from != r->to) {
        judge_attempt_moved(w, r->attempt, r->from, r->to);
    }
    a->state = r->to;
    a->cause = r->cause;
    a->counted = r->cause != CAUSE_NONE && (r->ran || retry_counts(r->cause));
    a->started_us = r->started_us != 0 ? r->started_us : a->started_us;
    a->ended_us = r->ended_us != 0 ? r->ended_us : a->ended_us;
    a->failed_signature = r->signature;
    if (r->in_use && a->pool == POOL_EXPECTED) {
        pool_state(w, a, POOL_IN_USE);
    }
    trace(w, 0x4ec04d, (uint64_t)r->attempt * 16 + r->to);
    if (r->release && !release(w, r)) {
        return false;
    }
    return !r->task_moves || move_task(w, r);
}

/* SageMaker gave this pool to a job that was meant for another: that one's instances are counted as
 * idle again. */
bool rows_reused(struct world *w, int pool, uint64_t by)
{
    for (size_t i = w->db.t[T_ATTEMPT].n; i-- > 0;) {
        const struct db_attempt *b = ATTEMPT(w, i);
        if (b->name_hash == by) {
            int meant = b->pool_of;
            bool other = meant >= 0 && meant != pool && ATTEMPT(w, meant)->claimed &&
                         ATTEMPT(w, meant)->pool == POOL_AVAILABLE;
            if (other) {
                SOMETIMES(w, POOL_SWAPPED);
            }
            return !other || rows_claim(w, meant, false);
        }
    }
    return true;
}

/* An attempt's pool moves; at its end the idle time is booked and the account closed. */
bool rows_pool(struct world *w, int attempt, enum pool_state to, int64_t idle_s)
{
    struct err err = ERR_INIT;
    struct db_attempt *a = db_touch(w, T_ATTEMPT, (size_t)attempt);
    musd_t cost = 0;
    pool_state(w, a, to);
    if (!pool_state_terminal(to)) {
        return true;
    }
    if (!a->claimed) {
        ((struct db_slots *)db_touch(w, T_SLOTS, (size_t)a->type))->warm_idle -= a->instances;
    }
    if (!cost_of_seconds(a->price_musd, idle_s, &cost, &err) ||
        !book(w, attempt, true, cost, idle_s, false, 0)) {
        return false;
    }
    int campaign = STAGE(w, TASK_STAGE(w, a->task))->campaign;
    ((struct db_campaign *)db_touch(w, T_CAMPAIGN, (size_t)campaign))->idle_musd += cost;
    return true;
}

/* A job of ours without a row (the store lost it): the row is written as it must have been. */
bool rows_adopt(struct world *w, struct ctl *c, int task, int n, const struct job *j)
{
    struct err err = ERR_INIT;
    struct ledger_entry e[LEDGER_ENTRIES_MAX];
    struct budget *b[BUDGET_LEVELS];
    int entries = 0;
    musd_t reserve = 0;
    size_t id = db_add(w, T_ATTEMPT);
    if (TASK(w, task)->state == TASK_FAILED || TASK(w, task)->state == TASK_HELD) {
        rows_task_state(w, task, TASK_WAITING); /* the retry that led to this job was lost too */
    }
    rows_task_state(w, task, TASK_ACTIVE);
    struct db_task *t = db_touch(w, T_TASK, (size_t)task);
    t->names = n;
    t->newest = (int)id;
    rows_budgets(w, task, true, b);
    if (!cost_worst_case(j->price_musd, j->count, j->max_runtime_s, j->keep_alive_s, &reserve,
                         &err)) {
        return false;
    }
    for (int l = 0; l < BUDGET_LEVELS; l++) { /* the job exists: no cap can refuse it now */
        b[l]->reserved_musd += reserve;
    }
    struct db_attempt *a = ATTEMPT(w, id);
    *a = (struct db_attempt){.task = task,
                             .n = n,
                             .type = j->type,
                             .subnet_i = -1,
                             .instances = j->count,
                             .volume_gb = j->volume_gb,
                             .state = ATTEMPT_UNKNOWN,
                             .epoch = c->epoch - 1,
                             .max_runtime_s = j->max_runtime_s,
                             .keep_alive_s = j->keep_alive_s,
                             .price_musd = j->price_musd,
                             .reserved_musd = reserve,
                             .request = j->request,
                             .name = j->name,
                             .name_hash = j->name_hash,
                             .holds = true,
                             .intended_us = j->created_us,
                             .pool = POOL_EXPECTED,
                             .has_pool = j->keep_alive_s > 0,
                             .fingerprint = j->match,
                             .pool_of = -1};
    if (!ledger_reserve(&a->account, (int64_t)id, reserve, e, &entries, &err)) {
        return false;
    }
    ledger_append(w, e, entries);
    ((struct db_slots *)db_touch(w, T_SLOTS, (size_t)j->type))->held += j->count;
    tell(w, task, "job %s is adopted: its row was lost", j->name.s);
    return true;
}
