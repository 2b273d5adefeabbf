/* Decide and intend: the view goes to the scheduler, its plan becomes committed intents. */
#include "sim_world.h"

#define SEND_AHEAD_S 2
#define PUT_BACK_US  (2 * SEC)

struct sight { /* one view, and which stage of the store each of its stages is */
    struct sched_view view;
    struct sched_stage stages[STAGES_MAX];
    struct sched_campaign campaigns[CAMPAIGNS_MAX];
    struct sched_project projects[PROJECTS_MAX];
    int stage_of[STAGES_MAX];
    bool gangs;
};
struct task_of { /* ctx of the plan's questions */
    struct world *w;
    struct ctl *c;
};

static musd_t left_of(const struct budget *b)
{
    return budget_left(b);
}

static bool change_of(void *ctx, int64_t task_id, int *type_i, int *volume_gb, int64_t *runtime_s)
{
    const struct db_task *t = TASK(((struct task_of *)ctx)->w, task_id - 1);
    if (!t->changed) {
        return false;
    }
    *type_i = t->type_i;
    *volume_gb = t->volume_gb;
    *runtime_s = t->max_runtime_s;
    return true;
}

static musd_t spent_of(void *ctx, int64_t task_id)
{
    const struct db_task *t = TASK(((struct task_of *)ctx)->w, task_id - 1);
    return t->money.reserved_musd + t->money.spent_musd;
}

static enum wait_reason why_not(const struct db_campaign *dc, const struct db_stage *ds)
{
    if (ds->state == STAGE_BLOCKED) {
        return WAIT_STAGE_BLOCKED;
    }
    if (ds->state != STAGE_RUNNING) {
        return ds->tripped ? WAIT_BREAKER : WAIT_HELD;
    }
    if (dc->wanted != WANTED_RUN || dc->state == CAMPAIGN_PAUSED ||
        dc->state == CAMPAIGN_DRAINING) {
        return WAIT_PAUSED;
    }
    if (dc->state == CAMPAIGN_RUNNING) {
        return WAIT_NONE;
    }
    return dc->budget_held ? WAIT_BUDGET : WAIT_HELD;
}

static void see_stage(struct world *w, struct ctl *c, struct sight *s, int stage)
{
    const struct db_stage *ds = &c->stage[stage];
    const struct db_campaign *dc = &c->campaign[ds->campaign];
    struct stage_mem *m = &c->mem[stage];
    enum wait_reason why = why_not(dc, ds);
    duration_fit(&m->duration);
    s->gangs |= w->stage[stage].instance_count > 1;
    s->stage_of[s->view.stages_n] = stage;
    s->stages[s->view.stages_n++] =
        (struct sched_stage){.campaign_id = ds->campaign,
                             .stage_id = stage,
                             .spec = &w->spec[ds->campaign],
                             .stage = &w->stage[stage],
                             .ready = m->ready,
                             .may_start = why == WAIT_NONE,
                             .why_not = why,
                             .priority = dc->priority,
                             .campaign_i = ds->campaign,
                             .live = ds->counts[TASK_ACTIVE],
                             .parts_limit = ds->parts_limit,
                             .stage_left_musd = left_of(&ds->money),
                             .duration = &m->duration,
                             .place = &m->place,
                             .breaker = &m->breaker,
                             .breaker_rules = w->rules,
                             .warm = warm_pool_policy_of(&w->stage[stage].warm),
                             .gang = &m->gang};
}

static void see_campaigns(struct world *w, struct ctl *c, struct sight *s)
{
    for (int i = 0; i < w->cfg.projects; i++) {
        s->projects[i] = (struct sched_project){.project_id = i,
                                                .weight = 100 + 50 * i,
                                                .parts_limit = w->project_limit[i],
                                                .left_musd = left_of(&c->project[i])};
    }
    for (int i = 0; i < c->campaigns_n; i++) {
        const struct db_campaign *dc = &c->campaign[i];
        s->campaigns[i] = (struct sched_campaign){.campaign_id = i,
                                                  .project_i = dc->project,
                                                  .weight = dc->weight,
                                                  .parts_limit = dc->parts_limit,
                                                  .left_musd = left_of(&dc->money),
                                                  .idle_spent_musd = dc->idle_musd};
        for (int k = dc->stage0; c->taken[i] && k < dc->stage0 + dc->stages_n; k++) {
            s->campaigns[i].live += c->stage[k].counts[TASK_ACTIVE];
            if (ready_queue_n(c->mem[k].ready) > 0) {
                see_stage(w, c, s, k);
            }
        }
        s->projects[dc->project].live += s->campaigns[i].live;
        s->view.live += s->campaigns[i].live;
    }
    s->view.campaigns_n = c->campaigns_n;
    s->view.projects_n = w->cfg.projects;
}

static struct sched_job *job_at(struct world *w, size_t i)
{
    if (i == w->sched_jobs_cap) {
        w->sched_jobs_cap = MAX(64, i * 2);
        w->sched_jobs = xrealloc(w->sched_jobs, w->sched_jobs_cap * sizeof *w->sched_jobs);
    }
    return &w->sched_jobs[i];
}

static struct warm_pool *pool_at(struct world *w, size_t i)
{
    if (i == w->sched_pools_cap) {
        w->sched_pools_cap = MAX(64, i * 2);
        w->sched_pools = xrealloc(w->sched_pools, w->sched_pools_cap * sizeof *w->sched_pools);
    }
    return &w->sched_pools[i];
}

/* When the pool of a job that lives is thought to come. */
static usec_t pool_comes_us(const struct world *w, const struct ctl *c, const struct live *a)
{
    const struct duration *d = &c->mem[TASK_STAGE(w, a->row.task)].duration;
    usec_t now_us = ctl_wall(w, c);
    if (a->row.pool == POOL_AVAILABLE) {
        return a->row.pool_since_us;
    }
    if (a->p.state == ATTEMPT_UPLOADING || a->p.state == ATTEMPT_STOPPING) {
        return now_us;
    }
    if (a->seen.started == 0 || !duration_known(d)) {
        return USEC_NEVER;
    }
    int64_t ran_us = MAX(0, now_us - a->seen.started);
    return now_us + duration_remaining_us(d, w->size_mb[a->row.task], ran_us, 50);
}

static void see_pool(struct world *w, struct ctl *c, struct sight *s, int attempt,
                     const struct db_attempt *row, usec_t available_us, bool ending)
{
    struct warm_pool *p = pool_at(w, (size_t)s->view.pools_n++);
    int stage = TASK_STAGE(w, row->task);
    *p = (struct warm_pool){.attempt_id = attempt + 1,
                            .campaign_id = c->stage[stage].campaign,
                            .stage_id = stage,
                            .fingerprint = row->fingerprint,
                            .slots_i = row->type,
                            .instances = row->instances,
                            .state = row->claimed ? POOL_REUSED : row->pool,
                            .keep_alive_s = row->keep_alive_s,
                            .available_us = available_us,
                            .expires_us = row->pool_expires_us,
                            .price_musd_per_hour = row->price_musd,
                            .ending = ending,
                            .stays = !w->stage[stage].warm.end_when_queue_empty};
}

static void see_jobs(struct world *w, struct ctl *c, struct sight *s)
{
    for (int i = 0; i < w->kinds; i++) {
        c->slots[i].warm_held = 0;
    }
    for (size_t i = 0; i < c->live_n; i++) {
        const struct live *a = &c->live[i];
        int stage = TASK_STAGE(w, a->row.task);
        int campaign = c->stage[stage].campaign;
        if (a->row.has_pool) {
            see_pool(w, c, s, a->id, &a->row, pool_comes_us(w, c, a), false);
        }
        if (!a->row.holds) {
            continue;
        }
        s->campaigns[campaign].held += a->row.instances;
        s->projects[s->campaigns[campaign].project_i].held += a->row.instances;
        for (int k = 0; k < w->spec[campaign].instances_n; k++) {
            if (strcmp(w->spec[campaign].instances[k].instance_type, w->types[a->row.type]) == 0) {
                s->campaigns[campaign].type_held[k] += a->row.instances;
            }
        }
        *job_at(w, (size_t)s->view.jobs_n++) = (struct sched_job){
            .attempt_id = a->id + 1,
            .task_id = a->row.task + 1,
            .stage_id = stage,
            .campaign_i = campaign,
            .slots_i = a->row.type,
            .instances = a->row.instances,
            .end_p50_us = USEC_NEVER,
            .end_p90_us = USEC_NEVER,
            .duration = s->gangs ? &c->mem[stage].duration : NULL,
            .size_mb = w->size_mb[a->row.task],
            .run_from_us = a->seen.started,
            .last_us = a->seen.started != 0 ? a->seen.started + a->row.max_runtime_s * SEC : 0};
    }
    for (size_t i = 0; i < c->pool_n; i++) {
        see_pool(w, c, s, c->pool[i].attempt, &c->pool[i].row, c->pool[i].row.pool_since_us,
                 c->pool[i].ending);
    }
    for (int i = 0; i < s->view.pools_n; i++) {
        c->slots[w->sched_pools[i].slots_i].warm_held += w->sched_pools[i].instances;
    }
}

static int64_t tokens(const struct world *w, const struct ctl *c)
{
    int64_t unsent = 0;
    for (size_t i = 0; i < c->live_n; i++) {
        const struct protocol_attempt *p = &c->live[i].p;
        unsent += p->state == ATTEMPT_INTENDED && !p->create_in_flight;
    }
    int64_t ahead = SEND_AHEAD_S * c->bucket.rate_per_s_u / 1000000;
    return MAX(0, token_bucket_available(&c->bucket, ctl_boot(w, c)) + ahead - unsent);
}

static void look_round(struct world *w, struct ctl *c, struct sight *s, struct task_of *ctx)
{
    memset(&s->view, 0, sizeof s->view); /* the arrays are filled as far as they are used */
    s->gangs = false;
    s->view.now_us = ctl_wall(w, c);
    s->view.parts_limit = w->global_limit;
    s->view.left_musd = left_of(&c->global);
    s->view.stages = s->stages;
    s->view.campaigns = s->campaigns;
    s->view.projects = s->projects;
    s->view.slots = c->slots;
    s->view.slots_n = w->kinds;
    s->view.account = &c->account;
    s->view.change_of = change_of;
    s->view.spent_of = spent_of;
    s->view.ctx = ctx;
    s->view.tokens = tokens(w, c);
    see_campaigns(w, c, s);
    see_jobs(w, c, s);
    s->view.jobs = w->sched_jobs;
    s->view.pools = w->sched_pools;
    c->account.total[MARKET_ON_DEMAND].held = c->account.total[MARKET_SPOT].held = 0;
    for (int i = 0; i < w->kinds; i++) {
        c->account.total[market_of(w, i)].held += c->slots[i].held + c->slots[i].warm_idle;
    }
}

static void put_back(struct ctl *c, const struct sched_launch *l, int stage, usec_t not_before_us)
{
    struct ready_queue_task t = l->task;
    t.not_before_us = not_before_us;
    ready_queue_push(c->mem[stage].ready, &t);
    c->look_at_db = true;
}

/* The view and the rows are of the same instant unless an operator wrote in between: then what the
 * transaction refuses was decided wrongly. */
static void judge_refusal(struct world *w, const struct ctl *c, const struct intent *in)
{
    SOMETIMES(w, INTENT_REFUSED);
    if (c->campaign[in->campaign].version == CAMPAIGN(w, in->campaign)->version) {
        wrong(w, "I4", "the scheduler proposed what the rows refuse: %s (task %d, %lld s)",
              in->refused, in->task, (long long)in->max_runtime_s);
    }
}

static bool intend_all(struct world *w, struct ctl *c, const struct sight *s,
                       struct intent in[static SCHED_LAUNCHES_MAX])
{
    const struct sched_plan *p = w->plan;
    for (int i = 0; i < s->view.stages_n; i++) {
        if (c->stage[s->stage_of[i]].reason != p->reason[i]) {
            ((struct db_stage *)db_touch(w, T_STAGE, (size_t)s->stage_of[i]))->reason =
                p->reason[i];
        }
    }
    for (int i = 0; i < p->launches_n; i++) {
        const struct sched_launch *l = &p->launches[i];
        int stage = s->stage_of[l->stage_i];
        in[i] = (struct intent){
            .campaign = c->stage[stage].campaign,
            .stage = stage,
            .task = (int)l->task.task_id - 1,
            .type = l->slots_i,
            .rung = l->instance_type_i,
            .subnet_i = l->subnet_i,
            .pool = l->pool_i >= 0 ? (int)w->sched_pools[l->pool_i].attempt_id - 1 : -1,
            .instances = w->stage[stage].instance_count,
            .volume_gb = l->volume_gb,
            .max_runtime_s = l->max_runtime_s,
            .keep_alive_s = l->keep_alive_s,
            .slot_limit = quota_ledger_limit(&c->slots[l->slots_i], &c->account),
            .price_musd = c->slots[l->slots_i].price_musd_per_hour,
            .reserve_musd = l->reserve_musd};
        if (!rows_intend(w, c, &in[i])) {
            return false;
        }
        if (in[i].refused != NULL) {
            judge_refusal(w, c, &in[i]);
        } else if (in[i].pool >= 0 && !rows_claim(w, in[i].pool, true)) {
            return false;
        }
    }
    return true;
}

static void after_commit(struct world *w, struct ctl *c, const struct sight *s,
                         const struct intent *in)
{
    const struct sched_plan *p = w->plan;
    usec_t now_us = ctl_wall(w, c);
    for (int i = 0; i < p->launches_n; i++) {
        const struct sched_launch *l = &p->launches[i];
        int stage = s->stage_of[l->stage_i];
        if (in[i].refused != NULL) {
            put_back(c, l, stage, now_us + PUT_BACK_US);
            continue;
        }
        (void)live_add(w, c, in[i].attempt, true);
        breaker_started(&c->mem[stage].breaker, in[i].attempt + 1);
        capacity_ladder_started(&c->mem[stage].place, &w->stage[stage], l->instance_type_i,
                                l->subnet_i, now_us);
        if (in[i].pool >= 0) {
            SOMETIMES(w, POOL_TAKEN);
            pools_claimed(c, in[i].pool);
        }
        if (l->max_runtime_s < w->stage[stage].max_runtime_s) {
            SOMETIMES(w, RUNTIME_SHORTENED);
        }
        if (w->stage[stage].instance_count > 1) {
            SOMETIMES(w, GANG_STARTED);
        }
        c->act = true;
    }
}

/* Has so much been spent that one more attempt of this stage would not fit its own caps, even if
 * everything that runs gave its money back? */
static bool spent_up(const struct ctl *c, const struct sight *s, int stage_i)
{
    const struct spec_stage *st = s->stages[stage_i].stage;
    struct budget stage = c->stage[s->stage_of[stage_i]].money;
    struct budget campaign = c->campaign[s->stages[stage_i].campaign_i].money;
    stage.reserved_musd = campaign.reserved_musd = 0;
    for (int i = 0; i < s->view.slots_n; i++) {
        const struct quota_ledger *sl = &c->slots[i];
        if (strcmp(sl->instance_type, st->instance_type[0]) == 0 &&
            sl->market == (st->spot ? MARKET_SPOT : MARKET_ON_DEMAND)) {
            musd_t left = MIN(budget_left(&stage), budget_left(&campaign));
            return sl->price_musd_per_hour >= 0 &&
                   cost_runtime_that_fits(sl->price_musd_per_hour, st->instance_count, 0, left) <
                       st->min_runtime_s;
        }
    }
    return false;
}

/* Drain waits for what runs, and holds for want of any money; stop and hold act once the campaign's
 * own caps are spent: the rules of the controller's campaign_life.c. */
static bool falls_short(const struct world *w, const struct ctl *c, const struct sight *s,
                        int stage_i)
{
    int campaign = s->stages[stage_i].campaign_i;
    const struct db_campaign *dc = &c->campaign[campaign];
    int64_t live = s->campaigns[campaign].live;
    for (int i = 0; i < w->plan->launches_n; i++) {
        live += s->stages[w->plan->launches[i].stage_i].campaign_i == campaign;
    }
    return w->plan->reason[stage_i] == WAIT_BUDGET && !dc->budget_held &&
           (dc->at_limit == AT_LIMIT_DRAIN || spent_up(c, s, stage_i)) &&
           budget_at_limit(dc->at_limit, true, live) != BUDGET_GO_ON;
}

/* A campaign whose own money no longer does is held as its at_limit says. False: none is, or (when
 * it only asks) none is to be. */
static bool hold_for_money(struct world *w, struct ctl *c, const struct sight *s, bool only_asks)
{
    bool any = false;
    for (int i = 0; i < s->view.stages_n; i++) {
        bool is_short = falls_short(w, c, s, i);
        any |= is_short;
        if (is_short && !only_asks) {
            int campaign = s->stages[i].campaign_i;
            ((struct db_campaign *)db_touch(w, T_CAMPAIGN, (size_t)campaign))->budget_held = true;
            c->look_at_db = true;
        }
    }
    return any;
}

/* Nothing waits and no pool is kept: there is nothing to decide. */
static bool idle(const struct ctl *c)
{
    size_t waiting = c->pool_n;
    for (int i = 0; i < STAGES_MAX; i++) {
        waiting += ready_queue_n(c->mem[i].ready);
    }
    return waiting == 0;
}

void intend_tick(struct world *w, struct ctl *c)
{
    static struct intent in[SCHED_LAUNCHES_MAX];
    static struct sight s;
    struct task_of ctx = {w, c};
    if (idle(c)) {
        return;
    }
    look_round(w, c, &s, &ctx);
    sched_decide(&s.view, w->plan);
    judge_plan(w, c, &s.view, w->plan);
    for (int i = 0; i < w->plan->launches_n; i++) {
        trace(w, 0x1a4c4, (uint64_t)w->plan->launches[i].task.task_id);
    }
    for (int i = 0; i < w->plan->pool_ends_n; i++) {
        pools_end(w, c, (int)w->sched_pools[w->plan->pool_ends[i].pool_i].attempt_id - 1);
    }
    c->decide_at_us = w->plan->wake_us;
    c->decided_us = ctl_boot(w, c);
    c->rate_waits = false;
    bool reasons = false;
    for (int i = 0; i < s.view.stages_n; i++) {
        reasons |= c->stage[s.stage_of[i]].reason != w->plan->reason[i];
        w->cover->reasons[w->plan->reason[i]]++;
        c->rate_waits |= w->plan->reason[i] == WAIT_RATE;
    }
    if (w->plan->launches_n == 0 && !reasons && !hold_for_money(w, c, &s, true)) {
        return;
    }
    if (fault(w, FAULT_EDIT_IN_FLIGHT)) {
        op_strike(w, FAULT_OP_BUDGET);
    }
    if (!db_begin(w, c)) {
        return;
    }
    (void)hold_for_money(w, c, &s, false);
    if (!intend_all(w, c, &s, in)) {
        ctl_lose(w, c, "an intent could not be written");
        return;
    }
    if (db_commit(w, c)) {
        view_copy(w, c, false);
        after_commit(w, c, &s, in);
    }
}
