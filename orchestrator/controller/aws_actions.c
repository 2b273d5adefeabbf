/* Act: ask the protocol of every due attempt what to do, do it, turn answers into facts. */
#include "aws_actions.h"
#include "attempt.h"
#include "bills.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "core/leader/adoption.h"
#include "core/leader/attempt.h"
#include "core/leader/attempt_answer.h"
#include "endpoint_life.h"
#include "examine.h"
#include "filesystem_life.h"
#include "lease.h"
#include "metric_collect.h"
#include "metrics.h"
#include "output_check.h"
#include "parking.h"
#include "pool_life.h"
#include "progress.h"
#include "resource_strays.h"
#include "resource_sweep.h"
#include "shell.h"
#include "store/leader/strays.h"
#include "store/rows/view.h"
#include "strays.h"
#include "wall.h"
#include <stdio.h>

static void fact_of(struct live_attempt *a, enum fact_kind kind, enum cause cause)
{
    attempt_fact(a, &(struct fact){.kind = kind, .at_us = clock_boot_us(), .cause = cause});
}

static void count_failure(const struct aws_failure *f)
{
    metric_add(METRIC_AWS_ERRORS, 1);
    metric_add(METRIC_AWS_THROTTLED, f->outcome == AWS_THROTTLED);
}

static void log_refusal(const struct live_attempt *a, const struct aws_failure *f,
                        const struct create_notes *n)
{
    log_event(LOG_INFO, "create_refused", LF_S("job", a->row.name.s), LF_S("code", f->code),
              LF_I("status", f->status), LF_I("outcome", f->outcome));
    if (n->quota_refused) {
        const struct quota_learning_refusal *r = &n->refusal;
        log_event(LOG_INFO, "quota_refused", LF_S("instance_type", a->row.instance_type),
                  LF_S("quota", r->said.quota), LF_I("limit", r->said.limit),
                  LF_I("used", r->said.used), LF_I("ours", r->ours), LF_I("others", r->others));
    }
}

static void on_create(void *ctx, const char *arn, const struct aws_failure *f)
{
    struct attempt_io *io = ctx;
    struct live_attempt *a = leader_state_attempt(&io->c->state, io->attempt_id);
    struct create_notes notes;
    io->create = NULL;
    if (f == NULL || (f->outcome != AWS_UNKNOWN && f->outcome != AWS_UNSENT)) {
        call_pace_create_answered(&io->c->pace, f != NULL && f->outcome == AWS_THROTTLED,
                                  f != NULL ? f->retry_after_us : 0, io->create_sent_us,
                                  clock_mono_us());
    }
    if (FP("create.after_reply")) {
        fact_of(a, FACT_CREATE_UNKNOWN, CAUSE_NETWORK);
        return;
    }
    struct fact fact =
        leader_create_answer(&io->c->state, a, arn, f, leader_now(io->c), clock_boot_us(), &notes);
    if (f == NULL) {
        metric_add(METRIC_JOBS_SUBMITTED, 1);
        atomic_store(&io->c->status->aws_ok, true);
    } else {
        count_failure(f);
        log_refusal(a, f, &notes);
        if (notes.silent) {
            atomic_store(&io->c->status->aws_ok, false);
        }
    }
    attempt_fact(a, &fact);
}

static bool read_request(struct controller *c, void *arg, struct err *err)
{
    struct live_attempt *a = arg;
    return attempt_request(c->store, a->row.id, &a->request, err);
}

static void do_create(struct live_attempt *a)
{
    struct controller *c = a->io->c;
    struct parking_subject who = PARKING_ATTEMPT(a->row.campaign_id, a->row.id);
    bool bytes_known =
        a->request.n > 0 || (parking_due(c, who) && parking_tx(c, who, read_request, a));
    bool rate_allows = bytes_known && (leader_attempt_unasked(a) ||
                                       call_pace_take_create(&c->pace, clock_mono_us()));
    bool lease_holds = !FP("create.before_sign") && lease_gate(c).may_send(c);
    struct str request = bytes_known ? buf_str(&a->request) : STR("");
    struct fact fact = leader_create_fact(request, rate_allows, lease_holds, clock_boot_us());
    attempt_fact(a, &fact);
    if (fact.kind != FACT_CREATE_SIGNED) {
        return;
    }
    metric_add(METRIC_AWS_REQUESTS, 1);
    a->io->create_sent_us = clock_mono_us();
    a->io->create = sagemaker_create(c->aws, lease_gate(c), buf_str(&a->request), on_create, a->io);
    if (FP("create.after_send")) {
        sagemaker_cancel(a->io->create);
        a->io->create = NULL;
        fact_of(a, FACT_CREATE_UNKNOWN, CAUSE_NETWORK);
    }
}

struct recast_arg {
    const struct live_attempt *attempt;
    struct intent as;
};

static bool write_recast(struct controller *c, void *arg, struct err *err)
{
    const struct recast_arg *r = arg;
    return store_attempt_recast(c->store, r->attempt->row.id, &r->as, err);
}

/* The job under its name is ours all the same, of an intent whose row was lost: the attempt is that
 * job. Read whole again, by a takeover from ourselves. */
static void recast(struct controller *c, struct live_attempt *a)
{
    struct recast_arg r = {.attempt = a, .as = *a->io->recast};
    struct parking_subject who = PARKING_ATTEMPT(a->row.campaign_id, a->row.id);
    free(a->io->recast);
    a->io->recast = NULL;
    if (parking_tx(c, who, write_recast, &r)) {
        log_event(LOG_WARN, "job_adopted", LF_S("job", a->row.name.s));
        leader_lose(c, "adopted", NULL);
    }
}

static bool write_price(struct controller *c, void *arg, struct err *err)
{
    return store_attempt_priced(c->store, arg, err);
}

static void price(struct controller *c, struct live_attempt *a)
{
    struct late_price p;
    struct parking_subject who = PARKING_ATTEMPT(a->row.campaign_id, a->row.id);
    if (adoption_plan_price(&c->state, a, &p) && parking_due(c, who) &&
        parking_tx(c, who, write_price, &p)) {
        adoption_apply_price(&c->state, a, &p);
    }
}

void aws_actions_record(struct controller *c)
{
    for (size_t i = 0; i < c->state.attempts_n && c->leading; i++) {
        if (c->state.attempts[i]->io->recast != NULL) {
            recast(c, c->state.attempts[i]);
        } else if (c->state.attempts[i]->row.price_musd_per_hour == 0) {
            price(c, c->state.attempts[i]);
        }
    }
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct attempt_io *io = ctx;
    struct live_attempt *a = leader_state_attempt(&io->c->state, io->attempt_id);
    bool failed = f != NULL || FP("describe.after_reply");
    io->describe = NULL;
    if (f != NULL) {
        count_failure(f);
    }
    struct intent as;
    bool recast;
    struct fact fact = adoption_described(&io->c->state, a, job, not_found, failed,
                                          leader_now(io->c), clock_boot_us(), &recast, &as);
    if (recast) {
        free(io->recast);
        io->recast = xmalloc(sizeof *io->recast);
        *io->recast = as;
    }
    attempt_fact(a, &fact);
    if (!failed) {
        event_watch_described(&io->c->events, a, clock_boot_us());
    }
}

static void do_describe(struct live_attempt *a)
{
    if (FP("describe.before")) {
        fact_of(a, FACT_DESCRIBE_FAILED, CAUSE_NONE);
        return;
    }
    a->describe_sent_us = clock_boot_us();
    metric_add(METRIC_AWS_REQUESTS, 1);
    a->io->describe =
        sagemaker_describe(a->io->c->aws, lease_gate(a->io->c), a->row.name.s, on_describe, a->io);
}

static void on_stop(void *ctx, bool ended_already, bool not_found, const struct aws_failure *f)
{
    struct attempt_io *io = ctx;
    struct live_attempt *a = leader_state_attempt(&io->c->state, io->attempt_id);
    bool failed = f != NULL || FP("stop.after_reply");
    (void)ended_already;
    io->stop = NULL;
    struct fact fact = leader_stop_answer(failed, not_found, clock_boot_us());
    attempt_fact(a, &fact);
}

static void do_stop(struct live_attempt *a)
{
    if (!leader_attempt_stop(a) || FP("stop.before")) {
        fact_of(a, FACT_STOP_FAILED, CAUSE_NONE);
        return;
    }
    metric_add(METRIC_AWS_REQUESTS, 1);
    a->io->stop =
        sagemaker_stop(a->io->c->aws, lease_gate(a->io->c), a->row.name.s, on_stop, a->io);
}

static void on_verified(void *ctx, struct output_verdict *v)
{
    struct attempt_io *io = ctx;
    struct live_attempt *a = leader_state_attempt(&io->c->state, io->attempt_id);
    io->check = NULL;
    v->checked = v->checked && !FP("verify.after_reply");
    struct fact fact = leader_verify_answer(a, v, clock_boot_us());
    attempt_fact(a, &fact);
}

static void look_at_output(struct live_attempt *a)
{
    if (FP("verify.before")) {
        fact_of(a, FACT_VERIFY_FAILED, CAUSE_NONE);
    } else {
        a->io->check = output_verify(a, on_verified, a->io);
    }
}

static void on_place(void *ctx, const struct job_description *job, bool not_found,
                     const struct aws_failure *f)
{
    struct attempt_io *io = ctx;
    struct live_attempt *a = leader_state_attempt(&io->c->state, io->attempt_id);
    struct fact fact;
    io->describe = NULL;
    if (f != NULL) {
        count_failure(f);
    }
    if (leader_place_answer(a, job, not_found, f != NULL, leader_now(io->c), clock_boot_us(),
                            &fact)) {
        io->place_told = io->c->state.act = true;
    } else {
        attempt_fact(a, &fact);
    }
}

static void look_where_told(struct live_attempt *a)
{
    if (a->io->place_told) {
        a->io->place_told = false;
        look_at_output(a);
    }
}

static void ask_place(struct live_attempt *a)
{
    metric_add(METRIC_AWS_REQUESTS, 1);
    a->io->describe =
        sagemaker_describe(a->io->c->aws, lease_gate(a->io->c), a->row.name.s, on_place, a->io);
}

static void do_verify(struct live_attempt *a)
{
    struct fact fact;
    switch (leader_verify_step(a)) {
    case VERIFY_STEP_EXAMINE:
        examine(a);
        break;
    case VERIFY_STEP_LOOK:
        look_at_output(a);
        break;
    case VERIFY_STEP_PLACE:
        ask_place(a);
        break;
    case VERIFY_STEP_LATER:
        fact_of(a, FACT_VERIFY_FAILED, CAUSE_NONE);
        break;
    case VERIFY_STEP_LEAVE:
        fact = leader_verify_unseen(a, clock_boot_us());
        attempt_fact(a, &fact);
        break;
    }
}

/* While Lists are rare a job is looked at when its time has come, and again when a Describe did not
 * show what an event told. */
static void look_in_time(struct live_attempt *a, int64_t now_us)
{
    if (now_us >= event_watch_due_us(&a->io->c->events, a)) {
        fact_of(a, FACT_HINT, CAUSE_NONE);
    }
}

static void act(struct live_attempt *a, int64_t now_us)
{
    struct controller *c = a->io->c;
    struct protocol_config pc;
    attempt_protocol_config(c, &pc);
    if (call_pace_holds(&c->pace, a, &pc, c->cfg.observe_interval_us, now_us, clock_mono_us())) {
        return;
    }
    look_in_time(a, now_us);
    leader_attempt_weigh(&c->state, a);
    enum protocol_action next = protocol_next(&a->p, now_us, &pc, &a->wake_us);
    a->wake_us = MIN(a->wake_us, event_watch_due_us(&c->events, a));
    switch (next) {
    case ACT_NONE:
        break;
    case ACT_CREATE:
        do_create(a);
        break;
    case ACT_DESCRIBE:
        do_describe(a);
        break;
    case ACT_STOP:
        do_stop(a);
        break;
    case ACT_VERIFY:
        do_verify(a);
        break;
    case ACT_VOID:
        if (FP("void.before")) {
            leader_lose(c, "failpoint", NULL);
            return;
        }
        fact_of(a, FACT_VOID, CAUSE_NONE);
        break;
    }
}

/* Facts that need no call (void, unsent) come back at once; their records are flushed later, so no
 * attempt is removed here. */
void aws_actions_tick(struct controller *c)
{
    int64_t now_us = clock_boot_us();
    int64_t wake_us = INT64_MAX;
    c->state.act = false;
    for (size_t i = 0; i < c->state.attempts_n && c->leading; i++) {
        struct live_attempt *a = c->state.attempts[i];
        look_where_told(a);
        if (!attempt_waits(a) && now_us >= a->wake_us) {
            act(a, now_us);
        }
        if (!attempt_waits(a)) {
            wake_us = MIN(wake_us, a->wake_us);
        }
    }
    if (c->leading) {
        pools_tick(c, &wake_us);
    }
    if (c->leading) {
        progress_tick(c, &wake_us);
        strays_tick(c, &wake_us);
        bills_tick(c, &wake_us);
        resource_sweep_tick(c, &wake_us);
        resource_strays_tick(c, &wake_us);
        endpoints_tick(c, &wake_us);
        filesystems_tick(c, &wake_us);
        metric_collect_tick(c, &wake_us);
    }
    c->acted_until_us = wake_us;
    if (c->leading && wake_us != INT64_MAX) {
        loop_timer_set(c->act_timer, MAX(1000, wake_us - now_us));
    }
}
