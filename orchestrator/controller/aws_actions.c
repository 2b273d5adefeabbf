/* Act: ask the protocol of every due attempt what to do, do it, turn answers into facts. */
#include "aws_actions.h"
#include "attempt.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "core/failure/cause.h"
#include "lease.h"
#include "metrics.h"
#include "observe.h"
#include "output_check.h"
#include "pool_life.h"
#include "progress.h"
#include "shell.h"
#include <stdio.h>

static void fact_of(struct live_attempt *a, enum fact_kind kind, enum cause cause)
{
    attempt_fact(a, &(struct fact){.kind = kind, .at_us = clock_boot_us(), .cause = cause});
}

static void note_failure(struct live_attempt *a, const struct aws_failure *f)
{
    metric_add(METRIC_AWS_ERRORS, 1);
    metric_add(METRIC_AWS_THROTTLED, f->outcome == AWS_THROTTLED);
    (void)snprintf(a->reason, sizeof a->reason, "%.64s%s%.900s", f->code,
                   f->code[0] != '\0' ? ": " : "", f->message);
    if (f->outcome == AWS_UNKNOWN || f->outcome == AWS_UNSENT) {
        atomic_store(&a->io->c->status->aws_ok, false);
    }
}

/* A signature that is not taken is the fault of our own keys, never of the part. */
static bool keys_refused(const struct aws_failure *f)
{
    static const char *const codes[] = {"InvalidSignatureException", "SignatureDoesNotMatch",
                                        "IncompleteSignature", "MissingAuthenticationToken"};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (strcmp(f->code, codes[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void quota_refused(struct live_attempt *a, const char *text)
{
    struct quota_learning_refusal r;
    if (quota_learning_refused(&a->io->c->state, a, text, clock_wall_us(), &r)) {
        log_event(LOG_INFO, "quota_refused", LF_S("instance_type", a->row.instance_type),
                  LF_S("quota", r.said.quota), LF_I("limit", r.said.limit),
                  LF_I("used", r.said.used), LF_I("ours", r.ours), LF_I("others", r.others));
    }
}

static void on_create(void *ctx, const char *arn, const struct aws_failure *f)
{
    struct attempt_io *io = ctx;
    struct live_attempt *a = leader_state_attempt(&io->c->state, io->attempt_id);
    io->create = NULL;
    if (FP("create.after_reply")) {
        fact_of(a, FACT_CREATE_UNKNOWN, CAUSE_NETWORK);
        return;
    }
    if (f == NULL) {
        (void)snprintf(a->arn, sizeof a->arn, "%s", arn);
        a->reason[0] = '\0';
        metric_add(METRIC_JOBS_SUBMITTED, 1);
        atomic_store(&a->io->c->status->aws_ok, true);
        if (a->taken != NULL) {
            a->taken->look_now = true; /* it has passed on its instances, or has not */
        }
        fact_of(a, FACT_CREATE_OK, CAUSE_NONE);
        return;
    }
    note_failure(a, f);
    log_event(LOG_INFO, "create_refused", LF_S("job", a->row.name.s), LF_S("code", f->code),
              LF_I("status", f->status), LF_I("outcome", f->outcome));
    switch (f->outcome) {
    case AWS_OK:
    case AWS_UNKNOWN:
        fact_of(a, FACT_CREATE_UNKNOWN, CAUSE_NETWORK);
        break;
    case AWS_UNSENT:
        fact_of(a, FACT_CREATE_UNSENT, CAUSE_NETWORK);
        break;
    case AWS_THROTTLED:
        fact_of(a, FACT_CREATE_REFUSED, CAUSE_THROTTLED);
        break;
    case AWS_CREDENTIALS: /* ours are expired or unknown: wait; /readyz and the log tell */
        fact_of(a, FACT_CREATE_REFUSED, CAUSE_NETWORK);
        break;
    case AWS_REFUSED:
        if (strcmp(f->code, "ResourceInUse") == 0) {
            fact_of(a, FACT_CREATE_IN_USE, CAUSE_NONE);
            break;
        }
        enum cause cause = keys_refused(f)
                               ? CAUSE_NETWORK
                               : cause_of_refusal(f->status, f->code, str_of(f->message));
        if (cause == CAUSE_QUOTA) {
            quota_refused(a, f->message);
        }
        fact_of(a, FACT_CREATE_REFUSED, cause);
        break;
    }
}

static void do_create(struct live_attempt *a)
{
    struct controller *c = a->io->c;
    struct err err = ERR_INIT;
    if (a->request.n == 0 && !attempt_request(c->store, a->row.id, &a->request, &err)) {
        leader_lose(c, "request_unreadable", &err);
        return;
    }
    if (!c->create_unlimited && !token_bucket_take(&c->create_bucket, clock_mono_us())) {
        fact_of(a, FACT_CREATE_UNSENT, CAUSE_NONE);
        return;
    }
    if (FP("create.before_sign") || !lease_gate(c).may_send(c)) {
        fact_of(a, FACT_CREATE_UNSENT, CAUSE_NONE);
        return;
    }
    fact_of(a, FACT_CREATE_SIGNED, CAUSE_NONE);
    metric_add(METRIC_AWS_REQUESTS, 1);
    a->io->create = sagemaker_create(c->aws, lease_gate(c), buf_str(&a->request), on_create, a->io);
    if (FP("create.after_send")) {
        sagemaker_cancel(a->io->create);
        a->io->create = NULL;
        fact_of(a, FACT_CREATE_UNKNOWN, CAUSE_NETWORK);
    }
}

static enum cause cause_of_end(const struct live_attempt *a, const struct job_seen *job)
{
    enum job_end end = JOB_END_FAILED;
    if (job->status == JOB_STOPPED) {
        end = job->phase == PHASE_MAX_RUNTIME ? JOB_END_MAX_RUNTIME
              : job->phase == PHASE_MAX_WAIT  ? JOB_END_MAX_WAIT
                                              : JOB_END_STOPPED;
    } else if (job->status != JOB_FAILED) {
        return CAUSE_NONE;
    }
    return cause_of_job(end, str_of(a->reason), a->stopped_by_us);
}

static void on_describe(void *ctx, const struct job_description *job, bool not_found,
                        const struct aws_failure *f)
{
    struct attempt_io *io = ctx;
    struct live_attempt *a = leader_state_attempt(&io->c->state, io->attempt_id);
    io->describe = NULL;
    if (f != NULL || FP("describe.after_reply")) {
        if (f != NULL) {
            metric_add(METRIC_AWS_ERRORS, 1);
            metric_add(METRIC_AWS_THROTTLED, f->outcome == AWS_THROTTLED);
        }
        fact_of(a, FACT_DESCRIBE_FAILED, CAUSE_NONE);
        return;
    }
    if (not_found) {
        attempt_fact(a, &(struct fact){.kind = FACT_NOT_FOUND, .at_us = a->describe_sent_us});
        return;
    }
    struct fact fact = {.kind = FACT_DESCRIBED,
                        .at_us = clock_boot_us(),
                        .job = observe_seen(job->status, job->secondary, job->modified)};
    fact.job.ours = strcmp(job->request_hash, a->row.identity_hash) == 0;
    if (fact.job.ours) {
        (void)snprintf(a->arn, sizeof a->arn, "%s", job->arn);
        (void)snprintf(a->reason, sizeof a->reason, "%s", job->failure_reason);
        (void)snprintf(a->artifacts, sizeof a->artifacts, "%s", job->artifacts);
        a->created_us = job->created;
        a->row.started_us = job->started;
        a->row.ended_us = job->ended;
        a->billable_s = job->billable_s;
        a->pool_seen = job->pool;
    }
    fact.cause = cause_of_end(a, &fact.job);
    AUTO_FREE char *words = str_dup(cause_words(str_of(a->reason)));
    (void)snprintf(a->reason, sizeof a->reason, "%s", words);
    if (fact.cause == CAUSE_STOPPED && a->row.stop_cause != CAUSE_NONE) {
        (void)snprintf(a->reason, sizeof a->reason,
                       "it made no progress and was stopped by drover, to be tried again");
    } else if (fact.cause == CAUSE_STOPPED && a->reason[0] == '\0') {
        (void)snprintf(a->reason, sizeof a->reason, "stopped by %s",
                       a->stopped_by_us ? "drover" : "somebody else");
    } else if (fact.cause == CAUSE_TIMEOUT && a->reason[0] == '\0') {
        (void)snprintf(a->reason, sizeof a->reason, "ran longer than %lld s",
                       (long long)a->row.max_runtime_s);
    }
    attempt_fact(a, &fact);
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
    (void)ended_already;
    io->stop = NULL;
    if (f != NULL || not_found || FP("stop.after_reply")) {
        fact_of(a, FACT_STOP_FAILED, CAUSE_NONE);
    } else {
        fact_of(a, FACT_STOP_OK, CAUSE_NONE);
    }
}

static void do_stop(struct live_attempt *a)
{
    a->stopped_by_us = true;
    if (FP("stop.before")) {
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
    if (!v->checked || FP("verify.after_reply")) {
        free(v->manifest);
        fact_of(a, FACT_VERIFY_FAILED, CAUSE_NONE);
        return;
    }
    free(a->manifest);
    a->manifest = v->manifest;
    a->rows_in = v->rows_in;
    a->successes = v->successes;
    a->failed_to_download = v->failed_to_download;
    a->failed_to_resize = v->failed_to_resize;
    a->bytes = v->bytes;
    if (!v->good) {
        (void)snprintf(a->reason, sizeof a->reason, "%s", v->text);
    }
    fact_of(a, FACT_VERIFIED, v->good ? CAUSE_NONE : v->cause);
}

static void do_verify(struct live_attempt *a)
{
    if (FP("verify.before")) {
        fact_of(a, FACT_VERIFY_FAILED, CAUSE_NONE);
        return;
    }
    a->io->check = output_verify(a, on_verified, a->io);
}

/* A Create that may not be sent yet for the rate's sake waits without touching the protocol. */
static bool rate_holds(struct live_attempt *a, int64_t now_us)
{
    const struct controller *c = a->io->c;
    bool sends = a->p.wanted && (a->p.state == ATTEMPT_INTENDED || a->p.state == ATTEMPT_UNKNOWN);
    if (!sends || c->create_unlimited) {
        return false;
    }
    int64_t wait_us = token_bucket_wait_us(&c->create_bucket, clock_mono_us());
    a->wake_us = now_us + wait_us;
    return wait_us > 0;
}

/* A call that failed before is made again only as far as the budget of all retries goes, so that an
 * AWS in trouble is not asked more than one that is well. */
static bool retry_holds(struct live_attempt *a, int64_t now_us, const struct protocol_config *pc)
{
    struct controller *c = a->io->c;
    struct protocol_attempt copy = a->p;
    int64_t wake_us;
    enum protocol_action next = protocol_next(&copy, now_us, pc, &wake_us);
    if (next != ACT_CREATE && next != ACT_DESCRIBE && next != ACT_STOP) {
        return false;
    }
    if (a->p.failures == 0) {
        retry_budget_first(&c->retries);
        return false;
    }
    c->calls_fail = true;
    if (retry_budget_take(&c->retries, clock_mono_us())) {
        return false;
    }
    int64_t wait_us = retry_budget_wait_us(&c->retries, clock_mono_us());
    a->wake_us = now_us + MIN(wait_us, c->cfg.observe_interval_us);
    return true;
}

static void act(struct live_attempt *a, int64_t now_us)
{
    struct protocol_config pc;
    attempt_protocol_config(a->io->c, &pc);
    if (retry_holds(a, now_us, &pc)) {
        return;
    }
    switch (protocol_next(&a->p, now_us, &pc, &a->wake_us)) {
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
            leader_lose(a->io->c, "failpoint", NULL);
            return;
        }
        fact_of(a, FACT_VOID, CAUSE_NONE);
        break;
    }
}

/* Facts that need no call (void, unsent) come back at once and may end an attempt, so the list is
 * walked from its end: removal moves the last one into the gap, already seen. Flushing happens
 * later, so a removed attempt is never touched again here. */
void aws_actions_tick(struct controller *c)
{
    int64_t now_us = clock_boot_us();
    int64_t wake_us = INT64_MAX;
    c->state.act = false;
    for (size_t i = c->state.attempts_n; i-- > 0 && c->leading;) {
        struct live_attempt *a = c->state.attempts[i];
        if (a->recording) {
            continue;
        }
        if (now_us >= a->wake_us && !rate_holds(a, now_us)) {
            act(a, now_us);
        }
        if (c->leading && i < c->state.attempts_n) {
            wake_us = MIN(wake_us, a->wake_us);
        }
    }
    if (c->leading) {
        pools_tick(c, &wake_us);
    }
    if (c->leading) {
        progress_tick(c, &wake_us);
    }
    c->acted_until_us = wake_us;
    if (c->leading && wake_us != INT64_MAX) {
        loop_timer_set(c->act_timer, MAX(1000, wake_us - now_us));
    }
}
