/* Rules of InputDataConfig: words and lengths of a channel, and what may not be together. See
 * sagemaker_rules.h. */
#include "sagemaker_rules.h"
#include <stdio.h>

enum channel_trait {
    FROM_S3 = 1 << 0,
    FROM_FILE_SYSTEM = 1 << 1,
    MODE_FILE = 1 << 2,
    MODE_FAST_FILE = 1 << 3,
    MODE_PIPE = 1 << 4,
    TYPE_PREFIX = 1 << 5,
    TYPE_AUGMENTED = 1 << 6,
    HAS_ATTRIBUTES = 1 << 7,
    IS_GZIP = 1 << 8,
    IS_RECORDIO = 1 << 9,
    IN_VPC = 1 << 10,
};

/* A channel with all of `with` must have `needs`. */
static const struct {
    unsigned with;
    unsigned needs;
    const char *text;
} rules[] = {
    {FROM_FILE_SYSTEM, IN_VPC, "VpcConfig must be given for a channel with FileSystemDataSource"},
    {FROM_FILE_SYSTEM, MODE_FILE, "FileSystemDataSource supports File input mode only"},
    {IS_GZIP, MODE_PIPE, "CompressionType Gzip is supported for Pipe input mode only"},
    {IS_RECORDIO, MODE_PIPE, "RecordWrapperType RecordIO is supported for Pipe input mode only"},
    {TYPE_AUGMENTED, MODE_PIPE,
     "S3DataType AugmentedManifestFile can only be used if the Channel's input mode is Pipe"},
    {TYPE_AUGMENTED, HAS_ATTRIBUTES,
     "AttributeNames must be given for S3DataType AugmentedManifestFile"},
    {HAS_ATTRIBUTES, TYPE_AUGMENTED,
     "AttributeNames are supported for S3DataType AugmentedManifestFile only"},
    {FROM_S3 | MODE_FAST_FILE, TYPE_PREFIX,
     "FastFile input mode supports S3DataType S3Prefix only"},
};

static const struct {
    const char *key;
    const char *word;
    unsigned trait;
} traits_of_words[] = {
    {"InputMode", "File", MODE_FILE},
    {"InputMode", "FastFile", MODE_FAST_FILE},
    {"InputMode", "Pipe", MODE_PIPE},
    {"S3DataType", "S3Prefix", TYPE_PREFIX},
    {"S3DataType", "AugmentedManifestFile", TYPE_AUGMENTED},
    {"CompressionType", "Gzip", IS_GZIP},
    {"RecordWrapperType", "RecordIO", IS_RECORDIO},
};

static void check_attributes(struct request_check *c, const json_t *s3, size_t i)
{
    const json_t *list = json_object_get(s3, "AttributeNames");
    char field[128];
    size_t k;
    const json_t *name;
    (void)snprintf(field, sizeof field,
                   "inputDataConfig.%zu.member.dataSource.s3DataSource.attributeNames", i + 1);
    if (list != NULL && (!json_is_array(list) || json_array_size(list) > 16)) {
        check_fail(c, NULL, field, "Member must have length less than or equal to 16");
        return;
    }
    json_array_foreach(list, k, name)
    {
        size_t n = json_string_length(name);
        if (n < 1 || n > 256) {
            check_fail(c, name, field,
                       "Member must satisfy constraint: [Member must have length between 1 and "
                       "256]");
        }
    }
}

static void check_shuffle(struct request_check *c, const json_t *ch, size_t i)
{
    char field[96];
    (void)snprintf(field, sizeof field, "inputDataConfig.%zu.member.shuffleConfig", i + 1);
    const json_t *shuffle = check_part(c, ch, "ShuffleConfig", field, false);
    if (shuffle != NULL && !json_is_integer(json_object_get(shuffle, "Seed"))) {
        (void)snprintf(field, sizeof field, "inputDataConfig.%zu.member.shuffleConfig.seed", i + 1);
        check_fail(c, json_object_get(shuffle, "Seed"), field, "Member must be a long");
    }
}

static void check_channel(struct request_check *c, const json_t *list, size_t i)
{
    static const char *const modes[] = {"File", "FastFile", "Pipe", NULL};
    static const char *const compressions[] = {"None", "Gzip", NULL};
    static const char *const wrappers[] = {"None", "RecordIO", NULL};
    static const char *const spreads[] = {"FullyReplicated", "ShardedByS3Key", NULL};
    const json_t *ch = json_array_get(list, i);
    const json_t *s3 = json_object_get(json_object_get(ch, "DataSource"), "S3DataSource");
    const char *name = json_string_value(json_object_get(ch, "ChannelName"));
    char field[96];
    (void)snprintf(field, sizeof field, "inputDataConfig.%zu.member", i + 1);
    check_word(c, ch, "InputMode", field, modes);
    check_word(c, ch, "CompressionType", field, compressions);
    check_word(c, ch, "RecordWrapperType", field, wrappers);
    check_word(c, s3, "S3DataDistributionType", field, spreads);
    for (size_t j = 0; name != NULL && j < i; j++) {
        const char *other =
            json_string_value(json_object_get(json_array_get(list, j), "ChannelName"));
        if (other != NULL && strcmp(other, name) == 0) {
            check_fail(c, json_object_get(ch, "ChannelName"), field, "Duplicate channel name");
        }
    }
    (void)snprintf(field, sizeof field, "inputDataConfig.%zu.member.contentType", i + 1);
    (void)check_text(c, ch, "ContentType", field, false, 0, 256);
    check_attributes(c, s3, i);
    check_shuffle(c, ch, i);
}

void sagemaker_rules_channels(struct request_check *c, const json_t *in)
{
    const json_t *list = json_object_get(in, "InputDataConfig");
    for (size_t i = 0; i < json_array_size(list); i++) {
        check_channel(c, list, i);
    }
}

/* Of a channel whose words have been checked. `mode` is the job's. */
static unsigned traits_of(const json_t *in, const json_t *ch, json_t *mode)
{
    json_t *source = json_object_get(ch, "DataSource");
    const json_t *s3 = json_object_get(source, "S3DataSource");
    unsigned traits = s3 != NULL ? FROM_S3 : FROM_FILE_SYSTEM;
    for (size_t i = 0; i < ARRAY_LEN(traits_of_words); i++) {
        const char *key = traits_of_words[i].key;
        const json_t *own = json_object_get(strcmp(key, "S3DataType") == 0 ? s3 : ch, key);
        const json_t *word = own == NULL && strcmp(key, "InputMode") == 0 ? mode : own;
        if (word != NULL && strcmp(json_string_value(word), traits_of_words[i].word) == 0) {
            traits |= traits_of_words[i].trait;
        }
    }
    traits |= json_array_size(json_object_get(s3, "AttributeNames")) > 0 ? HAS_ATTRIBUTES : 0U;
    traits |= json_object_get(in, "VpcConfig") != NULL ? IN_VPC : 0U;
    return traits;
}

bool sagemaker_rules_channels_between(struct request *r)
{
    json_t *mode =
        json_object_get(json_object_get(r->input, "AlgorithmSpecification"), "TrainingInputMode");
    size_t i;
    const json_t *ch;
    json_array_foreach(json_object_get(r->input, "InputDataConfig"), i, ch)
    {
        unsigned has = traits_of(r->input, ch, mode);
        for (size_t k = 0; k < ARRAY_LEN(rules); k++) {
            if ((has & rules[k].with) == rules[k].with && (has & rules[k].needs) == 0) {
                reply_error(r, 400, "ValidationException", "%s", rules[k].text);
                return false;
            }
        }
    }
    return true;
}
