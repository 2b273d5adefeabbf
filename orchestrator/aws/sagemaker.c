/* SageMaker training jobs: writes requests and reads replies leniently (unknown values are kept as
 * text). */
#include "sagemaker.h"
#include "common/json.h"
#include "common/secret_shape.h"
#include <stdio.h>

struct sagemaker_call {
    struct aws_client *client;
    struct aws_gate gate;
    struct aws_req *req;
    int kind;
    union {
        sagemaker_create_cb create;
        sagemaker_describe_cb describe;
        sagemaker_list_cb list;
        sagemaker_stop_cb stop;
        sagemaker_update_cb update;
        sagemaker_tag_cb tag;
        sagemaker_metrics_cb metrics;
    } cb;
    void *ctx;
    char key[129]; /* of the tag asked for */
};

static struct sagemaker_call *call_new(struct aws_client *c, struct aws_gate gate, void *ctx)
{
    struct sagemaker_call *call = xcalloc(1, sizeof *call);
    call->client = c;
    call->gate = gate;
    call->ctx = ctx;
    return call;
}

void sagemaker_cancel(struct sagemaker_call *call)
{
    if (call != NULL) {
        aws_cancel(call->req);
        free(call);
    }
}

static void send_call(struct sagemaker_call *call, enum aws_operation op, struct str body,
                      aws_cb cb)
{
    const struct aws_call aws = aws_operation_call(op, call->gate, body);
    call->req = aws_send(call->client, &aws, cb, call);
}

static void copy_str(const json_t *o, const char *key, char *out, size_t out_n)
{
    const char *s = json_string_value(json_object_get(o, key));
    (void)snprintf(out, out_n, "%s", s != NULL ? s : "");
}

static usec_t copy_epoch(const json_t *o, const char *key)
{
    usec_t t = 0;
    return json_get_epoch(o, key, 0, &t, NULL) ? t : 0;
}

static const char *const pool_names[WARM_POOL_STATUS_COUNT] = {
    [WARM_POOL_NONE] = "",
    [WARM_POOL_AVAILABLE] = "Available",
    [WARM_POOL_IN_USE] = "InUse",
    [WARM_POOL_REUSED] = "Reused",
    [WARM_POOL_TERMINATED] = "Terminated",
    [WARM_POOL_UNKNOWN] = "Unknown",
};

const char *warm_pool_status_name(enum warm_pool_status s)
{
    return pool_names[s];
}

/* `o`: the reply or summary that holds WarmPoolStatus. */
static void read_pool(const json_t *o, struct warm_pool_report *ret)
{
    const json_t *pool = json_object_get(o, "WarmPoolStatus");
    const json_t *retained = json_object_get(pool, "ResourceRetainedBillableTimeInSeconds");
    *ret = (struct warm_pool_report){.retained_s = -1};
    const char *status = json_string_value(json_object_get(pool, "Status"));
    if (status == NULL) {
        return;
    }
    ret->status = WARM_POOL_UNKNOWN;
    for (enum warm_pool_status s = WARM_POOL_AVAILABLE; s < WARM_POOL_UNKNOWN; s++) {
        if (strcmp(status, pool_names[s]) == 0) {
            ret->status = s;
        }
    }
    if (json_is_integer(retained) && json_integer_value(retained) >= 0) {
        ret->retained_s = json_integer_value(retained);
    }
    copy_str(pool, "ReusedByJob", ret->reused_by, sizeof ret->reused_by);
}

static void on_create(void *ctx, const struct aws_reply *r)
{
    struct sagemaker_call *call = ctx;
    struct aws_failure f;
    AUTO_JSON json_t *o = NULL;
    if (r->outcome == AWS_OK && json_parse(r->body, r->body.n, &o, NULL)) {
        const char *arn = json_string_value(json_object_get(o, "TrainingJobArn"));
        if (arn != NULL) {
            call->cb.create(call->ctx, arn, NULL);
            free(call);
            return;
        }
    }
    aws_failure_from(r, &f);
    if (r->outcome == AWS_OK) { /* a 200 that cannot be read: the call may have taken effect */
        f.outcome = AWS_UNKNOWN;
        (void)snprintf(f.message, sizeof f.message, "unreadable answer to CreateTrainingJob");
    }
    call->cb.create(call->ctx, NULL, &f);
    free(call);
}

struct sagemaker_call *sagemaker_create(struct aws_client *c, struct aws_gate gate,
                                        struct str request, sagemaker_create_cb cb, void *ctx)
{
    struct sagemaker_call *call = call_new(c, gate, ctx);
    call->cb.create = cb;
    send_call(call, AWS_OP_CreateTrainingJob, request, on_create);
    return call;
}

static bool is_not_found(const struct aws_reply *r)
{
    if (r->outcome != AWS_REFUSED) {
        return false;
    }
    return strcmp(r->code, "ResourceNotFound") == 0 ||
           (strcmp(r->code, "ValidationException") == 0 &&
            (strstr(r->message, "not found") != NULL ||
             strstr(r->message, "Could not find") != NULL));
}

static void read_transitions(const json_t *o, struct job_description *ret)
{
    const json_t *list = json_object_get(o, "SecondaryStatusTransitions");
    if (json_array_size(list) > JOB_TRANSITIONS_MAX) {
        return;
    }
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        struct job_transition *t = &ret->transitions[ret->transitions_n++];
        const char *text = json_string_value(json_object_get(v, "StatusMessage"));
        copy_str(v, "Status", t->status, sizeof t->status);
        t->start = copy_epoch(v, "StartTime");
        t->end = copy_epoch(v, "EndTime");
        t->no_capacity = text != NULL && strcasestr(text, "insufficient capacity") != NULL;
    }
}

/* NULL when it is no rule. */
static json_t *read_rule(const char *of, const json_t *v)
{
    const char *name = json_string_value(json_object_get(v, "RuleConfigurationName"));
    const char *status = json_string_value(json_object_get(v, "RuleEvaluationStatus"));
    const char *text = json_string_value(json_object_get(v, "StatusDetails"));
    AUTO_FREE char *details = xstrdup(text != NULL ? text : "");
    secret_mask(details); /* before it is cut: half of a secret is not known as one */
    size_t n = strlen(details);
    if (n > JOB_RULE_DETAILS_BYTES) {
        for (n = JOB_RULE_DETAILS_BYTES; n > 0 && ((unsigned char)details[n] & 0xc0) == 0x80;) {
            n--; /* a character stays whole */
        }
        details[n] = '\0';
    }
    return name == NULL || status == NULL ? NULL
                                          : json_pack("{s:s, s:s, s:s, s:s}", "of", of, "name",
                                                      name, "status", status, "details", details);
}

static int rule_weight(const json_t *rule)
{
    const char *status = json_string_value(json_object_get(rule, "status"));
    return strcmp(status, "NoIssuesFound") == 0 ? 0 : strcmp(status, "IssuesFound") == 0 ? 2 : 1;
}

/* The last of those that say least is taken out, and counted for its status. */
static void leave_out(json_t *rules, int left_out[static 3])
{
    size_t least = 0;
    for (size_t i = 1; i < json_array_size(rules); i++) {
        if (rule_weight(json_array_get(rules, i)) <= rule_weight(json_array_get(rules, least))) {
            least = i;
        }
    }
    left_out[rule_weight(json_array_get(rules, least))]++;
    (void)json_array_remove(rules, least);
}

/* As many as fit, and a line of how many more there are. */
static void write_rules(json_t *rules, char *ret, size_t size)
{
    static const char *const statuses[] = {"NoIssuesFound", "", "IssuesFound"};
    int left_out[3] = {0};
    for (;;) {
        AUTO_JSON json_t *all = json_copy(rules);
        for (size_t i = 0; i < ARRAY_LEN(left_out); i++) {
            if (left_out[i] > 0) {
                AUTO_FREE char *more = xasprintf("%d more", left_out[i]);
                (void)json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s}", "of", "", "name",
                                                           more, "status", statuses[i], "details",
                                                           "not kept: there are too many rules"));
            }
        }
        AUTO_FREE char *text = json_text(all);
        if (strlen(text) < size) {
            memcpy(ret, text, strlen(text) + 1);
            return;
        }
        leave_out(rules, left_out);
    }
}

static void read_rules(const json_t *o, struct job_description *ret)
{
    static const char *const lists[][2] = {{"debugger", "DebugRuleEvaluationStatuses"},
                                           {"profiler", "ProfilerRuleEvaluationStatuses"}};
    AUTO_JSON json_t *rules = json_array();
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        size_t i;
        json_t *v;
        json_array_foreach(json_object_get(o, lists[k][1]), i, v)
        {
            (void)json_array_append_new(rules, read_rule(lists[k][0], v));
        }
    }
    if (json_array_size(rules) > 0) {
        write_rules(rules, ret->rules, sizeof ret->rules);
    }
}

static void read_description(const json_t *o, struct job_description *ret)
{
    memset(ret, 0, sizeof *ret);
    copy_str(o, "TrainingJobName", ret->name, sizeof ret->name);
    copy_str(o, "TrainingJobStatus", ret->status, sizeof ret->status);
    copy_str(o, "SecondaryStatus", ret->secondary, sizeof ret->secondary);
    copy_str(o, "TrainingJobArn", ret->arn, sizeof ret->arn);
    copy_str(o, "FailureReason", ret->failure_reason, sizeof ret->failure_reason);
    secret_mask(ret->failure_reason);
    copy_str(json_object_get(o, "ModelArtifacts"), "S3ModelArtifacts", ret->artifacts,
             sizeof ret->artifacts);
    const json_t *environment = json_object_get(o, "Environment");
    copy_str(environment, "DROVER_REQUEST", ret->request_hash, sizeof ret->request_hash);
    ret->untold = json_object_size(environment) == 0;
    ret->created = copy_epoch(o, "CreationTime");
    ret->started = copy_epoch(o, "TrainingStartTime");
    ret->ended = copy_epoch(o, "TrainingEndTime");
    ret->modified = copy_epoch(o, "LastModifiedTime");
    ret->billable_s = json_integer_value(json_object_get(o, "BillableTimeInSeconds"));
    ret->training_s = json_integer_value(json_object_get(o, "TrainingTimeInSeconds"));
    const json_t *resources = json_object_get(o, "ResourceConfig");
    ret->instances = json_integer_value(json_object_get(resources, "InstanceCount"));
    ret->keep_alive_s = json_integer_value(json_object_get(resources, "KeepAlivePeriodInSeconds"));
    copy_str(resources, "InstanceType", ret->instance_type, sizeof ret->instance_type);
    ret->volume_gb = json_integer_value(json_object_get(resources, "VolumeSizeInGB"));
    ret->max_runtime_s = json_integer_value(
        json_object_get(json_object_get(o, "StoppingCondition"), "MaxRuntimeInSeconds"));
    const char *attempt = json_string_value(json_object_get(environment, "DROVER_ATTEMPT"));
    if (attempt != NULL && !parse_i64(str_of(attempt), 1, INT64_MAX, &ret->attempt_id, NULL)) {
        ret->attempt_id = 0;
    }
    ret->spot = json_is_true(json_object_get(o, "EnableManagedSpotTraining"));
    read_pool(o, &ret->pool);
    read_transitions(o, ret);
    read_rules(o, ret);
}

static void on_describe(void *ctx, const struct aws_reply *r)
{
    struct sagemaker_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    struct job_description job;
    struct aws_failure f;
    if (r->outcome == AWS_OK && json_parse(r->body, r->body.n, &o, NULL) && json_is_object(o)) {
        read_description(o, &job);
        if (job.status[0] != '\0') {
            call->cb.describe(call->ctx, &job, false, NULL);
            free(call);
            return;
        }
    }
    aws_failure_from(r, &f);
    if (is_not_found(r)) {
        call->cb.describe(call->ctx, NULL, true, NULL);
    } else {
        call->cb.describe(call->ctx, NULL, false, &f);
    }
    free(call);
}

static void name_body(const char *name, struct buf *body)
{
    struct json_out w;
    json_out_init(&w, body);
    json_out_object(&w, NULL);
    json_out_str(&w, "TrainingJobName", name);
    json_out_end_object(&w);
}

struct sagemaker_call *sagemaker_describe(struct aws_client *c, struct aws_gate gate,
                                          const char *name, sagemaker_describe_cb cb, void *ctx)
{
    struct sagemaker_call *call = call_new(c, gate, ctx);
    AUTO_BUF struct buf body = BUF_INIT(1024);
    name_body(name, &body);
    call->cb.describe = cb;
    send_call(call, AWS_OP_DescribeTrainingJob, buf_str(&body), on_describe);
    return call;
}

static void on_stop(void *ctx, const struct aws_reply *r)
{
    struct sagemaker_call *call = ctx;
    struct aws_failure f;
    if (r->outcome == AWS_OK) {
        call->cb.stop(call->ctx, false, false, NULL);
    } else if (is_not_found(r)) {
        call->cb.stop(call->ctx, false, true, NULL);
    } else if (r->outcome == AWS_REFUSED && strcmp(r->code, "ValidationException") == 0 &&
               strstr(r->message, "in status") != NULL) {
        call->cb.stop(call->ctx, true, false, NULL);
    } else {
        aws_failure_from(r, &f);
        call->cb.stop(call->ctx, false, false, &f);
    }
    free(call);
}

struct sagemaker_call *sagemaker_stop(struct aws_client *c, struct aws_gate gate, const char *name,
                                      sagemaker_stop_cb cb, void *ctx)
{
    struct sagemaker_call *call = call_new(c, gate, ctx);
    AUTO_BUF struct buf body = BUF_INIT(1024);
    name_body(name, &body);
    call->cb.stop = cb;
    send_call(call, AWS_OP_StopTrainingJob, buf_str(&body), on_stop);
    return call;
}

/* The texts are not an API: a pool that is gone is recognised by the status of the job or of the
 * pool. */
static bool is_no_pool(const struct aws_reply *r)
{
    return r->outcome == AWS_REFUSED && strcmp(r->code, "ValidationException") == 0 &&
           (strcasestr(r->message, "in status") != NULL ||
            strcasestr(r->message, "warm pool") != NULL ||
            strcasestr(r->message, "warmpool") != NULL);
}

static void on_update(void *ctx, const struct aws_reply *r)
{
    struct sagemaker_call *call = ctx;
    struct aws_failure f;
    if (r->outcome == AWS_OK) {
        call->cb.update(call->ctx, false, false, NULL);
    } else if (is_not_found(r)) {
        call->cb.update(call->ctx, false, true, NULL);
    } else if (is_no_pool(r)) {
        call->cb.update(call->ctx, true, false, NULL);
    } else {
        aws_failure_from(r, &f);
        call->cb.update(call->ctx, false, false, &f);
    }
    free(call);
}

struct sagemaker_call *sagemaker_update_keep_alive(struct aws_client *c, struct aws_gate gate,
                                                   const char *name, int64_t seconds,
                                                   sagemaker_update_cb cb, void *ctx)
{
    struct sagemaker_call *call = call_new(c, gate, ctx);
    AUTO_BUF struct buf body = BUF_INIT(1024);
    struct json_out w;
    ASSERT(seconds >= 0);
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "TrainingJobName", name);
    json_out_object(&w, "ResourceConfig");
    json_out_i64(&w, "KeepAlivePeriodInSeconds", seconds);
    json_out_end_object(&w);
    json_out_end_object(&w);
    call->cb.update = cb;
    send_call(call, AWS_OP_UpdateTrainingJob, buf_str(&body), on_update);
    return call;
}

static void on_tag(void *ctx, const struct aws_reply *r)
{
    struct sagemaker_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    struct aws_failure f;
    size_t i;
    json_t *tag;
    if (r->outcome != AWS_OK || !json_parse(r->body, r->body.n, &o, NULL)) {
        aws_failure_from(r, &f);
        call->cb.tag(call->ctx, NULL, &f);
        free(call);
        return;
    }
    const char *value = "";
    json_array_foreach(json_object_get(o, "Tags"), i, tag)
    {
        const char *key = json_string_value(json_object_get(tag, "Key"));
        const char *v = json_string_value(json_object_get(tag, "Value"));
        value = key != NULL && v != NULL && strcmp(key, call->key) == 0 ? v : value;
    }
    call->cb.tag(call->ctx, value, NULL);
    free(call);
}

struct sagemaker_call *sagemaker_tag(struct aws_client *c, struct aws_gate gate, const char *arn,
                                     const char *key, sagemaker_tag_cb cb, void *ctx)
{
    struct sagemaker_call *call = call_new(c, gate, ctx);
    AUTO_BUF struct buf body = BUF_INIT(1024);
    struct json_out w;
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "ResourceArn", arn);
    json_out_i64(&w, "MaxResults", 50); /* a resource has no more */
    json_out_end_object(&w);
    call->cb.tag = cb;
    (void)snprintf(call->key, sizeof call->key, "%s", key);
    send_call(call, AWS_OP_ListTags, buf_str(&body), on_tag);
    return call;
}

static size_t read_metrics(const json_t *list, struct job_metric *ret)
{
    size_t i, n = 0;
    json_t *m;
    json_array_foreach((json_t *)(uintptr_t)list, i, m)
    {
        const json_t *value = json_object_get(m, "Value");
        if (n < JOB_METRICS_MAX && json_is_number(value)) {
            copy_str(m, "MetricName", ret[n].name, sizeof ret[n].name);
            ret[n].value = json_number_value(value);
            n += ret[n].name[0] != '\0';
        }
    }
    return n;
}

static void on_metrics(void *ctx, const struct aws_reply *r)
{
    struct sagemaker_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    struct job_metric metrics[JOB_METRICS_MAX];
    struct aws_failure f;
    if (r->outcome == AWS_OK && json_parse(r->body, r->body.n, &o, NULL)) {
        size_t n = read_metrics(json_object_get(o, "FinalMetricDataList"), metrics);
        call->cb.metrics(call->ctx, metrics, n, NULL);
    } else if (is_not_found(r)) {
        call->cb.metrics(call->ctx, NULL, 0, NULL);
    } else {
        aws_failure_from(r, &f);
        call->cb.metrics(call->ctx, NULL, 0, &f);
    }
    free(call);
}

struct sagemaker_call *sagemaker_final_metrics(struct aws_client *c, struct aws_gate gate,
                                               const char *name, sagemaker_metrics_cb cb, void *ctx)
{
    struct sagemaker_call *call = call_new(c, gate, ctx);
    AUTO_BUF struct buf body = BUF_INIT(1024);
    name_body(name, &body);
    call->cb.metrics = cb;
    send_call(call, AWS_OP_DescribeTrainingJob, buf_str(&body), on_metrics);
    return call;
}

static struct job_summary *read_summaries(const json_t *rows, size_t n)
{
    struct job_summary *jobs = xcalloc(n + 1, sizeof *jobs);
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i);
        struct job_summary *job = &jobs[i];
        copy_str(row, "TrainingJobName", job->name, sizeof job->name);
        copy_str(row, "TrainingJobStatus", job->status, sizeof job->status);
        copy_str(row, "SecondaryStatus", job->secondary, sizeof job->secondary);
        copy_str(row, "TrainingJobArn", job->arn, sizeof job->arn);
        job->created = copy_epoch(row, "CreationTime");
        job->modified = copy_epoch(row, "LastModifiedTime");
        read_pool(row, &job->pool);
    }
    return jobs;
}

static void on_list(void *ctx, const struct aws_reply *r)
{
    struct sagemaker_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    if (r->outcome != AWS_OK || !json_parse(r->body, r->body.n, &o, NULL)) {
        struct aws_failure f;
        aws_failure_from(r, &f);
        f.outcome = r->outcome == AWS_OK ? AWS_UNKNOWN : f.outcome;
        call->cb.list(call->ctx, NULL, 0, "", &f);
        free(call);
        return;
    }
    const json_t *rows = json_object_get(o, "TrainingJobSummaries");
    const char *next = json_string_value(json_object_get(o, "NextToken"));
    size_t n = json_array_size(rows);
    AUTO_FREE struct job_summary *jobs = read_summaries(rows, n);
    bool fits = next != NULL && strlen(next) < JOB_LIST_TOKEN_MAX;
    call->cb.list(call->ctx, jobs, n, fits ? next : "", NULL);
    free(call);
}

static void put_filter(struct json_out *w, const char *key, const char *value)
{
    if (value[0] != '\0') {
        json_out_str(w, key, value);
    }
}

struct sagemaker_call *sagemaker_list(struct aws_client *c, struct aws_gate gate,
                                      const struct job_list_query *q, sagemaker_list_cb cb,
                                      void *ctx)
{
    struct sagemaker_call *call = call_new(c, gate, ctx);
    AUTO_BUF struct buf body = BUF_INIT(2 * JOB_LIST_TOKEN_MAX);
    struct json_out w;
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "NameContains", q->contains);
    put_filter(&w, "StatusEquals", q->status);
    put_filter(&w, "WarmPoolStatusEquals", q->pool);
    if (q->created_after > 0) {
        json_out_i64(&w, "CreationTimeAfter", q->created_after / USEC_PER_SEC);
    }
    if (q->created_before > 0) {
        json_out_i64(&w, "CreationTimeBefore", q->created_before / USEC_PER_SEC);
    }
    json_out_str(&w, "SortBy", "CreationTime");
    json_out_str(&w, "SortOrder", "Descending");
    json_out_i64(&w, "MaxResults", JOB_LIST_PAGE);
    put_filter(&w, "NextToken", q->token);
    json_out_end_object(&w);
    call->cb.list = cb;
    send_call(call, AWS_OP_ListTrainingJobs, buf_str(&body), on_list);
    return call;
}
