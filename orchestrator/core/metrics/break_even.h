/* From which step on one run is ahead of another that began sooner to make steps. Pure. */
#pragma once
#include "common/base.h"

struct pace {          /* of a run, from two of its steps after the warm-up */
    double step_s;     /* seconds a step; > 0 */
    double overhead_s; /* since its program began: what is not steps at that pace */
};
/* Step `from` was over from_s seconds after the program began, step `to` at to_s. False unless both
 * grow. */
bool pace_of(int64_t from, double from_s, int64_t to, double to_s, struct pace *ret);

enum ahead { AHEAD_NEVER, AHEAD_ALWAYS, AHEAD_FROM };
/* Whether b is ahead of a in the end. AHEAD_FROM: from step *ret_step on. */
enum ahead break_even(const struct pace *a, const struct pace *b, int64_t *ret_step);
