/* See feed_plan.h. */
#include "feed_plan.h"
#include "common/rng.h"
#include <stdio.h>

#define UNITS_BYTES_MAX (512u << 20)
#define BLANKS          " \t\r\n"

static bool has_word(const json_t *o, const char *key, const char *word)
{
    const char *have = json_string_value(json_object_get(o, key));
    return have != NULL && strcmp(have, word) == 0;
}

void feed_plan_init(struct feed_plan *p, const json_t *channel)
{
    const json_t *s3 = json_object_get(json_object_get(channel, "DataSource"), "S3DataSource");
    const json_t *shuffle = json_object_get(channel, "ShuffleConfig");
    *p = (struct feed_plan){
        .name = json_string_value(json_object_get(channel, "ChannelName")),
        .units = BUF_INIT(UNITS_BYTES_MAX),
        .gzip = has_word(channel, "CompressionType", "Gzip"),
        .recordio = has_word(channel, "RecordWrapperType", "RecordIO"),
        .sharded = has_word(s3, "S3DataDistributionType", "ShardedByS3Key"),
        .shuffled = shuffle != NULL,
        .seed = (uint64_t)json_integer_value(json_object_get(shuffle, "Seed")),
    };
    if (has_word(s3, "S3DataType", "AugmentedManifestFile")) {
        p->attributes = json_object_get(s3, "AttributeNames");
    }
}

void feed_plan_done(struct feed_plan *p)
{
    buf_done(&p->units);
    free(p->at);
}

void feed_plan_add(struct feed_plan *p, struct str unit)
{
    ARRAY_ROOM(p->at, p->n, p->cap);
    p->at[p->n++] = p->units.n;
    buf_add_str(&p->units, unit);
    buf_add_char(&p->units, '\0');
}

const char *feed_plan_unit(const struct feed_plan *p, size_t i)
{
    ASSERT(i < p->n && !p->units.overflow);
    return p->units.p + p->at[i];
}

size_t *feed_plan_order(const struct feed_plan *p, int64_t epoch, int k, int hosts, size_t *ret_n)
{
    size_t *order = xcalloc(p->n + 1, sizeof *order);
    struct rng seeded;
    struct rng rng;
    char name[32];
    for (size_t i = 0; i < p->n; i++) {
        order[i] = i;
    }
    (void)snprintf(name, sizeof name, "epoch-%lld", (long long)epoch);
    rng_seed(&seeded, p->seed);
    rng_split(&seeded, name, &rng);
    for (size_t i = p->n; p->shuffled && i > 1; i--) {
        size_t j = (size_t)rng_below(&rng, i);
        size_t other = order[i - 1];
        order[i - 1] = order[j];
        order[j] = other;
    }
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (!p->sharded || i % (size_t)hosts == (size_t)k - 1) {
            order[n++] = order[i];
        }
    }
    *ret_n = n;
    return order;
}

/* Bytes of a JSON value at the beginning of well-formed text. */
static size_t value_bytes(struct str s)
{
    int depth = 0;
    bool quoted = false;
    size_t i = 0;
    for (; i < s.n; i++) {
        char c = s.p[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
            if (!quoted && depth == 0) {
                return i + 1;
            }
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && --depth <= 0) {
            return depth == 0 ? i + 1 : i;
        } else if (depth == 0 && strchr("," BLANKS, c) != NULL) {
            return i;
        }
    }
    return i;
}

static struct str after_blanks(struct str s)
{
    while (s.n > 0 && strchr(BLANKS, s.p[0]) != NULL) {
        s = (struct str){s.p + 1, s.n - 1};
    }
    return s;
}

/* True when the text of a key, with quotes and escapes, is this name. */
static bool key_is(struct str quoted, const char *name)
{
    AUTO_JSON json_t *key = json_loadb(quoted.p, quoted.n, JSON_DECODE_ANY, NULL);
    const char *text = json_string_value(key);
    return text != NULL && strcmp(text, name) == 0;
}

/* The text of a member of a line that is a well-formed object. */
static struct str member_text(struct str line, const char *name)
{
    struct str rest = after_blanks(line);
    while (rest.n > 1) { /* at '{' or ',' */
        rest = after_blanks((struct str){rest.p + 1, rest.n - 1});
        struct str key = {rest.p, value_bytes(rest)};
        rest = after_blanks((struct str){rest.p + key.n, rest.n - key.n});
        if (rest.n == 0) {
            break;
        }
        rest = after_blanks((struct str){rest.p + 1, rest.n - 1}); /* behind ':' */
        struct str value = {rest.p, value_bytes(rest)};
        if (key_is(key, name)) {
            return value;
        }
        rest = after_blanks((struct str){rest.p + value.n, rest.n - value.n});
    }
    return (struct str){"", 0};
}

bool feed_plan_value(struct str line, const json_t *parsed, const char *name, bool *ret_object,
                     char **ret, struct err *err)
{
    const json_t *v = json_object_get(parsed, name);
    if (!json_is_object(parsed)) {
        return err_set(err, ERR_MALFORMED, "it is no JSON object");
    }
    if (v == NULL) {
        return err_set(err, ERR_MALFORMED, "it has no attribute '%.80s'", name);
    }
    *ret_object = str_ends(str_of(name), "-ref");
    if (*ret_object && !json_is_string(v)) {
        return err_set(err, ERR_MALFORMED, "attribute '%.80s' is no S3 URI", name);
    }
    *ret = json_is_string(v) ? xstrdup(json_string_value(v)) : str_dup(member_text(line, name));
    return true;
}
