/* See policy.h. */
#include "policy.h"

static const char *const document_keys[] = {"Version", "Id", "Statement", NULL};
static const char *const statement_keys[] = {"Sid",      "Effect",    "Action",
                                             "Resource", "Condition", NULL};

/* A text or a list of texts, at least one. */
static bool is_texts(const json_t *v)
{
    size_t i;
    json_t *one;
    json_array_foreach(v, i, one)
    {
        if (!json_is_string(one)) {
            return false;
        }
    }
    return json_is_string(v) || json_array_size(v) > 0;
}

static bool condition_check(json_t *condition, struct err *err)
{
    const char *name;
    const char *key;
    json_t *keys;
    json_t *values;
    if (condition != NULL && !json_is_object(condition)) {
        return err_set(err, ERR_INVALID, "Condition must be an object");
    }
    json_object_foreach(condition, name, keys)
    {
        if (strcmp(name, "StringEquals") != 0 && strcmp(name, "StringLike") != 0) {
            return err_set(err, ERR_INVALID,
                           "Condition '%s' is not played here: StringEquals and StringLike are",
                           name);
        }
        if (!json_is_object(keys)) {
            return err_set(err, ERR_INVALID, "'%s' must be an object", name);
        }
        json_object_foreach(keys, key, values)
        {
            if (!is_texts(values)) {
                return err_set(err, ERR_INVALID, "'%s' of %s must be a text or a list of texts",
                               key, name);
            }
        }
    }
    return true;
}

static bool statement_check(const json_t *s, struct err *err)
{
    const char *effect;
    if (!json_is_object(s)) {
        return err_set(err, ERR_INVALID, "a Statement must be an object");
    }
    if (!json_only_keys(s, statement_keys, err) ||
        !json_get_required_str(s, "Effect", &effect, err) ||
        !condition_check(json_object_get(s, "Condition"), err)) {
        return false;
    }
    if (strcmp(effect, "Allow") != 0 && strcmp(effect, "Deny") != 0) {
        return err_set(err, ERR_INVALID, "Effect must be Allow or Deny, not '%s'", effect);
    }
    if (!is_texts(json_object_get(s, "Action")) || !is_texts(json_object_get(s, "Resource"))) {
        return err_set(err, ERR_INVALID,
                       "Action and Resource must each be a text or a list of texts");
    }
    return true;
}

bool policy_check(const json_t *document, struct err *err)
{
    size_t i;
    json_t *s;
    const json_t *all = json_object_get(document, "Statement");
    if (!json_is_object(document) || !json_is_array(all)) {
        return err_set(err, ERR_INVALID, "a policy must be an object with a list of Statement");
    }
    if (!json_only_keys(document, document_keys, err)) {
        return false;
    }
    json_array_foreach(all, i, s)
    {
        if (!statement_check(s, err)) {
            return err_wrap(err, "statement %zu", i + 1);
        }
    }
    return true;
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Glob of * and ?, which match any character, in time of the product of both lengths. */
static bool matches(const char *pattern, const char *text, bool ignore_case)
{
    const char *star = NULL;
    const char *tried = NULL;
    while (*text != '\0') {
        bool same = ignore_case ? lower(*pattern) == lower(*text) : *pattern == *text;
        if (*pattern == '*') {
            star = pattern++;
            tried = text;
        } else if (*pattern != '\0' && (same || *pattern == '?')) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++tried;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

enum comparison { EXACT, LIKE, LIKE_ANY_CASE };

static bool one_matches(const json_t *wanted, const char *text, enum comparison how)
{
    size_t i;
    json_t *one;
    if (json_is_string(wanted)) {
        const char *w = json_string_value(wanted);
        return how == EXACT ? strcmp(w, text) == 0 : matches(w, text, how == LIKE_ANY_CASE);
    }
    json_array_foreach(wanted, i, one)
    {
        if (one_matches(one, text, how)) {
            return true;
        }
    }
    return false;
}

/* The request's text for a condition key, whose case does not count; NULL: it has none. */
static const char *context_value(json_t *context, const char *key)
{
    const char *name;
    json_t *v;
    json_object_foreach(context, name, v)
    {
        if (str_ieq_cstr(str_of(name), key)) {
            return json_string_value(v);
        }
    }
    return NULL;
}

static bool condition_holds(json_t *condition, json_t *context)
{
    const char *name;
    const char *key;
    json_t *keys;
    json_t *values;
    json_object_foreach(condition, name, keys)
    {
        enum comparison how = strcmp(name, "StringEquals") == 0 ? EXACT : LIKE;
        json_object_foreach(keys, key, values)
        {
            const char *said = context_value(context, key);
            if (said == NULL || !one_matches(values, said, how)) {
                return false;
            }
        }
    }
    return true;
}

static bool speaks_of(const json_t *s, const struct policy_question *q)
{
    return one_matches(json_object_get(s, "Action"), q->action, LIKE_ANY_CASE) &&
           one_matches(json_object_get(s, "Resource"), q->resource, LIKE) &&
           condition_holds(json_object_get(s, "Condition"), q->context);
}

enum policy_answer policy_ask(const json_t *documents, const struct policy_question *q)
{
    enum policy_answer answer = POLICY_NOT_ALLOWED;
    size_t i;
    size_t k;
    json_t *document;
    json_t *s;
    json_array_foreach(documents, i, document)
    {
        json_array_foreach(json_object_get(document, "Statement"), k, s)
        {
            if (!speaks_of(s, q)) {
                continue;
            }
            if (strcmp(json_string_value(json_object_get(s, "Effect")), "Deny") == 0) {
                return POLICY_DENIED;
            }
            answer = POLICY_ALLOWED;
        }
    }
    return answer;
}
