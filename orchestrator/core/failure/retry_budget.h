/* Bounds the share of retries in all API calls: a token bucket filled by first tries. For any
 * number of failures, retries <= RETRY_BUDGET_SHARE % of first tries + the burst + one per trickle
 * interval. Without the trickle the end of an outage without new calls would never be noticed. One
 * bucket for all calls of the one layer that retries. Pure: the time is a parameter (monotonic). */
#pragma once
#include "common/retry.h"

#define RETRY_BUDGET_SHARE      10                  /* per cent of first tries */
#define RETRY_BUDGET_BURST      10                  /* maximum retries saved */
#define RETRY_BUDGET_TRICKLE_US (60 * USEC_PER_SEC) /* one more retry per this time */

struct retry_budget {
    int64_t saved; /* hundredths of a retry; 0 .. burst * 100 */
    int64_t burst;
    int64_t trickle_us;  /* 0: no trickle */
    int64_t trickled_us; /* time up to which the trickle is credited */
};
/* Starts full. burst >= 1. */
void retry_budget_init(struct retry_budget *b, int64_t burst, int64_t trickle_us,
                       int64_t now_mono_us);
/* Record the first try of a call, with any outcome. */
void retry_budget_first(struct retry_budget *b);
/* True when a call may be retried now; takes the token. */
bool retry_budget_take(struct retry_budget *b, int64_t now_mono_us);
/* Time until the trickle alone allows a retry: ask again then, or after the next first try. 0: now;
 * INT64_MAX: only after first tries. */
int64_t retry_budget_wait_us(const struct retry_budget *b, int64_t now_mono_us);
