/* Warm pools: see warm.h. */
#include "warm.h"
#include "common/clock.h"
#include "common/log.h"
#include "local/app.h"
#include "local/jobs/files.h"
#include "sagemaker_local.h"
#include <stdio.h>

#define KEEP_DEFAULT_S 3600
#define KEEP_MODEL_S   21600 /* what the API's model allows at most */

static const char *const status_names[POOL_STATUS_COUNT] = {
    [POOL_NONE] = "",         [POOL_AVAILABLE] = "Available",   [POOL_IN_USE] = "InUse",
    [POOL_REUSED] = "Reused", [POOL_TERMINATED] = "Terminated",
};

const char *pool_status_name(enum pool_status s)
{
    return status_names[s];
}

int64_t warm_keep_max_s(const struct app *app)
{
    int64_t s = quota_limit(app, "Keep alive period for cluster reuse", KEEP_DEFAULT_S);
    return MIN(s, (int64_t)KEEP_MODEL_S);
}

int64_t warm_held(const struct app *app, const char *type)
{
    int64_t n = 0;
    for (size_t i = 0; i < app->jobs.live_n; i++) {
        const struct local_job *j = app->jobs.live[i];
        if (j->pool.status == POOL_AVAILABLE && strcmp(j->instance_type, type) == 0) {
            n += j->instances;
        }
    }
    return n;
}

/* True when both members are equal or absent (null is absent). */
static bool same_member(const json_t *a, const json_t *b, const char *key)
{
    json_t *x = json_object_get(a, key);
    json_t *y = json_object_get(b, key);
    x = json_is_null(x) ? NULL : x;
    y = json_is_null(y) ? NULL : y;
    return x == y || (x != NULL && y != NULL && json_equal(x, y));
}

static bool same_flag(const json_t *a, const json_t *b, const char *key)
{
    return json_is_true(json_object_get(a, key)) == json_is_true(json_object_get(b, key));
}

/* Compares everything that AWS compares between the job that left a pool and a new one. */
static bool matches(const json_t *a, const json_t *b)
{
    static const char *const resources[] = {"InstanceCount", "InstanceType", "VolumeKmsKeyId",
                                            "VolumeSizeInGB"};
    static const char *const flags[] = {"EnableInterContainerTrafficEncryption",
                                        "EnableNetworkIsolation", "EnableManagedSpotTraining"};
    const json_t *res_a = json_object_get(a, "ResourceConfig");
    const json_t *res_b = json_object_get(b, "ResourceConfig");
    bool same = same_member(a, b, "RoleArn") && same_member(a, b, "VpcConfig") &&
                same_flag(json_object_get(a, "SessionChainingConfig"),
                          json_object_get(b, "SessionChainingConfig"), "EnableSessionTagChaining");
    for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
        same = same && same_member(res_a, res_b, resources[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        same = same && same_flag(a, b, flags[i]);
    }
    return same;
}

struct local_job *warm_match(const struct app *app, const json_t *request)
{
    struct local_job *best = NULL; /* the oldest pool, or the newest when set */
    bool newest = app->set.warm_newest_first;
    for (size_t i = 0; i < app->jobs.live_n; i++) {
        struct local_job *j = app->jobs.live[i];
        if (j->pool.status == POOL_AVAILABLE && matches(j->request, request) &&
            (best == NULL || (j->pool.since < best->pool.since) != newest)) {
            best = j;
        }
    }
    return best;
}

/* Remove what the jobs cached on the instances. */
static void cache_remove(const struct app *app, const struct local_job *job)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    if (files_path(path, sizeof path, &err, "%s/state/clusters/%s", app->root, job->pool.cluster)) {
        files_remove_tree(path);
    }
}

/* The pool ends at this instant: its billed time is final and its instances are free or reused. */
static void pool_close(struct app *app, struct local_job *job, enum pool_status status, usec_t at)
{
    struct pool *p = &job->pool;
    ASSERT(p->status == POOL_AVAILABLE);
    if (status == POOL_TERMINATED) {
        cache_remove(app, job);
    }
    p->status = status;
    p->end = MAX(at, p->since);
    p->retained_s = (p->end - p->since + USEC_PER_SEC - 1) / USEC_PER_SEC;
    job->due = 0;
    /* Until the end was noticed they counted as held by the running job. */
    job->released = MAX(p->end, p->noticed);
    jobs_retire(&app->jobs, job);
}

void warm_join(struct local_job *job, const struct local_job *left)
{
    struct pool *p = &job->pool;
    (void)snprintf(p->taken_from, sizeof p->taken_from, "%s", left->name);
    (void)snprintf(p->cluster, sizeof p->cluster, "%s", left->pool.cluster);
    p->cluster_since = left->pool.cluster_since;
    p->status = POOL_IN_USE;
}

void warm_hand_over(struct app *app, struct local_job *left, const struct local_job *job)
{
    pool_close(app, left, POOL_REUSED, job->created);
    (void)snprintf(left->pool.reused_by, sizeof left->pool.reused_by, "%s", job->name);
}

/* True for ends after which AWS keeps the instances. */
static bool end_is_healthy(const struct local_job *job)
{
    if (job->started == 0 || job->ghost) {
        return false;
    }
    return job->status == JOB_COMPLETED || job->status == JOB_STOPPED ||
           strncmp(job->reason, "AlgorithmError", 14) == 0 ||
           strncmp(job->reason, "ClientError", 11) == 0;
}

static bool quota_allows(const struct app *app, const struct local_job *job)
{
    char quota[QUOTA_NAME_MAX];
    int64_t limit = quota_of_type(app, QUOTA_WARM, job->instance_type, quota);
    return warm_held(app, job->instance_type) + job->instances <= limit;
}

static bool has_groups(const struct local_job *job)
{
    const json_t *res = json_object_get(job->request, "ResourceConfig");
    return json_array_size(json_object_get(res, "InstanceGroups")) > 0;
}

void warm_keep(const struct app *app, struct local_job *job, usec_t now)
{
    struct pool *p = &job->pool;
    const json_t *res = json_object_get(job->request, "ResourceConfig");
    ASSERT(job_has_ended(job));
    p->keep_s = json_integer_value(json_object_get(res, "KeepAlivePeriodInSeconds"));
    if (p->keep_s == 0 && p->status == POOL_NONE) {
        return;
    }
    if (p->cluster[0] == '\0') {
        (void)snprintf(p->cluster, sizeof p->cluster, "%s", job->name);
        p->cluster_since = job->started;
    }
    p->status = POOL_TERMINATED;
    p->since = job->ended;
    p->end = job->ended;
    if (p->keep_s > 0 && !job->spot && !has_groups(job) && end_is_healthy(job) &&
        quota_allows(app, job)) {
        p->status = POOL_AVAILABLE;
        p->end = 0;
        p->noticed = MAX(now, job->ended);
        p->until = MIN(p->since + p->keep_s * USEC_PER_SEC,
                       MAX(p->since, p->cluster_since + app->set.cluster_life_us));
        job->due = MAX(p->until, INT64_C(1));
        job->released = 0;
    } else {
        cache_remove(app, job);
    }
}

static void pool_save(struct app *app, const struct local_job *job)
{
    struct err err = ERR_INIT;
    if (!journal_write_job(&app->state, job, &err)) {
        log_event(LOG_ERROR, "journal_failed", LF_S("job", job->name), LF_ERR(&err));
    }
}

void warm_expire(struct app *app, usec_t now)
{
    for (size_t i = app->jobs.live_n; i > 0; i--) {
        struct local_job *job = app->jobs.live[i - 1];
        if (job->pool.status == POOL_AVAILABLE && job->pool.until <= now) {
            pool_close(app, job, POOL_TERMINATED, job->pool.until);
            pool_save(app, job);
        }
    }
}

json_t *warm_status(const struct local_job *job, usec_t at)
{
    const struct pool *p = &job->pool;
    enum pool_status status = p->status;
    if (status == POOL_NONE) {
        return NULL;
    }
    bool lasted = p->end > p->since;
    if (lasted && p->end > at) {
        status = POOL_AVAILABLE; /* seen late */
    }
    json_t *o = json_pack("{s:s}", "Status", status_names[status]);
    int64_t retained = p->retained_s;
    if (status == POOL_AVAILABLE) {
        retained = MAX(INT64_C(0), at - p->since) / USEC_PER_SEC; /* so far */
    }
    if (status != POOL_IN_USE) {
        (void)json_object_set_new(o, "ResourceRetainedBillableTimeInSeconds",
                                  json_integer(retained));
    }
    if (status == POOL_REUSED) {
        (void)json_object_set_new(o, "ReusedByJob", json_string(p->reused_by));
    }
    return o;
}

bool warm_keep_for(struct app *app, struct local_job *job, int64_t keep_s, struct err *err)
{
    struct pool *p = &job->pool;
    usec_t now = clock_wall_us();
    ASSERT(p->status == POOL_AVAILABLE);
    p->keep_s = keep_s;
    p->until = MIN(p->since + keep_s * USEC_PER_SEC,
                   MAX(p->since, p->cluster_since + app->set.cluster_life_us));
    job->due = MAX(p->until, INT64_C(1));
    if (p->until <= now) {
        pool_close(app, job, POOL_TERMINATED, now);
    }
    return journal_write_job(&app->state, job, err);
}
