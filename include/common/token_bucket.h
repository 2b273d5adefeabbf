/* Token bucket, pure: the clock is passed in. Tokens are counted in micro-tokens, so any rate is
 * exact. */
#pragma once
#include "units.h"

struct bucket {
    int64_t rate_per_s_u; /* micro-tokens a second */
    int64_t burst_u;
    int64_t tokens_u;
    int64_t at_us; /* monotonic */
};
void bucket_init(struct bucket *b, double rate_per_s, double burst, int64_t now_mono_us);
bool bucket_take(struct bucket *b, int64_t now_mono_us); /* one token, or false */
int64_t bucket_wait_us(const struct bucket *b,
                       int64_t now_mono_us); /* until one token is there; 0 = now */
int64_t bucket_available(const struct bucket *b, int64_t now_mono_us); /* whole tokens */
void bucket_set_rate(struct bucket *b, double rate_per_s, int64_t now_mono_us);
