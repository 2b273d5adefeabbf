/* Weighted fair share: who holds the fewest instances for its weight goes first. Of equals, which
 * is what most are when there are more of them than slots, who has waited longest since its last
 * start, times its weight; ties by id. */
#pragma once
#include "common/base.h"

struct fair_share {
    int64_t id;
    int64_t held;    /* instances, what the plan starts included */
    int64_t weight;  /* >= 1 */
    int64_t idle_us; /* since its last start */
};
/* Does a go before b? A strict order: never true both ways, false both ways only for one id. */
bool fair_share_before(const struct fair_share *a, const struct fair_share *b);
