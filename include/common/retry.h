/* Back-off with full jitter, pure. delay = rand(0,1) * min(base * 2^n, cap), never under floor. */
#pragma once
#include "rng.h"
#include "units.h"

struct retry_policy {
    int64_t base_us;
    int64_t cap_us;
    int64_t floor_us;
};
/* Delay before try n+1 after n >= 0 failures. Pure but for the generator's state. */
int64_t retry_delay_us(const struct retry_policy *p, int failures, struct rng *rng);
