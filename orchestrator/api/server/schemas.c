/* See schemas.h. Each keyword of JSON Schema that requests use is a row of a table, with a
 * function. */
#include "schemas.h"
#include "common/cleanup.h"
#include "common/secret_shape.h"
#include "core/model.h"
#include "core/spec/campaign_key.h"
#include "text_rules.h"
#include <stdio.h>

struct schema {
    const char *name, *text;
};
static const struct schema schema_table[] = {
#define S(name, ...) {#name, #__VA_ARGS__},
#include "schemas.def"
#include "schemas_access.def"
#include "schemas_answers.def"
#include "schemas_campaign.def"
#include "schemas_reports.def"
#undef S
};

/* Limits that the tables of schemas name, so that each stands once. */
static const struct {
    const char *name;
    int64_t value;
} limits[] = {{"VOLUME_GB_MAX", VOLUME_GB_MAX}};

static void maximum_expand(json_t *v)
{
    const char *name = json_string_value(json_object_get(v, "maximum"));
    for (size_t i = 0; name != NULL; i++) {
        ASSERT(i < ARRAY_LEN(limits));
        if (strcmp(limits[i].name, name) == 0) {
            (void)json_object_set_new(v, "maximum", json_integer(limits[i].value));
            return;
        }
    }
}

/* {"properties": "STAGE"} to the keys of that map of a campaign file. */
static void keys_expand(json_t *v)
{
    const char *name = json_string_value(json_object_get(v, "properties"));
    size_t n;
    const struct spec_key *keys = spec_keys(&n);
    if (name == NULL) {
        return;
    }
    json_t *properties = json_object();
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        json_t *one = NULL;
        if (strcmp(spec_map_name(keys[i].map), name) != 0 || keys[i].of == SPEC_KEY_LATER) {
            continue;
        }
        if (!json_parse(str_of(keys[i].schema), strlen(keys[i].schema), &one, &err)) {
            BUG(keys[i].name);
        }
        bool initial = keys[i].initial[0] != '\0' && strcmp(keys[i].initial, "required") != 0;
        AUTO_FREE char *text = xasprintf("%s%s%s%s%s%s", keys[i].text, initial ? " Default: " : "",
                                         initial ? keys[i].initial : "", initial ? "." : "",
                                         keys[i].limit[0] != '\0' ? " Limit: " : "", keys[i].limit);
        (void)json_object_set_new(one, "description", json_string(text));
        (void)json_object_set_new(properties, keys[i].name, one);
    }
    ASSERT(json_object_size(properties) > 0);
    (void)json_object_set_new(v, "properties", properties);
}

/* {"$ref": "Part"} to {"$ref": "#/components/schemas/Part"}, and the name of a limit to its value,
 * at any depth. */
static void refs_expand(json_t *v, const char *prefix)
{
    const char *key;
    json_t *child;
    size_t i;
    const char *ref = json_string_value(json_object_get(v, "$ref"));
    if (ref != NULL) {
        AUTO_FREE char *whole = xasprintf("%s%s", prefix, ref);
        (void)json_object_set_new(v, "$ref", json_string(whole));
    }
    maximum_expand(v);
    keys_expand(v);
    json_object_foreach(v, key, child)
    {
        refs_expand(child, prefix);
    }
    json_array_foreach(v, i, child)
    {
        refs_expand(child, prefix);
    }
}

static json_t *load(const struct schema *table, size_t n, const char *prefix)
{
    json_t *all = json_object();
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        json_t *one = NULL;
        ASSERT(json_object_get(all, table[i].name) == NULL);
        if (!json_parse(str_of(table[i].text), strlen(table[i].text), &one, &err)) {
            BUG(table[i].name);
        }
        refs_expand(one, prefix);
        (void)json_object_set_new(all, table[i].name, one);
    }
    return all;
}

json_t *schemas_load(void)
{
    return load(schema_table, ARRAY_LEN(schema_table), SCHEMA_REF_PREFIX);
}

void schemas_campaign(struct buf *out)
{
    static const struct schema table[] = {
#define S(name, ...) {#name, #__VA_ARGS__},
#include "schemas_campaign.def"
#undef S
    };
    AUTO_JSON json_t *v = json_pack(
        "{s:s, s:s, s:s, s:s, s:o}", "$schema", "https://json-schema.org/draft/2020-12/schema",
        "$id", "/schemas/campaign.json", "title", "A campaign of drover", "$ref",
        "#/$defs/CampaignFile", "$defs", load(table, ARRAY_LEN(table), "#/$defs/"));
    AUTO_FREE char *text = json_text(v);
    buf_addf(out, "%s\n", text);
}

struct checker {
    const json_t *schemas;
    struct faults *faults;
};
struct value_place { /* of the value being checked; on the stack */
    const struct value_place *up;
    const char *key; /* NULL: item of an array */
    size_t i;
};
typedef void (*keyword_check)(const struct checker *c, const struct value_place *at,
                              const json_t *schema, const json_t *arg, const json_t *v);
static void check(const struct checker *c, const struct value_place *at, const json_t *schema,
                  const json_t *v);

static void place_text(const struct value_place *at, struct buf *out)
{
    if (at->up == NULL) {
        return;
    }
    place_text(at->up, out);
    if (at->key == NULL) {
        buf_addf(out, "[%zu]", at->i);
    } else {
        buf_addf(out, "%s%.64s", out->n > 0 ? "." : "", at->key);
    }
}

static void fault(const struct checker *c, const struct value_place *at, const json_t *schema,
                  const char *code, const char *fmt, ...) PRINTF(5, 6);
static void fault(const struct checker *c, const struct value_place *at, const json_t *schema,
                  const char *code, const char *fmt, ...)
{
    AUTO_BUF struct buf where = BUF_INIT(1024);
    AUTO_BUF struct buf hint = BUF_INIT(1024);
    const char *text = json_string_value(json_object_get(schema, "description"));
    const json_t *like = json_array_get(json_object_get(schema, "examples"), 0);
    AUTO_FREE char *example =
        like != NULL ? json_dumps(like, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    char message[320];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    place_text(at, &where);
    buf_addf(&hint, "%s%s%s", text != NULL ? text : "",
             example == NULL ? ""
             : text != NULL  ? " Like "
                             : "like ",
             example != NULL ? example : "");
    faults_add(c->faults, (struct position){0, 0}, buf_cstr(&where), code, buf_cstr(&hint), "%s",
               message);
}

static bool is_type(const json_t *v, const char *type)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return strcmp(type, "object") == 0;
    case JSON_ARRAY:
        return strcmp(type, "array") == 0;
    case JSON_STRING:
        return strcmp(type, "string") == 0;
    case JSON_INTEGER:
        return strcmp(type, "integer") == 0 || strcmp(type, "number") == 0;
    case JSON_REAL:
        return strcmp(type, "number") == 0;
    case JSON_TRUE:
    case JSON_FALSE:
        return strcmp(type, "boolean") == 0;
    case JSON_NULL:
        return strcmp(type, "null") == 0;
    }
    BUG("a type of JSON");
}

static bool type_fits(const json_t *arg, const json_t *v)
{
    size_t i;
    const json_t *one;
    if (json_is_string(arg)) {
        return is_type(v, json_string_value(arg));
    }
    json_array_foreach((json_t *)(uintptr_t)arg, i, one)
    {
        if (is_type(v, json_string_value(one))) {
            return true;
        }
    }
    return false;
}

static void check_type(const struct checker *c, const struct value_place *at, const json_t *schema,
                       const json_t *arg, const json_t *v)
{
    if (!type_fits(arg, v)) {
        AUTO_FREE char *types = json_dumps(arg, JSON_ENCODE_ANY | JSON_COMPACT);
        fault(c, at, schema, "type", "it must be %s", types);
    }
}

static void check_enum(const struct checker *c, const struct value_place *at, const json_t *schema,
                       const json_t *arg, const json_t *v)
{
    size_t i;
    const json_t *one;
    json_array_foreach((json_t *)(uintptr_t)arg, i, one)
    {
        if (json_equal(one, v)) {
            return;
        }
    }
    AUTO_FREE char *words = json_dumps(arg, JSON_COMPACT);
    fault(c, at, schema, "enum", "it must be one of %s", words);
}

static void check_minimum(const struct checker *c, const struct value_place *at,
                          const json_t *schema, const json_t *arg, const json_t *v)
{
    if (json_is_integer(v) && json_integer_value(v) < json_integer_value(arg)) {
        fault(c, at, schema, "range", "%lld at least", (long long)json_integer_value(arg));
    }
}

static void check_maximum(const struct checker *c, const struct value_place *at,
                          const json_t *schema, const json_t *arg, const json_t *v)
{
    if (json_is_integer(v) && json_integer_value(v) > json_integer_value(arg)) {
        fault(c, at, schema, "range", "%lld at most", (long long)json_integer_value(arg));
    }
}

static struct str text_of(const json_t *v)
{
    return (struct str){json_string_value(v), json_string_length(v)};
}

static void check_min_length(const struct checker *c, const struct value_place *at,
                             const json_t *schema, const json_t *arg, const json_t *v)
{
    if (json_is_string(v) && json_integer_value(arg) == 1 && json_string_length(v) == 0) {
        fault(c, at, schema, "length", "it is empty, which never means all");
    } else if (json_is_string(v) && text_length(text_of(v)) < json_integer_value(arg)) {
        fault(c, at, schema, "length", "%lld characters at least",
              (long long)json_integer_value(arg));
    }
}

static void check_max_length(const struct checker *c, const struct value_place *at,
                             const json_t *schema, const json_t *arg, const json_t *v)
{
    if (json_is_string(v) && text_length(text_of(v)) > json_integer_value(arg)) {
        fault(c, at, schema, "length", "%lld characters at most",
              (long long)json_integer_value(arg));
    }
}

/* Patterns of the table are of the whole text: they begin with ^ and end with $. */
static void check_pattern(const struct checker *c, const struct value_place *at,
                          const json_t *schema, const json_t *arg, const json_t *v)
{
    const char *pattern = json_string_value(arg);
    size_t n = strlen(pattern);
    ASSERT(n > 2 && pattern[0] == '^' && pattern[n - 1] == '$');
    AUTO_FREE char *inner = str_dup((struct str){pattern + 1, n - 2});
    if (json_is_string(v) && !text_matches(inner, text_of(v))) {
        fault(c, at, schema, "pattern", "'%.64s' is not valid", json_string_value(v));
    }
}

static void check_items(const struct checker *c, const struct value_place *at, const json_t *schema,
                        const json_t *arg, const json_t *v)
{
    size_t i;
    const json_t *one;
    (void)schema;
    json_array_foreach((json_t *)(uintptr_t)v, i, one)
    {
        const struct value_place item = {.up = at, .i = i};
        check(c, &item, arg, one);
    }
}

static void check_min_items(const struct checker *c, const struct value_place *at,
                            const json_t *schema, const json_t *arg, const json_t *v)
{
    if (json_is_array(v) && (json_int_t)json_array_size(v) < json_integer_value(arg)) {
        fault(c, at, schema, "length", "it is empty, which never means all");
    }
}

static void check_max_items(const struct checker *c, const struct value_place *at,
                            const json_t *schema, const json_t *arg, const json_t *v)
{
    if (json_is_array(v) && (json_int_t)json_array_size(v) > json_integer_value(arg)) {
        fault(c, at, schema, "length", "%lld items at most", (long long)json_integer_value(arg));
    }
}

static void check_properties(const struct checker *c, const struct value_place *at,
                             const json_t *schema, const json_t *arg, const json_t *v)
{
    const char *key;
    json_t *one;
    (void)schema;
    json_object_foreach((json_t *)(uintptr_t)v, key, one)
    {
        const json_t *of = json_object_get(arg, key);
        const struct value_place member = {.up = at, .key = key};
        if (of != NULL) {
            check(c, &member, of, one);
        }
    }
}

static void check_required(const struct checker *c, const struct value_place *at,
                           const json_t *schema, const json_t *arg, const json_t *v)
{
    size_t i;
    const json_t *one;
    json_array_foreach((json_t *)(uintptr_t)arg, i, one)
    {
        const char *key = json_string_value(one);
        if (json_is_object(v) && json_object_get(v, key) == NULL) {
            const json_t *of = json_object_get(json_object_get(schema, "properties"), key);
            fault(c, at, of, "required", "'%s' is missing", key);
        }
    }
}

static void unknown_key(const struct checker *c, const struct value_place *at, const json_t *known,
                        const char *key)
{
    const char *name, *best = NULL;
    json_t *of;
    size_t best_distance = MAX((size_t)2, strlen(key) / 3) + 1;
    json_object_foreach((json_t *)(uintptr_t)known, name, of)
    {
        size_t d = str_distance(str_of(key), str_of(name));
        if (d < best_distance) {
            best = name;
            best_distance = d;
        }
    }
    fault(c, at, NULL, "unknown_key", "unknown key '%.64s'%s%s%s", key,
          best != NULL ? "; did you mean '" : "", best != NULL ? best : "",
          best != NULL ? "'?" : "");
}

/* false, or the schema of all others. */
static void check_additional(const struct checker *c, const struct value_place *at,
                             const json_t *schema, const json_t *arg, const json_t *v)
{
    const char *key;
    json_t *one;
    const json_t *known = json_object_get(schema, "properties");
    json_object_foreach((json_t *)(uintptr_t)v, key, one)
    {
        const struct value_place member = {.up = at, .key = key};
        if (json_object_get(known, key) != NULL) {
            continue;
        }
        if (json_is_false(arg)) {
            unknown_key(c, at, known, key);
        } else {
            check(c, &member, arg, one);
        }
    }
}

static void check_min_properties(const struct checker *c, const struct value_place *at,
                                 const json_t *schema, const json_t *arg, const json_t *v)
{
    if (json_is_object(v) && (json_int_t)json_object_size(v) < json_integer_value(arg)) {
        fault(c, at, schema, "required", "it is empty, which never means all");
    }
}

static void check_names(const struct checker *c, const struct value_place *at, const json_t *schema,
                        const json_t *arg, const json_t *v)
{
    const char *key;
    json_t *one;
    (void)schema;
    json_object_foreach((json_t *)(uintptr_t)v, key, one)
    {
        const struct value_place member = {.up = at, .key = key};
        AUTO_JSON json_t *name = json_string(key);
        check(c, &member, arg, name);
    }
}

/* The schema that is meant by one with $ref. */
static const json_t *of_ref(const struct checker *c, const json_t *schema)
{
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    return ref == NULL ? schema : json_object_get(c->schemas, ref + strlen(SCHEMA_REF_PREFIX));
}

/* True when v fits; faults are not reported. */
static bool quietly(const struct checker *c, const struct value_place *at, const json_t *schema,
                    const json_t *v)
{
    AUTO_FREE struct faults *scratch = xcalloc(1, sizeof *scratch);
    const struct checker quiet = {c->schemas, scratch};
    check(&quiet, at, schema, v);
    return scratch->n == 0;
}

static void check_any_of(const struct checker *c, const struct value_place *at,
                         const json_t *schema, const json_t *arg, const json_t *v)
{
    size_t i;
    const json_t *one;
    const json_t *typed = NULL; /* the one that is meant */
    json_array_foreach((json_t *)(uintptr_t)arg, i, one)
    {
        const json_t *type = json_object_get(of_ref(c, one), "type");
        if (quietly(c, at, one, v)) {
            return;
        }
        typed = type != NULL && type_fits(type, v) ? one : typed;
    }
    if (typed != NULL) {
        check(c, at, typed, v);
    } else {
        fault(c, at, schema, "type", "it is not valid");
    }
}

static void check_not(const struct checker *c, const struct value_place *at, const json_t *schema,
                      const json_t *arg, const json_t *v)
{
    if (quietly(c, at, arg, v)) {
        fault(c, at, schema, "conflict", "these keys exclude each other");
    }
}

static void check_ref(const struct checker *c, const struct value_place *at, const json_t *schema,
                      const json_t *arg, const json_t *v)
{
    const json_t *of = of_ref(c, schema);
    (void)arg;
    ASSERT(of != NULL);
    check(c, at, of, v);
}

static const struct {
    const char *word;
    keyword_check check; /* NULL: it only describes */
} keywords[] = {
    {"type", check_type},
    {"enum", check_enum},
    {"minimum", check_minimum},
    {"maximum", check_maximum},
    {"minLength", check_min_length},
    {"maxLength", check_max_length},
    {"pattern", check_pattern},
    {"items", check_items},
    {"minItems", check_min_items},
    {"maxItems", check_max_items},
    {"properties", check_properties},
    {"required", check_required},
    {"additionalProperties", check_additional},
    {"minProperties", check_min_properties},
    {"propertyNames", check_names},
    {"anyOf", check_any_of},
    {"not", check_not},
    {"$ref", check_ref},
    {"description", NULL},
    {"default", NULL},
    {"examples", NULL},
};

static void check(const struct checker *c, const struct value_place *at, const json_t *schema,
                  const json_t *v)
{
    const char *word;
    json_t *arg;
    const json_t *type = json_object_get(schema, "type");
    if (type != NULL && !type_fits(type, v)) {
        check_type(c, at, schema, type, v);
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)schema, word, arg)
    {
        size_t i = 0;
        while (i < ARRAY_LEN(keywords) && strcmp(keywords[i].word, word) != 0) {
            i++;
        }
        ASSERT(i < ARRAY_LEN(keywords));
        if (keywords[i].check != NULL) {
            keywords[i].check(c, at, schema, arg, v);
        }
    }
}

/* A name, a tag or a selector that is a key would be kept and shown. Members whose values are
 * secrets by their nature are read by admins only, or by nobody: the address of a webhook, the
 * token of a login. */
static void check_secrets(const struct checker *c, const struct value_place *at, const json_t *v)
{
    size_t i;
    const char *key;
    json_t *one;
    const char *what = json_is_string(v) ? secret_shape(text_of(v)) : NULL;
    if (what != NULL) {
        fault(c, at, NULL, "secret", "the value looks like %s", what);
    }
    json_array_foreach((json_t *)(uintptr_t)v, i, one)
    {
        const struct value_place item = {.up = at, .i = i};
        check_secrets(c, &item, one);
    }
    json_object_foreach((json_t *)(uintptr_t)v, key, one)
    {
        const struct value_place member = {.up = at, .key = key};
        if (strcmp(key, "url") != 0 && strcmp(key, "token") != 0) {
            check_secrets(c, &member, one);
        }
    }
}

bool schema_check(const json_t *schemas, const char *name, const json_t *v, struct faults *f)
{
    const struct checker c = {schemas, f};
    const struct value_place top = {0};
    const json_t *schema = json_object_get(schemas, name);
    ASSERT(schema != NULL);
    check(&c, &top, schema, v);
    check_secrets(&c, &top, v);
    return f->n == 0;
}
