/* Query parameters in PostgreSQL's binary formats. */
#include "pg_types.h"
#include "query.h"

void params_done(struct params *p)
{
    for (int i = 0; i < p->owned_n; i++) {
        free(p->owned[i]);
    }
    p->n = 0;
    p->named = 0;
    p->filled = 0;
    p->owned_n = 0;
}

struct params *param_named(struct params *p, int place, int of)
{
    _Static_assert(PARAMS_MAX < 64, "a bit of `filled` for each");
    ASSERT(place < of && of <= PARAMS_MAX);
    ASSERT(p->named == of || (p->named == 0 && p->n == 0));
    p->named = of;
    p->n = place;
    return p;
}

int params_n(const struct params *p)
{
    ASSERT(p->named == 0 || p->filled == (UINT64_C(1) << p->named) - 1);
    return p->named != 0 ? p->named : p->n;
}

static void add(struct params *p, unsigned type, const char *value, size_t n, int format)
{
    ASSERT(p->n < PARAMS_MAX);
    ASSERT(n <= INT32_MAX);
    ASSERT(p->named == 0 || (p->n < p->named && !(p->filled >> p->n & 1)));
    p->filled |= UINT64_C(1) << p->n;
    p->types[p->n] = type;
    p->values[p->n] = value;
    p->lengths[p->n] = (int)n;
    p->formats[p->n] = format;
    p->n++;
}

static void add_null(struct params *p, unsigned type)
{
    add(p, type, NULL, 0, 1);
}

static void add_owned(struct params *p, unsigned type, char *value, size_t n)
{
    ASSERT(p->owned_n < PARAMS_MAX);
    p->owned[p->owned_n++] = value;
    add(p, type, value, n, 1);
}

static void put_be(uint8_t *to, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
    }
}

static void add_scalar(struct params *p, unsigned type, uint64_t v, size_t n)
{
    ASSERT(p->n < PARAMS_MAX && n <= 8);
    uint8_t *to = p->scalars[p->n];
    put_be(to, v, n);
    add(p, type, (const char *)to, n, 1);
}

void param_i64(struct params *p, int64_t v)
{
    add_scalar(p, PG_INT8, (uint64_t)v, 8);
}

void param_i64_or_null(struct params *p, int64_t v, int64_t null_value)
{
    if (v == null_value) {
        add_null(p, PG_INT8);
        return;
    }
    param_i64(p, v);
}

void param_i32(struct params *p, int32_t v)
{
    add_scalar(p, PG_INT4, (uint32_t)v, 4);
}

void param_i16(struct params *p, int16_t v)
{
    add_scalar(p, PG_INT2, (uint16_t)v, 2);
}

void param_bool(struct params *p, bool v)
{
    add_scalar(p, PG_BOOL, v ? 1 : 0, 1);
}

void param_text(struct params *p, const char *v)
{
    add(p, PG_TEXT, v, v == NULL ? 0 : strlen(v), 1);
}

void param_str(struct params *p, struct str v)
{
    add(p, PG_TEXT, v.p == NULL ? "" : v.p, v.n, 1);
}

/* Length of the well-formed UTF-8 character at s (not NUL); 0 when it is malformed. */
static size_t utf8_char(const char *s)
{
    size_t n = (uint8_t)s[0] < 0x80 ? 1 : (uint8_t)s[0] < 0xe0 ? 2 : (uint8_t)s[0] < 0xf0 ? 3 : 4;
    if (strnlen(s, n) < n) {
        return 0;
    }
    return str_is_utf8((struct str){s, n}) ? n : 0;
}

void param_outside_text(struct params *p, const char *v, size_t max_chars)
{
    if (v == NULL) {
        add_null(p, PG_TEXT);
        return;
    }
    size_t len = strnlen(v, max_chars * 4);
    char *out = xmalloc(len + 1);
    size_t out_n = 0;
    for (size_t i = 0, chars = 0; i < len && chars < max_chars; chars++) {
        size_t n = utf8_char(v + i);
        if (n == 0 || i + n > len) {
            out[out_n++] = '?';
            i++;
            continue;
        }
        memcpy(out + out_n, v + i, n);
        out_n += n;
        i += n;
    }
    out[out_n] = '\0';
    add_owned(p, PG_TEXT, out, out_n);
}

void param_json(struct params *p, const char *v)
{
    add(p, PG_JSONB, v, 0, 0);
}

void param_bytes(struct params *p, const void *v, size_t n)
{
    add(p, PG_BYTEA, v, n, 1);
}

void param_time(struct params *p, usec_t t)
{
    if (t == 0) {
        add_null(p, PG_TIMESTAMPTZ);
        return;
    }
    add_scalar(p, PG_TIMESTAMPTZ, (uint64_t)(t - PG_EPOCH_US), 8);
}

#define ARRAY_HEAD 20

/* The header of a one-dimensional array without NULLs: dimensions, has-null, element type, length,
 * lower bound. */
static void array_head(uint8_t *to, unsigned element, size_t n)
{
    ASSERT(n <= INT32_MAX);
    put_be(to, n == 0 ? 0 : 1, 4);
    put_be(to + 4, 0, 4);
    put_be(to + 8, element, 4);
    put_be(to + 12, n, 4);
    put_be(to + 16, 1, 4);
}

static size_t array_head_n(size_t n)
{
    return n == 0 ? 12 : ARRAY_HEAD;
}

/* Elements of eight bytes; v has their bits. */
static void add_array8(struct params *p, unsigned element, unsigned type, const void *v, size_t n)
{
    uint8_t *b = xmalloc(ARRAY_HEAD + n * 12);
    array_head(b, element, n);
    for (size_t i = 0; i < n; i++) {
        uint32_t len = __builtin_bswap32(8);
        uint64_t be;
        memcpy(&be, (const uint8_t *)v + i * 8, 8);
        be = __builtin_bswap64(be);
        memcpy(b + ARRAY_HEAD + i * 12, &len, 4);
        memcpy(b + ARRAY_HEAD + i * 12 + 4, &be, 8);
    }
    add_owned(p, type, (char *)b, array_head_n(n) + n * 12);
}

void param_i64_array(struct params *p, const int64_t *v, size_t n)
{
    add_array8(p, PG_INT8, PG_INT8_ARRAY, v, n);
}

void param_f64_array(struct params *p, const double *v, size_t n)
{
    _Static_assert(sizeof(double) == 8, "float8");
    add_array8(p, PG_FLOAT8, PG_FLOAT8_ARRAY, v, n);
}

void param_i32_array(struct params *p, const int32_t *v, size_t n)
{
    uint8_t *b = xmalloc(ARRAY_HEAD + n * 8);
    array_head(b, PG_INT4, n);
    for (size_t i = 0; i < n; i++) {
        put_be(b + ARRAY_HEAD + i * 8, 4, 4);
        put_be(b + ARRAY_HEAD + i * 8 + 4, (uint32_t)v[i], 4);
    }
    add_owned(p, PG_INT4_ARRAY, (char *)b, array_head_n(n) + n * 8);
}

void param_i16_array(struct params *p, const int16_t *v, size_t n)
{
    uint8_t *b = xmalloc(ARRAY_HEAD + n * 6);
    array_head(b, PG_INT2, n);
    for (size_t i = 0; i < n; i++) {
        put_be(b + ARRAY_HEAD + i * 6, 2, 4);
        put_be(b + ARRAY_HEAD + i * 6 + 4, (uint16_t)v[i], 2);
    }
    add_owned(p, PG_INT2_ARRAY, (char *)b, array_head_n(n) + n * 6);
}

void param_i32_array_or_null(struct params *p, const int32_t *v, size_t n)
{
    if (v == NULL) {
        add_null(p, PG_INT4_ARRAY);
        return;
    }
    param_i32_array(p, v, n);
}

void param_i16_array_or_null(struct params *p, const int16_t *v, size_t n)
{
    if (v == NULL) {
        add_null(p, PG_INT2_ARRAY);
        return;
    }
    param_i16_array(p, v, n);
}

void param_text_array(struct params *p, const char *const *v, size_t n)
{
    if (v == NULL) {
        add_null(p, PG_TEXT_ARRAY);
        return;
    }
    size_t size = ARRAY_HEAD;
    for (size_t i = 0; i < n; i++) {
        size += 4 + strlen(v[i]);
    }
    uint8_t *b = xmalloc(size);
    array_head(b, PG_TEXT, n);
    size_t at = array_head_n(n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(v[i]);
        put_be(b + at, len, 4);
        memcpy(b + at + 4, v[i], len);
        at += 4 + len;
    }
    add_owned(p, PG_TEXT_ARRAY, (char *)b, at);
}
