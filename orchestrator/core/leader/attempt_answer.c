/* See attempt_answer.h. */
#include "attempt_answer.h"
#include "absence.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/str.h"
#include "core/lowering/training_request.h"
#include "job_phases.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* After this many Describes in a row that do not say whose the job is, some 15 s, its name is
 * believed. An earlier one may have left it out by chance. */
#define UNTOLD_MOST 6
/* What AWS's times of one job may differ by. */
#define PENDING_SLACK_US (60 * USEC_PER_SEC)

static const struct {
    const char *name;
    enum job_phase phase;
} phases[] = {
    {"Pending", PHASE_PENDING},
    {"Starting", PHASE_STARTING},
    {"LaunchingMLInstances", PHASE_STARTING},
    {"PreparingTrainingStack", PHASE_STARTING},
    {"Downloading", PHASE_RUNNING},
    {"DownloadingTrainingImage", PHASE_RUNNING},
    {"Training", PHASE_RUNNING},
    {"Restarting", PHASE_RUNNING},
    {"Updating", PHASE_RUNNING},
    {"Uploading", PHASE_UPLOADING},
    {"Interrupted", PHASE_INTERRUPTED},
    {"Stopping", PHASE_STOPPING},
    {"MaxRuntimeExceeded", PHASE_MAX_RUNTIME},
    {"MaxWaitTimeExceeded", PHASE_MAX_WAIT},
    {"Completed", PHASE_ENDED},
    {"Failed", PHASE_ENDED},
    {"Stopped", PHASE_ENDED},
};
static const struct {
    const char *name;
    enum job_status status;
} statuses[] = {
    {"InProgress", JOB_IN_PROGRESS}, {"Completed", JOB_COMPLETED}, {"Failed", JOB_FAILED},
    {"Stopping", JOB_STOPPING},      {"Stopped", JOB_STOPPED},
};

struct job_seen leader_job_seen(const char *status, const char *secondary, usec_t modified)
{
    struct job_seen seen = {
        .status = JOB_STATUS_UNKNOWN, .phase = PHASE_OTHER, .modified = modified};
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        if (strcmp(status, statuses[i].name) == 0) {
            seen.status = statuses[i].status;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        if (strcmp(secondary, phases[i].name) == 0) {
            seen.phase = phases[i].phase;
        }
    }
    return seen;
}

bool leader_job_over(const struct job_description *job)
{
    enum job_status status = leader_job_seen(job->status, job->secondary, job->modified).status;
    return status == JOB_COMPLETED || status == JOB_FAILED || status == JOB_STOPPED;
}

/* An end that is not told is no later than the last change: what it costs at most. */
usec_t leader_job_ended(const struct job_description *job)
{
    return job->ended == 0 && leader_job_over(job) ? job->modified : job->ended;
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

static struct fact create_taken(struct live_attempt *a, const char *arn, int64_t boot_us)
{
    (void)snprintf(a->arn, sizeof a->arn, "%s", arn);
    a->reason[0] = '\0';
    if (a->taken != NULL) {
        a->taken->look_now = true; /* it has passed on its instances, or has not */
    }
    return (struct fact){.kind = FACT_CREATE_OK, .at_us = boot_us};
}

struct fact leader_create_answer(struct leader_state *s, struct live_attempt *a, const char *arn,
                                 const struct aws_failure *f, usec_t now_us, int64_t boot_us,
                                 struct create_notes *ret)
{
    struct fact fact = {.at_us = boot_us, .cause = CAUSE_NETWORK};
    memset(ret, 0, sizeof *ret);
    if (f == NULL) {
        return create_taken(a, arn, boot_us);
    }
    (void)snprintf(a->reason, sizeof a->reason, "%.64s%s%.900s", f->code,
                   f->code[0] != '\0' ? ": " : "", f->message);
    ret->silent = f->outcome == AWS_UNKNOWN || f->outcome == AWS_UNSENT;
    switch (f->outcome) {
    case AWS_OK:
    case AWS_UNKNOWN:
        fact.kind = FACT_CREATE_UNKNOWN;
        break;
    case AWS_UNSENT:
        fact.kind = FACT_CREATE_UNSENT;
        break;
    case AWS_THROTTLED:
        fact.kind = FACT_CREATE_REFUSED;
        fact.cause = CAUSE_THROTTLED;
        break;
    case AWS_CREDENTIALS: /* ours are expired or unknown: wait; /readyz and the log tell */
        fact.kind = FACT_CREATE_REFUSED;
        break;
    case AWS_REFUSED:
        if (strcmp(f->code, "ResourceInUse") == 0) {
            return (struct fact){.kind = FACT_CREATE_IN_USE, .at_us = boot_us};
        }
        fact.kind = FACT_CREATE_REFUSED;
        fact.cause = keys_refused(f) ? CAUSE_NETWORK
                                     : cause_of_refusal(f->status, f->code, str_of(f->message));
        ret->quota_refused = fact.cause == CAUSE_QUOTA &&
                             quota_learning_refused(s, a, f->message, now_us, &ret->refusal);
        break;
    }
    return fact;
}

/* SageMaker gave up waiting for instances: it had none, nobody here stopped it, and its time to
 * wait is over. Which status says so is not documented. */
static bool waited_in_vain(const struct live_attempt *a, const struct job_seen *job)
{
    const struct spec_stage *s = a->stage != NULL ? a->stage->spec : NULL;
    int64_t pending_s = s != NULL && s->training != NULL ? s->training->max_pending_s : 0;
    usec_t waited = a->row.ended_us - a->created_us;
    return a->row.started_us == 0 && a->billable_s <= 0 && !a->stopped_by_us &&
           (job->phase == PHASE_MAX_WAIT ||
            (pending_s > 0 && waited + PENDING_SLACK_US >= pending_s * USEC_PER_SEC));
}

static enum cause cause_of_end(const struct live_attempt *a, const struct job_seen *job)
{
    if (job->status == JOB_STOPPED && waited_in_vain(a, job)) {
        return CAUSE_CAPACITY;
    }
    enum job_end end = JOB_END_FAILED;
    if (job->status == JOB_STOPPED) {
        end = job->phase == PHASE_MAX_RUNTIME ? JOB_END_MAX_RUNTIME
              : job->phase == PHASE_MAX_WAIT  ? JOB_END_MAX_WAIT
                                              : JOB_END_STOPPED;
    } else if (job->status != JOB_FAILED) {
        return CAUSE_NONE;
    }
    enum cause cause = cause_of_job(end, str_of(a->reason), a->stopped_by_us);
    bool told = cause != CAUSE_UNKNOWN && cause != CAUSE_TIMEOUT;
    return !told && waited_in_vain(a, job) ? CAUSE_CAPACITY : cause;
}

/* The reason as people should read it: the worker's own words, or what we know of a stop. */
static void explain_end(struct live_attempt *a, enum cause cause)
{
    if (cause == CAUSE_NONE && a->reason[0] == '\0') {
        return; /* most answers */
    }
    AUTO_FREE char *words = str_dup(cause_words(str_of(a->reason)));
    (void)snprintf(a->reason, sizeof a->reason, "%s", words);
    if (cause == CAUSE_STOPPED && a->row.stop_cause != CAUSE_NONE) {
        (void)snprintf(a->reason, sizeof a->reason,
                       "it made no progress and was stopped by drover, to be tried again");
    } else if (cause == CAUSE_STOPPED && a->reason[0] == '\0') {
        (void)snprintf(a->reason, sizeof a->reason, "stopped by %s",
                       a->stopped_by_us ? "drover" : "somebody else");
    } else if (cause == CAUSE_TIMEOUT && a->reason[0] == '\0') {
        (void)snprintf(a->reason, sizeof a->reason, "ran longer than %lld s",
                       (long long)a->row.max_runtime_s);
    } else if (cause == CAUSE_CAPACITY && a->reason[0] == '\0') {
        (void)snprintf(a->reason, sizeof a->reason, "waited %lld s for instances and got none",
                       (long long)((a->row.ended_us - a->created_us) / USEC_PER_SEC));
    }
}

static void keep_place(struct live_attempt *a, const struct job_description *job)
{
    (void)memccpy(a->artifacts, job->artifacts, '\0', sizeof a->artifacts);
    a->placed = leader_job_over(job);
}

static void keep_rules(struct live_attempt *a, const struct job_description *job)
{
    if (job->rules[0] != '\0') {
        free(a->rules);
        a->rules = xstrdup(job->rules);
    }
}

static void keep_description(struct live_attempt *a, const struct job_description *job)
{
    static_assert(sizeof a->arn == sizeof job->arn &&
                      sizeof a->reason == sizeof job->failure_reason &&
                      sizeof a->artifacts == sizeof job->artifacts,
                  "texts of one length");
    (void)memccpy(a->arn, job->arn, '\0', sizeof a->arn);
    (void)memccpy(a->reason, job->failure_reason, '\0', sizeof a->reason);
    keep_place(a, job);
    a->created_us = job->created;
    a->row.started_us = job->started;
    a->row.ended_us = leader_job_ended(job);
    a->billable_s = job->billable_s;
    a->pool_seen = job->pool;
    leader_job_phases(a, job, &a->phases);
    keep_rules(a, job);
}

/* A Describe that neither proves nor disproves that the job is ours. */
static bool proves_nothing(const struct live_attempt *a, const struct job_description *job)
{
    bool known =
        a->arn[0] != '\0' || (a->p.state != ATTEMPT_INTENDED && a->p.state != ATTEMPT_UNKNOWN);
    return job->request_hash[0] == '\0' && (known || job->untold);
}

bool leader_ours_by_name(const struct live_attempt *a, const struct job_description *job)
{
    return proves_nothing(a, job) && a->untold >= UNTOLD_MOST - 1;
}

static bool is_gone(struct live_attempt *a, usec_t began, usec_t now_us, int64_t boot_us)
{
    int64_t runtime_s = a->row.market == MARKET_SPOT
                            ? training_request_spot_wait_s(a->row.max_runtime_s)
                            : a->row.max_runtime_s;
    if (!protocol_may_be_gone(&a->p, a->describe_sent_us)) {
        return false;
    }
    if (a->p.state == ATTEMPT_UNKNOWN) { /* it may have been sent again long after its intent */
        began = MAX(began, now_us - (boot_us - a->p.void_after_us));
    }
    return absence_proven(&a->unfound_us, absence_last_end(began, runtime_s), now_us, boot_us);
}

static struct fact not_found_answer(struct live_attempt *a, usec_t now_us, int64_t boot_us)
{
    struct fact fact = {.kind = FACT_NOT_FOUND, .at_us = a->describe_sent_us};
    usec_t created = a->created_us > 0 ? a->created_us : a->row.intended_us;
    usec_t began = a->row.started_us > 0 ? a->row.started_us : created;
    if (is_gone(a, began, now_us, boot_us)) {
        fact.kind = FACT_GONE;
        a->row.started_us = began;
        a->row.ended_us = absence_last_end(began, a->row.max_runtime_s);
        a->billable_s = 0;
        (void)snprintf(
            a->reason, sizeof a->reason,
            "it was deleted at AWS before its end was seen: its cost is estimated as the "
            "most that it can be");
    }
    return fact;
}

struct fact leader_describe_answer(struct live_attempt *a, const struct job_description *job,
                                   bool not_found, bool failed, usec_t now_us, int64_t boot_us)
{
    struct fact fact = {.kind = FACT_DESCRIBED, .at_us = boot_us};
    if (failed) {
        return (struct fact){.kind = FACT_DESCRIBE_FAILED, .at_us = boot_us};
    }
    if (not_found) {
        return not_found_answer(a, now_us, boot_us);
    }
    bool by_name = leader_ours_by_name(a, job);
    a->unfound_us = 0;
    a->untold = proves_nothing(a, job) ? MIN(a->untold + 1, UNTOLD_MOST) : 0;
    if (a->untold > 0 && !by_name) {
        (void)snprintf(a->reason, sizeof a->reason,
                       "DescribeTrainingJob gave no DROVER_REQUEST: asked again");
        return (struct fact){.kind = FACT_DESCRIBE_FAILED, .at_us = boot_us, .seen = true};
    }
    fact.job = leader_job_seen(job->status, job->secondary, job->modified);
    fact.job.ours = by_name || strcmp(job->request_hash, a->row.identity_hash) == 0;
    if (fact.job.ours) {
        keep_description(a, job);
    }
    fact.cause = cause_of_end(a, &fact.job);
    fact.bare = fact.job.status == JOB_FAILED && !a->stopped_by_us && job->started > 0 &&
                cause_is_bare(str_of(a->reason));
    explain_end(a, fact.cause);
    return fact;
}

struct fact leader_stop_answer(bool failed, bool not_found, int64_t boot_us)
{
    return (struct fact){.kind = failed || not_found ? FACT_STOP_FAILED : FACT_STOP_OK,
                         .at_us = boot_us};
}

struct fact leader_log_answer(struct live_attempt *a, const struct log_tail_evidence *e,
                              int64_t boot_us)
{
    struct fact fact = {.kind = FACT_VERIFIED, .at_us = boot_us, .cause = CAUSE_UNKNOWN};
    if (e == NULL || e->text[0] == '\0') {
        return fact;
    }
    AUTO_BUF struct buf json = BUF_INIT(4096);
    AUTO_FREE char *bare = xstrdup(a->reason);
    struct json_out w;
    json_out_init(&w, &json);
    json_out_object(&w, NULL);
    json_out_str(&w, "host", e->host);
    json_out_str(&w, "text", e->text);
    json_out_str(&w, "cause", cause_name(e->cause));
    json_out_end_object(&w);
    free(a->evidence);
    a->evidence = json.overflow ? NULL : str_dup(buf_str(&json));
    (void)snprintf(a->reason, sizeof a->reason, "%s (log of %s%s%.300s)", e->text, e->host,
                   bare[0] != '\0' ? "; " : "", bare);
    fact.cause = e->cause;
    return fact;
}

struct fact leader_log_unread(struct live_attempt *a, const struct aws_failure *f, int64_t boot_us)
{
    return f->outcome == AWS_REFUSED ? leader_log_answer(a, NULL, boot_us)
                                     : (struct fact){.kind = FACT_VERIFY_FAILED, .at_us = boot_us};
}

struct fact leader_verify_unseen(struct live_attempt *a, int64_t boot_us)
{
    AUTO_FREE char *why = xstrdup(a->reason);
    (void)snprintf(a->reason, sizeof a->reason, "its output was not looked at%s%.900s",
                   why[0] != '\0' ? ": " : "", why);
    return (struct fact){.kind = FACT_VERIFIED, .at_us = boot_us, .cause = CAUSE_UNKNOWN};
}

bool leader_place_answer(struct live_attempt *a, const struct job_description *job, bool not_found,
                         bool failed, usec_t now_us, int64_t boot_us, struct fact *ret)
{
    *ret = (struct fact){.kind = FACT_VERIFY_FAILED, .at_us = boot_us};
    if (failed) {
        return false;
    }
    if (not_found) {
        if (absence_proven(&a->unfound_us, a->row.ended_us, now_us, boot_us)) {
            *ret = leader_verify_unseen(a, boot_us);
        }
        return false;
    }
    a->unfound_us = 0;
    if (job->request_hash[0] == '\0' || strcmp(job->request_hash, a->row.identity_hash) == 0) {
        keep_place(a, job);
        keep_rules(a, job); /* which may have gone on since its end */
    }
    return a->placed;
}

struct fact leader_verify_answer(struct live_attempt *a, struct output_verdict *v, int64_t boot_us)
{
    (void)snprintf(a->reason, sizeof a->reason, "%s", v->checked && v->good ? "" : v->text);
    if (!v->checked) {
        free(TAKE(v->manifest));
        return (struct fact){.kind = FACT_VERIFY_FAILED, .at_us = boot_us};
    }
    free(a->manifest);
    a->manifest = TAKE(v->manifest);
    a->rows_in = v->rows_in;
    a->successes = v->successes;
    a->failed_to_download = v->failed_to_download;
    a->failed_to_resize = v->failed_to_resize;
    a->bytes = v->bytes;
    return (struct fact){
        .kind = FACT_VERIFIED, .at_us = boot_us, .cause = v->good ? CAUSE_NONE : v->cause};
}
