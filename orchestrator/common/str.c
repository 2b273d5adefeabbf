/* Views of bytes, strict number parsing, encoders. */
#include "common/str.h"
#include "common/buf.h"

#define DISTANCE_MAX ((size_t)64)

struct str str_of(const char *cstr)
{
    return cstr == NULL ? (struct str){"", 0} : (struct str){cstr, strlen(cstr)};
}

bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_eq_cstr(struct str a, const char *b)
{
    return str_eq(a, str_of(b));
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool str_ieq_cstr(struct str a, const char *b)
{
    if (a.n != strlen(b)) {
        return false;
    }
    for (size_t i = 0; i < a.n; i++) {
        if (lower(a.p[i]) != lower(b[i])) {
            return false;
        }
    }
    return true;
}

int str_cmp(struct str a, struct str b)
{
    size_t n = MIN(a.n, b.n);
    int c = n == 0 ? 0 : memcmp(a.p, b.p, n);
    if (c != 0) {
        return c;
    }
    return a.n < b.n ? -1 : a.n > b.n ? 1 : 0;
}

bool str_starts(struct str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.n >= n && (n == 0 || memcmp(s.p, prefix, n) == 0);
}

bool str_ends(struct str s, const char *suffix)
{
    size_t n = strlen(suffix);
    return s.n >= n && (n == 0 || memcmp(s.p + s.n - n, suffix, n) == 0);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
    while (s.n > 0 && is_space(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && is_space(s.p[s.n - 1])) {
        s.n--;
    }
    return s;
}

struct str str_without_mark(struct str s)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t n = str_starts(s, mark) ? sizeof mark - 1 : 0;
    return (struct str){s.p + n, s.n - n};
}

struct str str_split(struct str *s, char sep)
{
    const char *at = s->n == 0 ? NULL : memchr(s->p, sep, s->n);
    struct str head = {s->p, at == NULL ? s->n : (size_t)(at - s->p)};
    size_t used = at == NULL ? s->n : head.n + 1;
    if (used > 0) {
        s->p += used;
        s->n -= used;
    }
    return head;
}

ptrdiff_t str_find(struct str s, struct str needle)
{
    if (needle.n == 0) {
        return 0;
    }
    const char *at = s.n == 0 ? NULL : memmem(s.p, s.n, needle.p, needle.n);
    return at == NULL ? -1 : at - s.p;
}

char *str_dup(struct str s)
{
    char *p = xmalloc(s.n + 1);
    if (s.n > 0) {
        memcpy(p, s.p, s.n);
    }
    p[s.n] = '\0';
    return p;
}

/* Length of the well-formed UTF-8 sequence at p, 0 when there is none (Unicode table 3-7). */
static size_t utf8_sequence(const uint8_t *p, size_t n)
{
    if (p[0] < 0x80) {
        return 1;
    }
    size_t len = p[0] >= 0xc2 && p[0] <= 0xdf   ? 2
                 : p[0] >= 0xe0 && p[0] <= 0xef ? 3
                 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                                : 0;
    if (len == 0 || n < len) {
        return 0;
    }
    uint8_t low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < len; i++) {
        if (p[i] < 0x80 || p[i] > 0xbf) {
            return 0;
        }
    }
    return len;
}

bool str_is_utf8(struct str s)
{
    for (size_t i = 0; i < s.n;) {
        size_t len = s.p[i] == '\0' ? 0 : utf8_sequence((const uint8_t *)s.p + i, s.n - i);
        if (len == 0) {
            return false;
        }
        i += len;
    }
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* v * 10 + digit, with sign: negative numbers are built downwards, so that INT64_MIN works. */
static bool push_digit(int64_t *v, char digit, bool negative)
{
    int64_t d = digit - '0';
    int64_t r;
    if (__builtin_mul_overflow(*v, (int64_t)10, &r) ||
        __builtin_add_overflow(r, negative ? -d : d, &r)) {
        return false;
    }
    *v = r;
    return true;
}

static bool bad_number(struct err *err, const char *what, struct str s)
{
    return err_set(err, ERR_INVALID, "not %s: '%.*s'", what, (int)MIN(s.n, (size_t)64),
                   s.p == NULL ? "" : s.p);
}

static bool in_range(struct str s, int64_t v, int64_t min, int64_t max, struct err *err)
{
    if (v < min || v > max) {
        return err_set(err, ERR_INVALID, "'%.*s' is not within %lld to %lld",
                       (int)MIN(s.n, (size_t)64), s.p, (long long)min, (long long)max);
    }
    return true;
}

bool parse_i64(struct str s, int64_t min, int64_t max, int64_t *ret, struct err *err)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    int64_t v = 0;
    size_t i = negative ? 1 : 0;
    if (i == s.n) {
        return bad_number(err, "a whole number", s);
    }
    for (; i < s.n; i++) {
        if (!is_digit(s.p[i]) || !push_digit(&v, s.p[i], negative)) {
            return bad_number(err, "a whole number that fits", s);
        }
    }
    if (!in_range(s, v, min, max, err)) {
        return false;
    }
    *ret = v;
    return true;
}

/* Digits, optionally a point and 1 to `digits` more; scaled by 10^digits. */
static bool scan_decimal(struct str s, int digits, int64_t *ret)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    size_t i = negative ? 1 : 0;
    size_t start = i;
    int64_t v = 0;
    int behind = 0;
    for (; i < s.n && is_digit(s.p[i]); i++) {
        if (!push_digit(&v, s.p[i], negative)) {
            return false;
        }
    }
    if (i == start) {
        return false;
    }
    if (i < s.n && s.p[i] == '.') {
        for (i++; i < s.n && is_digit(s.p[i]) && behind < digits; i++, behind++) {
            if (!push_digit(&v, s.p[i], negative)) {
                return false;
            }
        }
        if (behind == 0) {
            return false;
        }
    }
    for (; behind < digits; behind++) {
        if (!push_digit(&v, '0', negative)) {
            return false;
        }
    }
    *ret = v;
    return i == s.n;
}

bool parse_decimal(struct str s, int digits, int64_t min, int64_t max, int64_t *ret,
                   struct err *err)
{
    int64_t v;
    ASSERT(digits >= 0 && digits <= 18);
    if (!scan_decimal(s, digits, &v)) {
        return err_set(err, ERR_INVALID, "not a number with at most %d decimals: '%.*s'", digits,
                       (int)MIN(s.n, (size_t)64), s.p == NULL ? "" : s.p);
    }
    if (!in_range(s, v, min, max, err)) {
        return false;
    }
    *ret = v;
    return true;
}

static int64_t unit_seconds(char c)
{
    return c == 's' ? 1 : c == 'm' ? 60 : c == 'h' ? 3600 : c == 'd' ? 86400 : 0;
}

/* Units must decrease ("1h30m", not "30m1h"). A bare number means seconds and must stand alone. */
static bool scan_duration(struct str s, int64_t *ret)
{
    int64_t sum = 0;
    int64_t last = INT64_MAX;
    if (s.n == 0) {
        return false;
    }
    for (size_t i = 0; i < s.n;) {
        int64_t v = 0;
        size_t start = i;
        for (; i < s.n && is_digit(s.p[i]); i++) {
            if (!push_digit(&v, s.p[i], false)) {
                return false;
            }
        }
        if (i == start) {
            return false;
        }
        if (i == s.n) {
            *ret = v;
            return start == 0;
        }
        int64_t unit = unit_seconds(s.p[i++]);
        if (unit == 0 || unit >= last || __builtin_mul_overflow(v, unit, &v) ||
            __builtin_add_overflow(sum, v, &sum)) {
            return false;
        }
        last = unit;
    }
    *ret = sum;
    return true;
}

bool parse_duration_s(struct str s, int64_t min_s, int64_t max_s, int64_t *ret, struct err *err)
{
    int64_t v;
    if (!scan_duration(s, &v)) {
        return bad_number(err, "a duration like 90, 15m, 4h or 1h30m", s);
    }
    if (v < min_s || v > max_s) {
        return err_set(err, ERR_INVALID, "'%.*s' is not within %lld to %lld seconds",
                       (int)MIN(s.n, (size_t)64), s.p, (long long)min_s, (long long)max_s);
    }
    *ret = v;
    return true;
}

bool parse_usd(struct str s, int64_t *ret_musd, struct err *err)
{
    struct str number = s;
    int64_t v;
    if (str_ends(number, " USD")) {
        number.n -= strlen(" USD");
    }
    if (!scan_decimal(number, 6, &v) || v < 0 || number.p[0] == '-') {
        return bad_number(err, "an amount like '900 USD' or '12.50 USD'", s);
    }
    *ret_musd = v;
    return true;
}

size_t str_distance(struct str a, struct str b)
{
    if (str_eq(a, b)) {
        return 0;
    }
    if (a.n > DISTANCE_MAX || b.n > DISTANCE_MAX) {
        return DISTANCE_MAX;
    }
    size_t row[DISTANCE_MAX + 1];
    for (size_t j = 0; j <= b.n; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t above = row[j];
            size_t step = MIN(above, row[j - 1]) + 1;
            row[j] = MIN(step, diagonal + (a.p[i - 1] == b.p[j - 1] ? 0 : 1));
            diagonal = above;
        }
    }
    return row[b.n];
}
