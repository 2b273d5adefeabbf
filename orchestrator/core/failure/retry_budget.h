/* How much of all API calls may be retries: a token bucket that first tries fill. However many
 * calls fail, and for however long, retries <= RETRY_BUDGET_SHARE % of first tries + the burst +
 * one a trickle. Without the trickle an outage in which nothing new is tried would never be seen to
 * end. One for all calls of one layer, which is the only one that retries. Pure: the clock is
 * passed in (monotonic). */
#pragma once
#include "common/retry.h"

#define RETRY_BUDGET_SHARE      10                  /* per cent of first tries */
#define RETRY_BUDGET_BURST      10                  /* retries saved up at most */
#define RETRY_BUDGET_TRICKLE_US (60 * USEC_PER_SEC) /* one more in this time */
#define RETRY_BUDGET_AFTER_MAX_US                                                                  \
    (60 * 60 * USEC_PER_SEC) /* a longer Retry-After counts as this  \
                                                            */

struct retry_budget {
    int64_t saved; /* hundredths of a retry; 0 .. burst * 100 */
    int64_t burst;
    int64_t trickle_us;  /* 0: none */
    int64_t trickled_us; /* up to when the trickle was credited */
};
/* Starts full. burst >= 1. */
void retry_budget_init(struct retry_budget *b, int64_t burst, int64_t trickle_us,
                       int64_t now_mono_us);
/* A call is made for the first time, whatever becomes of it. */
void retry_budget_first(struct retry_budget *b);
/* May a call be made again now? True takes the token. */
bool retry_budget_take(struct retry_budget *b, int64_t now_mono_us);
/* When the trickle alone will allow one: ask again then, or after the next first try. 0: now;
 * INT64_MAX: not without first tries. */
int64_t retry_budget_wait_us(const struct retry_budget *b, int64_t now_mono_us);
/* How long to wait before retry n+1 after n >= 0 failures: full jitter, and what Retry-After asks
 * for (0: nothing) before that, so that those who were told the same time do not come together. */
int64_t retry_budget_delay_us(const struct retry_policy *p, int failures, int64_t retry_after_us,
                              struct rng *rng);
