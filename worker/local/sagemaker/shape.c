/* See shape.h. */
#include "shape.h"
#include <ctype.h>
#include <regex.h>
#include <stdio.h>

#define SHAPE_PATH_BYTES_MAX 256
#define SHAPE_DEPTH_MAX      8

static const struct shape_field tag_fields[] = {
    {"Key", SHAPE_TEXT, true, 1, 128, NULL, NULL, NULL},
    {"Value", SHAPE_TEXT, true, 0, 256, NULL, NULL, NULL},
};
const struct request_shape shape_tag = SHAPE(tag_fields);

static bool word_is_one_of(const char *word, const char *words)
{
    struct str rest = str_of(words);
    while (rest.n > 0) {
        if (str_eq_cstr(str_split(&rest, ' '), word)) {
            return true;
        }
    }
    return false;
}

static bool pattern_fits(const char *pattern, const char *text)
{
    regex_t re;
    AUTO_FREE char *whole = xasprintf("^(%s)$", pattern);
    if (regcomp(&re, whole, REG_EXTENDED | REG_NOSUB) != 0) {
        BUG("a pattern of the table does not compile");
    }
    bool fits = regexec(&re, text, 0, NULL, 0) == 0;
    regfree(&re);
    return fits;
}

static void range_check(struct request_check *c, const json_t *v, const char *path,
                        const struct shape_field *f, double value, const char *what)
{
    if (value < (double)f->min) {
        check_fail(c, v, path, "Member must have %s greater than or equal to %lld", what,
                   (long long)f->min);
    } else if (value > (double)f->max) {
        check_fail(c, v, path, "Member must have %s less than or equal to %lld", what,
                   (long long)f->max);
    }
}

static void text_check(struct request_check *c, const json_t *v, const char *path,
                       const struct shape_field *f)
{
    const char *text = json_string_value(v);
    if (text == NULL) {
        check_fail(c, v, path, "Member must be a string");
        return;
    }
    if (f->kind == SHAPE_TEXT) {
        range_check(c, v, path, f, (double)strlen(text), "length");
    }
    if (f->words != NULL && !word_is_one_of(text, f->words)) {
        check_fail(c, v, path, "Member must satisfy enum value set: [%s]", f->words);
    }
    if (f->pattern != NULL && !pattern_fits(f->pattern, text)) {
        check_fail(c, v, path, "Member must satisfy regular expression pattern: %s", f->pattern);
    }
}

static void fields_check(struct request_check *c, const json_t *o,
                         const struct request_shape *shape, const char *path, int depth);

static void list_check(struct request_check *c, const json_t *v, const char *path,
                       const struct shape_field *f, int depth)
{
    size_t i;
    const json_t *item;
    if (!json_is_array(v)) {
        check_fail(c, v, path, "Member must be a list");
        return;
    }
    range_check(c, NULL, path, f, (double)json_array_size(v), "length");
    json_array_foreach(v, i, item)
    {
        char inner[SHAPE_PATH_BYTES_MAX];
        (void)snprintf(inner, sizeof inner, "%.200s.%zu.member", path, i + 1);
        if (f->kind == SHAPE_TEXTS) {
            text_check(c, item, inner, f);
        } else if (json_is_object(item)) {
            fields_check(c, item, f->of, inner, depth + 1);
        } else {
            check_fail(c, item, inner, "Member must be a structure");
        }
    }
}

static void map_check(struct request_check *c, const json_t *v, const char *path,
                      const struct shape_field *f)
{
    const char *key;
    const json_t *text;
    if (!json_is_object(v)) {
        check_fail(c, v, path, "Member must be a map");
        return;
    }
    if ((int64_t)json_object_size(v) > f->max) {
        check_fail(c, NULL, path, "Member must have length less than or equal to %lld",
                   (long long)f->max);
    }
    json_object_foreach((json_t *)(uintptr_t)v, key, text)
    {
        if (!json_is_string(text) || strlen(key) > 1024 || json_string_length(text) > 1024 ||
            !pattern_fits("[a-zA-Z_][a-zA-Z0-9_]*", key)) {
            check_fail(c, text, path,
                       "Map keys and values must satisfy constraint: [Member must have length less "
                       "than or equal to 1024, Member must satisfy regular expression pattern: "
                       "[a-zA-Z_][a-zA-Z0-9_]*]");
        }
    }
}

static void field_check(struct request_check *c, const json_t *v, const char *path,
                        const struct shape_field *f, int depth)
{
    switch (f->kind) {
    case SHAPE_TEXT:
        text_check(c, v, path, f);
        break;
    case SHAPE_INT:
        if (!json_is_integer(v)) {
            check_fail(c, v, path, "Member must be an integer");
        } else {
            range_check(c, v, path, f, (double)json_integer_value(v), "value");
        }
        break;
    case SHAPE_NUMBER:
        if (!json_is_number(v)) {
            check_fail(c, v, path, "Member must be a number");
        } else {
            range_check(c, v, path, f, json_number_value(v), "value");
        }
        break;
    case SHAPE_BOOL:
        if (!json_is_boolean(v)) {
            check_fail(c, v, path, "Member must be a boolean");
        }
        break;
    case SHAPE_PART:
        if (!json_is_object(v)) {
            check_fail(c, v, path, "Member must be a structure");
        } else {
            fields_check(c, v, f->of, path, depth + 1);
        }
        break;
    case SHAPE_LIST:
    case SHAPE_TEXTS:
        list_check(c, v, path, f, depth);
        break;
    case SHAPE_MAP:
        map_check(c, v, path, f);
        break;
    }
}

static void fields_check(struct request_check *c, const json_t *o,
                         const struct request_shape *shape, const char *path, int depth)
{
    ASSERT(depth <= SHAPE_DEPTH_MAX);
    for (size_t i = 0; i < shape->n; i++) {
        const struct shape_field *f = &shape->fields[i];
        const json_t *v = json_object_get(o, f->name);
        char inner[SHAPE_PATH_BYTES_MAX];
        (void)snprintf(inner, sizeof inner, "%.120s%s%c%s", path, path[0] == '\0' ? "" : ".",
                       tolower((unsigned char)f->name[0]), f->name + 1);
        if (v != NULL && !json_is_null(v)) {
            field_check(c, v, inner, f, depth);
        } else if (f->required) {
            check_fail(c, NULL, inner, "Member must not be null");
        }
    }
}

bool shape_check(struct request *r, const struct request_shape *shape)
{
    struct request_check c = {.text = BUF_INIT(REQUEST_FAULTS_BYTES_MAX)};
    fields_check(&c, r->input, shape, "", 0);
    sagemaker_rules_tags(&c, r->input);
    return check_done(r, &c, "ValidationException");
}
