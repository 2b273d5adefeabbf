/* See break_even.h. */
#include "break_even.h"
#include <math.h>

#define BREAK_EVEN_STEP_MAX 9e18

bool pace_of(int64_t from, double from_s, int64_t to, double to_s, struct pace *ret)
{
    if (to <= from || !(to_s > from_s)) {
        return false;
    }
    ret->step_s = (to_s - from_s) / ((double)to - (double)from);
    ret->overhead_s = from_s - (double)from * ret->step_s;
    return true;
}

enum ahead break_even(const struct pace *a, const struct pace *b, int64_t *ret_step)
{
    *ret_step = 0;
    if (b->step_s >= a->step_s) { /* it never gains; equal runs are not ahead of each other */
        return b->step_s == a->step_s && b->overhead_s < a->overhead_s ? AHEAD_ALWAYS : AHEAD_NEVER;
    }
    double at = (b->overhead_s - a->overhead_s) / (a->step_s - b->step_s);
    if (at <= 0) {
        return AHEAD_ALWAYS;
    }
    *ret_step = at < BREAK_EVEN_STEP_MAX ? (int64_t)floor(at) + 1 : INT64_MAX;
    return AHEAD_FROM;
}
