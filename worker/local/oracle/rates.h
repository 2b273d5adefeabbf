/* API rates: a token bucket per operation. Operations without a configured rate are not limited. */
#pragma once
#include "common/token_bucket.h"
#include "local/settings.h"

#define RATES_MAX 64

struct rate {
    const char *operation; /* borrowed from the settings */
    struct token_bucket bucket;
};
struct rates {
    struct rate items[RATES_MAX];
    size_t n;
};

bool rates_init(struct rates *r, const struct local_settings *set, struct err *err) MUST_CHECK;
/* Take a token; false: answer ThrottlingException. */
bool rates_allow(struct rates *r, const char *operation);
