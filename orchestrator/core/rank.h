/* Weighted fair share: who holds the fewest instances for its weight goes first; ties by id. */
#pragma once
#include "common/base.h"

struct rank_share {
    int64_t id;
    int64_t held;   /* instances, what the plan starts included */
    int64_t weight; /* >= 1 */
};
/* Does a go before b? A strict order: never true both ways, false both ways only for one id. */
bool rank_before(const struct rank_share *a, const struct rank_share *b);
