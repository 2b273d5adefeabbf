/* Time and money are integers with the unit in the name: microseconds and micro-USD. */
#pragma once
#include "base.h"

typedef int64_t usec_t; /* an instant in microseconds since the epoch; spans are named ..._us */
typedef int64_t musd_t; /* micro-USD */

#define USEC_PER_SEC  INT64_C(1000000)
#define USEC_PER_MSEC INT64_C(1000)
#define USEC_PER_DAY  (INT64_C(86400) * USEC_PER_SEC)
#define MUSD_PER_USD  INT64_C(1000000)
#define USEC_NEVER    INT64_MAX

/* *ret = a + b. False on overflow, with *ret unchanged. */
static inline MUST_CHECK bool add_i64(int64_t a, int64_t b, int64_t *ret)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r)) {
        return false;
    }
    *ret = r;
    return true;
}

/* *ret = a * b / div rounded half up. Requires a, b >= 0 and div > 0. False when the result exceeds
 * int64. */
static inline MUST_CHECK bool muldiv_i64(int64_t a, int64_t b, int64_t div, int64_t *ret)
{
    __extension__ typedef __int128 wide;
    ASSERT(a >= 0 && b >= 0 && div > 0);
    wide r = ((wide)a * b * 2 + div) / ((wide)2 * div);
    if (r > INT64_MAX) {
        return false;
    }
    *ret = (int64_t)r;
    return true;
}
