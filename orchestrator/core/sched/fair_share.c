/* Shares are compared by cross products: no division, no rounding. */
#include "fair_share.h"

bool fair_share_before(const struct fair_share *a, const struct fair_share *b)
{
    ASSERT(a->weight >= 1 && b->weight >= 1);
    __int128 x = (__int128)a->held * b->weight;
    __int128 y = (__int128)b->held * a->weight;
    if (x != y) {
        return x < y;
    }
    x = (__int128)a->idle_us * a->weight;
    y = (__int128)b->idle_us * b->weight;
    return x != y ? x > y : a->id < b->id;
}
