/* Token bucket. Pure: the time is a parameter. Counts micro-tokens, so any rate is exact. */
#pragma once
#include "units.h"

struct token_bucket {
    int64_t rate_per_s_u; /* micro-tokens per second */
    int64_t burst_u;
    int64_t tokens_u;
    int64_t at_us; /* monotonic */
};
void token_bucket_init(struct token_bucket *b, double rate_per_s, double burst,
                       int64_t now_mono_us);
/* takes one token, or returns false */
bool token_bucket_take(struct token_bucket *b, int64_t now_mono_us);
int64_t token_bucket_wait_us(const struct token_bucket *b,
                             /* microseconds until one token is available; 0 = now */
                             int64_t now_mono_us);
int64_t token_bucket_available(const struct token_bucket *b,
                               int64_t now_mono_us); /* whole tokens */
void token_bucket_set_rate(struct token_bucket *b, double rate_per_s, int64_t now_mono_us);
