/* See absence.h. */
#include "absence.h"
#include "core/money/cost.h"

#define LOOKED_FOR_US                                                                              \
    (900 * USEC_PER_SEC) /* as long as a signature of its Create may be honoured */

usec_t absence_last_end(usec_t began, int64_t runtime_s)
{
    usec_t end;
    int64_t span_s, span_us;
    bool fits = !__builtin_add_overflow(runtime_s, COST_STOP_GRACE_S + COST_UPLOAD_S, &span_s) &&
                !__builtin_mul_overflow(span_s, USEC_PER_SEC, &span_us) &&
                !__builtin_add_overflow(began, span_us, &end);
    return fits ? end : USEC_NEVER;
}

bool absence_proven(int64_t *unfound_us, usec_t last_end_us, usec_t now_us, int64_t boot_us)
{
    if (*unfound_us == 0) {
        *unfound_us = boot_us;
    }
    return now_us > last_end_us && boot_us - *unfound_us >= LOOKED_FOR_US;
}
