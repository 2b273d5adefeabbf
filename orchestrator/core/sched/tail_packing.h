/* Look-ahead over the last tasks of a stage: the waiting ones are laid out over the slots as they
 * are expected to come free, so that the last one ends early. A slot that is free now starts the
 * longest task laid out for it. Longest-first alone leaves slots uneven at the end by about half a
 * small task. Pure, deterministic, no allocation, bounded work. */
#pragma once
#include "core/model.h"

#define TAIL_PACKING_TASKS_MAX  256
#define TAIL_PACKING_SLOTS_MAX  64
#define TAIL_PACKING_ROUNDS_MAX 64

/* run_us[n]: expected run times, longest first, each > 0. wait_us[m]: time until each slot is free,
 * ascending, 0: now. ret[m]: for each slot that is free now, the task to start (index into run_us),
 * longest first. Returns their number. 1 <= n <= TAIL_PACKING_TASKS_MAX, 1 <= m <=
 * TAIL_PACKING_SLOTS_MAX. */
size_t tail_packing_choose(const int64_t *run_us, size_t n, const int64_t *wait_us, size_t m,
                           int *ret);
