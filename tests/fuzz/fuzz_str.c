/* Numbers, times and encodings: what parses lies in its range, what encodes decodes. */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/str.h"
#include "fuzz.h"

static void check_times(const char *s)
{
    usec_t t;
    usec_t back;
    char text[32];
    char amz[17];
    if (clock_parse_rfc3339(s, &t, NULL)) {
        clock_format_rfc3339(t, true, text);
        ASSERT(clock_parse_rfc3339(text, &back, NULL));
        /* A zone can lead out of the years that text can hold. */
        ASSERT(back == t || strncmp(s, "9999", 4) == 0 || strncmp(s, "0000", 4) == 0);
    }
    if (clock_parse_http(s, &t, NULL)) {
        clock_format_http(t, text);
        ASSERT(clock_parse_http(text, &back, NULL) && back == t);
    }
    if (clock_parse_amz(s, &t, NULL)) {
        clock_format_amz(t, amz);
        ASSERT(strcmp(amz, s) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, MIN(size, (size_t)65536)};
    int64_t v = 5;
    (void)!parse_i64(in, -10, 1000, &v, NULL);
    ASSERT(v >= -10 && v <= 1000);
    (void)!parse_decimal(in, 6, 0, 1000, &v, NULL);
    ASSERT(v >= -10 && v <= 1000);
    (void)!parse_duration_s(in, 0, 1000, &v, NULL);
    ASSERT(v >= -10 && v <= 1000);
    v = 0;
    (void)!parse_usd(in, &v, NULL);
    ASSERT(v >= 0);
    AUTO_FREE char *copy = str_dup(in);
    check_times(copy);
    AUTO_BUF struct buf a = BUF_INIT((size_t)1 << 20);
    AUTO_BUF struct buf b = BUF_INIT((size_t)1 << 20);
    str_url_encode(&a, in, false);
    ASSERT(str_url_decode(&b, buf_str(&a), true) && str_eq(buf_str(&b), in));
    buf_reset(&a);
    buf_reset(&b);
    str_base64(&a, in.p, in.n);
    ASSERT(a.n == (in.n + 2) / 3 * 4);
    buf_reset(&a);
    (void)!str_url_decode(&a, in, false);
    struct str rest = in;
    struct str half = str_split(&rest, '\n');
    ASSERT(str_distance(half, rest) == str_distance(rest, half));
    ASSERT(str_distance(half, half) == 0);
    (void)str_is_utf8(in);
    return 0;
}
