/* A JSON scanner that finds two numbers. It checks the structure of everything it skips: terminated
 * strings, matching brackets, values in the right places. It does not check numbers and escapes of
 * other fields. */
#include "meta.h"

#define DEPTH_MAX 32
#define SIDE_MAX  (1 << 20)

struct json_scan {
    const char *p;
    const char *end;
};

static void skip_space(struct json_scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t')) {
        s->p++;
    }
}

static bool take(struct json_scan *s, char c)
{
    skip_space(s);
    bool ok = s->p < s->end && *s->p == c;
    s->p += ok ? 1 : 0;
    return ok;
}

/* A string without its quotes in *ret. A quote after an odd number of backslashes is not the
 * end. */
static bool string(struct json_scan *s, struct str *ret)
{
    if (!take(s, '"')) {
        return false;
    }
    const char *start = s->p;
    while (s->p < s->end) {
        const char *q = memchr(s->p, '"', (size_t)(s->end - s->p));
        if (q == NULL) {
            return false;
        }
        size_t slashes = 0;
        while (q - slashes > start && *(q - slashes - 1) == '\\') {
            slashes++;
        }
        s->p = q + 1;
        if (slashes % 2 == 0) {
            *ret = (struct str){start, (size_t)(q - start)};
            return true;
        }
    }
    return false;
}

/* Anything that looks like a number or a word. */
static bool scalar(struct json_scan *s, struct str *ret)
{
    const char *start = s->p;
    while (s->p < s->end && strchr(",]} \n\r\t\"[{:", *s->p) == NULL) {
        s->p++;
    }
    *ret = (struct str){start, (size_t)(s->p - start)};
    return ret->n > 0;
}

/* After an opening bracket: skip to the matching one. */
static bool skip_nested(struct json_scan *s, char opened)
{
    char open[DEPTH_MAX];
    int depth = 0;
    struct str ignored;
    open[depth++] = opened;
    while (depth > 0) {
        skip_space(s);
        if (s->p == s->end) {
            return false;
        }
        char c = *s->p;
        if (c == '"') {
            if (!string(s, &ignored)) {
                return false;
            }
        } else if (c == '{' || c == '[') {
            if (depth == DEPTH_MAX) {
                return false;
            }
            open[depth++] = c;
            s->p++;
        } else if (c == '}' || c == ']') {
            if (open[--depth] != (c == '}' ? '{' : '[')) {
                return false;
            }
            s->p++;
        } else if (c == ',' || c == ':') {
            s->p++;
        } else if (!scalar(s, &ignored)) {
            return false;
        }
    }
    return true;
}

/* Any value; *ret is a number's or word's text, empty for the rest. */
static bool value(struct json_scan *s, struct str *ret)
{
    struct str ignored;
    *ret = (struct str){s->p, 0};
    skip_space(s);
    if (s->p == s->end) {
        return false;
    }
    char c = *s->p;
    if (c == '"') {
        return string(s, &ignored);
    }
    if (c == '{' || c == '[') {
        s->p++;
        return skip_nested(s, c);
    }
    return scalar(s, ret);
}

static void note_side(struct str v, int64_t *ret)
{
    int64_t side = 0;
    for (size_t i = 0; i < v.n; i++) {
        if ((uint8_t)(v.p[i] - '0') > 9 || side > SIDE_MAX) {
            return;
        }
        side = side * 10 + (v.p[i] - '0');
    }
    if (side > 0 && side <= SIDE_MAX) {
        *ret = side;
    }
}

enum meta_result meta_size(struct str json, int64_t *ret_width, int64_t *ret_height)
{
    struct json_scan s = {json.p, json.p + json.n};
    int64_t width = 0;
    int64_t height = 0;
    if (!take(&s, '{')) {
        return META_BAD;
    }
    if (!take(&s, '}')) {
        do {
            struct str key;
            struct str v;
            if (!string(&s, &key) || !take(&s, ':') || !value(&s, &v)) {
                return META_BAD;
            }
            if (key.n == 5 && memcmp(key.p, "width", 5) == 0) {
                note_side(v, &width);
            } else if (key.n == 6 && memcmp(key.p, "height", 6) == 0) {
                note_side(v, &height);
            }
        } while (take(&s, ','));
        if (!take(&s, '}')) {
            return META_BAD;
        }
    }
    skip_space(&s);
    if (s.p != s.end) {
        return META_BAD;
    }
    if (width == 0 || height == 0) {
        return META_NO_SIZE;
    }
    *ret_width = width;
    *ret_height = height;
    return META_OK;
}
