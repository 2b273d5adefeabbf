/* See s3_range.h. */
#include "s3_range.h"

int s3_range_parse(struct str v, int64_t size, int64_t *ret_from, int64_t *ret_n)
{
    struct err err = ERR_INIT;
    if (!str_starts(v, "bytes=") || memchr(v.p, ',', v.n) != NULL) {
        return 0;
    }
    struct str to = {v.p + 6, v.n - 6};
    struct str from = str_split(&to, '-');
    int64_t a = 0;
    int64_t b = size - 1;
    if (from.n == 0) {
        int64_t last;
        if (!parse_i64(to, 0, INT64_MAX, &last, &err)) {
            return 0;
        }
        a = MAX(INT64_C(0), size - last);
        if (last == 0) {
            return -1;
        }
    } else if (!parse_i64(from, 0, INT64_MAX, &a, &err) ||
               (to.n > 0 && (!parse_i64(to, 0, INT64_MAX, &b, &err) || b < a))) {
        return 0;
    }
    if (a >= size) {
        return -1;
    }
    *ret_from = a;
    *ret_n = MIN(b, size - 1) - a + 1;
    return 1;
}
