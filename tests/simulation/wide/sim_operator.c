/* People: they submit campaigns, change their minds, edit caps, and send requests twice. An
 * acknowledged request is never lost. */
#include "core/leader/operations.h"
#include "sim_world.h"
#include <stdio.h>

enum op_kind {
    OP_RESUME,
    OP_CANCEL,
    OP_PAUSE,
    OP_DRAIN,
    OP_RETRY,
    OP_SKIP,
    OP_BUDGET,
    OP_LIMIT,
    OP_TEND /* in the calm, what is held is resumed this often, then cancelled */
};
#define TEND_EVERY_US (30 * MINUTE)
#define TEND_MOST     4

static const char *const type_names[TYPES_MAX] = {"ml.c5.18xlarge", "ml.c5n.18xlarge",
                                                  "ml.m5.4xlarge", "ml.p4d.24xlarge"};
static const char *const stage_names[STAGES_PER_CAMPAIGN] = {"download", "index", "train"};

static void draw_retry(struct rng *r, struct spec_stage *s)
{
    if (rng_chance(r, 0.2)) {
        s->retry[CAUSE_USER_CODE] = (struct spec_retry){
            .set = true, .times = 2, .wait_from_s = 5, .wait_to_s = 30, .counts = true};
    }
    if (rng_chance(r, 0.1)) {
        s->retry[CAUSE_USER_CODE].set = s->retry[CAUSE_USER_CODE].counts = true;
        s->retry[CAUSE_USER_CODE].times = -1; /* for ever: the cap on attempts ends it */
        s->retry[CAUSE_USER_CODE].wait_to_s = 5;
    }
    if (rng_chance(r, 0.2)) {
        s->retry[CAUSE_STOPPED] = (struct spec_retry){
            .set = true, .times = 3, .wait_from_s = 1, .wait_to_s = 10, .counts = true};
    }
}

static void draw_stage(struct world *w, struct rng *r, int stage, int k, bool gang)
{
    struct spec_stage *s = &w->stage[stage];
    struct stage_nature *n = &w->nature[stage];
    s->name = stage_names[k];
    s->worker = k == 0 ? WORKER_DOWNLOAD : WORKER_NONE; /* ours writes its progress */
    s->instance_type_n = (int)between(r, 1, MIN(3, w->cfg.types));
    int first = (int)rng_below(r, (uint64_t)w->cfg.types);
    for (int i = 0; i < s->instance_type_n; i++) {
        s->instance_type[i] = w->types[(first + i) % w->cfg.types];
    }
    s->instance_count = gang ? (int)between(r, 2, 8) : 1;
    s->volume_gb = (int)between(r, 1, 4) * 30;
    n->base_s = between(r, 20, 300);
    n->per_mb_ms = between(r, 0, 1000);
    s->max_runtime_s = between(r, 1, 6) * 3600;
    s->min_runtime_s = rng_chance(r, 0.5) ? s->max_runtime_s : 1800;
    s->expect_s = rng_chance(r, 0.2) ? n->base_s + 300 * n->per_mb_ms / 1000 : 0;
    s->per_task_musd = -1;
    s->budget_musd = -1;
    s->allow_failed_ppm = between(r, 0, 5) * 10000;
    s->role = "arn:aws:iam::123456789012:role/drover";
    s->warm.keep_alive_s = rng_chance(r, 0.7) ? SPEC_KEEP_ALIVE_AUTO : between(r, 0, 3600);
    s->warm.max_idle_cost_musd = rng_chance(r, 0.8) ? -1 : between(r, 1, 100) * MUSD_PER_USD;
    s->warm.end_when_queue_empty = rng_chance(r, 0.8);
    s->spot = s->resumable = rng_chance(r, 0.2);
    if (rng_chance(r, 0.2)) {
        s->subnets_n = 2;
        s->subnets[0] = "subnet-a";
        s->subnets[1] = "subnet-b";
    }
    draw_retry(r, s);
    if (fault(w, FAULT_ALL_FAIL)) {
        n->all_fail =
            "AlgorithmError: ExecuteUserScriptError: the same in every part, exit code: 2";
    }
}

static void draw_tasks(struct world *w, struct rng *r, int n)
{
    if (w->tasks_n + (size_t)n > w->tasks_cap) {
        w->tasks_cap = MAX(512, (w->tasks_n + (size_t)n) * 2);
        w->size_mb = xrealloc(w->size_mb, w->tasks_cap * sizeof *w->size_mb);
        w->poison = xrealloc(w->poison, w->tasks_cap * sizeof *w->poison);
        w->refused = xrealloc(w->refused, w->tasks_cap * sizeof *w->refused);
    }
    for (int i = 0; i < n; i++) {
        w->size_mb[w->tasks_n] = (uint32_t)between(r, 50, 600);
        w->poison[w->tasks_n] = fault(w, FAULT_POISON);
        w->refused[w->tasks_n++] = fault(w, FAULT_REFUSED);
    }
}

static void draw_campaign(struct world *w, struct rng *r, int campaign, int parts)
{
    struct spec *sp = &w->spec[campaign];
    sp->name = "sim";
    sp->parts_limit = rng_chance(r, 0.7) ? -1 : between(r, 1, 30);
    sp->priority = (int)between(r, 0, 3) * 25;
    sp->budget_musd = -1;
    sp->at_limit = (enum at_limit)rng_below(r, 3);
    if (rng_chance(r, 0.3)) {
        sp->instances_n = 1;
        sp->instances[0] = (struct spec_limit){w->types[0], between(r, 8, 20)};
    }
    sp->stages_n = parts < 8 || w->stages_n + 3 > STAGES_MAX ? 1 : (int)between(r, 1, 3);
    for (int k = 0; k < sp->stages_n; k++) {
        bool gang = k > 0 && rng_chance(r, 0.15);
        sp->stages[k] = &w->stage[w->stages_n];
        draw_stage(w, r, w->stages_n++, k, gang);
    }
}

/* None in the calm, when people have lifted all: a submission may have waited for the store. */
static musd_t some_cap(const struct world *w, struct rng *r, double p, int64_t least_usd,
                       int64_t most_usd)
{
    musd_t cap = rng_chance(r, p) ? between(r, least_usd, most_usd) * MUSD_PER_USD : -1;
    return w->calm ? -1 : cap;
}

/* Limits and caps above campaigns, from a random stream of their own. */
static void draw_limits(struct world *w)
{
    struct rng root, r;
    rng_seed(&root, w->cfg.seed);
    rng_split(&root, "limits", &r);
    for (int i = 0; i < KINDS_MAX; i++) { /* not below what a task may need */
        w->type_limit[i] = rng_chance(&r, 0.15) ? between(&r, 8, 20) : -1;
    }
    ((struct budget *)db_row(w, T_GLOBAL, 0))->cap_musd = some_cap(w, &r, 0.15, 500, 50000);
    for (int i = 0; i < w->cfg.projects; i++) {
        ((struct budget *)db_row(w, T_PROJECT, (size_t)i))->cap_musd =
            some_cap(w, &r, 0.15, 500, 50000);
    }
}

/* The rules of every stage's guard. */
void op_guard(struct world *w, const struct breaker_rules *r)
{
    w->rules = *r;
    for (int i = 0; i < STAGES_MAX; i++) {
        w->stage[i].guard = (struct spec_guard){.canary = r->canary,
                                                .breaker_same = r->k,
                                                .breaker_of = r->n,
                                                .quarantine = r->quarantine,
                                                .hang_silent_s = 15 * 60,
                                                .hang_standstill_s = 30 * 60,
                                                .hang_start_s = 30 * 60};
    }
}

void op_plan(struct world *w)
{
    struct rng *r = &w->rng_op;
    draw_limits(w);
    for (int i = 0; i < w->cfg.types; i++) {
        w->types[i] = w->types[i + w->cfg.types] = type_names[i];
    }
    w->rules = (struct breaker_rules){.canary = 3, .k = 3, .n = 10, .quarantine = 3};
    if (rng_chance(r, 0.2)) {
        w->rules = (struct breaker_rules){0};
    }
    op_guard(w, &w->rules);
    for (int i = 0; i < PROJECTS_MAX; i++) {
        w->project_limit[i] = rng_chance(r, 0.1) ? between(r, 1, 20) : -1;
    }
    w->global_limit = rng_chance(r, 0.1) ? between(r, 1, 30) : -1;
    int parts = MAX(1, w->cfg.parts / w->cfg.campaigns);
    for (int i = 0; i < w->cfg.campaigns; i++) {
        draw_campaign(w, r, i, parts);
        ev_push(w, i == 0 ? 0 : between(r, 0, w->fault_until_us / 2), EV_SUBMIT, 0, 0, i, parts);
    }
    w->campaigns_n = w->cfg.campaigns;
}

static void add_stage(struct world *w, int campaign, int stage, int k, int parts)
{
    struct rng *r = &w->rng_op;
    int task0 = (int)w->db.t[T_TASK].n;
    musd_t per_task = some_cap(w, r, 0.1, 200, 2000);
    draw_tasks(w, r, parts);
    size_t id = db_add(w, T_STAGE);
    ASSERT((int)id == stage);
    w->stage[stage].needs_n = k > 0 && rng_chance(r, 0.7);
    w->stage[stage].needs[0] = k > 0 ? w->stage[stage - 1].name : NULL;
    struct db_stage *s = STAGE(w, id);
    *s = (struct db_stage){.campaign = campaign,
                           .task0 = task0,
                           .tasks_n = parts,
                           .state = STAGE_BLOCKED,
                           .reason = WAIT_NEW,
                           .money = {.cap_musd = some_cap(w, r, 0.1, 100, 5000)},
                           .parts_limit = rng_chance(r, 0.1) ? between(r, 1, 20) : -1};
    s->counts[TASK_WAITING] = parts;
    if (per_task >= 0) {
        w->stage[stage].per_task_musd = per_task;
    }
    for (int i = 0; i < parts; i++) {
        size_t t = db_add(w, T_TASK);
        *TASK(w, t) = (struct db_task){
            .stage = stage, .state = TASK_WAITING, .newest = -1, .money = {.cap_musd = per_task}};
    }
}

/* Stages get their ids in the order of submission, so the drawn values are copied there. */
void op_submit(struct world *w, int campaign, int parts)
{
    struct rng *r = &w->rng_op;
    if (fault_open(w, FAULT_STORE_DOWN)) { /* the client tries again */
        ev_push(w, w->now_us + 5 * SEC, EV_SUBMIT, 0, 0, campaign, parts);
        return;
    }
    db_begin_api(w);
    size_t id = db_add(w, T_CAMPAIGN);
    if ((int)id != campaign) { /* another was to come first */
        db_abort(w);
        ev_push(w, w->now_us + 5 * SEC, EV_SUBMIT, 0, 0, campaign, parts);
        return;
    }
    const struct spec *sp = &w->spec[campaign];
    int stage0 = (int)w->db.t[T_STAGE].n;
    *CAMPAIGN(w, id) = (struct db_campaign){.project = (int)rng_below(r, (uint64_t)w->cfg.projects),
                                            .priority = sp->priority,
                                            .stage0 = stage0,
                                            .stages_n = sp->stages_n,
                                            .state = CAMPAIGN_PLANNED,
                                            .wanted = WANTED_RUN,
                                            .weight = between(r, 1, 4) * 50,
                                            .parts_limit = sp->parts_limit,
                                            .version = 1,
                                            .submitted_us = w->now_us,
                                            .at_limit = sp->at_limit,
                                            .money = {.cap_musd = some_cap(w, r, 0.3, 200, 20000)}};
    for (int k = 0; k < sp->stages_n; k++) {
        bool gang = w->stage[stage0 + k].instance_count > 1;
        int n = gang ? (int)between(r, 1, 3) : MAX(1, parts / sp->stages_n);
        add_stage(w, campaign, stage0 + k, k, n);
    }
    db_commit_api(w, true);
    tell(w, -1, "campaign %d is submitted: %d stages, %d parts", campaign, sp->stages_n, parts);
    trace(w, 0x5b317, (uint64_t)campaign);
}

static void edit_cap(struct world *w, struct rng *r, int campaign)
{
    const struct db_campaign *dc = CAMPAIGN(w, campaign);
    struct budget *b;
    switch (rng_below(r, 4)) {
    case 0:
        b = db_touch(w, T_PROJECT, (size_t)dc->project);
        break;
    case 1:
        b = db_touch(w, T_GLOBAL, 0);
        break;
    case 2:
        b = &((struct db_stage *)db_touch(w, T_STAGE, (size_t)dc->stage0))->money;
        break;
    default:
        b = &((struct db_campaign *)db_touch(w, T_CAMPAIGN, (size_t)campaign))->money;
        break;
    }
    int64_t used = b->reserved_musd + b->spent_musd;
    bool cut = rng_chance(r, 0.15); /* to what is spent: nothing fits any more */
    b->cap_musd = cut                  ? b->spent_musd
                  : rng_chance(r, 0.3) ? -1
                                       : between(r, used / 2, used * 2 + 500 * MUSD_PER_USD);
    for (size_t i = 0; i < w->db.t[T_CAMPAIGN].n; i++) {
        ((struct db_campaign *)db_touch(w, T_CAMPAIGN, i))->version++;
    }
}

static void wish(struct world *w, struct db_campaign *dc, int campaign, enum verb v)
{
    static const enum wanted wanted[] = {[VERB_PAUSE] = WANTED_PAUSE,
                                         [VERB_RESUME] = WANTED_RUN,
                                         [VERB_DRAIN] = WANTED_DRAIN,
                                         [VERB_CANCEL] = WANTED_CANCEL};
    if (verb_refused(verb_answer_any(v, dc->state, dc->wanted))) {
        return;
    }
    dc->wanted = wanted[v];
    w->judge.stop_wished[campaign] |= v == VERB_CANCEL || v == VERB_PAUSE;
    if (v == VERB_CANCEL) {
        judge_cancel(w, campaign);
    }
    tell(w, -1, "campaign %d: %s is wanted", campaign, wanted_name(dc->wanted));
}

/* A person resumes a held stage. */
static void resume_stages(struct world *w, const struct db_campaign *dc)
{
    for (int s = dc->stage0; s < dc->stage0 + dc->stages_n; s++) {
        if (STAGE(w, s)->state == STAGE_HELD) {
            ((struct db_stage *)db_touch(w, T_STAGE, (size_t)s))->resumes++;
        }
    }
}

static bool is_held(struct world *w, const struct db_campaign *dc)
{
    bool held = dc->state == CAMPAIGN_HELD || dc->state == CAMPAIGN_PAUSED;
    for (int s = dc->stage0; s < dc->stage0 + dc->stages_n; s++) {
        held |= STAGE(w, s)->state == STAGE_HELD;
    }
    return held;
}

static void tend(struct world *w, int campaign)
{
    const struct db_campaign *dc = CAMPAIGN(w, campaign);
    ev_push(w, w->now_us + TEND_EVERY_US, EV_OPERATE, 0, 0, OP_TEND, campaign);
    if (is_held(w, dc)) {
        op_do(w, w->tended[campaign]++ < TEND_MOST ? OP_RESUME : OP_CANCEL, campaign);
    }
}

void op_do(struct world *w, int kind, int campaign)
{
    struct rng *r = &w->rng_op;
    if (fault_open(w, FAULT_STORE_DOWN)) {
        ev_push(w, w->now_us + 5 * SEC, EV_OPERATE, 0, 0, kind, campaign);
        return;
    }
    if (kind == OP_TEND) {
        tend(w, campaign);
        return;
    }
    if (w->calm && (kind == OP_BUDGET || kind == OP_LIMIT)) {
        return; /* it was sent while the store was down and is obsolete */
    }
    db_begin_api(w);
    struct db_campaign *dc = db_touch(w, T_CAMPAIGN, (size_t)campaign);
    dc->version++;
    switch ((enum op_kind)kind) {
    case OP_TEND:
        break;
    case OP_RESUME:
        SOMETIMES(w, RESUMED);
        wish(w, dc, campaign, VERB_RESUME);
        resume_stages(w, dc);
        break;
    case OP_CANCEL:
        wish(w, dc, campaign, VERB_CANCEL);
        break;
    case OP_PAUSE:
    case OP_DRAIN:
        wish(w, dc, campaign, kind == OP_PAUSE ? VERB_PAUSE : VERB_DRAIN);
        ev_push(w, w->now_us + between(r, 1, 30) * MINUTE, EV_OPERATE, 0, 0, OP_RESUME, campaign);
        break;
    case OP_RETRY:
    case OP_SKIP: {
        size_t id = db_add(w, T_OP);
        *(struct db_op *)db_row(w, T_OP, id) =
            (struct db_op){.campaign = campaign, .skip = kind == OP_SKIP};
        break;
    }
    case OP_BUDGET:
        edit_cap(w, r, campaign);
        break;
    case OP_LIMIT:
        dc->parts_limit = rng_chance(r, 0.4) ? -1 : between(r, 1, 30);
        dc->priority = (int)between(r, 0, 4) * 25;
        dc->weight = between(r, 1, 4) * 50;
        w->project_limit[dc->project] = rng_chance(r, 0.6) ? -1 : between(r, 1, 20);
        w->global_limit = rng_chance(r, 0.6) ? -1 : between(r, 1, 30);
        break;
    }
    db_commit_api(w, true);
    trace(w, 0x09e4a7e, (uint64_t)kind * 64 + (uint64_t)campaign);
}

void op_strike(struct world *w, enum harm f)
{
    static const int kinds[] = {[0] = OP_CANCEL,
                                [FAULT_OP_PAUSE - FAULT_OP_CANCEL] = OP_PAUSE,
                                [FAULT_OP_DRAIN - FAULT_OP_CANCEL] = OP_DRAIN,
                                [FAULT_OP_RETRY - FAULT_OP_CANCEL] = OP_RETRY,
                                [FAULT_OP_SKIP - FAULT_OP_CANCEL] = OP_SKIP,
                                [FAULT_OP_BUDGET - FAULT_OP_CANCEL] = OP_BUDGET,
                                [FAULT_OP_LIMIT - FAULT_OP_CANCEL] = OP_LIMIT};
    if (w->db.t[T_CAMPAIGN].n == 0 || f > FAULT_OP_LIMIT) {
        return;
    }
    int campaign = (int)rng_below(&w->rng_fault[f], w->db.t[T_CAMPAIGN].n);
    int kind = kinds[f - FAULT_OP_CANCEL];
    op_do(w, kind, campaign);
    if (kind != OP_BUDGET && kind != OP_LIMIT && fault(w, FAULT_OP_TWICE)) {
        SOMETIMES(w, DUPLICATE_REQUEST);
        op_do(w, kind, campaign);
    }
}

/* The world becomes calm: people resume what they held, and caps and quotas are lifted. */
void op_calm(struct world *w)
{
    for (int i = 0; i < w->kinds; i++) {
        w->aws.quota[i] = MAX(w->aws.quota[i], 18);
        w->aws.foreign[i] = 0;
        w->aws.no_capacity[i] = false;
        w->aws.price_known[i] = true;
    }
    w->aws.total_quota[MARKET_ON_DEMAND] = w->aws.total_quota[MARKET_SPOT] = -1;
    w->aws.per_job = w->aws.longest_run_s = w->aws.volume_gb = -1;
    w->global_limit = -1;
    for (int i = 0; i < PROJECTS_MAX; i++) {
        w->project_limit[i] = -1;
    }
    db_begin_api(w);
    for (int i = 0; i < w->cfg.projects; i++) {
        ((struct budget *)db_touch(w, T_PROJECT, (size_t)i))->cap_musd = -1;
    }
    ((struct budget *)db_touch(w, T_GLOBAL, 0))->cap_musd = -1;
    for (size_t i = 0; i < w->db.t[T_TASK].n; i++) {
        if (TASK(w, i)->money.cap_musd >= 0) {
            ((struct db_task *)db_touch(w, T_TASK, i))->money.cap_musd = -1;
        }
    }
    for (size_t i = 0; i < w->db.t[T_STAGE].n; i++) {
        ((struct db_stage *)db_touch(w, T_STAGE, i))->money.cap_musd = -1;
        w->stage[i].per_task_musd = -1;
    }
    for (size_t i = 0; i < w->db.t[T_CAMPAIGN].n; i++) {
        struct db_campaign *dc = db_touch(w, T_CAMPAIGN, i);
        dc->money.cap_musd = -1;
        dc->parts_limit = -1;
        dc->version++;
        w->spec[i].instances_n = 0;
    }
    db_commit_api(w, true);
    for (int i = 0; i < w->campaigns_n; i++) {
        ev_push(w, w->now_us + MINUTE, EV_OPERATE, 0, 0, OP_RESUME, i);
        ev_push(w, w->now_us + TEND_EVERY_US, EV_OPERATE, 0, 0, OP_TEND, i);
    }
}
