/* CreateEndpointConfig, DescribeEndpointConfig, DeleteEndpointConfig: see hosting.h. */
#include "hosting.h"
#include "local/app.h"
#include "local/jobs/supervise.h"
#include "local/sagemaker/shape.h"

static const struct shape_field variant_fields[] = {
    {"VariantName", SHAPE_TEXT, true, 0, 63, NULL, SHAPE_NAME_PATTERN, NULL},
    {"ModelName", SHAPE_TEXT, true, 0, 63, NULL, "[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?", NULL},
    {"InitialInstanceCount", SHAPE_INT, true, 1, HOSTS_MAX, NULL, NULL, NULL},
    {"InstanceType", SHAPE_TEXT, true, 1, 63, NULL, "ml\\.[a-z0-9-]+\\.[a-z0-9]+", NULL},
    {"InitialVariantWeight", SHAPE_NUMBER, false, 0, 1000000, NULL, NULL, NULL},
    {"VolumeSizeInGB", SHAPE_INT, false, 1, 512, NULL, NULL, NULL},
    {"ModelDataDownloadTimeoutInSeconds", SHAPE_INT, false, 60, 3600, NULL, NULL, NULL},
    {"ContainerStartupHealthCheckTimeoutInSeconds", SHAPE_INT, false, 60, 3600, NULL, NULL, NULL},
};
static const struct request_shape variant = SHAPE(variant_fields);
static const struct shape_field config_fields[] = {
    {"EndpointConfigName", SHAPE_TEXT, true, 0, 63, NULL, SHAPE_NAME_PATTERN, NULL},
    {"ProductionVariants", SHAPE_LIST, true, 1, 10, NULL, NULL, &variant},
    {"KmsKeyId", SHAPE_TEXT, false, 0, 2048, NULL, "[a-zA-Z0-9:/_-]*", NULL},
    SHAPE_TAGS,
};
static const struct request_shape config_shape = SHAPE(config_fields);

static bool refuse(struct request *r, const char *text)
{
    reply_error(r, 400, "ValidationException", "%s", text);
    return false;
}

/* Models are there, names are used once. False: answered. */
static bool variants_ok(struct request *r)
{
    const json_t *list = json_object_get(r->input, "ProductionVariants");
    if (json_object_get(r->input, "AsyncInferenceConfig") != NULL) {
        return refuse(r, "Asynchronous inference is not available on one machine");
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        const char *model = record_text(v, "ModelName");
        char arn[HOSTING_ARN_MAX];
        if (json_object_get(v, "ServerlessConfig") != NULL) {
            return refuse(r, "Serverless inference is not available on one machine");
        }
        if (record_find(r->app, RECORD_MODEL, model) == NULL) {
            hosting_arn(r->app, &hosting_model, model, arn);
            reply_error(r, 400, "ValidationException", "Could not find model \"%s\".", arn);
            return false;
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(record_text(json_array_get(list, j), "VariantName"),
                       record_text(v, "VariantName")) == 0) {
                return refuse(r, "Production variant names must be unique within an endpoint "
                                 "configuration");
            }
        }
    }
    return true;
}

void hosting_create_config(struct request *r)
{
    if (!shape_check(r, &config_shape)) {
        return;
    }
    const char *name = record_text(r->input, "EndpointConfigName");
    if (!hosting_is_free(r, &hosting_config, name) || !variants_ok(r)) {
        return;
    }
    if (record_add(r->app, RECORD_ENDPOINT_CONFIG, name, hosting_record(r), r)) {
        hosting_reply_arn(r, &hosting_config, name);
    }
}

void hosting_describe_config(struct request *r)
{
    const json_t *o = hosting_named(r, &hosting_config);
    char arn[HOSTING_ARN_MAX];
    size_t i;
    json_t *v;
    if (o == NULL) {
        return;
    }
    json_t *reply = json_deep_copy(json_object_get(o, "request"));
    hosting_arn(r->app, &hosting_config, record_text(r->input, "EndpointConfigName"), arn);
    record_set_text(reply, "EndpointConfigArn", arn);
    (void)json_object_set_new(reply, "CreationTime", record_epoch(record_i64(o, "created")));
    json_array_foreach(json_object_get(reply, "ProductionVariants"), i, v)
    {
        if (json_object_get(v, "InitialVariantWeight") == NULL) {
            (void)json_object_set_new(v, "InitialVariantWeight", json_real(1.0));
        }
    }
    reply_json(r, reply);
}

/* Allowed while an endpoint uses it: the endpoint goes on with what it has. */
void hosting_delete_config(struct request *r)
{
    if (hosting_named(r, &hosting_config) != NULL) {
        record_remove(r->app, RECORD_ENDPOINT_CONFIG, record_text(r->input, "EndpointConfigName"));
        hosting_reply_empty(r);
    }
}
