/* The retry token bucket counts hundredths of a retry, so a share in per cent is exact. */
#include "retry_budget.h"

#define RETRY INT64_C(100)

void retry_budget_init(struct retry_budget *b, int64_t burst, int64_t trickle_us,
                       int64_t now_mono_us)
{
    ASSERT(burst >= 1 && burst <= INT32_MAX && trickle_us >= 0);
    *b = (struct retry_budget){.saved = burst * RETRY,
                               .burst = burst,
                               .trickle_us = trickle_us,
                               .trickled_us = now_mono_us};
}

void retry_budget_first(struct retry_budget *b)
{
    b->saved = MIN(b->saved + RETRY_BUDGET_SHARE, b->burst * RETRY);
}

/* Credit whole trickles; the remaining time is credited later. A full bucket saves no time. */
static void trickle(struct retry_budget *b, int64_t now_mono_us)
{
    if (b->trickle_us == 0 || now_mono_us <= b->trickled_us) {
        return;
    }
    int64_t n = (now_mono_us - b->trickled_us) / b->trickle_us;
    bool full = n >= b->burst || b->saved + n * RETRY >= b->burst * RETRY;
    b->saved = full ? b->burst * RETRY : b->saved + n * RETRY;
    b->trickled_us = full ? now_mono_us : b->trickled_us + n * b->trickle_us;
}

bool retry_budget_take(struct retry_budget *b, int64_t now_mono_us)
{
    trickle(b, now_mono_us);
    if (b->saved < RETRY) {
        return false;
    }
    b->saved -= RETRY;
    return true;
}

int64_t retry_budget_wait_us(const struct retry_budget *b, int64_t now_mono_us)
{
    struct retry_budget then = *b;
    trickle(&then, now_mono_us);
    if (then.saved >= RETRY) {
        return 0;
    }
    return then.trickle_us == 0 ? INT64_MAX : then.trickled_us + then.trickle_us - now_mono_us;
}
