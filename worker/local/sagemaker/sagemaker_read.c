/* DescribeTrainingJob and ListTrainingJobs: see sagemaker_local.h. */
#include "common/clock.h"
#include "final_metrics.h"
#include "local/app.h"
#include "sagemaker_local.h"
#include "sagemaker_rules.h"
#include "warm.h"
#include <stdio.h>

#define LIST_MAX_RESULTS 100

static json_t *epoch(usec_t t)
{
    return json_real((double)t / (double)USEC_PER_SEC);
}

static const char *phase_message(enum local_job_phase p)
{
    static const char *const texts[JOB_PHASE_COUNT] = {
        [PHASE_STARTING] = "Preparing the instances for training",
        [PHASE_DOWNLOADING] = "Downloading the training image and input data",
        [PHASE_TRAINING] = "Training image download completed. Training in progress.",
        [PHASE_UPLOADING] = "Uploading generated training model",
        [PHASE_STOPPING] = "Stopping the training job",
        [PHASE_STOPPED] = "Training job stopped",
        [PHASE_MAX_RUNTIME] = "Training job runtime exceeded MaxRuntimeInSeconds provided",
        [PHASE_COMPLETED] = "Training job completed",
        [PHASE_FAILED] = "Training job failed",
        [PHASE_INTERRUPTED] = "Spot capacity was reclaimed; waiting for new instances",
        [PHASE_MAX_WAIT] = "Training job wait time exceeded MaxWaitTimeInSeconds provided",
    };
    return texts[p];
}

/* Number of the job's transitions visible at an instant; at least the first. */
static size_t transitions_at(const struct local_job *job, usec_t at)
{
    size_t n = job->transitions_n;
    while (n > 1 && job->transitions[n - 1].start > at) {
        n--;
    }
    return n;
}

static json_t *history(const struct local_job *job, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct transition *t = &job->transitions[i];
        json_t *o = json_pack("{s:s, s:o, s:s}", "Status", job_phase_name(t->phase), "StartTime",
                              epoch(t->start), "StatusMessage", phase_message(t->phase));
        if (t->end != 0 && (i + 1 < n || n == job->transitions_n)) {
            (void)json_object_set_new(o, "EndTime", epoch(t->end));
        }
        (void)json_array_append_new(list, o);
    }
    return list;
}

static void ended_add(json_t *o, const struct local_job *job)
{
    (void)json_object_set_new(o, "TrainingEndTime", epoch(job->ended));
    if (job->reason[0] != '\0') {
        (void)json_object_set_new(o, "FailureReason", json_string(job->reason));
    }
    if (job->billable_s > 0) {
        int64_t span = job->spot ? job->ended - job->started : 0; /* waits included */
        int64_t training_s = (span + USEC_PER_SEC - 1) / USEC_PER_SEC;
        (void)json_object_set_new(o, "TrainingTimeInSeconds",
                                  json_integer(MAX(training_s, job->billable_s)));
        (void)json_object_set_new(o, "BillableTimeInSeconds", json_integer(job->billable_s));
    }
}

/* WarmPoolStatus as seen at an instant, and the current keep-alive. */
static void pool_add(json_t *o, const struct local_job *job, usec_t at)
{
    json_t *status = warm_status(job, at);
    if (status == NULL) {
        return;
    }
    (void)json_object_set_new(o, "WarmPoolStatus", status);
    json_t *res = json_object_get(o, "ResourceConfig");
    if (job->pool.keep_s > 0 && res != NULL) {
        json_t *changed = json_copy(res);
        (void)json_object_set_new(changed, "KeepAlivePeriodInSeconds",
                                  json_integer(job->pool.keep_s));
        (void)json_object_set_new(o, "ResourceConfig", changed);
    }
}

static void defaults_add(json_t *o)
{
    static const char *const flags[] = {"EnableNetworkIsolation",
                                        "EnableInterContainerTrafficEncryption",
                                        "EnableManagedSpotTraining"};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if (json_object_get(o, flags[i]) == NULL) {
            (void)json_object_set_new(o, flags[i], json_false());
        }
    }
    json_t *stop = json_object_get(o, "StoppingCondition");
    if (json_object_get(stop, "MaxRuntimeInSeconds") == NULL) {
        json_t *full = json_pack("{s:i}", "MaxRuntimeInSeconds", 86400);
        (void)json_object_update_missing(full, stop);
        (void)json_object_set_new(o, "StoppingCondition", full);
    }
}

static bool profiled(const json_t *request)
{
    const json_t *config = json_object_get(request, "ProfilerConfig");
    return config != NULL && !json_is_true(json_object_get(config, "DisableProfiler"));
}

/* A rule's verdict is the word its name ends with; else all is well once the job is over. */
static json_t *rule_status(const struct local_job *job, const json_t *rule, bool over)
{
    static const char *const words[] = {"IssuesFound", "Error", "Stopped"};
    const char *name = json_string_value(json_object_get(rule, "RuleConfigurationName"));
    const char *verdict = over ? "NoIssuesFound" : "InProgress";
    for (size_t i = 0; over && i < ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i]);
        if (strlen(name) >= n && strcmp(name + strlen(name) - n, words[i]) == 0) {
            verdict = words[i];
        }
    }
    json_t *o = json_pack("{s:s, s:s, s:o}", "RuleConfigurationName", name, "RuleEvaluationStatus",
                          verdict, "LastModifiedTime", epoch(job->modified));
    if (strcmp(verdict, "IssuesFound") == 0) {
        AUTO_FREE char *details = xasprintf("RuleEvaluationConditionMet: Evaluation of the rule %s "
                                            "at step 10 resulted in the condition being met",
                                            name);
        (void)json_object_set_new(o, "StatusDetails", json_string(details));
    }
    return o;
}

static void rules_add(json_t *o, const struct local_job *job, bool over)
{
    static const char *const lists[][2] = {
        {"DebugRuleConfigurations", "DebugRuleEvaluationStatuses"},
        {"ProfilerRuleConfigurations", "ProfilerRuleEvaluationStatuses"}};
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        size_t i;
        json_t *rule, *all = json_array();
        json_array_foreach(json_object_get(job->request, lists[k][0]), i, rule)
        {
            (void)json_array_append_new(all, rule_status(job, rule, over));
        }
        if (json_array_size(all) > 0) {
            (void)json_object_set(o, lists[k][1], all);
        }
        json_decref(all);
    }
}

/* The job as seen at an instant, when its first n transitions had happened. */
static json_t *description(const struct app *app, const struct local_job *job, size_t n, usec_t at)
{
    char arn[SAGEMAKER_ARN_MAX];
    const struct transition *last = &job->transitions[n - 1];
    const json_t *out = json_object_get(job->request, "OutputDataConfig");
    const char *path = json_string_value(json_object_get(out, "S3OutputPath"));
    size_t path_n = strlen(path);
    json_t *o = json_copy(job->request);
    (void)json_object_del(o, "Tags");
    (void)json_object_del(o, "SessionChainingConfig");
    sagemaker_arn(app, job->name, arn);
    AUTO_FREE char *model =
        xasprintf("%s%s%s/output/%s", path, path_n > 0 && path[path_n - 1] == '/' ? "" : "/",
                  job->name, job_model_loose(job->request) ? "model/" : "model.tar.gz");
    (void)json_object_set_new(o, "TrainingJobArn", json_string(arn));
    (void)json_object_set_new(o, "ModelArtifacts", json_pack("{s:s}", "S3ModelArtifacts", model));
    (void)json_object_set_new(o, "TrainingJobStatus",
                              json_string(job_status_name(job_phase_status(last->phase))));
    (void)json_object_set_new(o, "SecondaryStatus", json_string(job_phase_name(last->phase)));
    (void)json_object_set_new(o, "CreationTime", epoch(job->created));
    (void)json_object_set_new(o, "LastModifiedTime",
                              epoch(n == job->transitions_n ? job->modified : last->start));
    (void)json_object_set_new(o, "SecondaryStatusTransitions", history(job, n));
    (void)json_object_set_new(o, "ProfilingStatus",
                              json_string(profiled(job->request) ? "Enabled" : "Disabled"));
    if (job->started != 0 && job->started <= last->start) {
        (void)json_object_set_new(o, "TrainingStartTime", epoch(job->started));
    }
    if (job_phase_status(last->phase) >= JOB_COMPLETED) {
        json_t *metrics = final_metrics(app, job);
        ended_add(o, job);
        if (metrics != NULL) {
            (void)json_object_set_new(o, "FinalMetricDataList", metrics);
        }
    }
    if (n == job->transitions_n || job->pool.taken_from[0] != '\0') {
        pool_add(o, job, at);
    }
    rules_add(o, job, job_phase_status(last->phase) >= JOB_COMPLETED);
    defaults_add(o);
    return o;
}

json_t *sagemaker_description(const struct app *app, const struct local_job *job)
{
    return description(app, job, job->transitions_n, clock_wall_us());
}

void sagemaker_describe(struct request *r)
{
    const char *name = json_string_value(json_object_get(r->input, "TrainingJobName"));
    if (!sagemaker_check_name(r, name)) {
        return;
    }
    const struct local_job *job = jobs_find(&r->app->jobs, name);
    if (job == NULL) {
        reply_error(r, 400, "ValidationException", "Requested resource not found.");
        return;
    }
    size_t n = job->transitions_n;
    usec_t at = clock_wall_us();
    const struct injected_fault *f = faults_take(r, STAGE_READ);
    if (f != NULL && f->kind == FAULT_STALE_DESCRIBE) {
        at -= fault_delay_us(f, USEC_PER_SEC);
        n = transitions_at(job, at);
    }
    json_t *o = description(r->app, job, n, at);
    if (f != NULL && f->kind == FAULT_NO_ENVIRONMENT) {
        (void)json_object_del(o, "Environment");
    }
    if (f != NULL && f->kind == FAULT_BILL_LATE &&
        at < job->ended + fault_delay_us(f, 60 * USEC_PER_SEC)) {
        (void)json_object_del(o, "BillableTimeInSeconds");
    }
    if (f != NULL && f->kind == FAULT_UNKNOWN_STATUS) {
        (void)json_object_set_new(o, "TrainingJobStatus", json_string("Hibernating"));
        (void)json_object_set_new(o, "SecondaryStatus", json_string("Hibernating"));
        json_t *pool = json_object_get(o, "WarmPoolStatus");
        if (pool != NULL) {
            (void)json_object_set_new(pool, "Status", json_string("Hibernating"));
        }
    }
    reply_json(r, o);
}

enum sort_by { SORT_CREATION, SORT_NAME, SORT_STATUS };
struct list_query {
    const char *contains;
    const char *status;
    const char *pool;
    usec_t created_after;
    usec_t created_before;
    usec_t modified_after;
    usec_t modified_before;
    enum sort_by by;
    bool descending;
    int64_t max;
    const struct local_job *after; /* last job of the page before */
};

static int job_cmp(const struct list_query *q, const struct local_job *a, const struct local_job *b)
{
    int d = 0;
    if (q->by == SORT_NAME) {
        d = strcmp(a->name, b->name);
    } else if (q->by == SORT_STATUS) {
        d = strcmp(job_status_name(a->status), job_status_name(b->status));
    }
    d = d != 0 ? d : a->created < b->created ? -1 : a->created > b->created;
    d = d != 0 ? d : a->seq < b->seq ? -1 : a->seq > b->seq;
    return q->descending ? -d : d;
}

static int job_cmp_r(const void *a, const void *b, void *q)
{
    return job_cmp(q, *(const struct local_job *const *)a, *(const struct local_job *const *)b);
}

static bool choice(const json_t *in, const char *key, const char *const *names, size_t n,
                   size_t *ret)
{
    const json_t *v = json_object_get(in, key);
    for (size_t i = 0; i < n; i++) {
        if (v == NULL || (json_is_string(v) && strcmp(json_string_value(v), names[i]) == 0)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool token_find(struct request *r, struct list_query *q, struct err *err)
{
    const json_t *token = json_object_get(r->input, "NextToken");
    int64_t seq;
    if (token == NULL || json_is_null(token)) {
        return true;
    }
    const char *text = json_string_value(token);
    if (text == NULL || strncmp(text, "after-", 6) != 0 ||
        !parse_i64(str_of(text + 6), 0, (int64_t)r->app->jobs.n - 1, &seq, err)) {
        return err_set(err, ERR_INVALID, "Invalid NextToken");
    }
    q->after = r->app->jobs.items[seq];
    return true;
}

static bool query_parse(struct request *r, struct list_query *q, struct err *err)
{
    static const char *const bys[] = {"CreationTime", "Name", "Status"};
    static const char *const orders[] = {"Ascending", "Descending"};
    size_t by;
    size_t order;
    const json_t *in = r->input;
    if (!choice(in, "SortBy", bys, ARRAY_LEN(bys), &by) ||
        !choice(in, "SortOrder", orders, ARRAY_LEN(orders), &order)) {
        return err_set(err, ERR_INVALID,
                       "1 validation error detected: Value at 'sortBy' or "
                       "'sortOrder' failed to satisfy constraint: Member must "
                       "satisfy enum value set");
    }
    q->by = (enum sort_by)by;
    q->descending = order == 1;
    return json_get_str(in, "NameContains", "", &q->contains, err) &&
           json_get_str(in, "StatusEquals", "", &q->status, err) &&
           json_get_str(in, "WarmPoolStatusEquals", "", &q->pool, err) &&
           json_get_epoch(in, "CreationTimeAfter", 0, &q->created_after, err) &&
           json_get_epoch(in, "CreationTimeBefore", USEC_NEVER, &q->created_before, err) &&
           json_get_epoch(in, "LastModifiedTimeAfter", 0, &q->modified_after, err) &&
           json_get_epoch(in, "LastModifiedTimeBefore", USEC_NEVER, &q->modified_before, err) &&
           json_get_i64(in, "MaxResults", 1, LIST_MAX_RESULTS, 10, &q->max, err) &&
           token_find(r, q, err);
}

/* In the range that pages are cut from. */
static bool job_in_range(const struct list_query *q, const struct local_job *job)
{
    return job->created >= q->created_after && job->created <= q->created_before &&
           job->modified >= q->modified_after && job->modified <= q->modified_before &&
           (q->after == NULL || job_cmp(q, job, q->after) > 0);
}

static bool job_passes(const struct list_query *q, const struct local_job *job,
                       const struct injected_fault *f)
{
    if (f != NULL && f->kind == FAULT_LIST_OMITS && strstr(job->name, f->name_contains) != NULL) {
        return false;
    }
    return strstr(job->name, q->contains) != NULL &&
           (q->status[0] == '\0' || strcmp(job_status_name(job->status), q->status) == 0) &&
           (q->pool[0] == '\0' || strcmp(pool_status_name(job->pool.status), q->pool) == 0);
}

static json_t *summary(const struct app *app, const struct local_job *job)
{
    char arn[SAGEMAKER_ARN_MAX];
    sagemaker_arn(app, job->name, arn);
    json_t *o =
        json_pack("{s:s, s:s, s:o, s:o, s:s, s:s}", "TrainingJobName", job->name, "TrainingJobArn",
                  arn, "CreationTime", epoch(job->created), "LastModifiedTime",
                  epoch(job->modified), "TrainingJobStatus", job_status_name(job->status),
                  "SecondaryStatus", job_phase_name(job->phase));
    if (job->ended != 0) {
        (void)json_object_set_new(o, "TrainingEndTime", epoch(job->ended));
    }
    pool_add(o, job, clock_wall_us());
    return o;
}

void sagemaker_list(struct request *r)
{
    struct list_query q = {0};
    struct err err = ERR_INIT;
    const struct jobs *jobs = &r->app->jobs;
    if (!sagemaker_rules_list(r)) {
        return;
    }
    if (!query_parse(r, &q, &err)) {
        reply_error(r, 400, "ValidationException", "%s", err.message);
        return;
    }
    const struct injected_fault *f = faults_take(r, STAGE_READ);
    bool late = r->app->set.list_filters_late;
    AUTO_FREE const struct local_job **found = xcalloc(jobs->n + 1, sizeof *found);
    size_t n = 0;
    for (size_t i = 0; i < jobs->n; i++) {
        if (job_in_range(&q, jobs->items[i]) && (late || job_passes(&q, jobs->items[i], f))) {
            found[n++] = jobs->items[i];
        }
    }
    qsort_r(found, n, sizeof *found, job_cmp_r, &q);
    json_t *list = json_array();
    size_t shown = MIN(n, (size_t)q.max);
    for (size_t i = 0; i < shown; i++) {
        if (!late || job_passes(&q, found[i], f)) {
            (void)json_array_append_new(list, summary(r->app, found[i]));
        }
    }
    json_t *o = json_pack("{s:o}", "TrainingJobSummaries", list);
    const json_t *given = json_object_get(r->input, "NextToken");
    bool loops = f != NULL && f->kind == FAULT_LOOPING_NEXT_TOKEN && shown > 0;
    if (loops && json_is_string(given)) {
        (void)json_object_set_new(o, "NextToken", json_string(json_string_value(given)));
    } else if (n > shown || loops) {
        char token[32];
        (void)snprintf(token, sizeof token, "after-%lld", (long long)found[shown - 1]->seq);
        (void)json_object_set_new(o, "NextToken", json_string(token));
    }
    reply_json(r, o);
}
