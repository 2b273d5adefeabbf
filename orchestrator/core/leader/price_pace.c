/* See price_pace.h. */
#include "price_pace.h"
#include "common/retry.h"

#define PRICE_AGAIN_US     (5 * USEC_PER_SEC)
#define PRICE_AGAIN_MAX_US (3600 * USEC_PER_SEC)

int64_t price_pace_first_us(int64_t every_us, int64_t age_us)
{
    return age_us < 0 ? 0 : MAX(every_us - age_us, INT64_C(0));
}

int64_t price_pace_failed_us(int64_t every_us, int *failures)
{
    int64_t again_us = retry_step_us(PRICE_AGAIN_US, PRICE_AGAIN_MAX_US, *failures);
    *failures = MIN(*failures + 1, 1000);
    return MIN(again_us, every_us);
}

int64_t price_pace_unwritten_us(void)
{
    return PRICE_AGAIN_US;
}
