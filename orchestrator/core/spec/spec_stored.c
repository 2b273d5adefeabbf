/* See spec_stored.h. */
#include "spec_stored.h"

json_t *spec_pairs_out(const struct spec_pair *p, int n)
{
    /* a list of pairs: jsonb would sort the keys of an object */
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_t *pair = json_array();
        (void)json_array_append_new(pair, json_string(p[i].key));
        (void)json_array_append_new(pair, json_string(p[i].value));
        (void)json_array_append_new(list, pair);
    }
    return list;
}

json_t *spec_texts_out(const char *const *s, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        (void)json_array_append_new(list, json_string(s[i]));
    }
    return list;
}

void spec_put_text(json_t *o, const char *key, const char *s)
{
    if (s != NULL) {
        (void)json_object_set_new(o, key, json_string(s));
    }
}

void spec_stored_fail(struct stored *r, const char *key)
{
    if (!r->bad) {
        (void)err_set(r->err, ERR_INTERNAL, "stored spec: '%s' does not fit", key);
    }
    r->bad = true;
}

int64_t spec_get_i64(struct stored *r, const json_t *o, const char *key, int64_t min, int64_t max)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max) {
        spec_stored_fail(r, key);
        return min;
    }
    return json_integer_value(v);
}

bool spec_get_bool(struct stored *r, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_boolean(v)) {
        spec_stored_fail(r, key);
    }
    return json_is_true(v);
}

const char *spec_text_of(struct stored *r, const json_t *v, const char *key)
{
    if (!json_is_string(v) || json_string_length(v) > SPEC_TEXT_MAX) {
        spec_stored_fail(r, key);
        return "";
    }
    return arena_strndup(r->a, json_string_value(v), json_string_length(v));
}

const char *spec_get_text(struct stored *r, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return v == NULL ? NULL : spec_text_of(r, v, key);
}

const char *spec_need_text(struct stored *r, const json_t *o, const char *key)
{
    return spec_text_of(r, json_object_get(o, key), key);
}

int spec_get_texts(struct stored *r, const json_t *o, const char *key, const char **ret, size_t max)
{
    const json_t *list = json_object_get(o, key);
    if (!json_is_array(list) || json_array_size(list) > max) {
        spec_stored_fail(r, key);
        return 0;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        ret[i] = spec_text_of(r, json_array_get(list, i), key);
    }
    return (int)json_array_size(list);
}

int spec_get_pairs(struct stored *r, const json_t *o, const char *key, struct spec_pair *ret,
                   size_t max)
{
    const json_t *list = json_object_get(o, key);
    if (!json_is_array(list) || json_array_size(list) > max) {
        spec_stored_fail(r, key);
        return 0;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pair = json_array_get(list, i);
        ret[i].key = spec_text_of(r, json_array_get(pair, 0), key);
        ret[i].value = spec_text_of(r, json_array_get(pair, 1), key);
    }
    return (int)json_array_size(list);
}
