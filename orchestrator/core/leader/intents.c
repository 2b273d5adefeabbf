/* See intents.h. */
#include "intents.h"
#include "attempt.h"
#include "budget_state.h"
#include "common/hash.h"
#include "core/lowering/training_request.h"
#include "core/money/cost.h"
#include "core/sched/wait_reason.h"
#include "core/spec/spec_expand.h"
#include "filesystem_use.h"
#include "parking.h"
#include <stdio.h>

#define PLAN_AGAIN_MIN_US (100 * USEC_PER_MSEC)
#define PLAN_AT_ONCE_US   USEC_PER_SEC         /* more is left than one plan may try */
#define PUT_BACK_MAX_US   (120 * USEC_PER_SEC) /* when it has been refused for as long */

struct launch_facts leader_launch_facts(const struct leader_view *v, const struct sched_plan *plan,
                                        int i, struct task_input *task)
{
    const struct sched_launch *l = &plan->launches[i];
    return (struct launch_facts){.launch = l,
                                 .stage = &v->stages[l->stage_i],
                                 .campaign = v->live_campaigns[l->stage_i],
                                 .slots = &v->slots[l->slots_i],
                                 .account = &v->account,
                                 .pool_id = l->pool_i >= 0 ? v->live_pools[l->pool_i]->row.id : 0,
                                 .task = task};
}

void leader_intent_identity(const struct leader_state *s, const char *nonce,
                            const struct intent *in, uint8_t ret[static 32])
{
    char text[200];
    int n = snprintf(text, sizeof text, "%s%s%s/%lld/%lld/%lld/%d", s->install_id,
                     nonce[0] != '\0' ? "/" : "", nonce, (long long)in->campaign_id,
                     (long long)in->stage_id, (long long)in->task_id, in->n);
    hash_sha256(text, (size_t)n, ret);
}

/* What ours of this type may be, others' use and every limit taken off: -1 unreadable. */
static int64_t slot_limit(const struct launch_facts *f, usec_t now_us)
{
    if (quota_ledger_limit(f->slots, f->account) < 0) {
        return -1;
    }
    return f->slots->held + f->slots->warm_idle + quota_ledger_free(f->slots, f->account, now_us);
}

void leader_plan_intent(const struct leader_state *s, const struct launch_facts *f,
                        int64_t attempt_id, const char *job_prefix, usec_t now_us,
                        struct intent *ret)
{
    const struct sched_launch *l = f->launch;
    const struct sched_stage *ss = f->stage;
    uint8_t id[32];
    *ret = (struct intent){.campaign_id = ss->campaign_id,
                           .project_id = f->campaign->row.project_id,
                           .stage_id = ss->stage_id,
                           .task_id = l->task.task_id,
                           .seq = f->task->seq,
                           .n = f->task->names + 1,
                           .instances = ss->stage->instance_count,
                           .volume_gb = l->volume_gb,
                           .max_runtime_s = l->max_runtime_s,
                           .price_musd_per_hour = f->slots->price_musd_per_hour,
                           .reserve_musd = l->reserve_musd,
                           .market = f->slots->market,
                           .keep_alive_s = s->keep_alive_max_s >= 0
                                               ? MIN(l->keep_alive_s, s->keep_alive_max_s)
                                               : l->keep_alive_s,
                           .instance_type_i = l->instance_type_i,
                           .subnet_i = l->subnet_i,
                           .fingerprint = warm_pool_fingerprint_of(ss->stage, l->instance_type_i,
                                                                   l->volume_gb, l->subnet_i),
                           .pool_id = f->pool_id,
                           .slot_limit = slot_limit(f, now_us),
                           .attempt_id = attempt_id};
    memcpy(ret->instance_type, f->slots->instance_type, sizeof ret->instance_type);
    ret->collects = ss->stage->training != NULL && ss->stage->training->metrics_n > 0;
    leader_intent_identity(s, f->campaign->row.nonce, ret, id);
    protocol_job_name(job_prefix, ret->campaign_id, ss->stage->name, f->task->seq, ret->n, id,
                      &ret->name);
}

static void plan_no_request(struct intent *in, const struct err *why, struct buf *ret)
{
    buf_reset(ret);
    buf_addf(ret, ATTEMPT_NO_REQUEST_WHY "%s", why->message);
    in->no_request = buf_cstr(ret);
    in->request = STR(ATTEMPT_NO_REQUEST);
    hash_sha256_hex(in->name.s, strlen(in->name.s), in->identity_hash); /* of nothing sent */
}

bool leader_plan_request(const struct leader_state *s, const struct launch_facts *f,
                         const char *region, struct intent *in, struct buf *ret, struct err *err)
{
    const struct sched_stage *ss = f->stage;
    const struct spec_task task = {.campaign_id = in->campaign_id,
                                   .stage_name = ss->stage->name,
                                   .task_id = in->task_id,
                                   .seq = f->task->seq,
                                   .uri = f->task->uri,
                                   .size = f->task->size,
                                   .attempt_n = in->n,
                                   .vars = f->vars};
    struct request_volume volumes[SPEC_CHANNELS_MAX];
    const struct training_request_input li = {
        .volumes = volumes,
        .volumes_n = leader_filesystem_volumes(s, in->campaign_id, ss->stage, volumes),
        .spec = ss->spec,
        .stage = ss->stage,
        .task = &task,
        .name = &in->name,
        .attempt_id = in->attempt_id,
        .instance_type = in->instance_type,
        .volume_gb = in->volume_gb,
        .max_runtime_s = in->max_runtime_s,
        .keep_alive_s = in->keep_alive_s,
        .subnet = in->subnet_i >= 0 ? ss->stage->subnets[in->subnet_i] : NULL,
        .install_id = s->install_id,
        .region = region};
    if (training_request_make(&li, ret, in->identity_hash, err)) {
        in->request = buf_str(ret);
        return true;
    }
    if (err->code != ERR_INVALID) {
        return false;
    }
    plan_no_request(in, err, ret);
    return true;
}

static struct attempt_row row_of(const struct leader_state *s, const struct launch_facts *f,
                                 const struct intent *in, usec_t now_us)
{
    struct attempt_row row = {.id = in->attempt_id,
                              .project_id = in->project_id,
                              .campaign_id = in->campaign_id,
                              .stage_id = in->stage_id,
                              .task_id = in->task_id,
                              .seq = in->seq,
                              .n = in->n,
                              .state = ATTEMPT_INTENDED,
                              .epoch = s->epoch,
                              .name = in->name,
                              .instances = in->instances,
                              .volume_gb = in->volume_gb,
                              .max_runtime_s = in->max_runtime_s,
                              .price_musd_per_hour = in->price_musd_per_hour,
                              .reserved_musd = in->reserve_musd,
                              .open_musd = in->reserve_musd,
                              .market = in->market,
                              .keep_alive_s = in->keep_alive_s,
                              .instance_type_i = in->instance_type_i,
                              .subnet_i = in->subnet_i,
                              .pool_id = in->pool_id,
                              .holds = true,
                              .intended_us = now_us,
                              .task_attempts = f->task->attempts,
                              .uri = TAKE(f->task->uri),
                              .size = f->task->size,
                              .vars_json = TAKE(f->task->vars_json)};
    memcpy(row.identity_hash, in->identity_hash, sizeof row.identity_hash);
    memcpy(row.instance_type, in->instance_type, sizeof row.instance_type);
    return row;
}

static void count_slots(struct leader_state *s, struct live_attempt *a)
{
    struct live_slots *slots = leader_state_slots(s, a->row.instance_type, a->row.market);
    slots_hold(slots, a->row.instances);
    if (a->row.pool_id != 0) {
        slots_idle_end(slots, a->row.instances);
        a->taken = leader_state_pool(s, a->row.pool_id);
        ASSERT(a->taken != NULL);
        a->taken->row.taken_by = a->row.id;
    }
}

/* The pool it will leave, if any, from now on. */
static void expect_pool(struct leader_state *s, struct live_attempt *a, const struct intent *in)
{
    if (in->own_pool_id == 0) {
        return;
    }
    struct pool_row row = {.id = in->own_pool_id,
                           .attempt_id = in->attempt_id,
                           .campaign_id = in->campaign_id,
                           .stage_id = in->stage_id,
                           .task_id = in->task_id,
                           .state = POOL_EXPECTED,
                           .fingerprint = in->fingerprint,
                           .instances = in->instances,
                           .keep_alive_s = in->keep_alive_s,
                           .job = in->name,
                           .price_musd_per_hour = in->price_musd_per_hour,
                           .intended_us = a->row.intended_us};
    memcpy(row.instance_type, in->instance_type, sizeof row.instance_type);
    a->pool = leader_state_add_pool(s, &row, a->campaign);
    a->pool->attempt = a;
}

struct live_attempt *leader_apply_intent(struct leader_state *s, const struct launch_facts *f,
                                         const struct intent *in, usec_t now_us)
{
    ASSERT(in->taken);
    struct attempt_row row = row_of(s, f, in, now_us);
    struct live_attempt *a = leader_add_intended(s, &row, f->campaign);
    buf_add_str(&a->request, in->request);
    (void)snprintf(a->reason, sizeof a->reason, "%s", in->no_request != NULL ? in->no_request : "");
    count_slots(s, a);
    expect_pool(s, a, in);
    budget_state_move(s, f->campaign, a->stage, in->reserve_musd, 0, 0);
    f->campaign->last_start_us = now_us;
    leader_propose_again(a->stage);
    task_counts_move(f->campaign, a->stage, TASK_WAITING, TASK_ACTIVE, 1);
    s->act = true;
    return a;
}

void leader_propose_again(struct live_stage *ls)
{
    ls->refused_until_us = ls->no_start_until_us = 0;
}

bool leader_no_start(const struct live_stage *ls, usec_t now_us)
{
    int64_t left_us = ls->no_start_until_us - now_us;
    return left_us > 0 && left_us <= PUT_BACK_MAX_US; /* more: the clock was set back */
}

/* As long as it has been refused already. What was not refused for a while begins again. */
static int64_t refused_pause_us(struct live_stage *ls, usec_t now_us)
{
    if (now_us - ls->refused_until_us > PUT_BACK_MAX_US) {
        ls->refused_since_us = now_us;
    }
    int64_t pause_us = MAX(now_us - ls->refused_since_us, INTENT_AGAIN_US);
    pause_us = MIN(pause_us, PUT_BACK_MAX_US);
    ls->refused_until_us = now_us + pause_us;
    return pause_us;
}

enum launch_fault leader_launch_fault(const struct intent *in, bool lowered)
{
    if (!lowered) {
        return LAUNCH_NO_REQUEST;
    }
    return in->refused[0] == '\0'                   ? LAUNCH_NOT_WRITTEN
           : strcmp(in->refused, "money") == 0      ? LAUNCH_NO_MONEY
           : strcmp(in->refused, "part_money") == 0 ? LAUNCH_PART_MONEY
                                                    : LAUNCH_REFUSED;
}

void leader_part_spent(struct leader_state *s, const struct intent *in)
{
    struct task_change_row *change = leader_state_change(s, in->task_id, true);
    change->campaign_id = in->campaign_id;
    change->spent_musd = in->part_spent_musd;
}

bool leader_put_back(struct leader_state *s, struct live_stage *ls,
                     const struct ready_queue_task *task, const struct task_input *input,
                     enum launch_fault fault, int64_t pause_us, usec_t now_us)
{
    struct ready_queue_task t = *task;
    s->look_at_db = true;
    if (input->id != 0 && input->state != TASK_WAITING) {
        return false;
    }
    int64_t least_us = fault == LAUNCH_NO_REQUEST ? INTENT_NOT_BUILT_US
                       : fault == LAUNCH_NOT_WRITTEN || fault == LAUNCH_PART_MONEY
                           ? INTENT_AGAIN_US
                           : refused_pause_us(ls, now_us);
    t.not_before_us = now_us + MAX(pause_us, least_us);
    if (fault == LAUNCH_NO_MONEY) {
        ls->no_start_until_us = ls->refused_until_us;
    }
    ready_queue_push(ls->ready, &t);
    return true;
}

/* Is what a campaign has spent so much that one more attempt of this stage would not fit its cap on
 * any rung that can hold it, even if everything that runs gave all its money back? */
static bool spent_up(struct leader_state *s, const struct live_campaign *lc,
                     const struct live_stage *ls)
{
    const struct spec_stage *st = ls->spec;
    musd_t left = budget_state_left(lc->row.cap_musd, 0, lc->row.spent_musd);
    int64_t run_s = quota_ledger_job_run_s(&s->account, st->max_runtime_s, spec_goes_on(st));
    int too_dear = 0;
    for (int i = 0; i < st->instance_type_n; i++) {
        const struct live_slots *slots =
            leader_state_slots(s, st->instance_type[i], st->spot ? MARKET_SPOT : MARKET_ON_DEMAND);
        if (quota_ledger_can_ever(&slots->s, &s->account, st->instance_count, run_s,
                                  st->volume_gb) == WAIT_QUOTA_TOO_SMALL) {
            continue;
        }
        if (slots->s.price_musd_per_hour < 0 ||
            cost_runtime_that_fits(slots->s.price_musd_per_hour, st->instance_count, 0, left) >=
                MIN(st->min_runtime_s, run_s)) {
            return false;
        }
        too_dear++;
    }
    return too_dear > 0;
}

/* No cap above the campaign's own leaves less: what is short of money is short of that. */
static bool own_cap_binds(struct leader_state *s, const struct live_campaign *lc)
{
    const struct campaign_row *r = &lc->row;
    musd_t left = budget_state_left(r->cap_musd, r->reserved_musd, r->spent_musd);
    const int64_t above[] = {0, r->project_id};
    for (size_t i = 0; i < ARRAY_LEN(above); i++) {
        const struct project_row *p = leader_state_project(s, above[i]);
        if (left > budget_state_left(p->cap_musd, p->reserved_musd, p->spent_musd)) {
            return false;
        }
    }
    return r->cap_musd >= 0;
}

/* Something of a stage may start without more money, now or once what it waits for is there. */
static bool goes_on(const struct live_stage *ls, enum wait_reason why)
{
    bool money = wait_reason_row(why)->binds == WAIT_BINDS_MONEY;
    bool parts = why != WAIT_NONE || live_stage_unchecked_n(ls) > 0;
    bool jobs = ls->spec != NULL && ls->spec->kind == SPEC_KIND_JOBS;
    return ls->row.state == STAGE_RUNNING && !money &&
           (jobs ? parts : ls->endpoint == ENDPOINT_NOT_YET);
}

/* The same of stages that are not in the plan: all their parts are still asked about (done_if), the
 * reason why none may start is already written, or they are an endpoint or a file system. */
static void note_unplanned(struct live_campaign *lc)
{
    for (int k = 0; k < lc->stages_n; k++) {
        const struct live_stage *ls = &lc->stages[k];
        bool jobs = ls->spec != NULL && ls->spec->kind == SPEC_KIND_JOBS;
        if (!jobs || ls->left_out) {
            lc->budget_goes_on |= goes_on(ls, ls->reason);
        } else if (ls->ready == NULL || ready_queue_n(ls->ready) == 0) {
            lc->budget_goes_on |= goes_on(ls, WAIT_NONE);
        }
    }
}

static void not_short(struct live_campaign *lc)
{
    lc->budget_short = lc->budget_spent = lc->budget_stuck = lc->budget_goes_on = false;
    for (int k = 0; k < lc->stages_n; k++) {
        lc->stages[k].cap_short = WAIT_NONE;
    }
}

void leader_note_money_short(struct leader_state *s, const struct sched_stage *stages,
                             struct live_campaign *const *campaigns,
                             struct live_stage *const *live_stages, const struct sched_plan *plan,
                             int n)
{
    const enum wait_reason *reason = plan->reason;
    for (size_t i = 0; i < s->awake->n; i++) { /* of one that rests it is as the last plan found */
        not_short(s->awake->campaigns[i]);
    }
    for (int i = 0; i < n; i++) {
        struct live_campaign *lc = campaigns[i];
        bool parts = reason[i] == WAIT_PART_BUDGET && live_stage_unchecked_n(live_stages[i]) == 0;
        bool others = goes_on(live_stages[i], plan->rest[i]); /* that ask for less */
        bool own = (reason[i] == WAIT_STAGE_BUDGET && !others) || parts;
        live_stages[i]->cap_short = own ? reason[i] : WAIT_NONE; /* of this stage only */
        lc->budget_short |= reason[i] == WAIT_BUDGET;
        if (stages[i].may_start || reason[i] == WAIT_BUDGET) {
            lc->budget_spent |= spent_up(s, lc, live_stages[i]);
        }
        lc->budget_stuck |= reason[i] == WAIT_BUDGET && own_cap_binds(s, lc);
        lc->budget_goes_on |= goes_on(live_stages[i], reason[i]) || others;
    }
    for (int i = 0; i < plan->launches_n; i++) { /* what is not written is tried again */
        campaigns[plan->launches[i].stage_i]->budget_goes_on = true;
        live_stages[plan->launches[i].stage_i]->cap_short = WAIT_NONE;
    }
    for (size_t i = 0; i < s->awake->n; i++) {
        note_unplanned(s->awake->campaigns[i]);
    }
    for (int i = 0; i < n; i++) {
        campaigns[i]->budget_stuck &= !campaigns[i]->budget_goes_on;
    }
}

bool leader_reason_moves(const struct live_campaign *lc, const struct live_stage *ls,
                         enum wait_reason why)
{
    return parking_reports(lc) && ls->reason != why;
}

int64_t leader_next_plan_in_us(const struct sched_plan *plan, usec_t now_us,
                               int64_t tick_interval_us)
{
    if (plan->wake_us == USEC_NEVER) {
        return -1;
    }
    int64_t in_us =
        plan->wake_us > now_us ? MAX(plan->wake_us - now_us, PLAN_AGAIN_MIN_US) : PLAN_AT_ONCE_US;
    return in_us < tick_interval_us ? in_us : -1;
}
