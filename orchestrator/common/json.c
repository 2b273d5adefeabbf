/* Strict reading of JSON over jansson. */
#include "common/json.h"
#include <math.h>

/* jansson itself recurses 2048 deep: the text is walked first, outside of its strings. */
static bool depth_ok(struct str text)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > JSON_DEPTH_MAX) {
                return false;
            }
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return true;
}

bool json_parse(struct str text, size_t max_bytes, json_t **ret, struct err *err)
{
    if (text.n > max_bytes) {
        return err_set(err, ERR_TOO_LARGE, "JSON text of %zu bytes, at most %zu are read", text.n,
                       max_bytes);
    }
    if (!depth_ok(text)) {
        return err_set(err, ERR_MALFORMED, "JSON nested deeper than %d", JSON_DEPTH_MAX);
    }
    json_error_t e;
    json_t *v =
        json_loadb(text.n == 0 ? "" : text.p, text.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (v == NULL) {
        return err_set(err, ERR_MALFORMED, "JSON line %d column %d: %s", e.line, e.column, e.text);
    }
    *ret = v;
    return true;
}

static const char *type_name(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    return "unknown";
}

/* The value of key, NULL in *ret when absent; null counts as absent. */
static bool lookup(const json_t *o, const char *key, bool required, json_t **ret, struct err *err)
{
    if (!json_is_object(o)) {
        return err_set(err, ERR_INVALID, "'%s' asked of %s, an object is needed", key,
                       o == NULL ? "nothing" : type_name(o));
    }
    json_t *v = json_object_get(o, key);
    if (json_is_null(v)) {
        v = NULL;
    }
    if (v == NULL && required) {
        return err_set(err, ERR_INVALID, "'%s' is missing", key);
    }
    *ret = v;
    return true;
}

static bool wrong_type(const char *key, const char *want, const json_t *v, struct err *err)
{
    return err_set(err, ERR_INVALID, "'%s' must be %s, it is %s", key, want, type_name(v));
}

bool json_get_i64(const json_t *o, const char *key, int64_t min, int64_t max, int64_t dflt,
                  int64_t *ret, struct err *err)
{
    json_t *v;
    if (!lookup(o, key, dflt == JSON_ABSENT, &v, err)) {
        return false;
    }
    if (v == NULL) {
        *ret = dflt;
        return true;
    }
    if (!json_is_integer(v)) {
        return wrong_type(key, "an integer", v, err);
    }
    int64_t i = json_integer_value(v);
    if (i < min || i > max) {
        return err_set(err, ERR_INVALID, "'%s' is %lld, not within %lld to %lld", key, (long long)i,
                       (long long)min, (long long)max);
    }
    *ret = i;
    return true;
}

bool json_get_bool(const json_t *o, const char *key, bool dflt, bool *ret, struct err *err)
{
    json_t *v;
    if (!lookup(o, key, false, &v, err)) {
        return false;
    }
    if (v != NULL && !json_is_boolean(v)) {
        return wrong_type(key, "a boolean", v, err);
    }
    *ret = v == NULL ? dflt : json_is_true(v);
    return true;
}

static bool get_str(const json_t *o, const char *key, bool required, const char *dflt,
                    const char **ret, struct err *err)
{
    json_t *v;
    if (!lookup(o, key, required, &v, err)) {
        return false;
    }
    if (v != NULL && !json_is_string(v)) {
        return wrong_type(key, "a string", v, err);
    }
    *ret = v == NULL ? dflt : json_string_value(v);
    return true;
}

bool json_get_str(const json_t *o, const char *key, const char *dflt, const char **ret,
                  struct err *err)
{
    return get_str(o, key, false, dflt, ret, err);
}

bool json_get_required_str(const json_t *o, const char *key, const char **ret, struct err *err)
{
    const char *s = "";
    if (!get_str(o, key, true, "", &s, err)) {
        return false;
    }
    if (s == NULL || s[0] == '\0') {
        return err_set(err, ERR_INVALID, "'%s' is empty", key);
    }
    *ret = s;
    return true;
}

bool json_get_object(const json_t *o, const char *key, json_t **ret, struct err *err)
{
    json_t *v;
    if (!lookup(o, key, false, &v, err)) {
        return false;
    }
    if (v != NULL && !json_is_object(v)) {
        return wrong_type(key, "an object", v, err);
    }
    *ret = v;
    return true;
}

bool json_get_array(const json_t *o, const char *key, json_t **ret, struct err *err)
{
    json_t *v;
    if (!lookup(o, key, false, &v, err)) {
        return false;
    }
    if (v != NULL && !json_is_array(v)) {
        return wrong_type(key, "an array", v, err);
    }
    *ret = v;
    return true;
}

/* Rejects epochs beyond the year 9999: no text form can hold them. */
bool json_get_epoch(const json_t *o, const char *key, usec_t dflt, usec_t *ret, struct err *err)
{
    json_t *v;
    if (!lookup(o, key, dflt == JSON_ABSENT, &v, err)) {
        return false;
    }
    if (v == NULL) {
        *ret = dflt;
        return true;
    }
    if (!json_is_number(v)) {
        return wrong_type(key, "a number of seconds", v, err);
    }
    double s = json_number_value(v);
    if (!(s >= 0 && s <= 253402300799.0)) {
        return err_set(err, ERR_INVALID, "'%s' is not a time since 1970", key);
    }
    *ret = json_is_integer(v) ? json_integer_value(v) * USEC_PER_SEC
                              : (usec_t)llround(s * (double)USEC_PER_SEC);
    return true;
}

/* The key most similar to the one given, when it is similar enough. */
static const char *guess(const char *key, const char *const *keys)
{
    const char *best = NULL;
    size_t best_distance = MAX((size_t)2, strlen(key) / 3) + 1;
    for (size_t i = 0; keys[i] != NULL; i++) {
        size_t d = str_distance(str_of(key), str_of(keys[i]));
        if (d < best_distance) {
            best = keys[i];
            best_distance = d;
        }
    }
    return best;
}

bool json_only_keys(const json_t *o, const char *const *keys, struct err *err)
{
    if (!json_is_object(o)) {
        return err_set(err, ERR_INVALID, "an object is needed, not %s",
                       o == NULL ? "nothing" : type_name(o));
    }
    /* jansson's iterators take a mutable object but do not change it. */
    json_t *mutable_o;
    memcpy(&mutable_o, &o, sizeof o);
    const char *key;
    json_t *v;
    json_object_foreach(mutable_o, key, v)
    {
        size_t i = 0;
        while (keys[i] != NULL && strcmp(keys[i], key) != 0) {
            i++;
        }
        if (keys[i] != NULL) {
            continue;
        }
        const char *like = guess(key, keys);
        return err_set(err, ERR_INVALID, "unknown key '%.64s'%s%s%s", key,
                       like == NULL ? "" : ", did you mean '", like == NULL ? "" : like,
                       like == NULL ? "" : "'?");
    }
    return true;
}

char *json_text(const json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    ASSERT(text != NULL);
    return text;
}
