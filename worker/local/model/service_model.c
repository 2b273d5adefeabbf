/* See service_model.h. */
#include "service_model.h"
#include "common/regex.h"
#include <ctype.h>
#include <stdio.h>

#define PATH_BYTES_MAX 256
#define DEPTH_MAX      16 /* the expressions of Search hold each other */

/* One number a shape, in the order of the tables. */
enum model_id {
#define OPERATION(service, operation, input)
#define STRUCTURE(id, ...)            id,
#define LIST(id, min, max, of)        id,
#define MAP(id, min, max, key, value) id,
#define TEXT(id, min, max, ...)       id,
#define WORDS(id, ...)                id,
#define INTEGER(id, min, max)         id,
#define NUMBER(id, min, max)          id,
#define BOOLEAN(id)                   id,
#include "all.def"
    SHAPE_IDS
};

struct model_member {
    const char *name; /* NULL ends the list */
    enum model_id shape;
    bool required;
};

/* The members of each structure. */
#define OPERATION(service, operation, input)
#define M(name, of, required) {name, of, required},
#define M_NONE
#define STRUCTURE(id, ...) static const struct model_member members_of_##id[] = {__VA_ARGS__{0}};
#define LIST(id, min, max, of)
#define MAP(id, min, max, key, value)
#define TEXT(id, min, max, ...)
#define WORDS(id, ...)
#define INTEGER(id, min, max)
#define NUMBER(id, min, max)
#define BOOLEAN(id)
#include "all.def"

enum model_kind {
    KIND_STRUCTURE,
    KIND_LIST,
    KIND_MAP,
    KIND_TEXT,
    KIND_WORDS,
    KIND_INTEGER,
    KIND_NUMBER,
    KIND_BOOLEAN
};
static const struct model_shape {
    enum model_kind kind;
    int64_t min, max; /* TEXT: characters; numbers: value; LIST, MAP: entries */
    const char *text; /* TEXT: the pattern or NULL; WORDS: the words, parted by ", " */
    const struct model_member *members; /* STRUCTURE */
    enum model_id key, of;              /* MAP: of keys and values; LIST: of items */
} shapes[] = {
#define OPERATION(service, operation, input)
#define STRUCTURE(id, ...)        [id] = {.kind = KIND_STRUCTURE, .members = members_of_##id},
#define LIST(id, low, high, item) [id] = {.kind = KIND_LIST, .min = low, .max = high, .of = item},
#define MAP(id, low, high, k, value)                                                               \
    [id] = {.kind = KIND_MAP, .min = low, .max = high, .key = k, .of = value},
#define TEXT(id, low, high, ...)                                                                   \
    [id] = {.kind = KIND_TEXT, .min = low, .max = high, .text = __VA_ARGS__},
#define WORDS(id, ...)         [id] = {.kind = KIND_WORDS, .text = __VA_ARGS__},
#define INTEGER(id, low, high) [id] = {.kind = KIND_INTEGER, .min = low, .max = high},
#define NUMBER(id, low, high)  [id] = {.kind = KIND_NUMBER, .min = low, .max = high},
#define BOOLEAN(id)            [id] = {.kind = KIND_BOOLEAN},
#include "all.def"
};

static const struct {
    const char *service;
    const char *operation;
    enum model_id input;
} operations[] = {
#define OPERATION(service, operation, input) {service, operation, input},
#define STRUCTURE(id, ...)
#define LIST(id, min, max, of)
#define MAP(id, min, max, key, value)
#define TEXT(id, min, max, ...)
#define WORDS(id, ...)
#define INTEGER(id, min, max)
#define NUMBER(id, min, max)
#define BOOLEAN(id)
#include "all.def"
};

static void value_check(struct request_check *c, const json_t *v, const char *path,
                        const struct model_shape *s, int depth);

static bool is_one_of(const char *word, const char *words)
{
    size_t n = strlen(word);
    for (const char *at = words; n > 0 && (at = strstr(at, word)) != NULL; at += n) {
        if ((at == words || at[-1] == ' ') && (at[n] == '\0' || at[n] == ',')) {
            return true;
        }
    }
    return false;
}

static bool pattern_fits(const char *pattern, struct str text)
{
    struct regex *re;
    struct err err = ERR_INIT;
    struct str whole;
    AUTO_FREE char *anchored = xasprintf("\\A((?:%s))\\z", pattern);
    if (!regex_new(anchored, &re, &err)) {
        BUG("a pattern of the table does not compile");
    }
    bool fits = regex_first_group(re, text, &whole) != REGEX_NONE;
    regex_free(re);
    return fits;
}

static int64_t characters(struct str text)
{
    int64_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
    }
    return n;
}

static void range_check(struct request_check *c, const json_t *v, const char *path,
                        const struct model_shape *s, double value, const char *what)
{
    if (value < (double)s->min) {
        check_fail(c, v, path, "Member must have %s greater than or equal to %lld", what,
                   (long long)s->min);
    } else if (value > (double)s->max) {
        check_fail(c, v, path, "Member must have %s less than or equal to %lld", what,
                   (long long)s->max);
    }
}

static void text_check(struct request_check *c, const json_t *v, const char *path,
                       const struct model_shape *s)
{
    struct str text = {json_string_value(v), json_string_length(v)};
    if (text.p == NULL) {
        check_fail(c, v, path, "Member must be a string");
    } else if (s->kind == KIND_WORDS && !is_one_of(text.p, s->text)) {
        check_fail(c, v, path, "Member must satisfy enum value set: [%s]", s->text);
    } else if (s->kind == KIND_TEXT) {
        range_check(c, v, path, s, (double)characters(text), "length");
        if (s->text != NULL && !pattern_fits(s->text, text)) {
            check_fail(c, v, path, "Member must satisfy regular expression pattern: %s", s->text);
        }
    }
}

static void list_check(struct request_check *c, const json_t *v, const char *path,
                       const struct model_shape *s, int depth)
{
    size_t i;
    const json_t *item;
    if (!json_is_array(v)) {
        check_fail(c, v, path, "Member must be a list");
        return;
    }
    range_check(c, NULL, path, s, (double)json_array_size(v), "length");
    json_array_foreach(v, i, item)
    {
        char inner[PATH_BYTES_MAX];
        (void)snprintf(inner, sizeof inner, "%.200s.%zu.member", path, i + 1);
        value_check(c, item, inner, &shapes[s->of], depth);
    }
}

static void map_check(struct request_check *c, const json_t *v, const char *path,
                      const struct model_shape *s, int depth)
{
    const char *key;
    const json_t *value;
    if (!json_is_object(v)) {
        check_fail(c, v, path, "Member must be a map");
        return;
    }
    range_check(c, NULL, path, s, (double)json_object_size(v), "length");
    json_object_foreach((json_t *)(uintptr_t)v, key, value)
    {
        char inner[PATH_BYTES_MAX];
        AUTO_JSON json_t *name = json_string(key);
        (void)snprintf(inner, sizeof inner, "%.120s.%.60s.key", path, key);
        value_check(c, name, inner, &shapes[s->key], depth);
        (void)snprintf(inner, sizeof inner, "%.120s.%.60s.member", path, key);
        value_check(c, value, inner, &shapes[s->of], depth);
    }
}

static void structure_check(struct request_check *c, const json_t *v, const char *path,
                            const struct model_shape *s, int depth)
{
    char inner[PATH_BYTES_MAX];
    const char *key;
    const json_t *value;
    if (!json_is_object(v)) {
        check_fail(c, v, path, "Member must be a structure");
        return;
    }
    for (const struct model_member *m = s->members; m->name != NULL; m++) {
        value = json_object_get(v, m->name);
        (void)snprintf(inner, sizeof inner, "%.120s%s%c%s", path, path[0] == '\0' ? "" : ".",
                       tolower((unsigned char)m->name[0]), m->name + 1);
        if (value != NULL && !json_is_null(value)) {
            value_check(c, value, inner, &shapes[m->shape], depth);
        } else if (m->required) {
            check_fail(c, NULL, inner, "Member must not be null");
        }
    }
    json_object_foreach((json_t *)(uintptr_t)v, key, value)
    {
        const struct model_member *m = s->members;
        while (m->name != NULL && strcmp(m->name, key) != 0) {
            m++;
        }
        if (m->name == NULL) {
            (void)snprintf(inner, sizeof inner, "%.120s%s%.60s", path, path[0] == '\0' ? "" : ".",
                           key);
            check_fail(c, value, inner, "Member is not known");
        }
    }
}

static void value_check(struct request_check *c, const json_t *v, const char *path,
                        const struct model_shape *s, int depth)
{
    if (depth == DEPTH_MAX) {
        check_fail(c, NULL, path, "Member is nested too deeply");
        return;
    }
    switch (s->kind) {
    case KIND_STRUCTURE:
        structure_check(c, v, path, s, depth + 1);
        break;
    case KIND_LIST:
        list_check(c, v, path, s, depth + 1);
        break;
    case KIND_MAP:
        map_check(c, v, path, s, depth + 1);
        break;
    case KIND_TEXT:
    case KIND_WORDS:
        text_check(c, v, path, s);
        break;
    case KIND_INTEGER:
        if (!json_is_integer(v)) {
            check_fail(c, v, path, "Member must be an integer");
        } else {
            range_check(c, v, path, s, (double)json_integer_value(v), "value");
        }
        break;
    case KIND_NUMBER:
        if (!json_is_number(v)) {
            check_fail(c, v, path, "Member must be a number");
        } else {
            range_check(c, v, path, s, json_number_value(v), "value");
        }
        break;
    case KIND_BOOLEAN:
        if (!json_is_boolean(v)) {
            check_fail(c, v, path, "Member must be a boolean");
        }
        break;
    }
}

void service_model_check(struct request_check *c, const char *service, const char *operation,
                         const json_t *input)
{
    for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
        if (strcmp(operations[i].service, service) == 0 &&
            strcmp(operations[i].operation, operation) == 0) {
            value_check(c, input, "", &shapes[operations[i].input], 0);
        }
    }
}
