/* How much of the passing time a thread was at work, and how much it waited for a processor. What
 * is left it was asleep. One thread's; init and take on that thread. */
#pragma once
#include "common/units.h"

struct own_time {
    int fd; /* the kernel's account of this thread; -1: only its CPU time is known */
    int64_t worked_us;
    int64_t waited_us;
};

void own_time_init(struct own_time *o);
void own_time_done(struct own_time *o);
/* Since the last call. */
void own_time_take(struct own_time *o, int64_t *ret_worked_us, int64_t *ret_waited_us);
