/* Token bucket in micro-tokens. Invariants: 1. 0 <= tokens_u <= burst_u. 2. at_us advances only
 * over time whose tokens were credited, so a bucket of one token per hour still fills when it is
 * read every millisecond. */
#include "common/token_bucket.h"
#include <math.h>

#define TOKEN_U    INT64_C(1000000)
#define RATE_U_MAX INT64_C(1000000000000000) /* 10^9 tokens a second */

__extension__ typedef __int128 wide;

static int64_t micro(double tokens)
{
    ASSERT(isfinite(tokens) && tokens >= 0);
    return (int64_t)fmin(tokens * (double)TOKEN_U + 0.5, (double)RATE_U_MAX);
}

/* A burst below one token counts as one, because nothing could ever be taken. The bucket starts
 * full. */
void token_bucket_init(struct token_bucket *b, double rate_per_s, double burst, int64_t now_mono_us)
{
    *b = (struct token_bucket){.rate_per_s_u = micro(rate_per_s), .at_us = now_mono_us};
    b->burst_u = MAX(micro(burst), TOKEN_U);
    b->tokens_u = b->burst_u;
}

static void refill(struct token_bucket *b, int64_t now_mono_us)
{
    int64_t elapsed = now_mono_us - b->at_us;
    if (elapsed <= 0) {
        return;
    }
    wide grown = (wide)elapsed * b->rate_per_s_u;
    wide gain = grown / USEC_PER_SEC;
    if (gain >= b->burst_u - b->tokens_u) {
        b->tokens_u = b->burst_u;
        b->at_us = now_mono_us;
        return;
    }
    b->tokens_u += (int64_t)gain;
    /* The part of a micro-token that is left over stays as time not yet credited. */
    int64_t rest_us =
        b->rate_per_s_u == 0 ? elapsed : (int64_t)(grown % USEC_PER_SEC / b->rate_per_s_u);
    b->at_us = now_mono_us - rest_us;
}

bool token_bucket_take(struct token_bucket *b, int64_t now_mono_us)
{
    /* A refused take changes nothing, so frequent calls lose no fractions. */
    struct token_bucket after = *b;
    refill(&after, now_mono_us);
    if (after.tokens_u < TOKEN_U) {
        return false;
    }
    after.tokens_u -= TOKEN_U;
    *b = after;
    return true;
}

int64_t token_bucket_wait_us(const struct token_bucket *b, int64_t now_mono_us)
{
    if (token_bucket_available(b, now_mono_us) > 0) {
        return 0;
    }
    if (b->rate_per_s_u == 0) {
        return INT64_MAX;
    }
    wide missing = (wide)(TOKEN_U - b->tokens_u) * USEC_PER_SEC;
    wide wait = (missing + b->rate_per_s_u - 1) / b->rate_per_s_u - (now_mono_us - b->at_us);
    return wait > INT64_MAX ? INT64_MAX : (int64_t)wait;
}

int64_t token_bucket_available(const struct token_bucket *b, int64_t now_mono_us)
{
    struct token_bucket after = *b;
    refill(&after, now_mono_us);
    return after.tokens_u / TOKEN_U;
}

void token_bucket_set_rate(struct token_bucket *b, double rate_per_s, int64_t now_mono_us)
{
    refill(b, now_mono_us);
    b->at_us = MAX(b->at_us, now_mono_us);
    b->rate_per_s_u = micro(rate_per_s);
}
