/* Readers of single values, and what a row of a table takes. */
#include "common/setting_value.h"
#include "common/cleanup.h"
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#define NUMBER_BYTES_MAX 64
#define WHOLE_DOUBLE_MAX 9007199254740992.0 /* beyond, doubles skip whole numbers */

bool value_is_none(const char *text)
{
    return text[0] == '\0' || strcasecmp(text, "none") == 0 || strcmp(text, "null") == 0;
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcasecmp(text, *words) == 0) {
            return true;
        }
    }
    return false;
}

bool value_flag(const char *text, bool *ret)
{
    static const char *const on[] = {"true", "1", "yes", NULL};
    static const char *const off[] = {"false", "0", "no", NULL};
    bool yes = is_one_of(text, on);
    if (!yes && !is_one_of(text, off)) {
        return false;
    }
    *ret = yes;
    return true;
}

/* Remove underscores between digits of a decimal number. Other notations such as hexadecimal are
 * not numbers here. */
static bool decimal(const char *text, double *ret)
{
    char digits[NUMBER_BYTES_MAX];
    size_t n = 0;
    struct str s = str_trim(str_of(text));
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool between = i > 0 && i + 1 < s.n && s.p[i - 1] >= '0' && s.p[i - 1] <= '9' &&
                       s.p[i + 1] >= '0' && s.p[i + 1] <= '9';
        if (c == '_' && between) {
            continue;
        }
        if (c == '\0' || strchr("0123456789+-.eE", c) == NULL || n + 1 == sizeof digits) {
            return false;
        }
        digits[n++] = c;
    }
    digits[n] = '\0';
    char *end;
    double d = strtod(digits, &end);
    if (n == 0 || *end != '\0' || !isfinite(d)) {
        return false;
    }
    *ret = d;
    return true;
}

bool value_int(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    double d;
    if (parse_i64(str_trim(str_of(text)), min, max, ret, NULL)) {
        return true;
    }
    if (!decimal(text, &d) || fabs(d) > WHOLE_DOUBLE_MAX || floor(d) < d || (int64_t)d < min ||
        (int64_t)d > max) {
        return false;
    }
    *ret = (int64_t)d;
    return true;
}

bool value_real(const char *text, double *ret)
{
    static const char *const endless[] = {"inf", "+inf", "infinity", "+infinity", NULL};
    double d;
    if (is_one_of(text, endless)) {
        *ret = HUGE_VAL;
        return true;
    }
    if (!decimal(text, &d) || d <= 0) {
        return false;
    }
    *ret = d;
    return true;
}

void value_unquote(char *text)
{
    size_t n = strlen(text);
    if (n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n - 1] == text[0] &&
        strchr(text + 1, text[0]) == text + n - 1) {
        memmove(text, text + 1, n - 2);
        text[n - 2] = '\0';
    }
}

/* Unescape the quoted word at *p in place and move *p behind it. NULL: no closing quote. */
static char *quoted(char **p)
{
    char quote = **p;
    char *word = *p + 1;
    char *to = word;
    char *from = word;
    while (*from != quote) {
        from += *from == '\\' ? 1 : 0;
        if (*from == '\0') {
            return NULL;
        }
        *to++ = *from++;
    }
    *p = from + 1;
    *to = '\0';
    return word;
}

/* An unquoted word: "[::1]:80" is one; half a list or a nested list is not. */
static bool is_bare(struct str s, bool nested)
{
    int depth = 0;
    for (size_t i = 0; i < s.n; i++) {
        depth += s.p[i] == '[' ? 1 : 0;
        depth -= s.p[i] == ']' ? 1 : 0;
        if (depth < 0 || (nested && depth > 0) || s.p[i] == '"' || s.p[i] == '\'') {
            return false;
        }
    }
    return depth == 0;
}

/* Words between commas, quoted or bare, up to the end of text. nested: they are in brackets. */
static int python_words(char *p, bool nested, char **words, int words_max, const char **ret_why)
{
    int n = 0;
    for (;;) {
        p += strspn(p, " \t\n,");
        if (*p == '\0') {
            return n;
        }
        char *word;
        char *end;
        if (*p == '"' || *p == '\'') {
            word = quoted(&p);
            end = p + strspn(p, " \t\n");
            if (word == NULL || (*end != '\0' && *end != ',')) {
                *ret_why = "a quote that does not end";
                return -1;
            }
        } else {
            word = p;
            end = p + strcspn(p, ",");
            p = end;
            while (p > word && strchr(" \t\n", p[-1]) != NULL) {
                p--;
            }
            if (!is_bare((struct str){word, (size_t)(p - word)}, nested)) {
                *ret_why = "brackets or quotes out of place";
                return -1;
            }
        }
        bool last = *end == '\0';
        *p = '\0';
        p = last ? end : end + 1;
        if (n == words_max) {
            *ret_why = "too many words";
            return -1;
        }
        words[n] = word;
        n += word[0] != '\0' ? 1 : 0;
    }
}

/* True when text is a JSON array of texts without NUL and nested lists. */
static bool json_words(const char *text, char **store, char **words, int words_max, int *ret_n)
{
    json_t *list = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    bool ok = json_is_array(list) && json_array_size(list) <= (size_t)words_max;
    size_t i;
    json_t *v;
    char *at = *store = xcalloc(1, strlen(text) + 1);
    int n = 0;
    json_array_foreach(list, i, v)
    {
        ok = ok && json_is_string(v);
        if (ok && json_string_length(v) > 0) {
            words[n++] = memcpy(at, json_string_value(v), json_string_length(v));
            at += json_string_length(v) + 1;
        }
    }
    json_decref(list);
    if (!ok) {
        free(TAKE(*store));
        return false;
    }
    *ret_n = n;
    return true;
}

int value_list(const char *text, char **store, char **words, int words_max, const char **ret_why)
{
    int n;
    if (json_words(text, store, words, words_max, &n)) {
        return n;
    }
    struct str s = str_trim(str_of(text));
    char *p = *store = xstrndup(s.p, s.n);
    bool nested =
        s.n >= 2 && ((p[0] == '[' && p[s.n - 1] == ']') || (p[0] == '(' && p[s.n - 1] == ')'));
    if (nested) {
        p[s.n - 1] = '\0';
        p++;
    }
    return python_words(p, nested, words, words_max, ret_why);
}

const struct setting *setting_find(const struct setting *rows, size_t rows_n, const char *name)
{
    for (size_t i = 0; i < rows_n; i++) {
        if (strcmp(name, rows[i].name) == 0 ||
            (rows[i].flag != NULL && strcmp(name, rows[i].flag) == 0)) {
            return &rows[i];
        }
    }
    return NULL;
}

const struct setting *setting_nearest(const struct setting *rows, size_t rows_n, const char *name)
{
    const struct setting *best = NULL;
    size_t best_n = 4;
    for (size_t i = 0; i < rows_n; i++) {
        size_t n = str_distance(str_of(name), str_of(rows[i].name));
        if (n < best_n) {
            best = &rows[i];
            best_n = n;
        }
    }
    return best;
}

int setting_word(const char *words, struct str word)
{
    struct str rest = str_of(words);
    for (int i = 0; rest.n > 0; i++) {
        if (str_eq(str_trim(str_split(&rest, ',')), word)) {
            return i;
        }
    }
    return -1;
}

static bool PRINTF(4, 5)
    wrong(const struct setting *r, const char *v, struct buf *fault, const char *fmt, ...)
{
    char expected[256];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(expected, sizeof expected, fmt, args);
    va_end(args);
    buf_addf(fault, "%s '%.60s': %s\n", r->name, v, expected);
    return false;
}

static bool words_ok(const struct setting *r, const char *v, struct buf *fault)
{
    struct str rest = str_of(v);
    bool ok = true;
    while (rest.n > 0) {
        struct str word = str_trim(str_split(&rest, ','));
        if (setting_word(r->words, word) < 0) {
            buf_addf(fault, "%s '%.*s': expected some of %s\n", r->name,
                     (int)MIN(word.n, (size_t)60), word.p, r->words);
            ok = false;
        }
    }
    return ok;
}

bool setting_check(const struct setting *r, const char *v, struct buf *fault)
{
    int64_t whole;
    double real;
    bool flag;
    bool none = r->kind == SETTING_OPTIONAL && value_is_none(v);
    bool one_of = r->words == NULL || none || setting_word(r->words, str_of(v)) >= 0;
    switch (r->kind) {
    case SETTING_LIST:
        return true;
    case SETTING_WORDS:
        return words_ok(r, v, fault);
    case SETTING_TEXT:
    case SETTING_OPTIONAL:
        return one_of || wrong(r, v, fault, "expected one of %s", r->words);
    case SETTING_INT:
        return value_int(v, r->min, r->max, &whole) ||
               wrong(r, v, fault, "expected a whole number from %lld to %lld", (long long)r->min,
                     (long long)r->max);
    case SETTING_REAL:
        return value_real(v, &real) || wrong(r, v, fault, "expected a number above 0, or inf");
    case SETTING_FLAG:
        return value_flag(v, &flag) || wrong(r, v, fault, "expected true or false");
    }
    return true;
}
