/* Back-off with full jitter: delay = rand(0,1) * min(base * 2^n, cap), at least floor. */
#pragma once
#include "rng.h"
#include "units.h"

struct retry_policy {
    int64_t base_us;
    int64_t cap_us;
    int64_t floor_us;
};
/* base_us doubled with each of n >= 0 failures, at most cap_us. Pure. */
static inline int64_t retry_step_us(int64_t base_us, int64_t cap_us, int failures)
{
    int64_t us = base_us;
    for (int i = 0; i < failures && us < cap_us && us > 0; i++) {
        us = us > INT64_MAX / 2 ? INT64_MAX : us * 2;
    }
    return MIN(us, cap_us);
}
/* Delay in microseconds after n >= 0 failures. Pure except for the generator's state. */
int64_t retry_delay_us(const struct retry_policy *p, int failures, struct rng *rng);
