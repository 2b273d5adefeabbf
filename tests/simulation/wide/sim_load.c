/* Plays the store's views (sql/queries/view.sql, scheduler.sql) and loads the leader's state
 * from them: everything at takeover, then what people changed, as controller/load.c does. */
#include "core/leader/attempt.h"
#include "core/leader/awake.h"
#include "core/leader/pool_life.h"
#include "core/leader/rows_read.h"
#include "core/leader/stage_history.h"
#include "core/sched/ready_queue.h"
#include "sim_world.h"
#include <stdio.h>

#define ARENA_MAX 4096 /* never used: specs are the world's */

static void campaign_row_of(struct world *w, int i, struct campaign_row *ret)
{
    const struct db_campaign *d = CAMPAIGN(w, i);
    *ret = (struct campaign_row){.id = id_of(i),
                                 .project_id = id_of(d->project),
                                 .state = d->state,
                                 .wanted = d->wanted,
                                 .priority = d->priority,
                                 .parts_limit = d->parts_limit,
                                 .version = d->version,
                                 .taken_version = d->taken_version,
                                 .cap_musd = d->money.cap_musd,
                                 .at_limit = d->at_limit,
                                 .reserved_musd = d->money.reserved_musd,
                                 .spent_musd = d->money.spent_musd,
                                 .weight = d->weight,
                                 .warm_musd = d->idle_musd,
                                 .held_for_money = d->money_held};
}

static void stage_row_of(struct world *w, int i, struct stage_row *ret)
{
    const struct db_stage *d = STAGE(w, i);
    *ret = (struct stage_row){.id = id_of(i),
                              .campaign_id = id_of(d->campaign),
                              .seq = i - CAMPAIGN(w, d->campaign)->stage0,
                              .state = d->state,
                              .tasks = d->tasks_n,
                              .closed = true,
                              .taken = d->tasks_n,
                              .cap_musd = d->money.cap_musd,
                              .per_task_musd = w->stage[i].per_task_musd,
                              .reserved_musd = d->money.reserved_musd,
                              .spent_musd = d->money.spent_musd,
                              .parts_limit = d->parts_limit,
                              .resumes = d->resumes,
                              .resumes_taken = d->resumes_taken,
                              .breaker_since = d->breaker_since,
                              .breaker_passed = d->breaker_passed};
    memcpy(ret->counts, d->counts, sizeof ret->counts);
    (void)snprintf(ret->name, sizeof ret->name, "%s", w->stage[i].name);
}

static void attempt_row_of(struct world *w, int i, struct attempt_row *ret)
{
    const struct db_attempt *d = ATTEMPT(w, i);
    const struct db_task *t = TASK(w, d->task);
    int campaign = STAGE(w, t->stage)->campaign;
    *ret = (struct attempt_row){.id = id_of(i),
                                .project_id = id_of(CAMPAIGN(w, campaign)->project),
                                .campaign_id = id_of(campaign),
                                .stage_id = id_of(t->stage),
                                .task_id = id_of(d->task),
                                .seq = d->task - STAGE(w, t->stage)->task0,
                                .n = d->n,
                                .state = d->state,
                                .epoch = d->epoch,
                                .name = d->name,
                                .instances = d->instances,
                                .volume_gb = d->volume_gb,
                                .max_runtime_s = d->max_runtime_s,
                                .price_musd_per_hour = d->price_musd,
                                .reserved_musd = d->reserved_musd,
                                .holds = d->holds,
                                .unwanted = d->unwanted,
                                .intended_us = d->intended_us,
                                .started_us = d->started_us,
                                .ended_us = d->ended_us,
                                .market = market_of(w, d->type),
                                .keep_alive_s = d->keep_alive_s,
                                .instance_type_i = d->rung,
                                .subnet_i = d->subnet_i,
                                .pool_id = d->pool_of >= 0 ? id_of(d->pool_of) : 0,
                                .open_musd = d->open_musd,
                                .cost_musd = d->cost_musd + d->warm_musd,
                                .settled = d->settled,
                                .stop_cause = d->stop_cause,
                                .failed_as = d->failed_as,
                                .created_us = d->created_us,
                                .task_attempts = t->attempts,
                                .size = task_size(w, d->task)};
    rows_hash_text(d->request, ret->identity_hash);
    memcpy(ret->instance_type, w->types[d->type], strlen(w->types[d->type]) + 1);
}

static void pool_row_of(struct world *w, int i, struct pool_row *ret)
{
    const struct db_attempt *d = ATTEMPT(w, i);
    int stage = TASK_STAGE(w, d->task);
    *ret = (struct pool_row){.id = id_of(i),
                             .attempt_id = id_of(i),
                             .campaign_id = id_of(STAGE(w, stage)->campaign),
                             .stage_id = id_of(stage),
                             .task_id = id_of(d->task),
                             .state = d->pool,
                             .fingerprint = d->fingerprint,
                             .instances = d->instances,
                             .keep_alive_s = d->keep_alive_s,
                             .taken_by = d->taken_by >= 0 ? id_of(d->taken_by) : 0,
                             .available_us = d->pool_since_us,
                             .expires_us = d->pool_expires_us,
                             .job = d->name,
                             .price_musd_per_hour = d->price_musd,
                             .open_musd = d->open_musd,
                             .cost_musd = d->cost_musd,
                             .intended_us = d->intended_us};
    memcpy(ret->end_reason, d->end_reason, strlen(d->end_reason) + 1);
    memcpy(ret->instance_type, w->types[d->type], strlen(w->types[d->type]) + 1);
}

/* Links the attempts of each stage, oldest first and newest first. */
static void link_attempts(struct world *w)
{
    size_t n = w->db.t[T_ATTEMPT].n;
    if (n > w->of_stage_cap) {
        w->of_stage_cap = n * 2;
        w->next_of_stage = xrealloc(w->next_of_stage, n * 2 * sizeof *w->next_of_stage);
        w->before_of_stage = xrealloc(w->before_of_stage, n * 2 * sizeof *w->before_of_stage);
    }
    memset(w->first_of_stage, 0xff, sizeof w->first_of_stage);
    memset(w->last_of_stage, 0xff, sizeof w->last_of_stage);
    for (int32_t i = 0; i < (int32_t)n; i++) {
        int stage = TASK_STAGE(w, ATTEMPT(w, i)->task);
        int32_t last = w->last_of_stage[stage];
        *(last < 0 ? &w->first_of_stage[stage] : &w->next_of_stage[last]) = i;
        w->before_of_stage[i] = last;
        w->next_of_stage[i] = -1;
        w->last_of_stage[stage] = i;
    }
}

/* The first and the last BREAKER_OF_MAX ended attempts since its reset, oldest first. */
static void load_breaker(struct world *w, struct live_stage *ls)
{
    int stage = row_of_id(ls->row.id);
    size_t ends = 0, k = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = w->first_of_stage[stage]; i >= 0; i = w->next_of_stage[i]) {
            const struct db_attempt *d = ATTEMPT(w, i);
            if (i < ls->row.breaker_since || !attempt_state_terminal(d->state)) {
                continue;
            }
            ends += pass == 0;
            if (pass == 0 || (k++ >= BREAKER_OF_MAX && k + BREAKER_OF_MAX <= ends)) {
                continue;
            }
            struct breaker_row row; /* not cleared: its text is long */
            row.attempt_id = id_of(i);
            row.state = d->state;
            row.cause = d->cause;
            row.ran = d->ran;
            memcpy(row.reason, d->reason, strlen(d->reason) + 1);
            stage_history_saw_breaker_row(ls, &row);
        }
    }
}

static void load_durations(struct world *w, struct live_stage *ls)
{
    int n = 0;
    for (int32_t i = w->last_of_stage[row_of_id(ls->row.id)]; i >= 0 && n < DURATION_KEPT;
         i = w->before_of_stage[i]) {
        const struct db_attempt *d = ATTEMPT(w, i);
        if (d->state == ATTEMPT_SUCCEEDED && d->started_us != 0 && d->ended_us > d->started_us) {
            stage_history_saw_duration(ls, task_size(w, d->task), d->ended_us - d->started_us);
            n++;
        }
    }
}

static void load_tasks(struct world *w, struct live_stage *ls, usec_t now_us)
{
    const struct db_stage *ds = STAGE(w, row_of_id(ls->row.id));
    for (int t = ds->task0; t < ds->task0 + ds->tasks_n; t++) {
        if (TASK(w, t)->state != TASK_WAITING) {
            continue; /* no row of view_tasks */
        }
        const struct task_row row = {.id = id_of(t),
                                     .state = TASK(w, t)->state,
                                     .not_before_us = TASK(w, t)->not_before_us,
                                     .seq = t - ds->task0,
                                     .size = (int64_t)w->size_mb[t] * 1024 * 1024};
        struct ready_queue_task entry;
        if (rows_task(ls, &row, now_us, &entry) == ROWS_READY) {
            ready_queue_push(ls->ready, &entry);
        }
    }
    ls->loaded = ds->tasks_n;
}

void load_reopened(struct world *w, struct ctl *c, struct live_campaign *lc)
{
    for (int i = 0; i < lc->stages_n; i++) {
        if (rows_unloaded(&lc->stages[i])) {
            load_tasks(w, &lc->stages[i], ctl_wall(w, c));
        }
    }
    lc->seen_tasks = 0;
    campaign_wake(lc);
}

/* During the hold after a failover nothing ends, since a job without a row may still appear: a
 * cancel acts as a pause until then. */
static enum wanted wanted_now(const struct ctl *c, enum wanted wanted)
{
    return c->hold && wanted == WANTED_CANCEL ? WANTED_PAUSE : wanted;
}

/* link_attempts comes before. */
static struct live_campaign *load_linked(struct world *w, struct ctl *c, int campaign)
{
    const struct db_campaign *dc = CAMPAIGN(w, campaign);
    struct live_campaign *lc = xcalloc(1, sizeof *lc);
    arena_init(&lc->arena, ARENA_MAX);
    campaign_row_of(w, campaign, &lc->row);
    lc->row.wanted = wanted_now(c, lc->row.wanted);
    lc->spec = &w->spec[campaign];
    lc->stages = leader_state_new_stages((size_t)dc->stages_n);
    for (int i = dc->stage0; i < dc->stage0 + dc->stages_n; i++) {
        struct live_stage *ls = &lc->stages[lc->stages_n++];
        stage_row_of(w, i, &ls->row);
        rows_new_stage(lc, ls, &ls->row);
        ls->spec = &w->stage[i];
        stage_history_init(ls);
        load_breaker(w, ls);
        load_durations(w, ls);
        if (STAGE(w, i)->promise.task_id != 0) {
            stage_history_take_promises(ls, &STAGE(w, i)->promise, 1);
        }
        if (rows_stage_is_read(ls)) {
            load_tasks(w, ls, ctl_wall(w, c));
        }
    }
    rows_new_campaign(lc);
    leader_state_add_campaign(&c->state, lc);
    return lc;
}

static void change_row_of(struct world *w, int task, struct task_change_row *ret)
{
    const struct db_task *t = TASK(w, task);
    *ret = (struct task_change_row){.task_id = id_of(task),
                                    .campaign_id = id_of(STAGE(w, t->stage)->campaign),
                                    .instance_type_i = t->type_i,
                                    .volume_gb = t->volume_gb,
                                    .max_runtime_s = t->max_runtime_s,
                                    .signature_hash = t->signature,
                                    .same = t->same,
                                    .spent_musd = rows_part_spent(w, task)};
    for (int k = 0; k < CAUSE_COUNT; k++) {
        ret->tries[k] = t->tries[k];
    }
}

/* The parts of a campaign are those from its first stage's first to its last one's last. */
static void load_changes_of(struct world *w, struct ctl *c, int campaign)
{
    const struct db_campaign *d = CAMPAIGN(w, campaign);
    const struct db_stage *last = STAGE(w, d->stage0 + d->stages_n - 1);
    int task0 = STAGE(w, d->stage0)->task0, n = 0;
    int end = last->task0 + last->tasks_n;
    struct task_change_row *rows = xcalloc((size_t)(end - task0) + 1, sizeof *rows);
    for (int i = task0; i < end; i++) {
        if (TASK(w, i)->changed) {
            change_row_of(w, i, &rows[n++]);
        }
    }
    leader_state_take_changes(&c->state, rows, (size_t)n);
    free(rows);
}

struct live_campaign *load_campaign(struct world *w, struct ctl *c, int campaign)
{
    link_attempts(w);
    struct live_campaign *lc = load_linked(w, c, campaign);
    load_changes_of(w, c, campaign);
    return lc;
}

struct live_stage *load_stage_of(struct ctl *c, int64_t campaign_id, int64_t stage_id)
{
    struct live_campaign *lc = leader_state_campaign(&c->state, campaign_id);
    return lc != NULL ? leader_state_stage(lc, stage_id) : NULL;
}

static struct live_campaign *campaign_of(struct world *w, struct ctl *c, int64_t campaign_id)
{
    struct live_campaign *lc = leader_state_campaign(&c->state, campaign_id);
    return lc != NULL ? lc : load_campaign(w, c, row_of_id(campaign_id));
}

static void refresh_campaign(struct world *w, const struct ctl *c, struct live_campaign *lc)
{
    struct campaign_row now;
    struct stage_row stage;
    campaign_row_of(w, row_of_id(lc->row.id), &now);
    now.wanted = wanted_now(c, now.wanted);
    rows_refresh_campaign(lc, &now);
    for (int i = 0; i < lc->stages_n; i++) {
        stage_row_of(w, row_of_id(lc->stages[i].row.id), &stage);
        rows_refresh_stage(&lc->stages[i], &stage);
    }
}

static void load_projects(struct world *w, struct ctl *c)
{
    struct project_row rows[PROJECTS_MAX + 1];
    for (int i = 0; i <= w->cfg.projects; i++) {
        const struct budget *b =
            i == 0 ? db_row(w, T_GLOBAL, 0) : db_row(w, T_PROJECT, (size_t)i - 1);
        rows[i] = (struct project_row){
            .id = i,
            .weight = 50 + 50 * i,
            .parts_limit = i == 0 ? w->global_limit : w->project_limit[i - 1],
            .cap_musd = b->cap_musd,
            .reserved_musd = b->reserved_musd,
            .spent_musd = b->spent_musd,
        };
    }
    rows_refresh_projects(&c->state, rows, (size_t)w->cfg.projects + 1);
}

/* Limits of the operator, and prices, whose file may have changed. */
static void load_limits(struct world *w, struct ctl *c)
{
    for (int i = 0; i < w->kinds; i++) {
        struct quota_ledger *s = &c->state.slots[i].s;
        s->operator_limit = w->type_limit[i];
        s->price_musd_per_hour = w->aws.price_known[i] ? w->aws.price[i] : -1;
    }
}

static void load_slots(struct world *w, struct ctl *c)
{
    for (int i = 0; i < w->kinds; i++) { /* in this order: an index into them is a kind */
        const struct db_slots *d = SLOTS(w, i);
        struct slots_row row = {.market = market_of(w, i),
                                .held = d->held,
                                .warm_idle = d->warm_idle,
                                .foreign = d->foreign,
                                .foreign_us = d->foreign_us,
                                .refused_limit = d->refused_limit};
        memcpy(row.instance_type, w->types[i], strlen(w->types[i]) + 1);
        rows_slots(&c->state, &row, 1, ctl_wall(w, c));
    }
    load_limits(w, c);
}

static void load_task_changes(struct world *w, struct ctl *c)
{
    for (int i = 0; i < (int)w->db.t[T_TASK].n; i++) {
        const struct db_task *t = TASK(w, i);
        int campaign = STAGE(w, t->stage)->campaign;
        if (!t->changed || campaign_state_terminal(CAMPAIGN(w, campaign)->state)) {
            continue;
        }
        change_row_of(w, i, leader_state_change(&c->state, id_of(i), true));
    }
}

static void take_over(struct world *w, struct ctl *c, int i)
{
    struct protocol_config pc;
    struct protocol_effect e;
    struct attempt_row row;
    attempt_row_of(w, i, &row);
    ctl_protocol(w, &pc);
    const struct attempt_takeover t = {.protocol = &pc,
                                       .now_us = ctl_wall(w, c),
                                       .lease_end_us = ctl_boot(w, c) + w->cfg.lease_us};
    struct live_attempt *a =
        leader_take_over_attempt(&c->state, &row, campaign_of(w, c, row.campaign_id), &t, &e);
    if (leader_attempt_records(&e)) {
        SOMETIMES(w, UNKNOWN_AT_TAKEOVER);
        carry_record(w, c, a, &e);
    }
}

bool load_all(struct world *w, struct ctl *c)
{
    struct leader_state *s = &c->state;
    (void)snprintf(s->install_id, sizeof s->install_id, "sim");
    s->epoch = c->epoch;
    load_slots(w, c);
    load_projects(w, c);
    load_task_changes(w, c);
    link_attempts(w);
    for (int i = 0; i < (int)w->db.t[T_CAMPAIGN].n; i++) {
        if (!campaign_state_terminal(CAMPAIGN(w, i)->state)) {
            (void)load_linked(w, c, i);
        }
    }
    for (int i = 0; i < (int)w->db.t[T_ATTEMPT].n; i++) {
        struct pool_row row;
        if (ATTEMPT(w, i)->has_pool) {
            pool_row_of(w, i, &row);
            (void)leader_load_pool(s, &row, campaign_of(w, c, row.campaign_id));
        }
    }
    for (int i = 0; i < (int)w->db.t[T_ATTEMPT].n && c->leading; i++) {
        if (!attempt_state_terminal(ATTEMPT(w, i)->state)) {
            take_over(w, c, i);
        }
    }
    return c->leading && carry_records(w, c);
}

/* New campaigns, and changed wishes for known ones. */
bool load_changes(struct world *w, struct ctl *c)
{
    if (!db_begin(w, c)) {
        return false;
    }
    load_projects(w, c);
    load_limits(w, c);
    for (int i = 0; i < (int)w->db.t[T_CAMPAIGN].n; i++) {
        const struct db_campaign *dc = CAMPAIGN(w, i);
        struct live_campaign *lc = leader_state_campaign(&c->state, id_of(i));
        if (campaign_state_terminal(dc->state) || (lc != NULL && lc->row.version == dc->version)) {
            continue;
        }
        if (lc == NULL) {
            (void)load_campaign(w, c, i);
        } else {
            refresh_campaign(w, c, lc);
        }
        c->state.decide = true;
    }
    db_abort(w); /* it only read */
    return true;
}

void load_clear(struct ctl *c)
{
    for (size_t i = 0; i < c->state.pools_n; i++) {
        c->state.pools[i]->io = NULL;
    }
    leader_state_clear(&c->state);
    c->lost = c->hold = false;
    c->clean_lists = 0;
}
