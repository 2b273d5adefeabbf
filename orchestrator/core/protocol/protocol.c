/* The submit, observe, stop and recover protocol of one attempt. What each state guarantees:
 *   INTENDED   the intent is committed; every send of it so far was refused cleanly or never left
 *              this machine, or the first is in flight: no job exists unless that send takes effect
 *   UNKNOWN    some Create may have taken or may still take effect: the slot is held, the name is
 *   kept
 *   SUBMITTED..UPLOADING  the job exists and is ours
 *   STOPPING   SageMaker accepted our stop, or reports a stop
 *   VERIFYING  a Describe showed Completed, or Failed with a reason that tells nothing; slot and
 *   money are settled, the output is checked, or the log is read
 * A slot is released at exactly one step: the Describe that shows the end, or that the job is gone,
 * VOID, or CONFLICT (the name belongs to another job: no Create of ours took effect, and none can
 * while the name is taken). */
#include "protocol.h"
#include "common/retry.h"

static int64_t add_sat(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

/* Wait before the next call after `failures` (>= 1) in a row. Jitter is the caller's. */
static int64_t backoff_us(int failures, const struct protocol_config *cfg)
{
    return retry_step_us(cfg->resend_base_us, cfg->resend_cap_us, failures - 1);
}

/* A call failed: wait longer before the next; alert once when failures continue. */
static void failed_call(struct protocol_attempt *a, int64_t now_us,
                        const struct protocol_config *cfg, struct protocol_effect *ret)
{
    a->failures = MIN(a->failures + 1, 1000);
    a->next_us = add_sat(now_us, backoff_us(a->failures, cfg));
    if (a->failures == PROTOCOL_ALERT_FAILURES) {
        ret->alert = true;
    }
}

static void move(struct protocol_attempt *a, enum attempt_state to, enum cause cause,
                 struct protocol_effect *ret)
{
    ASSERT(attempt_edge(a->state, to));
    ret->changed = true;
    ret->from = a->state;
    ret->cause = cause;
    ret->release_slot = attempt_holds_slot(a->state) && !attempt_holds_slot(to);
    ret->settle = ret->release_slot && to != ATTEMPT_VOID && to != ATTEMPT_CONFLICT;
    ret->task_ends = attempt_state_terminal(to);
    a->state = to;
}

static bool exists(enum attempt_state s)
{
    return s >= ATTEMPT_SUBMITTED && s <= ATTEMPT_STOPPING;
}

/* A job of its name has been seen. */
static bool was_there(const struct protocol_attempt *a)
{
    return exists(a->state) || (a->state == ATTEMPT_UNKNOWN && a->was_there);
}

bool protocol_may_be_gone(const struct protocol_attempt *a, int64_t at_us)
{
    return was_there(a) && !a->create_in_flight && at_us > a->void_after_us;
}

/* True when no further Create of this attempt may be sent. */
static bool given_up(const struct protocol_attempt *a)
{
    return !a->wanted || a->refused != CAUSE_NONE || a->was_there;
}

/* P3 for an attempt that may exist, P7 for one that cannot. */
static bool may_void(const struct protocol_attempt *a)
{
    if (a->create_in_flight || a->was_there || !given_up(a)) {
        return false;
    }
    return a->state == ATTEMPT_INTENDED || (a->state == ATTEMPT_UNKNOWN && a->not_found);
}

/* True when every further send of the same bytes would be refused the same way. */
static bool is_permanent(enum cause c)
{
    return c == CAUSE_ACCESS_DENIED || c == CAUSE_BAD_REQUEST || c == CAUSE_BAD_IMAGE ||
           c == CAUSE_BAD_INPUT;
}

static void become_unknown(struct protocol_attempt *a, struct protocol_effect *ret)
{
    a->ambiguous = true;
    a->look_now = true;
    if (a->state == ATTEMPT_INTENDED) {
        move(a, ATTEMPT_UNKNOWN, CAUSE_NONE, ret);
    }
}

/* The window of P3 counts from the newest signature of any epoch and is never shortened. */
static void extend_window(struct protocol_attempt *a, int64_t at_us,
                          const struct protocol_config *cfg)
{
    a->void_after_us = MAX(a->void_after_us, add_sat(at_us, cfg->signature_window_us));
    a->not_found = false;
}

static void on_refused(struct protocol_attempt *a, const struct fact *f,
                       const struct protocol_config *cfg, struct protocol_effect *ret)
{
    if (a->state == ATTEMPT_INTENDED) { /* every send of this name was refused: nothing exists */
        if (f->cause == CAUSE_QUOTA || f->cause == CAUSE_CAPACITY || is_permanent(f->cause)) {
            move(a, ATTEMPT_VOID, f->cause, ret);
        } else {
            failed_call(a, f->at_us, cfg, ret);
        }
    } else if (a->state == ATTEMPT_UNKNOWN) { /* P2: a refusal proves nothing about earlier sends */
        if (is_permanent(f->cause)) {
            a->refused = f->cause;
        }
        a->look_now = true;
        failed_call(a, f->at_us, cfg, ret);
    }
}

/* Answers to a Create. */
static void on_create(struct protocol_attempt *a, const struct fact *f,
                      const struct protocol_config *cfg, struct protocol_effect *ret)
{
    a->create_in_flight = false;
    bool open = a->state == ATTEMPT_INTENDED || a->state == ATTEMPT_UNKNOWN;
    if (!open) {
        /* Another answer arrived first. A Create accepted after the end would be a job that nobody
         * follows. The rules above exclude it, so it raises an alert. */
        ret->alert = f->kind == FACT_CREATE_OK && attempt_state_terminal(a->state);
        return;
    }
    if (f->kind == FACT_CREATE_OK) {
        a->failures = 0;
        a->next_us = f->at_us;
        a->described_us = f->at_us;
        a->look_now = a->was_there = false;
        a->refused = CAUSE_NONE;
        move(a, ATTEMPT_SUBMITTED, CAUSE_NONE, ret);
    } else if (f->kind == FACT_CREATE_IN_USE) {
        /* A job has this name; only Describe says whose it is. It exists now, so a Describe that
         * finds nothing is stale: the window starts again. */
        become_unknown(a, ret);
        a->was_there = true;
        extend_window(a, f->at_us, cfg);
        failed_call(a, f->at_us, cfg, ret);
        a->next_us = f->at_us;
    } else if (f->kind == FACT_CREATE_UNKNOWN) {
        become_unknown(a, ret);
        failed_call(a, f->at_us, cfg, ret);
    } else if (f->kind == FACT_CREATE_REFUSED) {
        on_refused(a, f, cfg, ret);
    } else { /* FACT_CREATE_UNSENT */
        failed_call(a, f->at_us, cfg, ret);
    }
}

/* State of a job in progress; `now` when the phase says nothing. */
static enum attempt_state state_of_phase(enum job_phase phase, enum attempt_state now)
{
    switch (phase) {
    case PHASE_PENDING:
        return now == ATTEMPT_UNKNOWN ? ATTEMPT_SUBMITTED : ATTEMPT_STARTING;
    case PHASE_STARTING:
    case PHASE_INTERRUPTED: /* spot took the instance; SageMaker starts the job again */
        return ATTEMPT_STARTING;
    case PHASE_RUNNING:
        return ATTEMPT_RUNNING;
    case PHASE_UPLOADING:
        return ATTEMPT_UPLOADING;
    case PHASE_STOPPING:
    case PHASE_MAX_RUNTIME:
    case PHASE_MAX_WAIT:
        return ATTEMPT_STOPPING;
    case PHASE_ENDED:
    case PHASE_OTHER:
        return now;
    }
    return now;
}

/* A job in progress moves forward; back to STARTING only by an observation newer than all others
 * (P6). PENDING for a job known to be submitted changes nothing. */
static void on_progress(struct protocol_attempt *a, const struct fact *f, bool newer,
                        const struct protocol_config *cfg, struct protocol_effect *ret)
{
    enum attempt_state to =
        f->job.status == JOB_STOPPING ? ATTEMPT_STOPPING : state_of_phase(f->job.phase, a->state);
    if (a->state == ATTEMPT_UNKNOWN && to == ATTEMPT_UNKNOWN) {
        to = ATTEMPT_SUBMITTED;
    }
    if (a->state == ATTEMPT_STOPPING && to != ATTEMPT_STOPPING && !a->wanted) {
        a->stop_sent = false; /* the stop seems to be lost: ask again later */
        failed_call(a, f->at_us, cfg, ret);
        return;
    }
    if (a->state == ATTEMPT_SUBMITTED && f->job.phase == PHASE_PENDING) {
        return;
    }
    bool back = to == ATTEMPT_STARTING && a->state > ATTEMPT_STARTING;
    if (attempt_edge(a->state, to) && (!back || newer)) {
        move(a, to, CAUSE_NONE, ret);
    }
}

/* The end as a Describe shows it. Completed only means that the output can be checked. */
static void on_end(struct protocol_attempt *a, const struct fact *f, struct protocol_effect *ret)
{
    enum cause cause = f->cause;
    if (f->job.status == JOB_COMPLETED) {
        move(a, ATTEMPT_VERIFYING, CAUSE_NONE, ret);
    } else if (f->job.status == JOB_FAILED && f->bare && a->wanted) {
        a->failed_as = cause != CAUSE_NONE ? cause : CAUSE_UNKNOWN;
        a->examine_until_us = add_sat(f->at_us, PROTOCOL_EXAMINE_US);
        move(a, ATTEMPT_VERIFYING, a->failed_as, ret);
    } else if (f->job.status == JOB_FAILED) {
        move(a, ATTEMPT_FAILED, cause != CAUSE_NONE ? cause : CAUSE_UNKNOWN, ret);
    } else if (f->job.phase == PHASE_MAX_RUNTIME) {
        move(a, ATTEMPT_FAILED, cause != CAUSE_NONE ? cause : CAUSE_TIMEOUT, ret);
    } else if (f->job.phase == PHASE_MAX_WAIT) {
        move(a, ATTEMPT_FAILED, cause != CAUSE_NONE ? cause : CAUSE_CAPACITY, ret);
    } else {
        move(a, ATTEMPT_STOPPED, cause != CAUSE_NONE ? cause : CAUSE_STOPPED, ret);
    }
}

static bool has_ended(const struct job_seen *job)
{
    return job->status == JOB_COMPLETED || job->status == JOB_FAILED || job->status == JOB_STOPPED;
}

/* Older than what is known: read again. An end is not, since nothing comes after it: it holds
 * whatever its date, for AWS's clock may have been set back while the job ran. */
static bool is_stale(const struct protocol_attempt *a, const struct job_seen *job)
{
    return !has_ended(job) && job->modified != 0 && job->modified < a->modified;
}

static void on_described(struct protocol_attempt *a, const struct fact *f,
                         const struct protocol_config *cfg, struct protocol_effect *ret)
{
    a->describe_in_flight = false;
    if (a->state != ATTEMPT_UNKNOWN && !exists(a->state)) {
        return;
    }
    a->not_found = false;
    if (!f->job.ours) {
        move(a, ATTEMPT_CONFLICT, CAUSE_BAD_REQUEST, ret);
        ret->alert = true;
        return;
    }
    if (is_stale(a, &f->job)) {
        a->look_now = true;
        failed_call(a, f->at_us, cfg, ret);
        return;
    }
    /* After a takeover no earlier observation is known, so the first answer may be stale. */
    bool newer = a->modified != 0 && f->job.modified > a->modified;
    a->modified = MAX(a->modified, f->job.modified);
    a->described_us = f->at_us;
    a->look_now = a->was_there = false;
    a->failures = 0;
    a->next_us = f->at_us;
    a->refused = CAUSE_NONE;
    switch (f->job.status) {
    case JOB_IN_PROGRESS:
    case JOB_STOPPING:
        on_progress(a, f, newer, cfg, ret);
        return;
    case JOB_COMPLETED:
    case JOB_FAILED:
    case JOB_STOPPED:
        on_end(a, f, ret);
        return;
    case JOB_STATUS_UNKNOWN: /* an unknown status: the job exists; nothing more is concluded */
        ret->alert = true;
        if (a->state == ATTEMPT_UNKNOWN) {
            move(a, ATTEMPT_SUBMITTED, CAUSE_NONE, ret);
        }
        return;
    }
}

static void on_not_found(struct protocol_attempt *a, const struct fact *f,
                         const struct protocol_config *cfg, struct protocol_effect *ret)
{
    a->describe_in_flight = false;
    if (was_there(a)) { /* known to exist: the answer is stale, ask again */
        a->look_now = true;
        failed_call(a, f->at_us, cfg, ret);
        return;
    }
    if (a->state != ATTEMPT_UNKNOWN) {
        return;
    }
    if (!a->create_in_flight && f->at_us > a->void_after_us) {
        a->not_found = true;
    }
    a->look_now = false;
    if (given_up(a)) { /* look again after the window at the latest */
        failed_call(a, f->at_us, cfg, ret);
        if (f->at_us <= a->void_after_us) {
            a->next_us = MIN(a->next_us, add_sat(a->void_after_us, 1));
        }
    } else if (a->failures > 0) {
        a->next_us = add_sat(f->at_us, backoff_us(a->failures, cfg));
    }
}

static void on_gone(struct protocol_attempt *a, const struct fact *f,
                    const struct protocol_config *cfg, struct protocol_effect *ret)
{
    if (!protocol_may_be_gone(a, f->at_us)) {
        on_not_found(a, f, cfg, ret);
        return;
    }
    a->describe_in_flight = false;
    move(a, ATTEMPT_FAILED, CAUSE_UNKNOWN, ret);
}

static void on_describe_failed(struct protocol_attempt *a, const struct fact *f,
                               const struct protocol_config *cfg, struct protocol_effect *ret)
{
    a->describe_in_flight = false;
    a->was_there |= f->seen && a->state == ATTEMPT_UNKNOWN;
    if (a->state == ATTEMPT_UNKNOWN || exists(a->state)) {
        /* UNKNOWN sends its Create in between, so it does not depend on Describe alone. */
        a->look_now = a->state != ATTEMPT_UNKNOWN;
        failed_call(a, f->at_us, cfg, ret);
    }
}

static void on_listed(struct protocol_attempt *a, const struct fact *f)
{
    bool news = a->state == ATTEMPT_UNKNOWN || has_ended(&f->job) || f->job.modified == 0 ||
                f->job.modified > a->modified;
    a->was_there |= a->state == ATTEMPT_UNKNOWN;
    if (news && was_there(a)) {
        a->look_now = true;
    }
}

static void on_stop(struct protocol_attempt *a, const struct fact *f,
                    const struct protocol_config *cfg, struct protocol_effect *ret)
{
    a->stop_in_flight = false;
    if (!exists(a->state)) {
        return;
    }
    a->look_now = true;
    a->look_first = f->kind == FACT_STOP_FAILED;
    if (a->look_first) {
        failed_call(a, f->at_us, cfg, ret);
        return;
    }
    a->stop_sent = true;
    a->next_us = MAX(a->next_us, add_sat(f->at_us, cfg->resend_base_us));
    if (a->state != ATTEMPT_STOPPING) {
        move(a, ATTEMPT_STOPPING, CAUSE_STOPPED, ret);
    }
}

static void on_verify(struct protocol_attempt *a, const struct fact *f,
                      const struct protocol_config *cfg, struct protocol_effect *ret)
{
    a->verify_in_flight = false;
    if (a->state != ATTEMPT_VERIFYING) {
        return;
    }
    if (f->kind == FACT_VERIFY_FAILED) {
        failed_call(a, f->at_us, cfg, ret);
        a->next_us = MIN(a->next_us, add_sat(f->at_us, PROTOCOL_VERIFY_AGAIN_US));
    } else if (a->failed_as != CAUSE_NONE) { /* a log that says nothing changes nothing */
        bool told = f->cause != CAUSE_NONE && f->cause != CAUSE_UNKNOWN;
        move(a, ATTEMPT_FAILED, told ? f->cause : a->failed_as, ret);
    } else if (f->cause == CAUSE_NONE) {
        move(a, ATTEMPT_SUCCEEDED, CAUSE_NONE, ret);
    } else {
        move(a, ATTEMPT_FAILED, f->cause, ret);
    }
}

static void on_void(struct protocol_attempt *a, struct protocol_effect *ret)
{
    if (may_void(a)) {
        move(a, ATTEMPT_VOID, a->refused != CAUSE_NONE ? a->refused : CAUSE_STOPPED, ret);
    }
}

void protocol_step(struct protocol_attempt *a, const struct fact *f,
                   const struct protocol_config *cfg, struct protocol_effect *ret)
{
    *ret = (struct protocol_effect){.from = a->state};
    switch (f->kind) {
    case FACT_CREATE_SIGNED:
        a->signed_ever = true;
        extend_window(a, f->at_us, cfg);
        return;
    case FACT_CREATE_UNSENT:
    case FACT_CREATE_OK:
    case FACT_CREATE_IN_USE:
    case FACT_CREATE_REFUSED:
    case FACT_CREATE_UNKNOWN:
        on_create(a, f, cfg, ret);
        return;
    case FACT_DESCRIBED:
        on_described(a, f, cfg, ret);
        return;
    case FACT_NOT_FOUND:
        on_not_found(a, f, cfg, ret);
        return;
    case FACT_GONE:
        on_gone(a, f, cfg, ret);
        return;
    case FACT_DESCRIBE_FAILED:
        on_describe_failed(a, f, cfg, ret);
        return;
    case FACT_LISTED:
        on_listed(a, f);
        return;
    case FACT_STOP_OK:
    case FACT_STOP_FAILED:
        on_stop(a, f, cfg, ret);
        return;
    case FACT_VERIFIED:
    case FACT_VERIFY_FAILED:
        on_verify(a, f, cfg, ret);
        return;
    case FACT_UNWANTED:
        a->wanted = false;
        return;
    case FACT_VOID:
        on_void(a, ret);
        return;
    case FACT_HINT:
        a->look_now = true;
        return;
    }
}

static enum protocol_action next_unresolved(struct protocol_attempt *a, int64_t now_us,
                                            int64_t *ret_wake_us)
{
    if (may_void(a)) {
        return ACT_VOID;
    }
    if (a->create_in_flight || a->describe_in_flight) {
        return ACT_NONE;
    }
    if (now_us < a->next_us) {
        *ret_wake_us = a->next_us;
        return ACT_NONE;
    }
    if (a->state == ATTEMPT_UNKNOWN && (a->look_now || given_up(a))) {
        a->describe_in_flight = true;
        return ACT_DESCRIBE;
    }
    a->create_in_flight = true;
    return ACT_CREATE;
}

static enum protocol_action next_existing(struct protocol_attempt *a, int64_t now_us,
                                          const struct protocol_config *cfg, int64_t *ret_wake_us)
{
    int64_t stale_us = add_sat(a->described_us, cfg->describe_stale_us);
    bool look = !a->describe_in_flight;
    bool stop = !a->wanted && !a->stop_sent && !a->stop_in_flight && !(a->look_first && look);
    int64_t look_us = a->look_now ? a->next_us : MAX(a->next_us, stale_us);
    if (stop && now_us >= a->next_us) {
        a->stop_in_flight = true;
        return ACT_STOP;
    }
    if (look && now_us >= look_us) {
        a->describe_in_flight = true;
        a->look_first = false;
        return ACT_DESCRIBE;
    }
    if (stop) {
        *ret_wake_us = a->next_us;
    }
    if (look) {
        *ret_wake_us = MIN(*ret_wake_us, look_us);
    }
    return ACT_NONE;
}

enum protocol_action protocol_next(struct protocol_attempt *a, int64_t now_us,
                                   const struct protocol_config *cfg, int64_t *ret_wake_us)
{
    *ret_wake_us = INT64_MAX;
    if (a->state == ATTEMPT_INTENDED || a->state == ATTEMPT_UNKNOWN) {
        return next_unresolved(a, now_us, ret_wake_us);
    }
    if (exists(a->state)) {
        return next_existing(a, now_us, cfg, ret_wake_us);
    }
    if (a->state != ATTEMPT_VERIFYING) {
        return ACT_NONE;
    }
    bool late = a->failed_as != CAUSE_NONE && now_us >= a->examine_until_us;
    if (!late && (a->verify_in_flight || now_us < a->next_us)) {
        *ret_wake_us = a->verify_in_flight ? INT64_MAX : a->next_us;
        if (a->failed_as != CAUSE_NONE) {
            *ret_wake_us = MIN(*ret_wake_us, a->examine_until_us);
        }
        return ACT_NONE;
    }
    a->verify_in_flight = true;
    return ACT_VERIFY;
}

void protocol_intended(struct protocol_attempt *ret)
{
    *ret = (struct protocol_attempt){.state = ATTEMPT_INTENDED, .wanted = true};
}

void protocol_taken_over(enum attempt_state state, enum cause failed_as, bool wanted,
                         int64_t lease_end_us, const struct protocol_config *cfg,
                         struct protocol_attempt *ret, struct protocol_effect *ret_effect)
{
    *ret = (struct protocol_attempt){.state = state, .wanted = wanted};
    *ret_effect = (struct protocol_effect){.from = state};
    if (attempt_state_terminal(state)) {
        return;
    }
    ret->look_now = true;
    if (state == ATTEMPT_VERIFYING && failed_as != CAUSE_NONE) {
        ret->failed_as = failed_as;
        ret->examine_until_us = add_sat(lease_end_us, PROTOCOL_EXAMINE_US);
    }
    /* The row moves to STOPPING only when SageMaker accepted the stop or reported one. */
    ret->stop_sent = state == ATTEMPT_STOPPING;
    if (state == ATTEMPT_INTENDED || state == ATTEMPT_UNKNOWN) {
        ret->signed_ever = true;
        extend_window(ret, lease_end_us, cfg);
        become_unknown(ret, ret_effect);
    }
}

bool protocol_may_sign(int64_t lease_end_us, int64_t now_us)
{
    return now_us < lease_end_us && lease_end_us - now_us > PROTOCOL_SIGN_MARGIN_US;
}
