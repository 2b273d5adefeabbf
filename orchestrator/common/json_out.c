/* The writer of json.h: straight into a buffer, no tree. */
#include "common/clock.h"
#include "common/json.h"
#include <float.h>
#include <math.h>

/* The character at s.p[*i], *i moved behind it; 0xfffd for each byte that is not well-formed. */
static uint32_t next_char(struct str s, size_t *i)
{
    uint8_t c = (uint8_t)s.p[*i];
    size_t left = s.n - *i;
    size_t len = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (len > 1 && (len > left || !str_is_utf8((struct str){s.p + *i, len}))) {
        (*i)++;
        return 0xfffd;
    }
    uint32_t v = len == 1 ? c : len == 2 ? c & 0x1fU : len == 3 ? c & 0x0fU : c & 0x07U;
    for (size_t j = 1; j < len; j++) {
        v = v << 6 | ((uint8_t)s.p[*i + j] & 0x3fU);
    }
    *i += len;
    return v;
}

static void escape_char(struct buf *b, uint32_t c)
{
    static const char short_forms[] = "b\bf\fn\nr\rt\t\"\"\\\\";
    for (size_t i = 0; i + 1 < sizeof short_forms; i += 2) {
        if (c == (uint8_t)short_forms[i + 1]) {
            buf_add(b, (const char[]){'\\', short_forms[i]}, 2);
            return;
        }
    }
    if (c >= 0x10000) {
        c -= 0x10000;
        buf_addf(b, "\\u%04x\\u%04x", 0xd800 + (c >> 10), 0xdc00 + (c & 0x3ff));
    } else {
        buf_addf(b, "\\u%04x", c);
    }
}

void json_escape(struct buf *b, struct str s, bool ascii_only)
{
    size_t plain = 0; /* start of the bytes not yet copied that may go as they are */
    buf_add_char(b, '"');
    for (size_t i = 0; i < s.n;) {
        uint8_t byte = (uint8_t)s.p[i];
        if (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\') {
            i++;
            continue;
        }
        size_t start = i;
        uint32_t c = next_char(s, &i);
        if (c >= 0x80 && !ascii_only && (c != 0xfffd || i - start == 3)) {
            continue;
        }
        buf_add(b, s.p + plain, start - plain);
        if (c == 0xfffd && !ascii_only) {
            buf_add_cstr(b, "\xef\xbf\xbd");
        } else {
            escape_char(b, c);
        }
        plain = i;
    }
    if (s.n > plain) {
        buf_add(b, s.p + plain, s.n - plain);
    }
    buf_add_char(b, '"');
}

void json_out_init(struct json_out *w, struct buf *b)
{
    *w = (struct json_out){.b = b};
    w->first[0] = true;
}

/* Writes the comma and the key before a value. Values at the top get no comma: callers separate
 * JSON lines themselves. */
static void before(struct json_out *w, const char *key)
{
    if (w->depth > 0 && !w->first[w->depth]) {
        buf_add_char(w->b, ',');
    }
    w->first[w->depth] = false;
    if (key != NULL) {
        ASSERT(w->depth > 0);
        json_escape(w->b, str_of(key), false);
        buf_add_char(w->b, ':');
    }
}

static void open_with(struct json_out *w, const char *key, char c)
{
    before(w, key);
    buf_add_char(w->b, c);
    ASSERT(w->depth < JSON_DEPTH_MAX);
    w->first[++w->depth] = true;
}

static void close_with(struct json_out *w, char c)
{
    ASSERT(w->depth > 0);
    w->depth--;
    buf_add_char(w->b, c);
}

void json_out_object(struct json_out *w, const char *key)
{
    open_with(w, key, '{');
}

void json_out_array(struct json_out *w, const char *key)
{
    open_with(w, key, '[');
}

void json_out_end_object(struct json_out *w)
{
    close_with(w, '}');
}

void json_out_end_array(struct json_out *w)
{
    close_with(w, ']');
}

void json_out_strn(struct json_out *w, const char *key, struct str v)
{
    before(w, key);
    json_escape(w->b, v, false);
}

void json_out_str(struct json_out *w, const char *key, const char *v)
{
    if (v == NULL) {
        json_out_null(w, key);
    } else {
        json_out_strn(w, key, str_of(v));
    }
}

void json_out_i64(struct json_out *w, const char *key, int64_t v)
{
    before(w, key);
    buf_addf(w->b, "%lld", (long long)v);
}

void json_out_bool(struct json_out *w, const char *key, bool v)
{
    before(w, key);
    buf_add_cstr(w->b, v ? "true" : "false");
}

/* 17 digits always read back exactly; most values need only 15, so a number read from at most 15
 * digits is written the same way unless it is subnormal. NaN and infinity become null. */
void json_out_double(struct json_out *w, const char *key, double v)
{
    if (!isfinite(v)) {
        json_out_null(w, key);
        return;
    }
    char text[40];
    for (int digits = fabs(v) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        double back = strtod(text, NULL);
        if (back == v) {
            break;
        }
    }
    before(w, key);
    buf_add_cstr(w->b, text);
}

/* The shortest digits that read back, with an exponent below 1e-4 and from 1e16 on. */
void json_python_float(struct buf *b, double v)
{
    if (!isfinite(v)) {
        buf_add_cstr(b, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
        return;
    }
    char text[40] = "";
    int digits = 0; /* behind the point of the form with an exponent */
    for (; digits < 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*e", digits, v);
        if (strtod(text, NULL) == v) {
            break;
        }
    }
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 16) {
        (void)snprintf(text, sizeof text, "%.*f", MAX(digits - exponent, 1), v);
    }
    buf_add_cstr(b, text);
}

void json_out_null(struct json_out *w, const char *key)
{
    before(w, key);
    buf_add_cstr(w->b, "null");
}

void json_out_raw(struct json_out *w, const char *key, struct str json)
{
    before(w, key);
    buf_add_str(w->b, json);
}

void json_out_time(struct json_out *w, const char *key, usec_t t)
{
    if (t == 0 || t == USEC_NEVER) {
        json_out_null(w, key);
        return;
    }
    char text[32];
    clock_format_rfc3339(t, t % USEC_PER_SEC != 0, text);
    json_out_str(w, key, text);
}
