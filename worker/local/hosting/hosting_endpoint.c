/* CreateEndpoint, UpdateEndpoint, DescribeEndpoint, DeleteEndpoint: see hosting.h. */
#include "common/clock.h"
#include "fleet.h"
#include "hosting.h"
#include "local/app.h"
#include "local/sagemaker/job_clock.h"
#include "local/sagemaker/sagemaker_local.h"
#include "local/sagemaker/shape.h"

static const char capacity_text[] =
    "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error. "
    "Please retry using a different ML instance type or after some time.";
static const char internal_text[] =
    "Request to service failed. If failure persists after retry, contact customer support.";

static const struct shape_field endpoint_fields[] = {
    {"EndpointName", SHAPE_TEXT, true, 0, 63, NULL, SHAPE_NAME_PATTERN, NULL},
    {"EndpointConfigName", SHAPE_TEXT, true, 0, 63, NULL, SHAPE_NAME_PATTERN, NULL},
    SHAPE_TAGS,
};
static const struct request_shape endpoint_shape = SHAPE(endpoint_fields);

static bool refuse_status(struct request *r, const char *verb, const char *why)
{
    char arn[HOSTING_ARN_MAX];
    hosting_arn(r->app, &hosting_endpoint, record_text(r->input, "EndpointName"), arn);
    reply_error(r, 400, "ValidationException", "Cannot %s %s endpoint \"%s\".", verb, why, arn);
    return false;
}

/* New fleets fit the quotas of the account. False: answered. */
static bool quota_ok(struct request *r, const json_t *fleets, bool refuse)
{
    static const char total[] = "Number of instances across active endpoints";
    char quota[QUOTA_NAME_MAX];
    int64_t delta_all = 0;
    for (size_t i = 0; i < json_array_size(fleets); i++) {
        const char *type = record_text(json_array_get(fleets, i), "type");
        int64_t delta = 0;
        for (size_t j = 0; j < json_array_size(fleets); j++) {
            const json_t *f = json_array_get(fleets, j);
            delta += strcmp(record_text(f, "type"), type) == 0 ? record_i64(f, "instances") : 0;
        }
        delta_all += record_i64(json_array_get(fleets, i), "instances");
        int64_t limit = quota_of_type(r->app, QUOTA_ENDPOINT, type, quota);
        int64_t used = fleets_instances(r->app, type);
        if (refuse || used + delta > limit) {
            sagemaker_limit_exceeded(r, quota, "Instances", limit, used, delta);
            return false;
        }
    }
    int64_t limit = quota_limit(r->app, total, INT64_MAX);
    int64_t used = fleets_instances(r->app, NULL);
    if (used + delta_all > limit) {
        sagemaker_limit_exceeded(r, total, "Instances", limit, used, delta_all);
        return false;
    }
    return true;
}

/* The fleets a request asks for, within the quotas; NULL: answered. */
static json_t *fleets_allowed(struct request *r, const char *name, int64_t n)
{
    const char *config_name = record_text(r->input, "EndpointConfigName");
    const json_t *config = record_find(r->app, RECORD_ENDPOINT_CONFIG, config_name);
    const struct injected_fault *f = faults_take(r, STAGE_CHECK);
    char arn[HOSTING_ARN_MAX];
    const char *missing = NULL;
    if (config == NULL) {
        hosting_arn(r->app, &hosting_config, config_name, arn);
        reply_error(r, 400, "ValidationException", "Could not find endpoint configuration \"%s\".",
                    arn);
        return NULL;
    }
    json_t *fleets = fleets_new(r->app, name, config, n, &missing);
    if (fleets == NULL) {
        hosting_arn(r->app, &hosting_model, missing, arn);
        reply_error(r, 400, "ValidationException", "Could not find model \"%s\".", arn);
        return NULL;
    }
    if (!quota_ok(r, fleets, f != NULL && f->kind == FAULT_QUOTA_REFUSE)) {
        json_decref(fleets);
        return NULL;
    }
    return fleets;
}

/* What a fault will make of it; "": nothing. */
static const char *injected_reason(struct request *r, usec_t *ret_delay_us)
{
    const struct injected_fault *f = faults_take(r, STAGE_JOB);
    *ret_delay_us = 0;
    if (f == NULL || f->kind == FAULT_SPOT_INTERRUPT) {
        return "";
    }
    *ret_delay_us = fault_delay_us(f, 0);
    return f->reason[0] != '\0'        ? f->reason
           : f->kind == FAULT_CAPACITY ? capacity_text
                                       : internal_text;
}

/* The endpoint begins to start the fleets; takes them. */
static void endpoint_begin(struct request *r, json_t *o, const char *status, json_t *take)
{
    usec_t now = clock_wall_us();
    usec_t delay_us;
    record_set_text(o, "inject", injected_reason(r, &delay_us));
    record_set_text(o, "status", status);
    record_set_text(o, "reason", "");
    record_set_i64(o, "modified", now);
    record_set_i64(o, "due", now + r->app->set.endpoint_start_us + delay_us);
    (void)json_object_set_new(o, "launched", json_false());
    (void)json_object_set_new(o, "next", take);
    job_clock_wake(r->app);
}

void hosting_create_endpoint(struct request *r)
{
    if (!shape_check(r, &endpoint_shape)) {
        return;
    }
    const char *name = record_text(r->input, "EndpointName");
    if (!hosting_is_free(r, &hosting_endpoint, name)) {
        return;
    }
    /* A deployment never has the folder of one before it, even under a name used again. */
    json_t *fleets = fleets_allowed(r, name, clock_wall_us());
    if (fleets == NULL) {
        return;
    }
    json_t *o = hosting_record(r);
    record_set_text(o, "config", record_text(r->input, "EndpointConfigName"));
    record_set_text(o, "next_config", "");
    (void)json_object_set_new(o, "fleets", json_array());
    endpoint_begin(r, o, "Creating", fleets);
    if (record_add(r->app, RECORD_ENDPOINT, name, o, r)) {
        hosting_reply_arn(r, &hosting_endpoint, name);
    }
}

static bool is_busy(const char *status)
{
    return strcmp(status, "Creating") == 0 || strcmp(status, "Updating") == 0 ||
           strcmp(status, "Deleting") == 0;
}

void hosting_update_endpoint(struct request *r)
{
    if (!shape_check(r, &endpoint_shape)) {
        return;
    }
    json_t *o = hosting_named(r, &hosting_endpoint);
    if (o == NULL) {
        return;
    }
    const char *name = record_text(r->input, "EndpointName");
    const char *config = record_text(r->input, "EndpointConfigName");
    const char *status = record_text(o, "status");
    if (strcmp(status, "InService") != 0) {
        (void)refuse_status(r, "update", is_busy(status) ? "in-progress" : "failed");
        return;
    }
    if (strcmp(record_text(o, "config"), config) == 0) {
        reply_error(r, 400, "ValidationException",
                    "Cannot update endpoint with the endpoint configuration it already has: %s",
                    config);
        return;
    }
    json_t *fleets = fleets_allowed(r, name, clock_wall_us());
    if (fleets == NULL) {
        return;
    }
    record_set_text(o, "next_config", config);
    endpoint_begin(r, o, "Updating", fleets);
    record_save(r->app, RECORD_ENDPOINT, name);
    r->reply.sync = true;
    hosting_reply_arn(r, &hosting_endpoint, name);
}

static json_t *variants_show(const json_t *o)
{
    bool updating = strcmp(record_text(o, "status"), "Updating") == 0;
    const json_t *next = json_object_get(o, "next");
    json_t *list = json_array();
    size_t i;
    const json_t *f;
    json_array_foreach(json_object_get(o, "fleets"), i, f)
    {
        json_t *image = json_object_get(json_object_get(f, "container"), "Image");
        int64_t desired = record_i64(f, "instances");
        size_t j;
        const json_t *g;
        json_array_foreach(next, j, g)
        {
            if (strcmp(record_text(g, "variant"), record_text(f, "variant")) == 0) {
                desired = record_i64(g, "instances");
            }
        }
        json_t *v = json_pack(
            "{s:s, s:[{s:O, s:O, s:o}], s:f, s:f, s:I, s:I}", "VariantName",
            record_text(f, "variant"), "DeployedImages", "SpecifiedImage", image, "ResolvedImage",
            image, "ResolutionTime", record_epoch(record_i64(f, "since")), "CurrentWeight",
            json_number_value(json_object_get(f, "weight")), "DesiredWeight",
            json_number_value(json_object_get(f, "weight")), "CurrentInstanceCount",
            (json_int_t)record_i64(f, "instances"), "DesiredInstanceCount", (json_int_t)desired);
        if (updating) {
            (void)json_object_set_new(v, "VariantStatus",
                                      json_pack("[{s:s, s:o}]", "Status", "Updating", "StartTime",
                                                record_epoch(record_i64(o, "modified"))));
        }
        (void)json_array_append_new(list, v);
    }
    return list;
}

void hosting_describe_endpoint(struct request *r)
{
    const json_t *o = hosting_named(r, &hosting_endpoint);
    char arn[HOSTING_ARN_MAX];
    if (o == NULL) {
        return;
    }
    const char *name = record_text(r->input, "EndpointName");
    const struct injected_fault *f = faults_take(r, STAGE_READ);
    bool odd = f != NULL && f->kind == FAULT_UNKNOWN_STATUS;
    hosting_arn(r->app, &hosting_endpoint, name, arn);
    json_t *reply = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "EndpointName", name, "EndpointArn",
                              arn, "EndpointConfigName", record_text(o, "config"), "EndpointStatus",
                              odd ? "Hibernating" : record_text(o, "status"), "CreationTime",
                              record_epoch(record_i64(o, "created")), "LastModifiedTime",
                              record_epoch(record_i64(o, "modified")));
    if (json_array_size(json_object_get(o, "fleets")) > 0) {
        (void)json_object_set_new(reply, "ProductionVariants", variants_show(o));
    }
    if (record_text(o, "reason")[0] != '\0') {
        record_set_text(reply, "FailureReason", record_text(o, "reason"));
    }
    reply_json(r, reply);
}

void hosting_delete_endpoint(struct request *r)
{
    json_t *o = hosting_named(r, &hosting_endpoint);
    if (o == NULL) {
        return;
    }
    const char *name = record_text(r->input, "EndpointName");
    usec_t now = clock_wall_us();
    if (is_busy(record_text(o, "status"))) {
        (void)refuse_status(r, "delete", "in-progress");
        return;
    }
    fleets_leave(r->app, name, json_object_get(o, "fleets"), now);
    record_set_text(o, "status", "Deleting");
    record_set_text(o, "reason", "");
    record_set_i64(o, "modified", now);
    record_set_i64(o, "due", now + r->app->set.endpoint_stop_us);
    record_save(r->app, RECORD_ENDPOINT, name);
    hosting_reply_empty(r);
    job_clock_wake(r->app);
}
