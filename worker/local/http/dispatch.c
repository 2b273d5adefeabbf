/* Routing of requests: see dispatch.h. */
#include "dispatch.h"
#include "auth.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "local/app.h"
#include "local/fsx/fsx.h"
#include "local/hosting/hosting.h"
#include "local/hosting/runtime.h"
#include "local/iam/permission.h"
#include "local/model/service_model.h"
#include "local/s3/s3_local.h"
#include "local/sagemaker/job_clock.h"
#include "local/sagemaker/sagemaker_local.h"
#include "local/sagemaker/warm.h"
#include "local/services/metadata_local.h"
#include "local/services/services.h"
#include "local/services/sqs_local.h"
#include "upload.h"
#include <stdio.h>

static const struct {
    const char *prefix; /* of X-Amz-Target */
    const char *service;
} targets[] = {
    {"SageMaker.", "sagemaker"},
    {"ServiceQuotasV20190624.", "servicequotas"},
    {"Logs_20140328.", "logs"},
    {"AmazonEC2ContainerRegistry_V20150921.", "ecr"},
    {"secretsmanager.", "secretsmanager"},
    {"AmazonSSM.", "ssm"},
    {"AWSSimbaAPIService_v20180301.", "fsx"},
    {"GraniteServiceVersion20100801.", "monitoring"},
    {"AWSPriceListService.", "pricing"},
    {"AmazonSQS.", "sqs"},
};
static const struct {
    const char *service;
    const char *operation;
    const char *name_key; /* member of the input with the resource's name; NULL: no member */
    void (*handle)(struct request *r);
} operations[] = {
    {"sagemaker", "CreateTrainingJob", "TrainingJobName", sagemaker_create},
    {"sagemaker", "DescribeTrainingJob", "TrainingJobName", sagemaker_describe},
    {"sagemaker", "ListTrainingJobs", "NameContains", sagemaker_list},
    {"sagemaker", "Search", NULL, sagemaker_search},
    {"sagemaker", "StopTrainingJob", "TrainingJobName", sagemaker_stop},
    {"sagemaker", "DeleteTrainingJob", "TrainingJobName", sagemaker_delete},
    {"sagemaker", "UpdateTrainingJob", "TrainingJobName", sagemaker_update},
    {"sagemaker", "AddTags", "ResourceArn", sagemaker_add_tags},
    {"sagemaker", "ListTags", "ResourceArn", sagemaker_list_tags},
    {"sagemaker", "DeleteTags", "ResourceArn", sagemaker_delete_tags},
    {"sagemaker", "CreateModel", "ModelName", hosting_create_model},
    {"sagemaker", "DescribeModel", "ModelName", hosting_describe_model},
    {"sagemaker", "ListModels", "NameContains", hosting_list_models},
    {"sagemaker", "DeleteModel", "ModelName", hosting_delete_model},
    {"sagemaker", "CreateEndpointConfig", "EndpointConfigName", hosting_create_config},
    {"sagemaker", "DescribeEndpointConfig", "EndpointConfigName", hosting_describe_config},
    {"sagemaker", "ListEndpointConfigs", "NameContains", hosting_list_configs},
    {"sagemaker", "DeleteEndpointConfig", "EndpointConfigName", hosting_delete_config},
    {"sagemaker", "CreateEndpoint", "EndpointName", hosting_create_endpoint},
    {"sagemaker", "UpdateEndpoint", "EndpointName", hosting_update_endpoint},
    {"sagemaker", "DescribeEndpoint", "EndpointName", hosting_describe_endpoint},
    {"sagemaker", "ListEndpoints", "NameContains", hosting_list_endpoints},
    {"sagemaker", "DeleteEndpoint", "EndpointName", hosting_delete_endpoint},
    {"fsx", "CreateFileSystem", "ClientRequestToken", fsx_create},
    {"fsx", "DescribeFileSystems", NULL, fsx_describe},
    {"fsx", "UpdateFileSystem", "FileSystemId", fsx_update},
    {"fsx", "DeleteFileSystem", "FileSystemId", fsx_delete},
    {"fsx", "CreateDataRepositoryAssociation", "FileSystemId", fsx_association_create},
    {"fsx", "DescribeDataRepositoryAssociations", NULL, fsx_association_describe},
    {"fsx", "DeleteDataRepositoryAssociation", "AssociationId", fsx_association_delete},
    {"fsx", "CreateDataRepositoryTask", "FileSystemId", fsx_task_create},
    {"fsx", "DescribeDataRepositoryTasks", NULL, fsx_task_describe},
    {"fsx", "CancelDataRepositoryTask", "TaskId", fsx_task_cancel},
    {"fsx", "TagResource", "ResourceARN", fsx_tag},
    {"fsx", "ListTagsForResource", "ResourceARN", fsx_list_tags},
    {"servicequotas", "ListServiceQuotas", "ServiceCode", quotas_list},
    {"servicequotas", "GetServiceQuota", "QuotaCode", quotas_get},
    {"servicequotas", "GetAWSDefaultServiceQuota", "QuotaCode", quotas_get_default},
    {"servicequotas", "ListAWSDefaultServiceQuotas", "ServiceCode", quotas_list_defaults},
    {"servicequotas", "RequestServiceQuotaIncrease", "QuotaCode", quotas_request_increase},
    {"servicequotas", "ListRequestedServiceQuotaChangeHistory", "ServiceCode", quotas_requests},
    {"pricing", "GetProducts", "ServiceCode", pricing_get_products},
    {"logs", "DescribeLogGroups", "logGroupNamePrefix", logs_describe_groups},
    {"logs", "DescribeLogStreams", "logStreamNamePrefix", logs_describe_streams},
    {"logs", "GetLogEvents", "logStreamName", logs_get_events},
    {"logs", "FilterLogEvents", "logStreamNamePrefix", logs_filter_events},
    {"monitoring", "GetMetricStatistics", NULL, metrics_get_statistics},
    {"sqs", "ReceiveMessage", "QueueUrl", sqs_receive},
    {"sqs", "DeleteMessage", "QueueUrl", sqs_delete},
    {"sqs", "DeleteMessageBatch", "QueueUrl", sqs_delete_batch},
    {"sqs", "SendMessage", "QueueUrl", sqs_send},
    {"sqs", "GetQueueUrl", "QueueName", sqs_get_url},
    {"sqs", "GetQueueAttributes", "QueueUrl", sqs_get_attributes},
    {"ecr", "BatchGetImage", "repositoryName", ecr_batch_get_image},
    {"secretsmanager", "GetSecretValue", "SecretId", secrets_get},
    {"ssm", "GetParameter", "Name", secrets_get_parameter},
};

bool dispatch_wants_upload(const struct request *r)
{
    return s3_wants_upload(r->method) && request_header(r, "x-amz-target").p == NULL &&
           !metadata_is(r);
}

static void name_set(struct request *r, const char *name)
{
    (void)snprintf(r->name, sizeof r->name, "%s", name == NULL ? "" : name);
}

static ptrdiff_t operation_find(const char *service, struct str operation)
{
    for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
        if (strcmp(operations[i].service, service) == 0 &&
            str_eq_cstr(operation, operations[i].operation)) {
            return (ptrdiff_t)i;
        }
    }
    return -1;
}

/* The parsed body of a JSON service; false: answered. */
static bool input_parse(struct request *r, ptrdiff_t op)
{
    struct err err = ERR_INIT;
    if (!json_parse(buf_str(&r->body), REQUEST_BODY_BYTES_MAX, &r->input, &err) ||
        !json_is_object(r->input)) {
        json_decref(r->input);
        r->input = NULL;
        return false;
    }
    if (operations[op].name_key != NULL) {
        name_set(r, json_string_value(json_object_get(r->input, operations[op].name_key)));
    }
    return true;
}

static void route_s3(struct request *r)
{
    char bucket[S3_BUCKET_MAX];
    char key[S3_KEY_MAX + 1];
    r->service = "s3";
    r->operation = s3_operation(r);
    if (s3_target(r, bucket, key)) {
        (void)snprintf(r->name, sizeof r->name, "%s%s%s", bucket, key[0] == '\0' ? "" : "/", key);
    }
}

/* The name between /endpoints/ and /invocations. */
static void route_runtime(struct request *r)
{
    struct str rest = {r->path.p + 1, r->path.n - 1};
    (void)str_split(&rest, '/');
    struct str name = str_split(&rest, '/');
    r->service = "sagemaker";
    r->operation = "InvokeEndpoint";
    (void)snprintf(r->name, sizeof r->name, "%.*s", (int)MIN(name.n, (size_t)200), name.p);
}

/* The Query protocol: STS, EC2, and CloudWatch as older clients ask it. */
static void route_form(struct request *r)
{
    AUTO_BUF struct buf action = BUF_INIT(64);
    r->service = "sts";
    r->operation = sts_operation(r);
    if (!request_form(r, "Action", &action)) {
        return;
    }
    if (strcmp(buf_cstr(&action), "DescribeSubnets") == 0) {
        r->service = "ec2";
        r->operation = "DescribeSubnets";
    } else if (strcmp(buf_cstr(&action), "GetMetricStatistics") == 0) {
        r->service = "monitoring";
        r->operation = "GetMetricStatistics";
        r->input = metrics_form(r);
    }
}

static void route(struct request *r)
{
    struct str target = request_header(r, "x-amz-target");
    if (metadata_is(r)) {
        r->service = "metadata";
        r->operation = metadata_operation(r);
        (void)snprintf(r->name, sizeof r->name, "%.*s", (int)MIN(r->path.n, (size_t)200),
                       r->path.p);
        return;
    }
    if (target.p == NULL) {
        bool form =
            str_starts(request_header(r, "content-type"), "application/x-www-form-urlencoded");
        if (strcmp(r->method, "POST") == 0 && str_eq_cstr(r->path, "/") && form) {
            route_form(r);
        } else if (runtime_is(r)) {
            route_runtime(r);
        } else {
            route_s3(r);
        }
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        if (str_starts(target, targets[i].prefix)) {
            size_t n = strlen(targets[i].prefix);
            ptrdiff_t op =
                operation_find(targets[i].service, (struct str){target.p + n, target.n - n});
            r->service = targets[i].service;
            r->operation = op < 0 ? "" : operations[op].operation;
            if (op >= 0) {
                (void)!input_parse(r, op); /* the handler's caller refuses it */
            }
            return;
        }
    }
}

void dispatch_restore(struct request *r, const char *operation)
{
    for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
        if (strcmp(operations[i].operation, operation) == 0) {
            r->service = operations[i].service;
            r->operation = operations[i].operation;
            hash_sha256_hex(r->body.n > 0 ? r->body.p : "", r->body.n, r->body_sha256);
            (void)!input_parse(r, (ptrdiff_t)i);
        }
    }
}

static void refuse(struct request *r, int status, const char *json_code, const char *s3_code,
                   int s3_status, const char *text)
{
    bool s3 = strcmp(r->service, "s3") == 0;
    reply_error(r, s3 ? s3_status : status, s3 ? s3_code : json_code, "%s", text);
}

static void throttle(struct request *r)
{
    bool sts = request_is_query(r);
    refuse(r, 400, sts ? "Throttling" : "ThrottlingException", "SlowDown", 503,
           strcmp(r->service, "s3") == 0 ? "Please reduce your request rate." : "Rate exceeded");
}

/* Close the connection now and carry the request out later. */
static void effect_later(struct request *r, const struct injected_fault *f)
{
    struct err err = ERR_INIT;
    struct request *copy = request_new(r->app, "/");
    usec_t due = clock_wall_us() + fault_delay_us(f, 2 * USEC_PER_SEC);
    copy->id = r->id;
    copy->arrival = r->arrival;
    copy->signed_ok = true;
    buf_add_str(&copy->body, buf_str(&r->body));
    dispatch_restore(copy, r->operation);
    if (!journal_write_delayed(&r->app->state, copy, due, &err)) {
        log_event(LOG_ERROR, "journal_failed", LF_ERR(&err));
    }
    r->reply.sync = true;
    job_clock_effect_at(r->app, copy, due);
}

/* Faults that replace the request. True: it is answered. */
static bool fault_before(struct request *r)
{
    const struct injected_fault *f = faults_take(r, STAGE_BEFORE);
    if (f == NULL) {
        return false;
    }
    if (f->kind == FAULT_THROTTLE) {
        throttle(r);
    } else if (f->kind == FAULT_ERROR_500) {
        refuse(r, 500, "InternalFailure", "InternalError", 500,
               "We encountered an internal error. Please try again.");
    } else if (f->kind == FAULT_ERROR_503) {
        refuse(r, 503, "ServiceUnavailable", "ServiceUnavailable", 503,
               "The service is unavailable. Please try again.");
    } else if (f->kind == FAULT_ERROR_200) {
        refuse(r, 200, "InternalFailure", "InternalError", 200,
               "We encountered an internal error. Please try again.");
    } else if (f->kind == FAULT_EXPIRED_TOKEN) {
        auth_refuse_expired_token(r);
    } else if (f->kind == FAULT_ACCESS_DENIED) {
        AUTO_FREE char *text = xasprintf("User: arn:aws:iam::%s:user/drover is not authorized to "
                                         "perform: %s:%s on the resource",
                                         r->app->set.account, r->service, r->operation);
        refuse(r, 400, "AccessDeniedException", "AccessDenied", 403, text);
    } else {
        if (f->kind == FAULT_EFFECT_DELAYED && r->input != NULL) {
            effect_later(r, f);
        }
        r->reply.delivery = DELIVER_DROP;
    }
    return true;
}

/* Faults that spoil the answer after the effect. */
static void fault_after(struct request *r)
{
    const struct injected_fault *f = faults_take(r, STAGE_AFTER);
    if (f == NULL) {
        return;
    }
    switch ((int)f->kind) {
    case FAULT_DROP_AFTER:
        r->reply.delivery = DELIVER_DROP;
        break;
    case FAULT_HALF_BODY:
        r->reply.delivery = DELIVER_HALF;
        break;
    case FAULT_WRONG_JSON:
        buf_reset(&r->reply.body);
        buf_add_cstr(&r->reply.body, "{\"TrainingJobArn\": [\"arn:");
        break;
    case FAULT_HTML_ERROR:
        buf_reset(&r->reply.body);
        buf_add_cstr(&r->reply.body, "<html><head><title>502 Bad Gateway</title></head><body>"
                                     "<center><h1>502 Bad Gateway</h1></center></body></html>\n");
        r->reply.content_type = "text/html";
        r->reply.status = 502;
        break;
    case FAULT_REFUSAL_LIES:
        buf_reset(&r->reply.body);
        reply_error(r, 400, "ResourceLimitExceeded", "%s",
                    f->reason[0] != '\0' ? f->reason
                                         : "The account-level service limit is reached.");
        break;
    default:
        r->reply.delay_us = fault_delay_us(f, USEC_PER_SEC);
        break;
    }
}

static void unknown_operation(struct request *r)
{
    if (r->service[0] == '\0' || strcmp(r->service, "sts") != 0) {
        reply_error(r, 400, "UnknownOperationException", "The operation is not available here.");
    } else {
        reply_error(r, 400, "InvalidAction", "Could not find operation for version 2011-06-15");
    }
}

/* The input is one of the service's model. False: answered. */
static bool model_ok(struct request *r)
{
    static const struct {
        const char *service;
        const char *code;
    } codes[] = {
        {"ecr", "InvalidParameterException"},
        {"logs", "InvalidParameterException"},
        {"pricing", "InvalidParameterException"},
        {"secretsmanager", "InvalidParameterException"},
        {"servicequotas", "IllegalArgumentException"},
        {"sqs", "com.amazonaws.sqs#InvalidParameterValueException"},
    };
    struct request_check c = {.text = BUF_INIT(REQUEST_FAULTS_BYTES_MAX)};
    const char *code = "ValidationException";
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        code = strcmp(codes[i].service, r->service) == 0 ? codes[i].code : code;
    }
    service_model_check(&c, r->service, r->operation, r->input);
    return check_done(r, &c, code);
}

/* Carry the request out. app->mu held; S3 releases it meanwhile. */
static void handle(struct request *r)
{
    if (strcmp(r->service, "s3") == 0) {
        pthread_mutex_unlock(&r->app->mu);
        s3_handle(r);
        pthread_mutex_lock(&r->app->mu);
        return;
    }
    if (r->operation[0] == '\0') {
        unknown_operation(r);
        return;
    }
    if (strcmp(r->service, "sts") == 0) {
        sts_handle(r);
        return;
    }
    if (strcmp(r->service, "ec2") == 0) {
        ec2_describe_subnets(r);
        return;
    }
    if (strcmp(r->service, "metadata") == 0) {
        metadata_handle(r);
        return;
    }
    if (strcmp(r->operation, "InvokeEndpoint") == 0) {
        runtime_invoke(r);
        return;
    }
    if (r->input == NULL) {
        reply_error(r, 400, "SerializationException",
                    "Start of structure or map found where not "
                    "expected.");
        return;
    }
    ptrdiff_t op = operation_find(r->service, str_of(r->operation));
    ASSERT(op >= 0);
    if (!model_ok(r)) {
        return;
    }
    warm_expire(r->app, clock_wall_us());
    operations[op].handle(r);
}

static void request_judge(struct request *r)
{
    struct app *app = r->app;
    if (r->service[0] == '\0') {
        unknown_operation(r);
        return;
    }
    if (r->body.overflow) {
        reply_error(r, 413, "RequestEntityTooLarge", "The request is too large.");
        return;
    }
    bool anonymous = strcmp(r->service, "metadata") == 0 ||
                     strcmp(r->operation, "AssumeRoleWithWebIdentity") == 0 || s3_is_public(r);
    if (!anonymous && !auth_check(r, &app->set)) {
        return;
    }
    pthread_mutex_lock(&app->mu);
    faults_arm(&app->faults, r);
    if (wire_full(&app->wire)) {
        refuse(r, 500, "InternalFailure", "InternalError", 500,
               "The wire log is full; POST /_local/reset.");
    } else if (!fault_before(r)) {
        if (r->operation[0] != '\0' && !rates_allow(&app->rates, r->operation)) {
            throttle(r);
        } else if (permission_check(r)) {
            handle(r);
            if (r->forward_to == NULL && !dispatch_waits(r)) {
                fault_after(r);
            }
        }
    }
    pthread_mutex_unlock(&app->mu);
}

/* The answer is decided: it goes into the wire log, and what it says is on disk. */
static void request_end(struct request *r)
{
    struct app *app = r->app;
    struct err err = ERR_INIT;
    ASSERT(r->reply.status != 0 || r->reply.delivery == DELIVER_DROP);
    if (r->reply.error[0] != '\0' && strcmp(r->operation, "InvokeEndpoint") == 0) {
        reply_header(r, "x-amzn-ErrorType", r->reply.error); /* where its protocol has the code */
    }
    pthread_mutex_lock(&app->mu);
    wire_write(&app->wire, r, r->reply.delivery == DELIVER);
    request_log_write(&app->requests, r);
    json_decref(r->input); /* a job may share it: release it under the mutex */
    r->input = NULL;
    pthread_mutex_unlock(&app->mu);
    /* Flush without the mutex: only this answer has to wait for the disk. */
    if (r->reply.sync && !journal_sync(&app->state, &err)) {
        log_event(LOG_ERROR, "journal_failed", LF_ERR(&err));
        r->reply.delivery = DELIVER_DROP;
    }
}

void dispatch_request(struct request *r)
{
    struct app *app = r->app;
    if (r->upload != NULL) {
        upload_end(r->upload);
        memcpy(r->body_sha256, r->upload->sha256_hex, sizeof r->body_sha256);
    } else {
        hash_sha256_hex(r->body.n > 0 ? r->body.p : "", r->body.n, r->body_sha256);
    }
    route(r);
    pthread_mutex_lock(&app->mu);
    r->id = wire_next_id(&app->wire);
    pthread_mutex_unlock(&app->mu);
    request_judge(r);
    if (r->forward_to == NULL && !dispatch_waits(r)) {
        request_end(r);
    }
}

bool dispatch_waits(const struct request *r)
{
    return r->wait_until != 0 && r->reply.status == 0;
}

void dispatch_again(struct request *r)
{
    pthread_mutex_lock(&r->app->mu);
    handle(r);
    if (!dispatch_waits(r)) {
        fault_after(r);
    }
    pthread_mutex_unlock(&r->app->mu);
    if (!dispatch_waits(r)) {
        request_end(r);
    }
}

void dispatch_forward(struct request *r)
{
    runtime_forward(r);
    pthread_mutex_lock(&r->app->mu);
    fault_after(r);
    pthread_mutex_unlock(&r->app->mu);
    request_end(r);
}

void dispatch_detached(struct request *r)
{
    struct err err = ERR_INIT;
    handle(r);
    wire_write(&r->app->wire, r, false);
    if (!journal_write_delayed_done(&r->app->state, r->id, &err) ||
        !journal_sync(&r->app->state, &err)) {
        log_event(LOG_ERROR, "journal_failed", LF_ERR(&err));
    }
}
