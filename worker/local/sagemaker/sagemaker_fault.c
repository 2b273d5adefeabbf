/* Faults of a request in SageMaker's words: see sagemaker_rules.h. */
#include "sagemaker_rules.h"
#include <stdarg.h>
#include <stdio.h>

void check_fail(struct request_check *c, const json_t *value, const char *field, const char *fmt,
                ...)
{
    char rule[REQUEST_FAULTS_BYTES_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(rule, sizeof rule, fmt, ap);
    va_end(ap);
    buf_add_cstr(&c->text, c->n == 0 ? "" : "; ");
    if (value == NULL) {
        buf_add_cstr(&c->text, "Value null");
    } else {
        AUTO_FREE char *text = json_is_string(value)
                                   ? xstrdup(json_string_value(value))
                                   : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        buf_addf(&c->text, "Value '%.200s'", text);
    }
    buf_addf(&c->text, " at '%s' failed to satisfy constraint: %s", field, rule);
    c->n++;
}

bool check_done(struct request *r, struct request_check *c, const char *code)
{
    if (c->n > 0) {
        reply_error(r, 400, code, "%d validation error%s detected: %s", c->n, c->n == 1 ? "" : "s",
                    buf_cstr(&c->text));
    }
    buf_done(&c->text);
    return c->n == 0;
}

/* A string of min to max characters; NULL when absent or wrong (reported). */
const char *check_text(struct request_check *c, const json_t *o, const char *key, const char *field,
                       bool required, size_t min, size_t max)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL || json_is_null(v)) {
        if (required) {
            check_fail(c, NULL, field, "Member must not be null");
        }
        return NULL;
    }
    const char *s = json_string_value(v);
    if (s == NULL) {
        check_fail(c, v, field, "Member must be a string");
        return NULL;
    }
    if (strlen(s) > max) {
        check_fail(c, v, field, "Member must have length less than or equal to %zu", max);
        return NULL;
    }
    if (strlen(s) < min) {
        check_fail(c, v, field, "Member must have length greater than or equal to %zu", min);
        return NULL;
    }
    return s;
}

/* The structure at key; NULL when it is absent or not an object (reported when required). */
const json_t *check_part(struct request_check *c, const json_t *o, const char *key,
                         const char *field, bool required)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL && required) {
        check_fail(c, NULL, field, "Member must not be null");
    } else if (v != NULL && !json_is_object(v)) {
        check_fail(c, v, field, "Member must be a structure");
        v = NULL;
    }
    return v;
}

void check_word(struct request_check *c, const json_t *o, const char *key, const char *field,
                const char *const *words)
{
    const json_t *v = json_object_get(o, key);
    const char *word = json_string_value(v);
    while (word != NULL && *words != NULL && strcmp(*words, word) != 0) {
        words++;
    }
    if (v != NULL && (word == NULL || *words == NULL)) {
        check_fail(c, v, field, "Member must satisfy enum value set");
    }
}
