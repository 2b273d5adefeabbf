/* The tick, on one page: view -> decide -> intend -> act -> record. */
#include "attempt.h"
#include "aws/call_rates.h"
#include "aws_actions.h"
#include "bridge_answers.h"
#include "budget_state.h"
#include "campaign_life.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/version.h"
#include "controller.h"
#include "endpoint_intent.h"
#include "endpoint_life.h"
#include "event_intake.h"
#include "filesystem_intent.h"
#include "filesystem_life.h"
#include "intents.h"
#include "leadership.h"
#include "lease.h"
#include "load.h"
#include "maintenance.h"
#include "metrics.h"
#include "observe.h"
#include "operations.h"
#include "orphan_sweep.h"
#include "outcome.h"
#include "output_check.h"
#include "parking.h"
#include "pool_life.h"
#include "price_read.h"
#include "prices.h"
#include "shell.h"
#include "skip_done.h"
#include "store/leader/operations.h"
#include <stdio.h>

/* Before curl sees a ready socket: a leader that was frozen past its lease releases everything.
 */
static void before_pass(void *ctx)
{
    leader_lapse(ctx);
}

static bool look_with(struct controller *c, struct operations *o)
{
    if (!operations_list(c, o) || !view_refresh(c)) {
        return false;
    }
    attempts_reread(c);
    prices_tick(c);
    stage_history_tick(&c->state, clock_boot_us());
    return skip_done_tick(c) && operations_tick(c, o) && view_tries(c) &&
           endpoint_intents_tick(c) && filesystem_intents_tick(c) && campaign_life_tick(c) &&
           budget_state_tick(c);
}

static bool look(struct controller *c)
{
    struct operations o = {.n = 0};
    if (!c->state.look_at_db) {
        return true;
    }
    c->state.look_at_db = false;
    bool ok = look_with(c, &o);
    operation_rows_free(o.rows, o.n);
    return ok;
}

/* What AWS is asked for each hour that a job lives. */
static void count_calls(struct controller *c)
{
    call_count_tick(&c->calls, &c->state, clock_boot_us());
    metric_set(METRIC_JOB_S, call_count_job_s(&c->calls));
    metric_set(METRIC_AWS_HELD, call_rates_held_n(c->rates));
    metric_set(METRIC_CALLS_PER_1000_JOB_HOURS,
               call_count_per_1000_hours(&c->calls, metric_get(METRIC_AWS_REQUESTS)));
}

static void gauges(const struct controller *c)
{
    int64_t waiting = 0, active = 0, held = 0;
    for (size_t i = 0; i < c->state.campaigns_n; i++) {
        const struct live_campaign *lc = c->state.campaigns[i];
        active += lc->live;
        for (int k = 0; k < lc->stages_n; k++) {
            waiting += (int64_t)ready_queue_n(lc->stages[k].ready);
        }
    }
    for (size_t i = 0; i < c->state.slots_n; i++) {
        held += c->state.slots[i].s.held + c->state.slots[i].s.warm_idle;
    }
    metric_set(METRIC_PARTS_WAITING, waiting);
    metric_set(METRIC_PARTS_ACTIVE, active);
    metric_set(METRIC_SLOTS_HELD, held);
}

/* New prices are taken first. An attempt without a price gets one before a kept fact ends it: its
 * end is booked by the price that it had when the record was planned. False: leadership lost. */
static bool record(struct controller *c)
{
    price_read_tick(c);
    do {
        if (!c->leading || !record_flush(c)) {
            return false;
        }
        aws_actions_record(c);
    } while (c->leading && attempts_go_on(c));
    pools_record(c);
    endpoints_record(c);
    filesystems_record(c);
    quota_tick(c);
    return c->leading;
}

static void tick(struct controller *c)
{
    int64_t began_us = clock_mono_us();
    parking_tick(c);
    list_tick(c);
    if (!record(c) || !look(c)) { /* record what came in, view what changed */
        return;
    }
    orphan_sweep_tick(c);
    if (c->leading && orphan_sweep_lets_intend(c)) { /* decide, intend */
        c->state.decide = false;
        intend_tick(c);
    }
    if (c->leading && (c->state.act || clock_boot_us() >= c->acted_until_us)) { /* act */
        aws_actions_tick(c);
        (void)record(c);
    }
    event_intake_tick(c);
    gauges(c);
    count_calls(c);
    metric_add(METRIC_TICKS, 1);
    metric_add(METRIC_TICK_US, clock_mono_us() - began_us);
}

static void end_pass(void *ctx)
{
    struct controller *c = ctx;
    if (c->leading) {
        c->in_tick = true;
        tick(c);
        c->in_tick = false;
    }
    leader_end_pass(c);
}

static void on_tick_timer(void *ctx)
{
    struct controller *c = ctx;
    c->state.look_at_db = true;
    c->state.decide = true;
    c->state.act = true;
    loop_timer_set(c->tick_timer, c->cfg.tick_interval_us);
}

static void on_plan_timer(void *ctx)
{
    struct controller *c = ctx;
    c->state.decide = true;
}

/* An attempt or a pool wants to be looked at: that alone needs no look at the database. */
static void on_act_timer(void *ctx)
{
    struct controller *c = ctx;
    c->state.act = true;
}

static void on_observe_timer(void *ctx)
{
    struct controller *c = ctx;
    if (c->leading) {
        observe_go_on(c);
    }
}

static void on_housekeeping_timer(void *ctx)
{
    struct controller *c = ctx;
    loop_timer_set(c->housekeeping_timer, maintenance_run(c));
}

static void on_quota_timer(void *ctx)
{
    struct controller *c = ctx;
    if (c->leading) {
        quota_start(c);
    }
    loop_timer_set(c->quota_timer, c->cfg.quota_interval_us);
}

static void on_price_timer(void *ctx)
{
    price_read_start(ctx);
}

static void make_timers(struct controller *c)
{
    c->tick_timer = loop_timer_new(c->loop, on_tick_timer, c);
    c->plan_timer = loop_timer_new(c->loop, on_plan_timer, c);
    c->act_timer = loop_timer_new(c->loop, on_act_timer, c);
    c->observe_timer = loop_timer_new(c->loop, on_observe_timer, c);
    c->quota_timer = loop_timer_new(c->loop, on_quota_timer, c);
    c->price_timer = loop_timer_new(c->loop, on_price_timer, c);
    c->housekeeping_timer = loop_timer_new(c->loop, on_housekeeping_timer, c);
}

bool controller_new(const struct controller_config *cfg, struct loop *loop, struct bridge *bridge,
                    struct api_status *status, struct controller **ret, struct err *err)
{
    struct aws_config aws = {.user_agent = "droverd/" DROVER_VERSION};
    struct controller *c = xcalloc(1, sizeof *c);
    uint64_t seed;
    rng_secret(&seed, sizeof seed);
    leader_state_init(&c->state);
    rng_seed(&c->state.rng, seed);
    c->cfg = *cfg;
    c->loop = loop;
    c->bridge = bridge;
    c->status = status;
    call_pace_init(&c->pace, cfg->create_rate, cfg->create_burst, clock_mono_us());
    list_round_init(&c->round, cfg->observe_interval_us, clock_boot_us());
    event_watch_init(&c->events, cfg->observe_interval_us, clock_boot_us());
    c->intake = event_intake_new(c);
    atomic_store(&status->creates_per_s_u, c->pace.creates.rate_per_s_u);
    if (!aws_client_new(loop, &aws, &c->aws, err)) {
        goto fail;
    }
    aws.sibling = c->aws;
    aws.region = pricing_region(aws_client_region(c->aws));
    if (!aws_client_new(loop, &aws, &c->aws_pricing, err)) {
        goto fail;
    }
    aws.region = NULL;
    if (!aws_client_new(loop, &aws, &c->aws_plain, err)) {
        goto fail;
    }
    struct aws_gate gate = lease_gate(c);
    aws_client_set_gate(c->aws, gate.may_send, gate.ctx);
    c->rates = call_rates_new();
    call_rates_attach(c->rates, c->aws);
    call_rates_attach(c->rates, c->aws_pricing);
    call_rates_attach(c->rates, c->aws_plain);
    make_timers(c);
    loop_set_pre_hook(loop, before_pass, c);
    loop_set_pass_hook(loop, end_pass, c);
    if (!bridge_answers_start(c, err) || !leader_start(c, err)) {
        goto fail;
    }
    *ret = c;
    return true;
fail:
    controller_free(c);
    return false;
}

const char *controller_region(const struct controller *c)
{
    return aws_client_region(c->aws);
}

void controller_free(struct controller *c)
{
    if (c == NULL) {
        return;
    }
    leader_stop(c, true);
    event_intake_free(c->intake);
    bridge_answers_stop(c);
    loop_set_pre_hook(c->loop, NULL, NULL);
    loop_set_pass_hook(c->loop, NULL, NULL);
    aws_client_free(c->aws); /* ends the output checks and bridge answers still under way */
    aws_client_free(c->aws_pricing);
    aws_client_free(c->aws_plain);
    call_rates_free(c->rates);
    free(c->prices_named);
    loop_timer_free(c->tick_timer);
    loop_timer_free(c->plan_timer);
    loop_timer_free(c->act_timer);
    loop_timer_free(c->observe_timer);
    loop_timer_free(c->quota_timer);
    loop_timer_free(c->price_timer);
    loop_timer_free(c->housekeeping_timer);
    leader_state_done(&c->state);
    free(c);
}
