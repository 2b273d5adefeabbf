/* Weighted fair share: the one that holds the fewest instances for its weight goes first. Among
 * equals (the usual case when there are more of them than slots) the longest wait since the last
 * start, times the weight, goes first; ties by id. */
#pragma once
#include "common/base.h"

struct fair_share {
    int64_t id;
    int64_t held;    /* instances, including those the plan starts */
    int64_t weight;  /* >= 1 */
    int64_t idle_us; /* since its last start */
};
/* True when a goes before b. A strict order: at most one direction is true, and both are false only
 * for equal ids. */
bool fair_share_before(const struct fair_share *a, const struct fair_share *b);
