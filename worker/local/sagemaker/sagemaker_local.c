/* CreateTrainingJob, StopTrainingJob, UpdateTrainingJob and tags: see sagemaker_local.h. Quotas are
 * counted here over the live list, independently of drover's own code. */
#include "sagemaker_local.h"
#include "common/clock.h"
#include "common/log.h"
#include "job_clock.h"
#include "local/app.h"
#include "local/jobs/process.h"
#include "local/services/state_events.h"
#include "warm.h"
#include <stdio.h>

static const char internal_error_text[] =
    "InternalServerError: We encountered an internal error. Please try again.";
static const char capacity_error_text[] =
    "CapacityError: Unable to provision requested ML compute capacity. Please retry using a "
    "different ML instance type.";

void sagemaker_arn(const struct app *app, const char *name, char out[static SAGEMAKER_ARN_MAX])
{
    (void)snprintf(out, SAGEMAKER_ARN_MAX, "arn:aws:sagemaker:%s:%s:training-job/%s",
                   app->set.region, app->set.account, name);
}

void sagemaker_limit_exceeded(struct request *r, const char *quota, const char *unit, int64_t limit,
                              int64_t used, int64_t delta)
{
    reply_error(r, 400, "ResourceLimitExceeded",
                "The account-level service limit '%s' is %lld %s, with current utilization of "
                "%lld %s and a request delta of %lld %s. Please use AWS Service Quotas to request "
                "an increase for this quota. If AWS Service Quotas is not available, contact AWS "
                "support to request an increase for this quota.",
                quota, (long long)limit, unit, (long long)used, unit, (long long)delta, unit);
}

/* Instances held by live jobs of a market, of one type or (NULL) of all. */
static int64_t instances_used(const struct app *app, const char *type, bool spot)
{
    int64_t n = 0;
    for (size_t i = 0; i < app->jobs.live_n; i++) {
        const struct local_job *j = app->jobs.live[i];
        if (!j->ghost && j->spot == spot && (type == NULL || strcmp(j->instance_type, type) == 0)) {
            n += j->instances;
        }
    }
    return n;
}

/* Limits that one job alone can pass. False: answered. */
static bool job_limits_check(struct request *r)
{
    const struct app *app = r->app;
    const json_t *res = json_object_get(r->input, "ResourceConfig");
    const json_t *stop = json_object_get(r->input, "StoppingCondition");
    const struct {
        const char *quota;
        const char *unit;
        int64_t dflt;
        int64_t asked;
    } limits[] = {
        {"Maximum number of instances per training job", "Instances", INSTANCES_MAX,
         json_integer_value(json_object_get(res, "InstanceCount"))},
        {"Longest run time for a training job", "Seconds", LONGEST_RUN_S,
         json_integer_value(json_object_get(stop, "MaxRuntimeInSeconds"))},
        {"Size of EBS volume for a training job instance", "Gigabytes", VOLUME_MAX_GB,
         json_integer_value(json_object_get(res, "VolumeSizeInGB"))},
    };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        int64_t limit = quota_limit(app, limits[i].quota, limits[i].dflt);
        if (limits[i].asked > limit) {
            sagemaker_limit_exceeded(r, limits[i].quota, limits[i].unit, limit, 0, limits[i].asked);
            return false;
        }
    }
    return true;
}

/* Check that the request fits its quotas. A pool it takes provides its instances. `refuse`: a fault
 * forces a refusal. most: the type's limit is not higher, whatever Service Quotas says. False:
 * answered. */
static bool quota_check(struct request *r, bool refuse, int64_t most)
{
    const struct app *app = r->app;
    const json_t *res = json_object_get(r->input, "ResourceConfig");
    const char *type = json_string_value(json_object_get(res, "InstanceType"));
    int64_t delta = json_integer_value(json_object_get(res, "InstanceCount"));
    bool spot = json_is_true(json_object_get(r->input, "EnableManagedSpotTraining"));
    const struct local_job *pool = warm_match(app, r->input);
    int64_t moved = pool == NULL ? 0 : pool->instances;
    char quota[QUOTA_NAME_MAX];
    int64_t limit = MIN(most, quota_of_type(app, spot ? QUOTA_SPOT : QUOTA_TRAINING, type, quota));
    int64_t used = instances_used(app, type, spot);
    if (refuse || used - moved + delta > limit) {
        sagemaker_limit_exceeded(r, quota, "Instances", limit, used, delta);
        return false;
    }
    (void)snprintf(quota, sizeof quota, "Number of instances across all %straining jobs",
                   spot ? "spot " : "");
    limit = quota_limit(app, quota, INT64_MAX);
    used = instances_used(app, NULL, spot);
    if (used - moved + delta > limit) {
        sagemaker_limit_exceeded(r, quota, "Instances", limit, used, delta);
        return false;
    }
    return job_limits_check(r);
}

/* Create a job of another owner: the same prefix with another hash, or the same name; always
 * another environment. */
static void ghost_make(struct request *r, const struct injected_fault *f, const char *name)
{
    char other[64];
    struct err err = ERR_INIT;
    (void)snprintf(other, sizeof other, "%s", name);
    size_t n = strlen(other);
    for (size_t i = n < 8 ? 0 : n - 8; !f->same_name && i < n; i++) {
        /* Change every digit, so that the name stays valid and differs. */
        other[i] = other[i] == '-' ? '-' : other[i] == 'f' ? '0' : 'f';
    }
    if (jobs_find(&r->app->jobs, other) != NULL) {
        return;
    }
    json_t *input = json_deep_copy(r->input);
    (void)json_object_set_new(input, "TrainingJobName", json_string(other));
    (void)json_object_set_new(input, "Environment", json_pack("{s:s}", "GHOST", "1"));
    (void)json_object_del(input, "Tags");
    struct local_job *ghost = job_new(other, input, clock_wall_us());
    json_decref(input);
    ghost->ghost = true;
    ghost->inject_after_us = fault_delay_us(f, 2 * USEC_PER_SEC);
    ghost->due = ghost->created + r->app->set.cold_start_us;
    jobs_add(&r->app->jobs, ghost);
    if (!journal_write_create(&r->app->state, ghost, 0, &err)) {
        log_event(LOG_ERROR, "journal_failed", LF_S("job", other), LF_ERR(&err));
    }
}

/* Checks that come after the input's own: faults, name, quota. False: answered. */
static bool create_allowed(struct request *r, const char *name)
{
    const struct injected_fault *f = faults_take(r, STAGE_CHECK);
    if (f != NULL && f->kind == FAULT_GHOST_JOB) {
        ghost_make(r, f, name);
    }
    if (f != NULL && f->kind == FAULT_QUOTA_REFUSE) {
        return quota_check(r, true, INT64_MAX);
    }
    if (f != NULL && f->kind == FAULT_QUOTA_FIRST && !quota_check(r, false, INT64_MAX)) {
        return false;
    }
    if (jobs_find(&r->app->jobs, name) != NULL) {
        char arn[SAGEMAKER_ARN_MAX];
        sagemaker_arn(r->app, name, arn);
        reply_error(r, 400, "ResourceInUse",
                    "Training job names must be unique within an AWS account and region, and a "
                    "training job with this name already exists (%s)",
                    arn);
        return false;
    }
    if (r->app->jobs.n >= JOBS_MAX) {
        reply_error(r, 500, "InternalFailure", "no room for more jobs");
        return false;
    }
    return quota_check(r, false, f != NULL && f->kind == FAULT_QUOTA_LOWER ? f->limit : INT64_MAX);
}

/* Set what a fault will do to the job. */
static void create_inject(struct request *r, struct local_job *job)
{
    const struct injected_fault *f = faults_take(r, STAGE_JOB);
    const char *reason = internal_error_text;
    if (f == NULL) {
        return;
    }
    job->inject = INJECT_FAILURE;
    job->inject_after_us = fault_delay_us(f, 200 * USEC_PER_MSEC);
    if (f->kind == FAULT_CAPACITY) {
        job->inject = INJECT_CAPACITY;
        reason = capacity_error_text;
    }
    if (f->kind == FAULT_SPOT_INTERRUPT) {
        job->inject = INJECT_SPOT;
        job->inject_times = f->repeat;
        reason = "Spot capacity was reclaimed.";
    }
    if (f->reason[0] != '\0') {
        reason = f->reason;
    }
    (void)snprintf(job->inject_reason, sizeof job->inject_reason, "%s", reason);
}

/* A job on a pool needs no capacity, and only spot instances are reclaimed. */
static bool inject_applies(const struct request *r, const struct local_job *job, bool warm)
{
    const struct injected_fault *f = r->armed[STAGE_JOB];
    return f == NULL || (!(f->kind == FAULT_CAPACITY && warm) &&
                         !(f->kind == FAULT_SPOT_INTERRUPT && !job->spot));
}

void sagemaker_create(struct request *r)
{
    struct app *app = r->app;
    char arn[SAGEMAKER_ARN_MAX];
    struct err err = ERR_INIT;
    if (!sagemaker_check_create(r)) {
        return;
    }
    const char *name = json_string_value(json_object_get(r->input, "TrainingJobName"));
    if (!create_allowed(r, name)) {
        return;
    }
    struct local_job *job = job_new(name, r->input, clock_wall_us());
    struct local_job *pool = warm_match(app, r->input);
    job->billed_percent = job->spot ? app->set.spot_billed_percent : 100;
    if (inject_applies(r, job, pool != NULL)) {
        create_inject(r, job);
    }
    job->due = job->created + (pool == NULL ? app->set.cold_start_us : app->set.warm_start_us);
    job->due = MIN(job->due, job->wait_until);
    job->seq = (int64_t)app->jobs.n;
    if (pool != NULL) {
        warm_join(job, pool);
    }
    if (!journal_write_create(&app->state, job, r->id, &err)) {
        job_free(job);
        reply_error(r, 500, "InternalFailure", "%s", err.message);
        return;
    }
    if (pool != NULL) {
        warm_hand_over(app, pool, job);
    }
    jobs_add(&app->jobs, job);
    state_events_tell(app, job);
    r->accepted = true;
    r->reply.sync = true;
    sagemaker_arn(app, name, arn);
    reply_json(r, json_pack("{s:s}", "TrainingJobArn", arn));
    job_clock_wake(app);
}

/* The job a request names; NULL: answered. */
static struct local_job *job_named(struct request *r)
{
    const char *name = json_string_value(json_object_get(r->input, "TrainingJobName"));
    if (!sagemaker_check_name(r, name)) {
        return NULL;
    }
    struct local_job *job = jobs_find(&r->app->jobs, name);
    if (job == NULL) {
        reply_error(r, 400, "ValidationException", "Requested resource not found.");
    }
    return job;
}

void sagemaker_delete(struct request *r)
{
    if (job_named(r) != NULL) {
        reply_error(r, 400, "AccessDeniedException",
                    "DeleteTrainingJob of %s is denied with an explicit deny in a service control "
                    "policy",
                    r->name);
    }
}

void sagemaker_stop(struct request *r)
{
    struct local_job *job = job_named(r);
    struct err err = ERR_INIT;
    if (job == NULL) {
        return;
    }
    if (job_has_ended(job)) {
        reply_error(r, 400, "ValidationException",
                    "The request was rejected because the training job is in status %s",
                    job_status_name(job->status));
        return;
    }
    if (job->status != JOB_STOPPING) {
        usec_t now = clock_wall_us();
        job_enter(job, PHASE_STOPPING, now);
        bool ran = job->run_started != 0 && !job->ghost;
        job->due = ran ? 0 : now + r->app->set.stop_us;
        if (!journal_write_job(&r->app->state, job, &err) ||
            (ran && !process_stop(r->app, job, &err))) {
            reply_error(r, 500, "InternalFailure", "%s", err.message);
            return;
        }
        state_events_tell(r->app, job);
        r->reply.sync = true;
        job_clock_wake(r->app);
    }
    r->reply.status = 200;
    r->reply.content_type = "application/x-amz-json-1.1";
}

/* UpdateTrainingJob with a ResourceConfig that has passed the checks. */
static void pool_update(struct request *r, struct local_job *job, int64_t keep_s)
{
    struct err err = ERR_INIT;
    char arn[SAGEMAKER_ARN_MAX];
    if (job->pool.status != POOL_AVAILABLE) {
        reply_error(r, 400, "ValidationException",
                    "The request was rejected because the training job has no warm pool in status "
                    "Available");
        return;
    }
    if (!warm_keep_for(r->app, job, keep_s, &err)) {
        reply_error(r, 500, "InternalFailure", "%s", err.message);
        return;
    }
    r->reply.sync = true;
    sagemaker_arn(r->app, job->name, arn);
    reply_json(r, json_pack("{s:s}", "TrainingJobArn", arn));
    job_clock_wake(r->app);
}

void sagemaker_update(struct request *r)
{
    const json_t *res = json_object_get(r->input, "ResourceConfig");
    const json_t *keep = json_object_get(res, "KeepAlivePeriodInSeconds");
    struct local_job *job = job_named(r);
    char arn[SAGEMAKER_ARN_MAX];
    if (job == NULL) {
        return;
    }
    if (res != NULL && (!json_is_integer(keep) || json_integer_value(keep) < 0 ||
                        json_integer_value(keep) > warm_keep_max_s(r->app))) {
        reply_error(r, 400, "ValidationException",
                    "1 validation error detected: Value at "
                    "'resourceConfig.keepAlivePeriodInSeconds' failed to satisfy constraint: "
                    "Member must have value between 0 and %lld",
                    (long long)warm_keep_max_s(r->app));
        return;
    }
    if (res != NULL) {
        pool_update(r, job, json_integer_value(keep));
        return;
    }
    if (job_has_ended(job)) {
        reply_error(r, 400, "ValidationException",
                    "The request was rejected because the training job is in status %s",
                    job_status_name(job->status));
        return;
    }
    sagemaker_arn(r->app, job->name, arn);
    reply_json(r, json_pack("{s:s}", "TrainingJobArn", arn));
}
