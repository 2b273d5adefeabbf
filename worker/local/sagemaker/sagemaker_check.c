/* The constraints of CreateTrainingJob's input, reported in SageMaker's words. See
 * sagemaker_local.h. */
#include "local/app.h"
#include "local/jobs/supervise.h"
#include "sagemaker_local.h"
#include "sagemaker_rules.h"
#include "warm.h"
#include <stdio.h>

#define NAME_PATTERN "[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
#define ROLE_PATTERN "arn:aws[a-z\\-]*:iam::\\d{12}:role/?[a-zA-Z_0-9+=,.@\\-_/]+"
#define ENV_PATTERN  "[a-zA-Z_][a-zA-Z0-9_]*"
#define LETTERS      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS       "0123456789"

static bool is_name(const char *s)
{
    size_t n = strlen(s);
    return n >= 1 && strspn(s, LETTERS DIGITS "-") == n && s[0] != '-' && s[n - 1] != '-';
}

static void int_check(struct request_check *c, const json_t *o, const char *key, const char *field,
                      bool required, int64_t min, int64_t max)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL) {
        if (required) {
            check_fail(c, NULL, field, "Member must not be null");
        }
    } else if (!json_is_integer(v)) {
        check_fail(c, v, field, "Member must be an integer");
    } else if (json_integer_value(v) < min) {
        check_fail(c, v, field, "Member must have value greater than or equal to %lld",
                   (long long)min);
    } else if (json_integer_value(v) > max) {
        check_fail(c, v, field, "Member must have value less than or equal to %lld",
                   (long long)max);
    }
}

static void map_check(struct request_check *c, const json_t *o, const char *key, const char *field,
                      size_t key_max, size_t value_max, bool env)
{
    const json_t *map = check_part(c, o, key, field, false);
    const char *k;
    json_t *v;
    if (map != NULL && json_object_size(map) > 100) {
        check_fail(c, NULL, field, "Member must have length less than or equal to 100");
    }
    json_object_foreach((json_t *)(uintptr_t)map, k, v)
    {
        AUTO_JSON json_t *name = json_string(k);
        if (strlen(k) > key_max) {
            check_fail(
                c, name, field,
                "Map keys must satisfy constraint: [Member must have length less than or equal "
                "to %zu]",
                key_max);
        } else if (env && (strspn(k, LETTERS DIGITS "_") != strlen(k) || k[0] == '\0' ||
                           strchr(DIGITS, k[0]) != NULL)) {
            check_fail(c, name, field,
                       "Map keys must satisfy constraint: [Member must satisfy regular expression "
                       "pattern: " ENV_PATTERN "]");
        } else if (!json_is_string(v)) {
            check_fail(c, v, field, "Map value must satisfy constraint: [Member must be a string]");
        } else if (json_string_length(v) > value_max) {
            check_fail(
                c, v, field,
                "Map value must satisfy constraint: [Member must have length less than or equal "
                "to %zu]",
                value_max);
        }
    }
}

static void words_check(struct request_check *c, const json_t *o, const char *key,
                        const char *field)
{
    const json_t *list = json_object_get(o, key);
    size_t i;
    json_t *v;
    if (list == NULL) {
        return;
    }
    if (!json_is_array(list) || json_array_size(list) < 1 || json_array_size(list) > 100) {
        check_fail(c, list, field, "Member must have length between 1 and 100");
    }
    json_array_foreach(list, i, v)
    {
        if (!json_is_string(v) || json_string_length(v) > 256) {
            check_fail(
                c, v, field,
                "Member must satisfy constraint: [Member must have length less than or equal to "
                "256]");
        }
    }
}

static void uri_check(struct request_check *c, const json_t *o, const char *key, const char *field)
{
    const char *uri = check_text(c, o, key, field, true, 0, 1024);
    size_t scheme = uri == NULL                        ? 0
                    : strncmp(uri, "s3://", 5) == 0    ? 5
                    : strncmp(uri, "https://", 8) == 0 ? 8
                                                       : 0;
    if (uri != NULL && (scheme == 0 || uri[scheme] == '\0' || uri[scheme] == '/')) {
        check_fail(c, json_object_get(o, key), field,
                   "Member must satisfy regular expression pattern: (https|s3)://([^/]+)/?(.*)");
    }
}

static void channel_check(struct request_check *c, const json_t *ch, size_t i)
{
    char field[96];
    (void)snprintf(field, sizeof field, "inputDataConfig.%zu.member.channelName", i + 1);
    const char *name = check_text(c, ch, "ChannelName", field, true, 1, 64);
    if (name != NULL && strspn(name, LETTERS DIGITS ".-_") != strlen(name)) {
        check_fail(c, json_object_get(ch, "ChannelName"), field,
                   "Member must satisfy regular expression pattern: [A-Za-z0-9\\.\\-_]+");
    }
    (void)snprintf(field, sizeof field, "inputDataConfig.%zu.member.dataSource", i + 1);
    const json_t *source = check_part(c, ch, "DataSource", field, true);
    const json_t *s3 = json_object_get(source, "S3DataSource");
    const json_t *fs = json_object_get(source, "FileSystemDataSource");
    if (source != NULL && (s3 == NULL) == (fs == NULL)) {
        check_fail(c, source, field,
                   "Exactly one of S3DataSource and FileSystemDataSource must be given");
    } else if (fs != NULL) {
        sagemaker_rules_mount(c, fs, field);
    } else if (s3 != NULL) {
        (void)snprintf(field, sizeof field,
                       "inputDataConfig.%zu.member.dataSource.s3DataSource.s3Uri", i + 1);
        uri_check(c, s3, "S3Uri", field);
        const char *type = json_string_value(json_object_get(s3, "S3DataType"));
        if (type == NULL || (strcmp(type, "S3Prefix") != 0 && strcmp(type, "ManifestFile") != 0 &&
                             strcmp(type, "AugmentedManifestFile") != 0)) {
            (void)snprintf(field, sizeof field,
                           "inputDataConfig.%zu.member.dataSource.s3DataSource.s3DataType", i + 1);
            check_fail(c, json_object_get(s3, "S3DataType"), field,
                       "Member must satisfy enum value set: [AugmentedManifestFile, ManifestFile, "
                       "S3Prefix]");
        }
    }
}

static void channels_check(struct request_check *c, const json_t *in)
{
    const json_t *list = json_object_get(in, "InputDataConfig");
    size_t i;
    json_t *ch;
    if (list == NULL) {
        return;
    }
    if (!json_is_array(list) || json_array_size(list) < 1 || json_array_size(list) > 20) {
        check_fail(c, NULL, "inputDataConfig", "Member must have length between 1 and 20");
    }
    json_array_foreach(list, i, ch)
    {
        channel_check(c, ch, i);
    }
}

static void tags_check(struct request_check *c, const json_t *in)
{
    const json_t *list = json_object_get(in, "Tags");
    size_t i;
    json_t *tag;
    if (list != NULL && (!json_is_array(list) || json_array_size(list) > 50)) {
        check_fail(c, NULL, "tags", "Member must have length less than or equal to 50");
    }
    json_array_foreach(list, i, tag)
    {
        char field[64];
        (void)snprintf(field, sizeof field, "tags.%zu.member.key", i + 1);
        (void)check_text(c, tag, "Key", field, true, 1, 128);
        (void)snprintf(field, sizeof field, "tags.%zu.member.value", i + 1);
        (void)check_text(c, tag, "Value", field, true, 0, 256);
    }
}

static void algorithm_check(struct request_check *c, const json_t *in)
{
    const json_t *a = check_part(c, in, "AlgorithmSpecification", "algorithmSpecification", true);
    if (a == NULL) {
        return;
    }
    (void)check_text(c, a, "TrainingImage", "algorithmSpecification.trainingImage", false, 0, 255);
    const char *mode = check_text(c, a, "TrainingInputMode",
                                  "algorithmSpecification.trainingInputMode", true, 0, 64);
    if (mode != NULL && strcmp(mode, "File") != 0 && strcmp(mode, "FastFile") != 0 &&
        strcmp(mode, "Pipe") != 0) {
        check_fail(c, json_object_get(a, "TrainingInputMode"),
                   "algorithmSpecification.trainingInputMode",
                   "Member must satisfy enum value set: [FastFile, File, Pipe]");
    }
    words_check(c, a, "ContainerEntrypoint", "algorithmSpecification.containerEntrypoint");
    words_check(c, a, "ContainerArguments", "algorithmSpecification.containerArguments");
}

static void resources_check(struct request_check *c, const json_t *in, int64_t keep_max_s)
{
    const json_t *res = check_part(c, in, "ResourceConfig", "resourceConfig", true);
    if (res == NULL) {
        return;
    }
    const char *type =
        check_text(c, res, "InstanceType", "resourceConfig.instanceType", true, 1, 63);
    if (type != NULL && (strncmp(type, "ml.", 3) != 0 || strchr(type + 3, '.') == NULL)) {
        check_fail(c, json_object_get(res, "InstanceType"), "resourceConfig.instanceType",
                   "Member must satisfy enum value set: [ml.*]");
    }
    int_check(c, res, "InstanceCount", "resourceConfig.instanceCount", true, 1, HOSTS_MAX);
    int_check(c, res, "VolumeSizeInGB", "resourceConfig.volumeSizeInGB", true, 1, 16384);
    int_check(c, res, "KeepAlivePeriodInSeconds", "resourceConfig.keepAlivePeriodInSeconds", false,
              0, keep_max_s);
    if (json_array_size(json_object_get(res, "InstanceGroups")) > 0) {
        check_fail(c, NULL, "resourceConfig.instanceGroups",
                   "Member must not be given together with InstanceType and InstanceCount");
    }
}

static void role_check(struct request_check *c, const json_t *in)
{
    const char *role = check_text(c, in, "RoleArn", "roleArn", true, 20, 2048);
    const char *iam = role == NULL ? NULL : strstr(role, ":iam::");
    if (role != NULL && (strncmp(role, "arn:aws", 7) != 0 || iam == NULL ||
                         strspn(iam + 6, DIGITS) != 12 || strncmp(iam + 18, ":role/", 6) != 0)) {
        check_fail(c, json_object_get(in, "RoleArn"), "roleArn",
                   "Member must satisfy regular expression pattern: " ROLE_PATTERN);
    }
}

static void name_check(struct request_check *c, const json_t *in)
{
    const char *name = check_text(c, in, "TrainingJobName", "trainingJobName", true, 1, 63);
    if (name != NULL && !is_name(name)) {
        check_fail(c, json_object_get(in, "TrainingJobName"), "trainingJobName",
                   "Member must satisfy regular expression pattern: " NAME_PATTERN);
    }
}

bool sagemaker_check_name(struct request *r, const char *name)
{
    struct request_check c = {.text = BUF_INIT(REQUEST_FAULTS_BYTES_MAX)};
    AUTO_JSON json_t *in =
        name == NULL ? json_object() : json_pack("{s:s}", "TrainingJobName", name);
    name_check(&c, in);
    return check_done(r, &c, "ValidationException");
}

bool sagemaker_role_ok(struct request *r, const char *role)
{
    const json_t *roles = r->app->set.roles;
    bool known = roles == NULL;
    for (size_t i = 0; !known && i < json_array_size(roles); i++) {
        const char *have = json_string_value(json_array_get(roles, i));
        known = have != NULL && strcmp(have, role) == 0;
    }
    if (!known) {
        reply_error(r, 400, "ValidationException",
                    "Could not assume role %s. Please ensure that the role exists and allows "
                    "principal 'sagemaker.amazonaws.com' to assume the role.",
                    role);
    }
    return known;
}

/* Rules that hold between fields. */
static bool rules_ok(struct request *r)
{
    const json_t *stop = json_object_get(r->input, "StoppingCondition");
    const json_t *max_given = json_object_get(stop, "MaxRuntimeInSeconds");
    int64_t max = max_given == NULL ? 86400 : json_integer_value(max_given);
    int64_t wait = json_integer_value(json_object_get(stop, "MaxWaitTimeInSeconds"));
    bool spot = json_is_true(json_object_get(r->input, "EnableManagedSpotTraining"));
    const char *role = json_string_value(json_object_get(r->input, "RoleArn"));
    if (spot && wait < max) {
        reply_error(r, 400, "ValidationException",
                    "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal "
                    "to MaxRuntimeInSeconds");
        return false;
    }
    return sagemaker_role_ok(r, role);
}

bool sagemaker_check_create(struct request *r)
{
    struct request_check c = {.text = BUF_INIT(REQUEST_FAULTS_BYTES_MAX)};
    const json_t *in = r->input;
    name_check(&c, in);
    role_check(&c, in);
    algorithm_check(&c, in);
    resources_check(&c, in, warm_keep_max_s(r->app));
    const json_t *out = check_part(&c, in, "OutputDataConfig", "outputDataConfig", true);
    if (out != NULL) {
        uri_check(&c, out, "S3OutputPath", "outputDataConfig.s3OutputPath");
    }
    const json_t *stop = check_part(&c, in, "StoppingCondition", "stoppingCondition", true);
    int_check(&c, stop, "MaxRuntimeInSeconds", "stoppingCondition.maxRuntimeInSeconds", false, 1,
              2419200);
    int_check(&c, stop, "MaxWaitTimeInSeconds", "stoppingCondition.maxWaitTimeInSeconds", false, 1,
              INT32_MAX);
    const json_t *checkpoint = check_part(&c, in, "CheckpointConfig", "checkpointConfig", false);
    if (checkpoint != NULL) {
        uri_check(&c, checkpoint, "S3Uri", "checkpointConfig.s3Uri");
        (void)check_text(&c, checkpoint, "LocalPath", "checkpointConfig.localPath", false, 0, 4096);
    }
    map_check(&c, in, "HyperParameters", "hyperParameters", 256, 2500, false);
    map_check(&c, in, "Environment", "environment", 512, 512, true);
    channels_check(&c, in);
    tags_check(&c, in);
    sagemaker_rules_fields(&c, in);
    return check_done(r, &c, "ValidationException") && rules_ok(r) && sagemaker_rules_between(r);
}
