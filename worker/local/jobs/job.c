/* Jobs and their phases: see job.h. */
#include "job.h"
#include <stdio.h>

static const struct {
    const char *name;
    enum local_job_status status;
} phases[JOB_PHASE_COUNT] = {
    [PHASE_STARTING] = {"Starting", JOB_IN_PROGRESS},
    [PHASE_DOWNLOADING] = {"Downloading", JOB_IN_PROGRESS},
    [PHASE_TRAINING] = {"Training", JOB_IN_PROGRESS},
    [PHASE_UPLOADING] = {"Uploading", JOB_IN_PROGRESS},
    [PHASE_STOPPING] = {"Stopping", JOB_STOPPING},
    [PHASE_STOPPED] = {"Stopped", JOB_STOPPED},
    [PHASE_MAX_RUNTIME] = {"MaxRuntimeExceeded", JOB_STOPPED},
    [PHASE_COMPLETED] = {"Completed", JOB_COMPLETED},
    [PHASE_FAILED] = {"Failed", JOB_FAILED},
    [PHASE_INTERRUPTED] = {"Interrupted", JOB_IN_PROGRESS},
    [PHASE_MAX_WAIT] = {"MaxWaitTimeExceeded", JOB_STOPPED},
};

const char *job_status_name(enum local_job_status s)
{
    static const char *const names[JOB_STATUS_COUNT] = {
        [JOB_IN_PROGRESS] = "InProgress", [JOB_STOPPING] = "Stopping",
        [JOB_COMPLETED] = "Completed",    [JOB_FAILED] = "Failed",
        [JOB_STOPPED] = "Stopped",
    };
    return names[s];
}

const char *job_phase_name(enum local_job_phase p)
{
    return phases[p].name;
}

enum local_job_status job_phase_status(enum local_job_phase p)
{
    return phases[p].status;
}

void jobs_init(struct jobs *j)
{
    *j = (struct jobs){.by_name = json_object()};
}

void job_free(struct local_job *job)
{
    if (job != NULL) {
        json_decref(job->request);
        json_decref(job->tags);
        free(job);
    }
}

void jobs_done(struct jobs *j)
{
    for (size_t i = 0; i < j->n; i++) {
        job_free(j->items[i]);
    }
    free(j->items);
    free(j->live);
    json_decref(j->by_name);
    *j = (struct jobs){0};
}

struct local_job *jobs_find(const struct jobs *j, const char *name)
{
    const json_t *at = json_object_get(j->by_name, name);
    return at == NULL ? NULL : j->items[json_integer_value(at)];
}

/* NOLINTNEXTLINE(readability-non-const-parameter): ARRAY_ROOM writes to cap */
static void list_push(struct local_job ***items, size_t *n, size_t *cap, struct local_job *job)
{
    ARRAY_ROOM(*items, *n, *cap);
    (*items)[(*n)++] = job;
}

void jobs_add(struct jobs *j, struct local_job *take)
{
    ASSERT(j->n < JOBS_MAX);
    ASSERT(jobs_find(j, take->name) == NULL);
    take->seq = (int64_t)j->n;
    (void)json_object_set_new(j->by_name, take->name, json_integer(take->seq));
    list_push(&j->items, &j->n, &j->cap, take);
    if (!job_is_over(take)) {
        list_push(&j->live, &j->live_n, &j->live_cap, take);
    }
}

void jobs_retire(struct jobs *j, struct local_job *job)
{
    for (size_t i = 0; i < j->live_n; i++) {
        if (j->live[i] == job) {
            memmove(&j->live[i], &j->live[i + 1], (j->live_n - i - 1) * sizeof j->live[0]);
            j->live_n--;
            return;
        }
    }
}

struct local_job *job_new(const char *name, json_t *request, usec_t now)
{
    struct local_job *job = xcalloc(1, sizeof *job);
    const json_t *res = json_object_get(request, "ResourceConfig");
    const char *type = json_string_value(json_object_get(res, "InstanceType"));
    (void)snprintf(job->name, sizeof job->name, "%s", name);
    (void)snprintf(job->instance_type, sizeof job->instance_type, "%s", type == NULL ? "" : type);
    job->request = json_incref(request);
    job->instances = json_integer_value(json_object_get(res, "InstanceCount"));
    job->spot = json_is_true(json_object_get(request, "EnableManagedSpotTraining"));
    json_t *tags = json_object_get(request, "Tags");
    job->tags = json_is_array(tags) ? json_deep_copy(tags) : json_array();
    job->created = now;
    job->billed_percent = 100;
    job->wait_until = USEC_NEVER;
    if (job->spot) {
        const json_t *stop = json_object_get(request, "StoppingCondition");
        int64_t wait_s = json_integer_value(json_object_get(stop, "MaxWaitTimeInSeconds"));
        job->wait_until = now + wait_s * USEC_PER_SEC;
    }
    job_enter(job, PHASE_STARTING, now);
    return job;
}

bool job_model_loose(const json_t *request)
{
    const json_t *out = json_object_get(request, "OutputDataConfig");
    const char *word = json_string_value(json_object_get(out, "CompressionType"));
    return word != NULL && strcmp(word, "NONE") == 0;
}

void job_enter(struct local_job *job, enum local_job_phase phase, usec_t at)
{
    ASSERT(!job_has_ended(job));
    /* History never goes back, even when the clock does. */
    at = MAX(at, job->modified);
    if (job->transitions_n > 0) {
        job->transitions[job->transitions_n - 1].end = at;
    }
    ASSERT(job->transitions_n < JOB_TRANSITIONS_MAX);
    job->transitions[job->transitions_n++] = (struct transition){phase, at, 0};
    job->phase = phase;
    job->status = job_phase_status(phase);
    job->modified = at;
}

void job_end(struct local_job *job, enum local_job_phase phase, const char *reason, usec_t ended,
             usec_t released)
{
    ASSERT(job_phase_status(phase) >= JOB_COMPLETED);
    job_enter(job, phase, ended);
    job->transitions[job->transitions_n - 1].end = job->modified;
    job->ended = job->modified;
    /* Describe changes when the end becomes visible. */
    job->modified = MAX(job->modified, released);
    job->released = MAX(job->ended, released);
    job->due = 0;
    (void)snprintf(job->reason, sizeof job->reason, "%s", reason);
    if (job->started != 0) {
        int64_t span = job->ran_us;
        span += job->run_started != 0 ? job->ended - job->run_started : 0;
        span = (span * job->billed_percent + 99) / 100;
        job->billable_s = MAX(INT64_C(1), (span + USEC_PER_SEC - 1) / USEC_PER_SEC);
    }
}

bool job_has_ended(const struct local_job *job)
{
    return job->status >= JOB_COMPLETED;
}

bool job_is_over(const struct local_job *job)
{
    return job->released != 0;
}

static json_t *pool_to_json(const struct pool *p)
{
    return json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s}", "status",
                     (int)p->status, "keep_s", (json_int_t)p->keep_s, "since", (json_int_t)p->since,
                     "noticed", (json_int_t)p->noticed, "until", (json_int_t)p->until, "end",
                     (json_int_t)p->end, "retained_s", (json_int_t)p->retained_s, "cluster_since",
                     (json_int_t)p->cluster_since, "cluster", p->cluster, "taken_from",
                     p->taken_from, "reused_by", p->reused_by);
}

static void name_read(const json_t *o, const char *key, char out[static 64])
{
    const char *s = json_string_value(json_object_get(o, key));
    (void)snprintf(out, 64, "%s", s == NULL ? "" : s);
}

/* o NULL: no pool. */
static bool pool_from_json(struct pool *p, const json_t *o, struct err *err)
{
    int64_t status = json_integer_value(json_object_get(o, "status"));
    if (status < 0 || status >= POOL_STATUS_COUNT) {
        return err_set(err, ERR_MALFORMED, "unknown pool status");
    }
    *p = (struct pool){
        .status = (enum pool_status)status,
        .keep_s = json_integer_value(json_object_get(o, "keep_s")),
        .since = json_integer_value(json_object_get(o, "since")),
        .noticed = json_integer_value(json_object_get(o, "noticed")),
        .until = json_integer_value(json_object_get(o, "until")),
        .end = json_integer_value(json_object_get(o, "end")),
        .retained_s = json_integer_value(json_object_get(o, "retained_s")),
        .cluster_since = json_integer_value(json_object_get(o, "cluster_since")),
    };
    name_read(o, "cluster", p->cluster);
    name_read(o, "taken_from", p->taken_from);
    name_read(o, "reused_by", p->reused_by);
    return true;
}

json_t *job_to_json(const struct local_job *job)
{
    json_t *history = json_array();
    for (size_t i = 0; i < job->transitions_n; i++) {
        const struct transition *t = &job->transitions[i];
        (void)json_array_append_new(
            history, json_pack("[i,I,I]", (int)t->phase, (json_int_t)t->start, (json_int_t)t->end));
    }
    json_t *o = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:i, s:I, s:s, s:b, s:O, s:o}", "name", job->name,
        "started", (json_int_t)job->started, "ended", (json_int_t)job->ended, "released",
        (json_int_t)job->released, "modified", (json_int_t)job->modified, "billable_s",
        (json_int_t)job->billable_s, "due", (json_int_t)job->due, "reason", job->reason, "inject",
        (int)job->inject, "inject_after_us", (json_int_t)job->inject_after_us, "inject_reason",
        job->inject_reason, "ghost", job->ghost ? 1 : 0, "tags", job->tags, "transitions", history);
    if (job->spot) {
        (void)json_object_set_new(o, "run_started", json_integer(job->run_started));
        (void)json_object_set_new(o, "ran_us", json_integer(job->ran_us));
        (void)json_object_set_new(o, "billed_percent", json_integer(job->billed_percent));
        (void)json_object_set_new(o, "inject_times", json_integer(job->inject_times));
    }
    if (job->pool.status != POOL_NONE) {
        (void)json_object_set_new(o, "pool", pool_to_json(&job->pool));
    }
    return o;
}

static bool history_read(struct local_job *job, const json_t *list, struct err *err)
{
    size_t n = json_array_size(list);
    if (n == 0 || n > JOB_TRANSITIONS_MAX) {
        return err_set(err, ERR_MALFORMED, "job '%s': history of %zu entries", job->name, n);
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *t = json_array_get(list, i);
        int64_t phase = json_integer_value(json_array_get(t, 0));
        if (phase < 0 || phase >= JOB_PHASE_COUNT) {
            return err_set(err, ERR_MALFORMED, "job '%s': unknown phase", job->name);
        }
        job->transitions[i] = (struct transition){(enum local_job_phase)phase,
                                                  json_integer_value(json_array_get(t, 1)),
                                                  json_integer_value(json_array_get(t, 2))};
    }
    job->transitions_n = n;
    job->phase = job->transitions[n - 1].phase;
    job->status = job_phase_status(job->phase);
    return true;
}

bool job_from_json(struct local_job *job, const json_t *o, struct err *err)
{
    json_t *tags = json_object_get(o, "tags");
    const char *reason = json_string_value(json_object_get(o, "reason"));
    const char *inject_reason = json_string_value(json_object_get(o, "inject_reason"));
    if (!json_is_array(tags) || reason == NULL || inject_reason == NULL) {
        return err_set(err, ERR_MALFORMED, "job '%s': incomplete entry", job->name);
    }
    if (!history_read(job, json_object_get(o, "transitions"), err) ||
        !pool_from_json(&job->pool, json_object_get(o, "pool"), err)) {
        return false;
    }
    job->started = json_integer_value(json_object_get(o, "started"));
    job->run_started = job->started;
    const json_t *run = json_object_get(o, "run_started");
    if (run != NULL) {
        job->run_started = json_integer_value(run);
        job->ran_us = json_integer_value(json_object_get(o, "ran_us"));
        job->billed_percent = json_integer_value(json_object_get(o, "billed_percent"));
        job->inject_times = json_integer_value(json_object_get(o, "inject_times"));
    }
    job->ended = json_integer_value(json_object_get(o, "ended"));
    job->released = json_integer_value(json_object_get(o, "released"));
    job->modified = json_integer_value(json_object_get(o, "modified"));
    job->billable_s = json_integer_value(json_object_get(o, "billable_s"));
    job->due = json_integer_value(json_object_get(o, "due"));
    job->inject = (enum job_inject)json_integer_value(json_object_get(o, "inject"));
    job->inject_after_us = json_integer_value(json_object_get(o, "inject_after_us"));
    job->ghost = json_is_true(json_object_get(o, "ghost"));
    (void)snprintf(job->reason, sizeof job->reason, "%s", reason);
    (void)snprintf(job->inject_reason, sizeof job->inject_reason, "%s", inject_reason);
    json_t *old = job->tags;
    job->tags = json_deep_copy(tags);
    json_decref(old);
    return true;
}
