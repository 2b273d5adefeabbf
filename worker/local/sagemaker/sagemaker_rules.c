/* See sagemaker_rules.h. */
#include "sagemaker_rules.h"
#include "common/regex.h"
#include <ctype.h>
#include <stdio.h>

#define RETRIES_MAX 30

/* Instance types whose local disks take the place of a volume, and their gigabytes. General
 * knowledge of EC2; SageMaker takes no larger volume there, and no key of one. */
static const struct {
    const char *type;
    int64_t gb;
} disks[] = {{"ml.g4dn.xlarge", 125},   {"ml.g4dn.2xlarge", 225},  {"ml.g4dn.4xlarge", 225},
             {"ml.g4dn.12xlarge", 900}, {"ml.g5.xlarge", 250},     {"ml.g5.2xlarge", 450},
             {"ml.g5.12xlarge", 3800},  {"ml.g5.48xlarge", 7600},  {"ml.p3dn.24xlarge", 1800},
             {"ml.p4d.24xlarge", 8000}, {"ml.p4de.24xlarge", 8000}};

static const char *text_at(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words != NULL && strcmp(*words, word) != 0) {
        words++;
    }
    return *words != NULL;
}

/* Letters, digits and `more`; bytes beyond ASCII pass as letters. */
static bool made_of(const char *s, const char *more)
{
    for (; *s != '\0'; s++) {
        unsigned char b = (unsigned char)*s;
        if (b < 0x80 && !isalnum(b) && strchr(more, *s) == NULL) {
            return false;
        }
    }
    return true;
}

void sagemaker_rules_tags(struct request_check *c, const json_t *in)
{
    const json_t *list = json_object_get(in, "Tags");
    size_t i;
    const json_t *tag;
    json_array_foreach(list, i, tag)
    {
        char field[64];
        const char *key = text_at(tag, "Key");
        const char *value = text_at(tag, "Value");
        (void)snprintf(field, sizeof field, "tags.%zu.member", i + 1);
        if (key == NULL || value == NULL) {
            continue; /* said already */
        }
        if (!made_of(key, " _.:/=+-@") || !made_of(value, " _.:/=+-@")) {
            check_fail(c, tag, field,
                       "Member must satisfy regular expression pattern: "
                       "([\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*)");
        } else if (strncasecmp(key, "aws:", 4) == 0) {
            check_fail(c, tag, field, "Tag keys beginning with aws: are reserved");
        }
        for (size_t j = 0; j < i; j++) {
            const char *other = text_at(json_array_get(list, j), "Key");
            if (other != NULL && strcmp(other, key) == 0) {
                check_fail(c, tag, field, "Duplicate tag key");
            }
        }
    }
}

void sagemaker_rules_mount(struct request_check *c, const json_t *source, const char *field)
{
    static const char *const types[] = {"FSxLustre", NULL}; /* EFS is not played */
    static const char *const modes[] = {"ro", "rw", NULL};
    const char *id = check_text(c, source, "FileSystemId", field, true, 11, 21);
    const char *path = check_text(c, source, "DirectoryPath", field, true, 0, 4096);
    (void)check_text(c, source, "FileSystemType", field, true, 0, 16);
    (void)check_text(c, source, "FileSystemAccessMode", field, true, 0, 2);
    check_word(c, source, "FileSystemType", field, types);
    check_word(c, source, "FileSystemAccessMode", field, modes);
    if (id != NULL &&
        (strncmp(id, "fs-", 3) != 0 || strspn(id + 3, "0123456789abcdef") != strlen(id + 3))) {
        check_fail(c, source, field,
                   "Member must satisfy regular expression pattern: "
                   "(fs-[0-9a-f]{8,})");
    }
    if (path != NULL && path[0] != '/') {
        check_fail(c, source, field,
                   "DirectoryPath must begin with the mount name of the file "
                   "system");
    }
}

static void check_metrics(struct request_check *c, const json_t *algorithm)
{
    const json_t *list = json_object_get(algorithm, "MetricDefinitions");
    size_t i;
    const json_t *m;
    if (json_array_size(list) > 40) {
        check_fail(c, NULL, "algorithmSpecification.metricDefinitions",
                   "Member must have length less than or equal to 40");
    }
    json_array_foreach(list, i, m)
    {
        char field[96];
        struct err why = ERR_INIT;
        int groups;
        (void)snprintf(field, sizeof field,
                       "algorithmSpecification.metricDefinitions.%zu.member.name", i + 1);
        (void)check_text(c, m, "Name", field, true, 1, 255);
        (void)snprintf(field, sizeof field,
                       "algorithmSpecification.metricDefinitions.%zu.member.regex", i + 1);
        const char *regex = check_text(c, m, "Regex", field, true, 1, 500);
        if (regex != NULL && !regex_check(regex, &groups, &why)) {
            check_fail(c, json_object_get(m, "Regex"), field, "Member is no regular expression: %s",
                       why.message);
        }
    }
}

static void check_ids(struct request_check *c, const json_t *vpc, const char *key, size_t max)
{
    const json_t *list = json_object_get(vpc, key);
    size_t i;
    const json_t *v;
    if (!json_is_array(list) || json_array_size(list) < 1 || json_array_size(list) > max) {
        check_fail(c, list, "vpcConfig", "Member must have length between 1 and %zu: %s", max, key);
    }
    json_array_foreach(list, i, v)
    {
        const char *id = json_string_value(v);
        if (id == NULL || id[0] == '\0' || strlen(id) > 32 || !made_of(id, "-")) {
            check_fail(c, v, "vpcConfig",
                       "Member must satisfy regular expression pattern: [-0-9a-zA-Z]+");
        }
    }
}

static void check_kms(struct request_check *c, const json_t *o, const char *key, const char *field)
{
    const char *id = check_text(c, o, key, field, false, 0, 2048);
    if (id != NULL && !made_of(id, ":/_-")) {
        check_fail(c, json_object_get(o, key), field,
                   "Member must satisfy regular expression pattern: [a-zA-Z0-9:/_-]*");
    }
}

static void check_profiler(struct request_check *c, const json_t *in)
{
    static const int64_t intervals[] = {100, 200, 500, 1000, 5000, 60000};
    const json_t *profiler = check_part(c, in, "ProfilerConfig", "profilerConfig", false);
    const json_t *ms = json_object_get(profiler, "ProfilingIntervalInMilliseconds");
    bool known = ms == NULL;
    for (size_t i = 0; !known && i < ARRAY_LEN(intervals); i++) {
        known = json_is_integer(ms) && json_integer_value(ms) == intervals[i];
    }
    if (!known) {
        check_fail(c, ms, "profilerConfig.profilingIntervalInMilliseconds",
                   "Member must satisfy enum value set: [100, 200, 500, 1000, 5000, 60000]");
    }
}

static void check_retries(struct request_check *c, const json_t *in)
{
    const json_t *retry = check_part(c, in, "RetryStrategy", "retryStrategy", false);
    const json_t *n = json_object_get(retry, "MaximumRetryAttempts");
    if (retry != NULL &&
        (!json_is_integer(n) || json_integer_value(n) < 1 || json_integer_value(n) > RETRIES_MAX)) {
        check_fail(c, n, "retryStrategy.maximumRetryAttempts",
                   "Member must have value between 1 and %d", RETRIES_MAX);
    }
}

void sagemaker_rules_fields(struct request_check *c, const json_t *in)
{
    static const char *const compressions[] = {"GZIP", "NONE", NULL};
    const json_t *vpc = check_part(c, in, "VpcConfig", "vpcConfig", false);
    const json_t *out = json_object_get(in, "OutputDataConfig");
    const json_t *hook = check_part(c, in, "DebugHookConfig", "debugHookConfig", false);
    sagemaker_rules_tags(c, in);
    check_metrics(c, json_object_get(in, "AlgorithmSpecification"));
    sagemaker_rules_channels(c, in);
    if (vpc != NULL) {
        check_ids(c, vpc, "SecurityGroupIds", 5);
        check_ids(c, vpc, "Subnets", 16);
    }
    if (hook != NULL) {
        (void)check_text(c, hook, "S3OutputPath", "debugHookConfig.s3OutputPath", true, 0, 1024);
    }
    check_kms(c, out, "KmsKeyId", "outputDataConfig.kmsKeyId");
    check_word(c, out, "CompressionType", "outputDataConfig.compressionType", compressions);
    check_kms(c, json_object_get(in, "ResourceConfig"), "VolumeKmsKeyId",
              "resourceConfig.volumeKmsKeyId");
    check_profiler(c, in);
    check_retries(c, in);
}

static bool refuse(struct request *r, const char *text)
{
    reply_error(r, 400, "ValidationException", "%s", text);
    return false;
}

/* AWS documents both; the words of the refusals are not public. */
static bool image_config_ok(struct request *r)
{
    const json_t *config =
        json_object_get(json_object_get(r->input, "AlgorithmSpecification"), "TrainingImageConfig");
    const char *mode = text_at(config, "TrainingRepositoryAccessMode");
    bool by_vpc = mode != NULL && strcmp(mode, "Vpc") == 0;
    if (by_vpc && json_object_get(r->input, "VpcConfig") == NULL) {
        return refuse(r, "VpcConfig is required when TrainingRepositoryAccessMode is Vpc");
    }
    if (!by_vpc && json_object_get(config, "TrainingRepositoryAuthConfig") != NULL) {
        return refuse(r, "TrainingRepositoryAuthConfig is only supported when "
                         "TrainingRepositoryAccessMode is Vpc");
    }
    return true;
}

/* A rule's name is its own among the job's rules of its kind. */
static bool rule_names_ok(struct request *r, const char *key)
{
    const json_t *rules = json_object_get(r->input, key);
    for (size_t i = 0; i < json_array_size(rules); i++) {
        for (size_t k = 0; k < i; k++) {
            const char *a = text_at(json_array_get(rules, i), "RuleConfigurationName");
            const char *b = text_at(json_array_get(rules, k), "RuleConfigurationName");
            if (a != NULL && b != NULL && strcmp(a, b) == 0) {
                return refuse(r, "Duplicate rule configuration names are not allowed");
            }
        }
    }
    return true;
}

static bool disks_ok(struct request *r)
{
    const json_t *res = json_object_get(r->input, "ResourceConfig");
    const char *type = text_at(res, "InstanceType");
    for (size_t i = 0; type != NULL && i < ARRAY_LEN(disks); i++) {
        if (strcmp(disks[i].type, type) != 0) {
            continue;
        }
        if (json_integer_value(json_object_get(res, "VolumeSizeInGB")) > disks[i].gb) {
            reply_error(r, 400, "ValidationException",
                        "VolumeSizeInGB must not be greater than %lld GB, the size of the local "
                        "instance storage of %s",
                        (long long)disks[i].gb, type);
            return false;
        }
        if (text_at(res, "VolumeKmsKeyId") != NULL) {
            reply_error(r, 400, "ValidationException",
                        "VolumeKmsKeyId is not supported for %s, which has local storage", type);
            return false;
        }
    }
    return true;
}

bool sagemaker_rules_between(struct request *r)
{
    const json_t *in = r->input;
    const json_t *algorithm = json_object_get(in, "AlgorithmSpecification");
    const json_t *stop = json_object_get(in, "StoppingCondition");
    const json_t *res = json_object_get(in, "ResourceConfig");
    bool image = text_at(algorithm, "TrainingImage") != NULL;
    bool named = text_at(algorithm, "AlgorithmName") != NULL;
    bool spot = json_is_true(json_object_get(in, "EnableManagedSpotTraining"));
    if (image == named) {
        return refuse(r, image ? "You cannot specify both TrainingImage and AlgorithmName"
                               : "You must specify either TrainingImage or AlgorithmName");
    }
    if (!spot && json_object_get(stop, "MaxWaitTimeInSeconds") != NULL) {
        return refuse(r, "Invalid MaxWaitTimeInSeconds. It is only supported when "
                         "EnableManagedSpotTraining is set to true");
    }
    if (spot && json_integer_value(json_object_get(res, "KeepAlivePeriodInSeconds")) > 0) {
        return refuse(r, "KeepAlivePeriodInSeconds is not supported when "
                         "EnableManagedSpotTraining is set to true");
    }
    return disks_ok(r) && image_config_ok(r) && rule_names_ok(r, "DebugRuleConfigurations") &&
           rule_names_ok(r, "ProfilerRuleConfigurations") && sagemaker_rules_channels_between(r);
}

bool sagemaker_rules_list(struct request *r)
{
    static const char *const statuses[] = {"InProgress", "Completed", "Failed", "Stopping",
                                           "Stopped",    "Deleting",  NULL};
    static const char *const pools[] = {"Available", "Terminated", "Reused", "InUse", NULL};
    const char *name = text_at(r->input, "NameContains");
    const char *status = text_at(r->input, "StatusEquals");
    const char *pool = text_at(r->input, "WarmPoolStatusEquals");
    if (name != NULL && (strlen(name) > 63 || !made_of(name, "-"))) {
        return refuse(r, "1 validation error detected: Value at 'nameContains' failed to satisfy "
                         "constraint: Member must satisfy regular expression pattern: "
                         "[a-zA-Z0-9\\-]+");
    }
    if ((status != NULL && !is_one_of(status, statuses)) ||
        (pool != NULL && !is_one_of(pool, pools))) {
        return refuse(r, "1 validation error detected: Value at 'statusEquals' or "
                         "'warmPoolStatusEquals' failed to satisfy constraint: Member must "
                         "satisfy enum value set");
    }
    return true;
}
