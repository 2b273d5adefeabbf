/* Back-off with full jitter. Source: "Exponential Backoff And Jitter", AWS Architecture Blog. */
#include "common/retry.h"

int64_t retry_delay_us(const struct retry_policy *p, int failures, struct rng *rng)
{
    ASSERT(failures >= 0);
    ASSERT(p->base_us >= 0 && p->cap_us >= 0 && p->floor_us >= 0);
    int64_t most = retry_step_us(p->base_us, p->cap_us, failures);
    int64_t delay = (int64_t)(rng_unit(rng) * (double)most);
    return MAX(delay, p->floor_us);
}
