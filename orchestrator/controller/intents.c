/* See intents.h. */
#include "core/leader/intents.h"
#include "attempt.h"
#include "calls.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "history.h"
#include "intents.h"
#include "lease.h"
#include "metric_collect.h"
#include "metrics.h"
#include "orphan_sweep.h"
#include "output_check.h"
#include "parking.h"
#include "pool_life.h"
#include "store/leader/attempts.h"
#include "store/leader/campaigns.h"
#include "store/rows/view.h"
#include "wall.h"

#define SLOW_US 2000 /* of a decision */

struct intent_batch { /* what one intend transaction works on; arrays of plan->launches_n */
    const struct sched_plan *plan;
    struct leader_view f;
    struct intent *intents;
    struct buf *requests;
    struct task_input *inputs;
    bool *lowered;
    struct live_campaign *campaign; /* of write_campaign */
    int one;                        /* launch of intend_one */
};

static bool lower_one(struct controller *c, struct intent_batch *b, int i, int64_t attempt_id,
                      struct err *err)
{
    struct launch_facts f = leader_launch_facts(&b->f, b->plan, i, &b->inputs[i]);
    struct intent *in = &b->intents[i];
    AUTO_JSON json_t *vars = NULL;
    struct err why = ERR_INIT;
    if (!task_input_get(c->store, f.stage->campaign_id, f.launch->task.task_id, f.task, err) ||
        (f.task->vars_json != NULL &&
         !json_parse(str_of(f.task->vars_json), INTENT_REQUEST_BYTES_MAX, &vars, err))) {
        return false;
    }
    f.vars = vars;
    leader_plan_intent(&c->state, &f, attempt_id, c->cfg.job_prefix, b->f.view.now_us, in);
    b->lowered[i] = false;
    if (orphan_sweep_keeps(c, in->campaign_id, in->task_id)) {
        return true;
    }
    b->lowered[i] =
        leader_plan_request(&c->state, &f, aws_client_region(c->aws), in, &b->requests[i], &why);
    if ((!b->lowered[i] || in->no_request != NULL) && log_allow("request_not_built")) {
        log_event(LOG_ERROR, "request_not_built", LF_I("task", in->task_id), LF_ERR(&why));
    }
    return b->lowered[i] || store_alert(c->store, in->campaign_id, why.message, err);
}

static bool reason_moves(const struct intent_batch *b, int i)
{
    return leader_reason_moves(b->f.live_campaigns[i], b->f.live_stages[i], b->plan->reason[i]);
}

static bool write_reasons(struct controller *c, const struct intent_batch *b,
                          const struct live_campaign *lc, struct err *err)
{
    for (int i = 0; i < b->f.view.stages_n; i++) {
        if (b->f.live_campaigns[i] == lc && reason_moves(b, i) &&
            !store_stage_wait_reason(c->store, b->f.live_stages[i]->row.id, b->plan->reason[i],
                                     err)) {
            return false;
        }
    }
    return true;
}

/* What the transaction reports of one campaign, besides its intents. */
static bool write_campaign(struct controller *c, void *arg, struct err *err)
{
    struct intent_batch *b = arg;
    return write_reasons(c, b, b->campaign, err) && history_write(c, b->campaign, err);
}

static void campaign_written(struct intent_batch *b, struct live_campaign *lc)
{
    for (int i = 0; i < b->f.view.stages_n; i++) {
        if (b->f.live_campaigns[i] == lc && reason_moves(b, i)) {
            b->f.live_stages[i]->reason = b->plan->reason[i];
        }
    }
    history_written(lc);
}

static bool write_campaigns(struct controller *c, struct intent_batch *b, struct err *err)
{
    for (size_t i = 0; i < c->state.awake->n; i++) {
        b->campaign = c->state.awake->campaigns[i];
        if (parking_reports(b->campaign) && !write_campaign(c, b, err)) {
            return false;
        }
    }
    return true;
}

static bool write_slots(struct controller *c, void *arg, struct err *err)
{
    const struct intent_batch *b = arg;
    return history_write_slots(c, b->f.view.now_us, err);
}

/* Draws ids, makes requests and writes the intents of launches [from, from + n). */
static bool intend_some(struct controller *c, struct intent_batch *b, int from, int n,
                        struct err *err)
{
    struct intent packed[SCHED_LAUNCHES_MAX];
    int64_t ids[SCHED_LAUNCHES_MAX];
    size_t m = 0;
    if (n == 0) {
        return true;
    }
    if (!attempt_ids(c->store, (size_t)n, ids, err)) {
        return false;
    }
    for (int i = from; i < from + n; i++) {
        if (!lower_one(c, b, i, ids[i - from], err)) {
            return false;
        }
        if (b->lowered[i]) {
            packed[m++] = b->intents[i];
        }
    }
    if (FP("intend.in_transaction")) {
        return err_set(err, ERR_UNAVAILABLE, "failpoint");
    }
    if (!store_intend(c->store, c->state.epoch, packed, m, err)) {
        return false;
    }
    m = 0;
    for (int i = from; i < from + n; i++) {
        if (b->lowered[i]) {
            b->intents[i] = packed[m++]; /* the transaction's result of each */
        }
    }
    return true;
}

static bool intend_all(struct controller *c, void *arg, struct err *err)
{
    struct intent_batch *b = arg;
    return write_campaigns(c, b, err) && write_slots(c, b, err) &&
           intend_some(c, b, 0, b->plan->launches_n, err);
}

static bool intend_one(struct controller *c, void *arg, struct err *err)
{
    struct intent_batch *b = arg;
    return intend_some(c, b, b->one, 1, err);
}

static struct parking_subject subject_of(const struct intent_batch *b, int i)
{
    const struct sched_launch *l = &b->plan->launches[i];
    return PARKING_PART(b->f.live_campaigns[l->stage_i]->row.id, l->task.task_id);
}

static void forget_launch(struct intent_batch *b, int i)
{
    buf_reset(&b->requests[i]);
    free(b->inputs[i].uri);
    free(b->inputs[i].vars_json);
    b->inputs[i] = (struct task_input){0};
    b->intents[i].taken = false;
    b->intents[i].refused[0] = '\0';
}

/* The batch was not taken: campaign by campaign, then launch by launch, so that only those wait
 * whose rows are locked or refused. */
static void intend_each(struct controller *c, struct intent_batch *b)
{
    struct err err;
    for (size_t i = 0; i < c->state.awake->n && c->leading; i++) {
        b->campaign = c->state.awake->campaigns[i];
        if (!parking_reports(b->campaign)) {
            continue;
        }
        enum tx_meaning meaning = leader_try(c, write_campaign, b, &err);
        if (meaning == TX_DONE) {
            campaign_written(b, b->campaign);
        } else if (parking_by_report(meaning)) {
            parking_refuse(c, PARKING_CAMPAIGN(b->campaign->row.id), meaning, &err);
        } else if (meaning == TX_REFUSED && log_allow("reason_refused")) {
            log_event(LOG_ERROR, "reason_refused", LF_I("campaign", b->campaign->row.id),
                      LF_ERR(&err));
        }
    }
    if (c->leading && leader_tx(c, write_slots, b)) {
        history_slots_written(c, b->f.view.now_us);
    }
    for (int i = 0; i < b->plan->launches_n; i++) {
        forget_launch(b, i);
        b->one = i;
        if (c->leading && parking_due(c, subject_of(b, i)) &&
            !parking_tx(c, subject_of(b, i), intend_one, b)) {
            forget_launch(b, i);
        }
    }
}

static void put_back(struct controller *c, struct intent_batch *b, int i)
{
    const struct sched_launch *l = &b->plan->launches[i];
    struct parking_subject who = subject_of(b, i);
    int64_t pause_us = parking_pause_us(&c->state, &who, clock_boot_us());
    if (b->intents[i].refused[0] != '\0' && log_allow("intent_refused")) {
        log_event(LOG_WARN, "intent_refused", LF_I("campaign", who.campaign_id),
                  LF_I("task", who.ref_id), LF_S("by", b->intents[i].refused));
    }
    enum launch_fault fault = leader_launch_fault(&b->intents[i], b->lowered[i]);
    if (fault == LAUNCH_PART_MONEY) {
        leader_part_spent(&c->state, &b->intents[i]);
    }
    if (!leader_put_back(&c->state, b->f.live_stages[l->stage_i], &l->task, &b->inputs[i], fault,
                         pause_us, leader_now(c))) {
        log_event(LOG_ERROR, "part_is_not_waiting", LF_I("campaign", who.campaign_id),
                  LF_I("task", who.ref_id), LF_S("row", task_state_name(b->inputs[i].state)));
    }
}

static void after_commit(struct controller *c, struct intent_batch *b)
{
    for (int i = 0; i < b->plan->launches_n; i++) {
        struct launch_facts f = leader_launch_facts(&b->f, b->plan, i, &b->inputs[i]);
        if (!b->lowered[i] || !b->intents[i].taken) {
            put_back(c, b, i);
            continue;
        }
        struct live_attempt *a = leader_apply_intent(&c->state, &f, &b->intents[i], leader_now(c));
        attempt_attach_io(c, a);
        if (a->pool != NULL) {
            pool_attach_io(c, a->pool);
        }
        stage_history_started(a, leader_now(c));
        metric_collect_watch(c, a);
        parking_done(c, subject_of(b, i));
    }
}

static void all_written(struct controller *c, struct intent_batch *b)
{
    for (size_t i = 0; i < c->state.awake->n; i++) {
        if (parking_reports(c->state.awake->campaigns[i])) {
            campaign_written(b, c->state.awake->campaigns[i]);
        }
    }
    history_slots_written(c, b->f.view.now_us);
}

static bool writes_anything(struct controller *c, const struct intent_batch *b)
{
    bool writes = b->plan->launches_n > 0 || quota_learning_dirty(&c->state, b->f.view.now_us) ||
                  stage_history_dirty(&c->state);
    for (int i = 0; i < b->f.view.stages_n; i++) {
        writes |= reason_moves(b, i);
    }
    return writes;
}

static void run_plan(struct controller *c, struct intent_batch *b)
{
    struct err err;
    if (!writes_anything(c, b)) {
        return;
    }
    if (FP("intend.before")) {
        leader_lose(c, "failpoint", NULL);
        return;
    }
    enum tx_batch then = tx_batch_after(leader_try(c, intend_all, b, &err));
    if (then == TX_BATCH_LEFT) {
        return;
    }
    if (then == TX_BATCH_EACH) {
        intend_each(c, b);
    }
    if (FP("intend.after_commit")) {
        leader_lose(c, "failpoint", NULL);
    }
    if (!c->leading) {
        return;
    }
    if (then == TX_BATCH_WRITTEN) {
        all_written(c, b);
    }
    after_commit(c, b);
}

static void end_pools(struct controller *c, struct intent_batch *b)
{
    for (int i = 0; i < b->plan->pool_ends_n; i++) {
        const struct sched_pool_end *e = &b->plan->pool_ends[i];
        pool_ask_end(c, b->f.live_pools[e->pool_i], e->why);
    }
}

static void batch_init(struct intent_batch *b, const struct sched_plan *plan)
{
    size_t n = (size_t)plan->launches_n;
    b->plan = plan;
    b->intents = xcalloc(n + 1, sizeof *b->intents);
    b->requests = xcalloc(n + 1, sizeof *b->requests);
    b->inputs = xcalloc(n + 1, sizeof *b->inputs);
    b->lowered = xcalloc(n + 1, sizeof *b->lowered);
    for (size_t i = 0; i < n; i++) {
        buf_init(&b->requests[i], INTENT_REQUEST_BYTES_MAX);
    }
}

static void batch_done(struct intent_batch *b)
{
    for (int i = 0; i < b->plan->launches_n; i++) {
        buf_done(&b->requests[i]);
        free(b->inputs[i].uri);
        free(b->inputs[i].vars_json);
    }
    free(b->intents);
    free(b->requests);
    free(b->inputs);
    free(b->lowered);
    sched_view_done(&b->f);
}

static void decide(struct controller *c, struct leader_view *f, struct sched_plan *plan)
{
    int64_t began_us = clock_cpu_us();
    int64_t most = call_pace_intents(&c->pace, sched_view_unsent(&c->state), clock_mono_us());
    sched_view_make(&c->state, leader_now(c), most, f);
    sched_decide(&f->view, plan);
    int64_t took_us = clock_cpu_us() - began_us;
    metric_add(METRIC_DECISIONS, 1);
    metric_add(METRIC_DECISION_US, took_us);
    metric_add(METRIC_DECISIONS_SLOW, took_us > SLOW_US ? 1 : 0);
}

void intend_tick(struct controller *c)
{
    struct sched_plan *plan = xcalloc(1, sizeof *plan);
    struct intent_batch b = {0};
    decide(c, &b.f, plan);
    batch_init(&b, plan);
    leader_note_money_short(&c->state, b.f.stages, b.f.live_campaigns, b.f.live_stages, plan,
                            b.f.view.stages_n);
    end_pools(c, &b);
    run_plan(c, &b);
    if (c->leading) {
        loop_timer_set(c->plan_timer,
                       leader_next_plan_in_us(plan, b.f.view.now_us, c->cfg.tick_interval_us));
    }
    batch_done(&b);
    sched_plan_done(plan);
    free(plan);
}
