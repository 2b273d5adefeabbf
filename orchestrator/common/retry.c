/* Back-off with full jitter. Source: "Exponential Backoff And Jitter", AWS Architecture Blog. */
#include "common/retry.h"

int64_t retry_delay_us(const struct retry_policy *p, int failures, struct rng *rng)
{
    ASSERT(failures >= 0);
    ASSERT(p->base_us >= 0 && p->cap_us >= 0 && p->floor_us >= 0);
    int64_t most = p->base_us;
    for (int i = 0; i < failures && most < p->cap_us && most > 0; i++) {
        most = most > INT64_MAX / 2 ? INT64_MAX : most * 2;
    }
    most = MIN(most, p->cap_us);
    int64_t delay = (int64_t)(rng_unit(rng) * (double)most);
    return MAX(delay, p->floor_us);
}
