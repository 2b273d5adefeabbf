/* CreateModel, DescribeModel, DeleteModel: see hosting.h. */
#include "hosting.h"
#include "local/app.h"
#include "local/s3/s3_store.h"
#include "local/sagemaker/sagemaker_local.h"
#include "local/sagemaker/shape.h"
#include "local/services/services.h"

#define IMAGE_PATTERN "[^[:space:]]+"
#define URL_PATTERN   "(https|s3)://([^/]+)/?(.*)"

static const struct shape_field source_s3_fields[] = {
    {"S3Uri", SHAPE_TEXT, true, 0, 1024, NULL, URL_PATTERN, NULL},
    {"S3DataType", SHAPE_TEXT, true, 0, 16, "S3Prefix S3Object", NULL, NULL},
    {"CompressionType", SHAPE_TEXT, true, 0, 16, "None Gzip", NULL, NULL},
};
static const struct request_shape source_s3 = SHAPE(source_s3_fields);
static const struct shape_field source_fields[] = {
    {"S3DataSource", SHAPE_PART, false, 0, 0, NULL, NULL, &source_s3},
};
static const struct request_shape source = SHAPE(source_fields);
static const struct shape_field container_fields[] = {
    {"ContainerHostname", SHAPE_TEXT, false, 0, 63, NULL, SHAPE_NAME_PATTERN, NULL},
    {"Image", SHAPE_TEXT, false, 0, 255, NULL, IMAGE_PATTERN, NULL},
    {"Mode", SHAPE_TEXT, false, 0, 16, "SingleModel MultiModel", NULL, NULL},
    {"ModelDataUrl", SHAPE_TEXT, false, 0, 1024, NULL, URL_PATTERN, NULL},
    {"ModelDataSource", SHAPE_PART, false, 0, 0, NULL, NULL, &source},
    {"Environment", SHAPE_MAP, false, 0, 100, NULL, NULL, NULL},
};
static const struct request_shape container = SHAPE(container_fields);
static const struct shape_field vpc_fields[] = {
    {"SecurityGroupIds", SHAPE_TEXTS, true, 1, 5, NULL, "[-0-9a-zA-Z]{1,32}", NULL},
    {"Subnets", SHAPE_TEXTS, true, 1, 16, NULL, "[-0-9a-zA-Z]{1,32}", NULL},
};
static const struct request_shape vpc = SHAPE(vpc_fields);
static const struct shape_field model_fields[] = {
    {"ModelName", SHAPE_TEXT, true, 0, 63, NULL, "[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?", NULL},
    {"PrimaryContainer", SHAPE_PART, false, 0, 0, NULL, NULL, &container},
    {"Containers", SHAPE_LIST, false, 0, 15, NULL, NULL, &container},
    {"ExecutionRoleArn", SHAPE_TEXT, false, 20, 2048, NULL, SHAPE_ROLE_PATTERN, NULL},
    {"VpcConfig", SHAPE_PART, false, 0, 0, NULL, NULL, &vpc},
    {"EnableNetworkIsolation", SHAPE_BOOL, false, 0, 0, NULL, NULL, NULL},
    SHAPE_TAGS,
};
static const struct request_shape model_shape = SHAPE(model_fields);

static bool refuse(struct request *r, const char *fmt, const char *what)
{
    AUTO_FREE char *text = xasprintf("%s%s", fmt, what);
    reply_error(r, 400, "ValidationException", "%s", text);
    return false;
}

static const char *data_url(const json_t *c)
{
    const json_t *s3 = json_object_get(json_object_get(c, "ModelDataSource"), "S3DataSource");
    const char *url = json_string_value(json_object_get(c, "ModelDataUrl"));
    return url != NULL ? url : json_string_value(json_object_get(s3, "S3Uri"));
}

/* The object is there. A folder of a prefix is looked for when the endpoint downloads it. */
static bool data_exists(struct request *r, const json_t *c)
{
    const char *url = data_url(c);
    char bucket[S3_BUCKET_MAX];
    char key[S3_KEY_MAX + 1];
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    struct stat st;
    if (url == NULL) {
        return true;
    }
    if (!s3_store_uri(url, bucket, key, &err)) {
        return refuse(r, "Invalid model data URL ", url);
    }
    if (json_object_get(c, "ModelDataUrl") == NULL) {
        return true;
    }
    if (!s3_store_path(r->app->root, bucket, key, path, &err) || stat(path, &st) != 0) {
        return refuse(r, "Could not find model data at ", url);
    }
    return true;
}

/* AWS documents both; the words of the refusals are not public. */
static bool source_ok(struct request *r, const json_t *c)
{
    const json_t *s3 = json_object_get(json_object_get(c, "ModelDataSource"), "S3DataSource");
    const char *uri = json_string_value(json_object_get(s3, "S3Uri"));
    const char *type = json_string_value(json_object_get(s3, "S3DataType"));
    const char *compression = json_string_value(json_object_get(s3, "CompressionType"));
    if (s3 == NULL || strcmp(type, "S3Prefix") != 0) {
        return true;
    }
    if (strcmp(compression, "None") != 0) {
        return refuse(r, "CompressionType must be None when S3DataType is S3Prefix", "");
    }
    return str_ends(str_of(uri), "/") ||
           refuse(r, "S3Uri must end with a forward slash when S3DataType is S3Prefix: ", uri);
}

static bool container_ok(struct request *r, const json_t *c)
{
    const char *image = json_string_value(json_object_get(c, "Image"));
    if (image == NULL) {
        return refuse(r, "Container does not have an image", "");
    }
    if (json_object_get(c, "ModelDataUrl") != NULL &&
        json_object_get(c, "ModelDataSource") != NULL) {
        return refuse(r, "You cannot specify both ModelDataUrl and ModelDataSource", "");
    }
    if (ecr_image_argv(r->app, image) == NULL) {
        AUTO_FREE char *text = xasprintf("%s not found.", image);
        return refuse(r, "Requested image ", text);
    }
    return source_ok(r, c) && data_exists(r, c);
}

/* Rules between fields, and what is named must be there. False: answered. */
static bool model_ok(struct request *r)
{
    const json_t *primary = json_object_get(r->input, "PrimaryContainer");
    const json_t *list = json_object_get(r->input, "Containers");
    const char *role = json_string_value(json_object_get(r->input, "ExecutionRoleArn"));
    if ((primary == NULL) == (json_array_size(list) == 0)) {
        return refuse(r, "You must specify either PrimaryContainer or Containers", "");
    }
    if (json_array_size(list) > 1) {
        return refuse(r, "Inference pipelines are not available on one machine", "");
    }
    if (role == NULL) {
        return refuse(r, "ExecutionRoleArn must be given", "");
    }
    return sagemaker_role_ok(r, role) &&
           container_ok(r, primary != NULL ? primary : json_array_get(list, 0));
}

void hosting_create_model(struct request *r)
{
    if (!shape_check(r, &model_shape)) {
        return;
    }
    const char *name = record_text(r->input, "ModelName");
    if (!hosting_is_free(r, &hosting_model, name) || !model_ok(r)) {
        return;
    }
    if (record_add(r->app, RECORD_MODEL, name, hosting_record(r), r)) {
        hosting_reply_arn(r, &hosting_model, name);
    }
}

void hosting_describe_model(struct request *r)
{
    const json_t *o = hosting_named(r, &hosting_model);
    char arn[HOSTING_ARN_MAX];
    if (o == NULL) {
        return;
    }
    json_t *reply = json_deep_copy(json_object_get(o, "request"));
    json_t *primary = json_object_get(reply, "PrimaryContainer");
    hosting_arn(r->app, &hosting_model, record_text(r->input, "ModelName"), arn);
    record_set_text(reply, "ModelArn", arn);
    (void)json_object_set_new(reply, "CreationTime", record_epoch(record_i64(o, "created")));
    if (json_object_get(reply, "EnableNetworkIsolation") == NULL) {
        (void)json_object_set_new(reply, "EnableNetworkIsolation", json_false());
    }
    if (primary != NULL && json_object_get(primary, "Mode") == NULL) {
        record_set_text(primary, "Mode", "SingleModel");
    }
    reply_json(r, reply);
}

void hosting_delete_model(struct request *r)
{
    if (hosting_named(r, &hosting_model) != NULL) {
        record_remove(r->app, RECORD_MODEL, record_text(r->input, "ModelName"));
        hosting_reply_empty(r);
    }
}
