/* What a plain YAML scalar means: the core schema of YAML 1.2 (chapter 10.3), decimal text. */
#include "yaml_scalar.h"
#include <errno.h>
#include <math.h>

static bool is_one_of(const char *s, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(s, *words) == 0) {
            return true;
        }
    }
    return false;
}

static bool all_digits(const char *s, const char *digits)
{
    return s[0] != '\0' && s[strspn(s, digits)] == '\0';
}

/* [-+]?[0-9]+ | 0o[0-7]+ | 0x[0-9a-fA-F]+ */
static bool is_int(const char *s, int *ret_base, const char **ret_digits)
{
    if (strncmp(s, "0o", 2) == 0 || strncmp(s, "0x", 2) == 0) {
        *ret_base = s[1] == 'o' ? 8 : 16;
        *ret_digits = s + 2;
        return all_digits(s + 2, s[1] == 'o' ? "01234567" : "0123456789abcdefABCDEF");
    }
    *ret_base = 10;
    *ret_digits = s;
    return all_digits(s + (*s == '-' || *s == '+' ? 1 : 0), "0123456789");
}

/* [-+]? ( \.[0-9]+ | [0-9]+ ( \.[0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_float(const char *s)
{
    s += *s == '-' || *s == '+' ? 1 : 0;
    size_t whole = strspn(s, "0123456789");
    s += whole;
    size_t behind = 0;
    if (*s == '.') {
        behind = strspn(s + 1, "0123456789");
        s += 1 + behind;
    }
    if (whole == 0 && behind == 0) {
        return false;
    }
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '-' || *s == '+' ? 1 : 0;
        size_t digits = strspn(s, "0123456789");
        if (digits == 0) {
            return false;
        }
        s += digits;
    }
    return *s == '\0';
}

/* ".inf", "-.INF", ".nan": numbers of the core schema that no field of ours can hold. */
static bool is_not_finite(const char *s)
{
    static const char *const words[] = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN", NULL};
    return is_one_of(s + (*s == '-' || *s == '+' ? 1 : 0), words);
}

static const char *resolve_number(struct yaml_node *n)
{
    static const char too_large[] = "number too large";
    int base;
    const char *digits;
    if (is_int(n->text, &base, &digits)) {
        errno = 0;
        n->kind = YAML_INT;
        n->i = strtoll(digits, NULL, base);
        n->f = (double)n->i;
        return errno == ERANGE ? too_large : NULL;
    }
    if (is_float(n->text)) {
        n->kind = YAML_FLOAT;
        n->f = strtod(n->text, NULL);
        return isfinite(n->f) ? NULL : too_large;
    }
    return is_not_finite(n->text) ? "infinity and not-a-number are not accepted" : NULL;
}

const char *yaml_resolve_plain(struct yaml_node *n)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    static const char *const maybes[] = {"y", "Y",  "yes", "Yes", "YES", "on",  "On",  "ON", "n",
                                         "N", "no", "No",  "NO",  "off", "Off", "OFF", NULL};
    if (is_one_of(n->text, nulls)) {
        n->kind = YAML_NULL;
    } else if (is_one_of(n->text, trues) || is_one_of(n->text, falses)) {
        n->kind = YAML_BOOL;
        n->b = is_one_of(n->text, trues);
    } else if (is_one_of(n->text, maybes)) {
        n->maybe_bool = true;
        n->b = strchr("yYoO", n->text[0]) != NULL && strncasecmp(n->text, "of", 2) != 0;
    } else {
        return resolve_number(n);
    }
    return NULL;
}
