/* The store's statements (sql/queries): each checks what the WHERE of the real one checks, then
 * writes its parameters. Nothing is decided here. All run in a transaction; false: roll it back. */
#include "sim_world.h"
#include "tests/kit/ledger_model.h"
#include <stdlib.h>

uint64_t name_hash_of(const char *name)
{
    uint64_t h = 0xcbf29ce484222325;
    for (; *name != '\0'; name++) {
        h = (h ^ (uint8_t)*name) * 0x100000001b3;
    }
    return mix(h, 1);
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

musd_t rows_part_spent(struct world *w, int task)
{
    const struct db_task *t = TASK(w, task);
    musd_t all = t->money.reserved_musd + t->money.spent_musd;
    const struct db_attempt *a = t->newest >= 0 ? ATTEMPT(w, t->newest) : NULL;
    bool live = a != NULL && !attempt_state_terminal(a->state);
    return live ? all - a->open_musd - a->cost_musd - a->warm_musd : all;
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
    judge_stage_moves(w, stage, to);
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

/* Texts that rows point to. They are never freed, since a failover may restore an old row. */
const char *rows_text(struct world *w, const char *text)
{
    for (size_t i = 0; text != NULL && i < w->texts_n; i++) {
        if (strcmp(w->texts[i], text) == 0) {
            return w->texts[i];
        }
    }
    if (text == NULL || text[0] == '\0') {
        return "";
    }
    w->texts = xrealloc(w->texts, (w->texts_n + 1) * sizeof(char *));
    w->texts[w->texts_n] = xstrdup(text);
    return w->texts[w->texts_n++];
}

/* The request as one number: a hash of everything that its bytes depend on. */
uint64_t rows_request(const struct intent *in)
{
    uint64_t h = mix(name_hash_of(in->name.s), (uint64_t)in->attempt_id);
    h = mix(h, name_hash_of(in->instance_type) + (uint64_t)in->instances);
    h = mix(h, (uint64_t)in->volume_gb << 32 | (uint64_t)(in->subnet_i + 1));
    return mix(h, (uint64_t)in->max_runtime_s << 16 ^ (uint64_t)in->keep_alive_s);
}

/* Converts such a number to the hash text of rows and memory, and back. */
void rows_hash_text(uint64_t request, char ret[static HASH_HEX_N])
{
    for (int i = 0; i < 16; i++) {
        ret[i] = "0123456789abcdef"[request >> (60 - 4 * i) & 15];
    }
    ret[16] = '\0';
}

uint64_t rows_hash_of(const char *text)
{
    return strtoull(text, NULL, 16);
}

int rows_kind(const struct world *w, const char *instance_type, enum market market)
{
    for (int i = 0; i < w->kinds; i++) {
        if (market_of(w, i) == market && strcmp(w->types[i], instance_type) == 0) {
            return i;
        }
    }
    BUG("an instance type of this world");
}

static void ledger_append(struct world *w, const struct ledger_entry *e, int n)
{
    for (int i = 0; i < n; i++) {
        size_t row = db_add(w, T_LEDGER);
        memcpy(db_row(w, T_LEDGER, row), &e[i], sizeof *e);
    }
}

/* Reserves at every level, or at none. */
static bool reserve(struct budget *const b[BUDGET_LEVELS], musd_t musd)
{
    for (int i = 0; i < BUDGET_LEVELS; i++) {
        if (b[i]->cap_musd >= 0 && b[i]->reserved_musd + b[i]->spent_musd + musd > b[i]->cap_musd) {
            return false;
        }
    }
    for (int i = 0; i < BUDGET_LEVELS; i++) {
        b[i]->reserved_musd += musd;
    }
    return true;
}

static const char *refuses(struct world *w, const struct intent *in)
{
    const struct db_task *t = TASK(w, row_of_id(in->task_id));
    const struct db_campaign *c = CAMPAIGN(w, row_of_id(in->campaign_id));
    const struct db_slots *sl = SLOTS(w, rows_kind(w, in->instance_type, in->market));
    const struct db_attempt *pool = in->pool_id > 0 ? ATTEMPT(w, row_of_id(in->pool_id)) : NULL;
    struct budget *b[BUDGET_LEVELS];
    if (c->wanted != WANTED_RUN || c->state != CAMPAIGN_RUNNING) {
        return "campaign";
    }
    if (t->state != TASK_WAITING || t->names != in->n - 1) {
        return "task";
    }
    if (pool != NULL && (!pool->has_pool || pool->pool != POOL_AVAILABLE || pool->taken_by >= 0 ||
                         pool->instances != in->instances)) {
        return "pool";
    }
    if (in->slot_limit < 0 ||
        (pool == NULL && sl->held + sl->warm_idle + in->instances > in->slot_limit)) {
        return "slots";
    }
    rows_budgets(w, row_of_id(in->task_id), true, b); /* written only when it fits everywhere */
    const struct budget *own = b[BUDGET_TASK];
    if (own->cap_musd >= 0 &&
        own->reserved_musd + own->spent_musd + in->reserve_musd > own->cap_musd) {
        return "part_money";
    }
    return reserve(b, in->reserve_musd) ? "" : "money";
}

static struct db_attempt *add_attempt(struct world *w, const struct intent *in, int64_t epoch)
{
    size_t id = db_add(w, T_ATTEMPT);
    struct db_attempt *a = ATTEMPT(w, id);
    ASSERT(in->attempt_id == id_of((int)id));
    *a = (struct db_attempt){.task = row_of_id(in->task_id),
                             .n = in->n,
                             .type = rows_kind(w, in->instance_type, in->market),
                             .rung = in->instance_type_i,
                             .subnet_i = in->subnet_i,
                             .instances = in->instances,
                             .volume_gb = in->volume_gb,
                             .state = ATTEMPT_INTENDED,
                             .epoch = epoch,
                             .max_runtime_s = in->max_runtime_s,
                             .keep_alive_s = in->keep_alive_s,
                             .price_musd = in->price_musd_per_hour,
                             .reserved_musd = in->reserve_musd,
                             .open_musd = in->reserve_musd,
                             .request = rows_hash_of(in->identity_hash),
                             .name = in->name,
                             .name_hash = name_hash_of(in->name.s),
                             .holds = true,
                             .intended_us = SIM_EPOCH_US + w->now_us,
                             .reason = "",
                             .pool_of = row_of_id(in->pool_id),
                             .has_pool = in->keep_alive_s > 0,
                             .pool = POOL_EXPECTED,
                             .taken_by = -1,
                             .end_reason = "",
                             .fingerprint = in->fingerprint};
    return a;
}

/* The task's row, the slots, the pool taken and the ledger of a new attempt. */
static bool count_attempt(struct world *w, const struct intent *in)
{
    struct ledger_account_of_attempt account = {0};
    struct ledger_entry e[LEDGER_ENTRIES_MAX];
    int task = row_of_id(in->task_id);
    rows_task_state(w, task, TASK_ACTIVE);
    struct db_task *t = db_touch(w, T_TASK, (size_t)task);
    t->names = in->n;
    t->newest = row_of_id(in->attempt_id);
    struct db_slots *sl = db_touch(w, T_SLOTS, (size_t)rows_kind(w, in->instance_type, in->market));
    sl->held += in->instances;
    if (in->pool_id > 0) {
        sl->warm_idle -= in->instances;
        ((struct db_attempt *)db_touch(w, T_ATTEMPT, (size_t)row_of_id(in->pool_id)))->taken_by =
            row_of_id(in->attempt_id);
    }
    if (!ledger_model_reserve(&account, in->attempt_id, in->reserve_musd, e)) {
        wrong(w, "I6", "reserved twice, or less than nothing");
        return false;
    }
    ledger_append(w, e, 1);
    return true;
}

bool rows_intend(struct world *w, int64_t epoch, struct intent *in)
{
    const char *why = refuses(w, in);
    memcpy(in->refused, why, strlen(why) + 1);
    in->taken = why[0] == '\0';
    if (!in->taken) {
        return true;
    }
    (void)add_attempt(w, in, epoch);
    in->own_pool_id = in->keep_alive_s > 0 ? in->attempt_id : 0;
    trace(w, 0x1417e4d, ATTEMPT(w, row_of_id(in->attempt_id))->request);
    return count_attempt(w, in);
}

/* Writes entries to the ledger and adds their sums to the money of every level. */
static bool book(struct world *w, struct db_attempt *a, const struct ledger_entry *e, int n,
                 musd_t open_musd)
{
    struct budget *b[BUDGET_LEVELS];
    musd_t back = 0, spent = 0;
    for (int i = 0; i < n; i++) {
        back += e[i].from == LEDGER_RESERVED ? e[i].amount_musd : 0;
        back -= e[i].to == LEDGER_RESERVED ? e[i].amount_musd : 0;
        spent += e[i].to == LEDGER_SPENT ? e[i].amount_musd : 0;
    }
    rows_budgets(w, a->task, true, b);
    for (int i = 0; i < BUDGET_LEVELS; i++) {
        if (back < 0 || spent < 0 || back > b[i]->reserved_musd) {
            wrong(w, "I7", "%s: %lld is given back of %lld reserved, %lld spent", a->name.s,
                  (long long)back, (long long)b[i]->reserved_musd, (long long)spent);
            return false;
        }
        b[i]->reserved_musd -= back;
        b[i]->spent_musd += spent;
    }
    if (spent > back) {
        wrong(w, "I5", "%s cost %lld, of %lld reserved", a->name.s, (long long)spent,
              (long long)back);
    }
    ledger_append(w, e, n);
    a->open_musd = open_musd;
    return true;
}

/* What a pool cost, as part of what its campaign has spent. */
static void add_idle(struct world *w, struct db_attempt *a, musd_t warm_musd)
{
    int campaign = STAGE(w, TASK_STAGE(w, a->task))->campaign;
    ((struct db_campaign *)db_touch(w, T_CAMPAIGN, (size_t)campaign))->idle_musd += warm_musd;
    a->warm_musd = warm_musd;
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

/* An available pool that was not taken by the one intended on it is idle again. */
static void not_taken(struct world *w, int pool, int64_t by)
{
    struct db_attempt *p = pool >= 0 ? db_touch(w, T_ATTEMPT, (size_t)pool) : NULL;
    if (p != NULL && p->has_pool && p->pool == POOL_AVAILABLE && p->taken_by >= 0 &&
        (by == 0 || id_of(p->taken_by) == by)) {
        p->taken_by = -1;
        ((struct db_slots *)db_touch(w, T_SLOTS, (size_t)p->type))->warm_idle += p->instances;
        w->cover->sites[by == 0 ? SITE_POOL_SWAPPED : SITE_POOL_CLAIM_UNDONE]++;
    }
}

/* Releases the slots of an attempt; updates its pool and the one it was intended on. */
static void release(struct world *w, struct db_attempt *a, const struct attempt_record *r)
{
    struct db_slots *sl = db_touch(w, T_SLOTS, (size_t)a->type);
    if (a->holds) {
        not_taken(w, a->pool_of, r->attempt_id);
        not_taken(w, row_of_id(r->frees_pool_id), 0);
    }
    sl->held -= a->holds ? a->instances : 0;
    a->holds = false;
}

static void record_pool(struct world *w, struct db_attempt *a, const struct attempt_record *r)
{
    if (!r->pool_moves || !a->has_pool) {
        return;
    }
    pool_state(w, a, r->pool_to);
    a->pool_expires_us = r->pool_expires_us;
    if (r->pool_to == POOL_AVAILABLE) {
        a->pool_since_us = SIM_EPOCH_US + w->now_us;
        ((struct db_slots *)db_touch(w, T_SLOTS, (size_t)a->type))->warm_idle += a->instances;
    }
}

static void change_task(struct db_task *t, const struct task_change_row *ch)
{
    t->changed = true;
    t->type_i = ch->instance_type_i;
    t->volume_gb = ch->volume_gb;
    t->max_runtime_s = ch->max_runtime_s;
    t->signature = ch->signature_hash;
    t->same = (uint8_t)MIN(ch->same, 255);
    for (int i = 0; i < CAUSE_COUNT; i++) {
        t->tries[i] = (uint8_t)MIN(ch->tries[i], 255);
    }
}

static bool record_task(struct world *w, const struct db_attempt *a, const struct attempt_record *r)
{
    if (TASK(w, a->task)->state != TASK_ACTIVE) {
        return false;
    }
    rows_task_state(w, a->task, r->task_to);
    struct db_task *t = db_touch(w, T_TASK, (size_t)a->task);
    t->attempts += r->task_counts;
    t->not_before_us = r->not_before_us;
    judge_task_moved(w, a->task, r);
    if (r->change != NULL) {
        change_task(t, r->change);
    }
    return true;
}

static void record_seen(struct world *w, struct db_attempt *a, const struct attempt_record *r)
{
    a->state = r->to;
    a->cause = r->cause != CAUSE_NONE ? r->cause : a->cause;
    a->failed_as = r->failed_as != CAUSE_NONE ? r->failed_as : a->failed_as;
    a->reason =
        r->reason != NULL && attempt_state_terminal(r->to) ? rows_text(w, r->reason) : a->reason;
    a->created_us = r->created_us != 0 ? r->created_us : a->created_us;
    a->started_us = r->started_us != 0 ? r->started_us : a->started_us;
    a->ended_us = r->ended_us != 0 ? r->ended_us : a->ended_us;
    a->ran = r->to == ATTEMPT_FAILED && a->cause != CAUSE_NONE &&
             (a->started_us != 0 || a->billable_s > 0);
    a->counted = a->cause != CAUSE_NONE && (a->ran || retry_counts(a->cause));
}

bool rows_record(struct world *w, const struct attempt_record *r)
{
    struct db_attempt *a = db_touch(w, T_ATTEMPT, (size_t)row_of_id(r->attempt_id));
    bool ends = attempt_state_terminal(r->to);
    bool pays = (r->release || r->settle || ends) && !a->settled;
    if (a->state != r->from) {
        return false;
    }
    if (r->from != r->to) {
        judge_attempt_moved(w, row_of_id(r->attempt_id), r->from, r->to);
    }
    trace(w, 0x4ec04d, (uint64_t)row_of_id(r->attempt_id) * 16 + r->to);
    if (pays) {
        a->cost_musd += r->settle ? r->cost_musd : 0;
        a->billable_s = r->settle ? r->billable_s : a->billable_s;
        a->settled = r->entries_n > 0;
        add_idle(w, a, r->warm_musd);
        if (!book(w, a, r->entries, r->entries_n, r->entries_n > 0 ? r->open_musd : a->open_musd)) {
            return false;
        }
    }
    record_seen(w, a, r);
    if (r->release || ends) {
        release(w, a, r);
    }
    record_pool(w, a, r);
    if (ends && !a->settled) {
        wrong(w, "I7", "%s has ended and its money is not settled", a->name.s);
    }
    return !r->task_moves || record_task(w, a, r);
}

bool rows_pool_end(struct world *w, const struct pool_end *e)
{
    struct db_attempt *a = db_touch(w, T_ATTEMPT, (size_t)row_of_id(e->pool_id));
    if (!a->has_pool || a->pool != POOL_AVAILABLE || !a->settled || a->open_musd != e->open_musd) {
        return false;
    }
    pool_state(w, a, e->to);
    add_idle(w, a, e->warm_musd);
    if (a->taken_by < 0) {
        ((struct db_slots *)db_touch(w, T_SLOTS, (size_t)a->type))->warm_idle -= a->instances;
    }
    return book(w, a, e->entries, e->entries_n, 0);
}

/* Two available pools swap the jobs that took them. */
bool rows_pool_swap(struct world *w, int64_t pool_id, int64_t other_id)
{
    struct db_attempt *a = db_touch(w, T_ATTEMPT, (size_t)row_of_id(pool_id));
    struct db_attempt *b = db_touch(w, T_ATTEMPT, (size_t)row_of_id(other_id));
    int by = a->taken_by;
    if (a == b || !a->has_pool || !b->has_pool || a->pool != POOL_AVAILABLE ||
        b->pool != POOL_AVAILABLE) {
        return false;
    }
    SOMETIMES(w, POOL_SWAPPED);
    a->taken_by = b->taken_by;
    b->taken_by = by;
    if (a->taken_by >= 0) {
        ((struct db_attempt *)db_touch(w, T_ATTEMPT, (size_t)a->taken_by))->pool_of =
            row_of_id(pool_id);
    }
    if (b->taken_by >= 0) {
        ((struct db_attempt *)db_touch(w, T_ATTEMPT, (size_t)b->taken_by))->pool_of =
            row_of_id(other_id);
    }
    return true;
}

/* Writes the row that the store lost for a job of ours. */
bool rows_adopt(struct world *w, int64_t epoch, const struct adoption *ad)
{
    const struct intent *in = &ad->intent;
    int task = row_of_id(in->task_id);
    struct budget *b[BUDGET_LEVELS];
    struct db_attempt *a = add_attempt(w, in, epoch);
    a->state = ATTEMPT_UNKNOWN;
    a->intended_us = a->created_us = ad->created_us;
    if (TASK(w, task)->state == TASK_FAILED || TASK(w, task)->state == TASK_HELD) {
        rows_task_state(w, task, TASK_WAITING); /* the retry that led to this job was lost too */
    }
    rows_budgets(w, task, true, b);
    for (int l = 0; l < BUDGET_LEVELS; l++) { /* the job exists: no cap can refuse it now */
        b[l]->reserved_musd += in->reserve_musd;
    }
    tell(w, task, "job %s is adopted: its row was lost", in->name.s);
    return count_attempt(w, in);
}
