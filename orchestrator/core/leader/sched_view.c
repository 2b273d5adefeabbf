/* See sched_view.h. O(live + stages of campaigns that do not rest). */
#include "sched_view.h"
#include "attempt.h"
#include "awake.h"
#include "core/money/cost.h"
#include "core/sched/ready_queue.h"
#include "core/sched/wait_reason.h"
#include "filesystem_use.h"
#include "intents.h"
#include "quota_learning.h"
#include "stage_history.h"
#include <stdlib.h>

#define START_COLD_US  (180 * USEC_PER_SEC) /* before any start was seen */
#define START_WARM_US  (30 * USEC_PER_SEC)
#define UPLOAD_P50_US  (30 * USEC_PER_SEC)
#define UPLOAD_P90_US  (300 * USEC_PER_SEC)
#define STOP_P50_US    (60 * USEC_PER_SEC)
#define STOP_P90_US    (150 * USEC_PER_SEC)
#define OWN_WORD_SLACK 5 /* a job's own progress is right within a fifth of what is left */

int64_t sched_view_unsent(const struct leader_state *s)
{
    int64_t unsent = 0;
    for (size_t i = 0; i < s->attempts_n; i++) {
        const struct live_attempt *a = s->attempts[i];
        unsent +=
            a->p.state == ATTEMPT_INTENDED && !a->p.create_in_flight && !leader_attempt_unasked(a);
    }
    return unsent;
}

static musd_t left_of(musd_t cap_musd, musd_t reserved_musd, musd_t spent_musd)
{
    return budget_left(&(struct budget){
        .cap_musd = cap_musd, .reserved_musd = reserved_musd, .spent_musd = spent_musd});
}

static bool change_of(void *ctx, int64_t task_id, int *ret_type_i, int *ret_volume_gb,
                      int64_t *ret_max_runtime_s)
{
    const struct task_change_row *ch = leader_state_change(ctx, task_id, false);
    if (ch == NULL) {
        return false;
    }
    *ret_type_i = ch->instance_type_i;
    *ret_volume_gb = ch->volume_gb;
    *ret_max_runtime_s = ch->max_runtime_s;
    return true;
}

static musd_t spent_of(void *ctx, int64_t task_id)
{
    const struct task_change_row *ch = leader_state_change(ctx, task_id, false);
    return ch == NULL ? 0 : ch->spent_musd;
}

enum wait_reason sched_view_why_not(const struct live_campaign *lc, const struct live_stage *ls,
                                    usec_t now_us)
{
    if (lc->set_aside != WAIT_NONE) {
        return lc->set_aside;
    }
    if (ls->row.state == STAGE_BLOCKED) {
        return WAIT_STAGE_BLOCKED;
    }
    if (ls->row.state != STAGE_RUNNING) {
        return ls->breaker.tripped ? WAIT_BREAKER : WAIT_HELD;
    }
    if (lc->row.wanted != WANTED_RUN || lc->row.state == CAMPAIGN_PAUSED ||
        lc->row.state == CAMPAIGN_DRAINING) {
        return WAIT_PAUSED;
    }
    if (lc->row.state == CAMPAIGN_RUNNING) {
        return leader_no_start(ls, now_us) ? WAIT_BACKOFF : WAIT_NONE;
    }
    bool budget = lc->budget_short || lc->waits_for_person;
    return ls->cap_short != WAIT_NONE ? ls->cap_short : budget ? WAIT_BUDGET : WAIT_HELD;
}

/* A part that is launched while the file system that it mounts is not available would be put back,
 * with a launch spent and an alert. */
static enum wait_reason why_not(const struct leader_state *s, const struct live_campaign *lc,
                                const struct live_stage *ls, usec_t now_us)
{
    enum wait_reason why = sched_view_why_not(lc, ls, now_us);
    bool going = why == WAIT_NONE && ls->spec != NULL && leader_filesystem_going(s, lc, ls->spec);
    return going ? WAIT_FILESYSTEM : why;
}

/* n items of `size` bytes out of a block; *used is what was taken before. Without a block it is
 * only counted. */
static void *carve(char *block, size_t *used, size_t n, size_t size)
{
    size_t at = *used;
    *used += (n * size + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    return block != NULL ? block + at : NULL;
}

static size_t lay_out(const struct leader_state *st, char *block, struct leader_view *f)
{
    size_t used = 0;
    size_t stages = 0;
    for (size_t i = 0; i < st->awake->n; i++) {
        stages += (size_t)st->awake->campaigns[i]->stages_n;
    }
    /* One that rests is there when an attempt of it still holds slots. */
    size_t campaigns = MIN(st->campaigns_n, st->awake->n + st->attempts_n);
    f->projects = carve(block, &used, st->projects_n, sizeof *f->projects);
    f->stages = carve(block, &used, stages, sizeof *f->stages);
    f->live_stages = carve(block, &used, stages, sizeof(struct live_stage *));
    f->live_campaigns = carve(block, &used, stages, sizeof(struct live_campaign *));
    f->campaigns = carve(block, &used, campaigns, sizeof *f->campaigns);
    f->jobs = carve(block, &used, st->attempts_n, sizeof *f->jobs);
    f->pools = carve(block, &used, st->pools_n, sizeof *f->pools);
    f->live_pools = carve(block, &used, st->pools_n, sizeof(struct live_pool *));
    return used;
}

static void fill_projects(struct leader_state *st, struct leader_view *f)
{
    for (size_t i = 0; i < st->projects_n; i++) {
        const struct project_row *p = &st->projects[i];
        musd_t left = left_of(p->cap_musd, p->reserved_musd, p->spent_musd);
        if (p->id == 0) {
            f->view.parts_limit = p->parts_limit;
            f->view.left_musd = left;
            continue;
        }
        f->projects[f->view.projects_n++] = (struct sched_project){.project_id = p->id,
                                                                   .weight = p->weight,
                                                                   .parts_limit = p->parts_limit,
                                                                   .left_musd = left};
    }
    f->view.projects = f->projects;
}

static int project_of(const struct leader_view *f, int64_t project_id)
{
    for (int i = 0; i < f->view.projects_n; i++) {
        if (f->projects[i].project_id == project_id) {
            return i;
        }
    }
    BUG("a campaign of no project");
}

static void fill_campaign(struct live_campaign *lc, struct leader_view *f)
{
    const struct campaign_row *r = &lc->row;
    int project_i = project_of(f, r->project_id);
    lc->view_i = f->view.campaigns_n++;
    f->projects[project_i].live += lc->live;
    f->view.live += lc->live;
    f->campaigns[lc->view_i] =
        (struct sched_campaign){.campaign_id = r->id,
                                .project_i = project_i,
                                .weight = MAX(1, r->weight),
                                .live = lc->live,
                                .last_start_us = lc->last_start_us,
                                .parts_limit = r->parts_limit,
                                .left_musd = left_of(r->cap_musd, r->reserved_musd, r->spent_musd),
                                .idle_spent_musd = r->warm_musd};
}

static void fill_stage(struct live_campaign *lc, struct live_stage *ls, enum wait_reason why,
                       struct sched_stage *ret)
{
    duration_fit(&ls->duration);
    *ret = (struct sched_stage){
        .campaign_id = lc->row.id,
        .stage_id = ls->row.id,
        .spec = lc->spec,
        .stage = ls->spec,
        .ready = ls->ready,
        .may_start = why == WAIT_NONE,
        .why_not = why,
        .priority = lc->row.priority,
        .campaign_i = lc->view_i,
        .live = ls->row.counts[TASK_ACTIVE],
        .parts_limit = ls->row.parts_limit,
        .stage_left_musd = left_of(ls->row.cap_musd, ls->row.reserved_musd, ls->row.spent_musd),
        .part_cap_musd = left_of(ls->row.per_task_musd, 0, 0),
        .duration = duration_known(&ls->duration) ? &ls->duration : NULL,
        .ladder = &ls->ladder,
        .breaker = &ls->breaker,
        .breaker_rules = ls->rules,
        .warm = warm_pool_policy_of(&ls->spec->warm),
        .prints = &ls->prints,
        .cold_start_s = ls->cold.n > 0 ? MAX(1, ls->cold.us / USEC_PER_SEC) : 0,
        .warm_start_s = ls->warm.n > 0 ? MAX(1, ls->warm.us / USEC_PER_SEC) : 0,
        .reservation = ls->spec->instance_count > 1 ? &ls->reservation : NULL,
    };
}

static bool waits(const struct live_stage *ls)
{
    return ls->spec != NULL && ready_queue_n(ls->ready) > 0;
}

/* No part of it may start, and why is written: a plan adds nothing. */
static bool is_told(const struct live_stage *ls, enum wait_reason why)
{
    return why != WAIT_NONE && why == ls->reason && ls->reservation.task_id == 0;
}

/* Nothing runs, and of no stage has anything to be said, done or written. */
static bool may_rest(const struct leader_state *s, const struct live_campaign *lc, usec_t now_us)
{
    struct stage_history_write ignored;
    if (lc->live > 0 || lc->pools_n > 0) {
        return false;
    }
    for (int k = 0; k < lc->stages_n; k++) {
        const struct live_stage *ls = &lc->stages[k];
        enum wait_reason why = why_not(s, lc, ls, now_us);
        bool told = waits(ls) ? is_told(ls, why) : ls->reservation.task_id == 0;
        /* A pause ends by itself, a file system moves: nobody wakes the campaign then. */
        if (!told || !wait_reason_row(why)->woken || stage_history_plan(ls, &ignored)) {
            return false;
        }
    }
    return true;
}

const struct live_campaign *sched_view_overslept(const struct leader_state *s, usec_t now_us)
{
    for (size_t i = 0; i < s->campaigns_n; i++) {
        if (s->campaigns[i]->rests && !may_rest(s, s->campaigns[i], now_us)) {
            return s->campaigns[i];
        }
    }
    return NULL;
}

/* Is it left out of the plan? Not while a limit of its pools is looked up by it, nor when it tells
 * that it or its campaign waits for money. */
static bool left_out(const struct live_campaign *lc, const struct live_stage *ls,
                     enum wait_reason why)
{
    return is_told(ls, why) && wait_reason_row(why)->binds != WAIT_BINDS_MONEY && lc->pools_n == 0;
}

static void fill_stages_of(struct leader_state *st, struct live_campaign *lc, struct leader_view *f)
{
    for (int k = 0; k < lc->stages_n; k++) {
        struct live_stage *ls = &lc->stages[k];
        if (!waits(ls)) { /* nothing is promised any more */
            ls->left_out = false;
            ls->reservation = (struct reservation){.owed = ls->reservation.owed};
            continue;
        }
        enum wait_reason why = why_not(st, lc, ls, f->view.now_us);
        ls->left_out = left_out(lc, ls, why);
        if (ls->left_out) {
            continue;
        }
        for (int t = 0; t < ls->spec->instance_type_n; t++) {
            (void)leader_state_slots(st, ls->spec->instance_type[t],
                                     ls->spec->spot ? MARKET_SPOT : MARKET_ON_DEMAND);
        }
        f->live_stages[f->view.stages_n] = ls;
        f->live_campaigns[f->view.stages_n] = lc;
        fill_stage(lc, ls, why, &f->stages[f->view.stages_n++]);
    }
}

static void fill_stages(struct leader_state *st, struct leader_view *f)
{
    for (size_t i = 0; i < st->awake->n;) {
        struct live_campaign *lc = st->awake->campaigns[i];
        if (may_rest(st, lc, f->view.now_us)) {
            campaign_rest(lc); /* the next one comes into its place */
            continue;
        }
        fill_campaign(lc, f);
        fill_stages_of(st, lc, f);
        i++;
    }
    f->view.stages = f->stages;
    f->view.campaigns = f->campaigns;
}

static int slots_index(const struct leader_view *f, const char *instance_type, enum market market)
{
    for (int i = 0; i < f->view.slots_n; i++) {
        if (f->slots[i].market == market && strcmp(f->slots[i].instance_type, instance_type) == 0) {
            return i;
        }
    }
    BUG("instances of a type without slots");
}

static void fill_slots(struct leader_state *st, struct leader_view *f)
{
    f->slots = xmalloc((st->slots_n + 1) * sizeof *f->slots);
    f->account = st->account;
    for (int m = 0; m < MARKET_COUNT; m++) {
        f->account.total[m].held = 0;
    }
    for (size_t i = 0; i < st->slots_n; i++) {
        struct quota_ledger *s = &f->slots[i];
        if (quota_learning_slots(&st->slots[i], f->view.now_us, s)) {
            struct quota_ledger_total *t = &f->account.total[s->market];
            t->foreign = MAX(
                0, quota_ledger_total_foreign(&st->account.total[s->market], f->view.now_us) - 1);
            t->foreign_us = f->view.now_us;
        }
        s->warm_held = 0;
        f->account.total[s->market].held += s->held + s->warm_idle;
    }
    f->view.slots = f->slots;
    f->view.slots_n = (int)st->slots_n;
    f->view.account = &f->account;
}

static int64_t start_left_us(const struct live_attempt *a, usec_t now_us)
{
    const struct start_time *t = a->row.pool_id > 0 ? &a->stage->warm : &a->stage->cold;
    int64_t unknown = a->row.pool_id > 0 ? START_WARM_US : START_COLD_US;
    int64_t whole = t->n > 0 ? t->us : unknown;
    usec_t from = a->row.created_us > 0 ? a->row.created_us : a->row.intended_us;
    return MAX(0, from + whole - now_us);
}

/* When its slots come back, by what is known: its own progress, else how long such parts run. */
static void expect_end(const struct live_attempt *a, usec_t now_us, struct sched_job *j)
{
    usec_t own = hang_detector_expected_end_us(&a->hang, a->running_us, now_us);
    int64_t elapsed_us = MAX(0, now_us - j->run_from_us);
    if (a->p.state == ATTEMPT_STOPPING || a->p.state == ATTEMPT_UPLOADING) {
        bool stops = a->p.state == ATTEMPT_STOPPING;
        usec_t from = a->ending_us > 0 ? a->ending_us : now_us;
        j->end_p50_us = MAX(now_us, from + (stops ? STOP_P50_US : UPLOAD_P50_US));
        j->end_p90_us = MAX(now_us, from + (stops ? STOP_P90_US : UPLOAD_P90_US));
    } else if (a->p.state == ATTEMPT_RUNNING && own != USEC_NEVER) {
        j->end_p50_us = own;
        j->end_p90_us = own + (own - now_us) / OWN_WORD_SLACK;
    } else if (j->duration != NULL) {
        usec_t base = MAX(now_us, j->run_from_us);
        j->end_p50_us = base + duration_remaining_us(j->duration, j->size_mb, elapsed_us, 50);
        j->end_p90_us = base + duration_remaining_us(j->duration, j->size_mb, elapsed_us, 90);
    } else {
        j->end_p50_us = j->end_p90_us = USEC_NEVER;
    }
    j->end_p50_us = MIN(j->end_p50_us, j->last_us);
    j->end_p90_us = MIN(j->end_p90_us, j->last_us);
}

static void fill_job(const struct live_attempt *a, const struct leader_view *f, int campaign_i,
                     struct sched_job *j)
{
    usec_t now_us = f->view.now_us;
    bool runs = a->row.started_us > 0 && a->p.state >= ATTEMPT_RUNNING;
    *j = (struct sched_job){
        .attempt_id = a->row.id,
        .task_id = a->row.task_id,
        .stage_id = a->row.stage_id,
        .campaign_i = campaign_i,
        .slots_i = slots_index(f, a->row.instance_type, a->row.market),
        .instances = a->row.instances,
        .duration = duration_known(&a->stage->duration) ? &a->stage->duration : NULL,
        .size_mb = size_mb_of(a->row.size),
        .run_from_us = runs ? a->row.started_us : now_us + start_left_us(a, now_us)};
    j->last_us =
        j->run_from_us + (a->row.max_runtime_s + COST_STOP_GRACE_S + COST_UPLOAD_S) * USEC_PER_SEC;
    j->last_us = MAX(j->last_us, now_us);
    expect_end(a, now_us, j);
}

static int campaign_of(struct leader_view *f, struct live_campaign *lc)
{
    int i = lc->view_i; /* of this view, or of an older one */
    if (i >= f->view.campaigns_n || f->campaigns[i].campaign_id != lc->row.id) {
        fill_campaign(lc, f);
    }
    return lc->view_i;
}

static void fill_jobs(struct leader_state *st, struct leader_view *f)
{
    for (size_t i = 0; i < st->attempts_n; i++) {
        struct live_attempt *a = st->attempts[i];
        if (!a->row.holds) {
            continue;
        }
        int campaign_i = campaign_of(f, a->campaign);
        struct sched_campaign *sc = &f->campaigns[campaign_i];
        duration_fit(&a->stage->duration);
        struct sched_project *sp = &f->projects[sc->project_i];
        sc->held += a->row.instances;
        sp->held += a->row.instances;
        sc->last_start_us = MAX(sc->last_start_us, a->row.intended_us);
        sp->last_start_us = MAX(sp->last_start_us, sc->last_start_us);
        int limits_n = a->campaign->spec != NULL ? a->campaign->spec->instances_n : 0;
        for (int k = 0; k < limits_n; k++) {
            if (strcmp(a->campaign->spec->instances[k].instance_type, a->row.instance_type) == 0) {
                sc->type_held[k] += a->row.instances;
            }
        }
        a->job_i = f->view.jobs_n++;
        fill_job(a, f, campaign_i, &f->jobs[a->job_i]);
    }
    f->view.jobs = f->jobs;
}

/* When an expected pool comes: now, when its job ends or has ended; else as its job's end does. */
static usec_t pool_due(const struct leader_view *f, const struct live_pool *p)
{
    const struct live_attempt *a = p->attempt;
    if (a == NULL) {
        return p->row.available_us > 0 ? p->row.available_us : f->view.now_us;
    }
    if (a->ending_us > 0 || !a->row.holds) {
        return a->ending_us > 0 ? a->ending_us : f->view.now_us;
    }
    return f->jobs[a->job_i].end_p50_us;
}

static void fill_pools(struct leader_state *st, struct leader_view *f)
{
    for (size_t i = 0; i < st->pools_n; i++) {
        struct live_pool *p = st->pools[i];
        if (p->row.taken_by != 0) {
            continue; /* its slots are that attempt's, which stands for it */
        }
        const struct live_stage *ls = leader_state_stage(p->campaign, p->row.stage_id);
        bool there = p->row.state == POOL_AVAILABLE && p->seen;
        int slots_i = slots_index(f, p->row.instance_type, MARKET_ON_DEMAND);
        f->slots[slots_i].warm_held += p->row.instances;
        f->live_pools[f->view.pools_n] = p;
        f->pools[f->view.pools_n++] = (struct warm_pool){
            .attempt_id = p->row.attempt_id,
            .campaign_id = p->row.campaign_id,
            .stage_id = p->row.stage_id,
            .fingerprint = p->row.fingerprint,
            .slots_i = slots_i,
            .instances = p->row.instances,
            .state = there ? POOL_AVAILABLE : POOL_EXPECTED,
            .keep_alive_s = p->row.keep_alive_s,
            .available_us = there ? p->row.available_us : pool_due(f, p),
            .expires_us = p->row.expires_us,
            .price_musd_per_hour = p->row.price_musd_per_hour,
            .ending = p->wants_end || p->over_us > 0,
            .stays = ls != NULL && ls->spec != NULL && !ls->spec->warm.end_when_queue_empty};
    }
    f->view.pools = f->pools;
}

void sched_view_make(struct leader_state *st, usec_t now_us, int64_t tokens,
                     struct leader_view *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->view.now_us = now_us;
    ret->view.tokens = tokens;
    ret->view.change_of = change_of;
    ret->view.spent_of = spent_of;
    ret->view.ctx = st;
    ret->block = xmalloc(lay_out(st, NULL, ret) + 1);
    (void)lay_out(st, ret->block, ret);
    fill_projects(st, ret);
    fill_stages(st, ret);
    fill_slots(st, ret);
    fill_jobs(st, ret);
    fill_pools(st, ret);
}

void sched_view_done(struct leader_view *f)
{
    free(f->block);
    free(f->slots);
}
