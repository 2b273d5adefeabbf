/* Measures how long a thread ran and how long it waited for a processor; the rest it slept. Belongs
 * to one thread; call init and take on that thread. */
#pragma once
#include "common/units.h"

struct own_time {
    int fd; /* the kernel's statistics of this thread; -1: only its CPU time is known */
    int64_t worked_us;
    int64_t waited_us;
};

void own_time_init(struct own_time *o);
void own_time_done(struct own_time *o);
/* Times since the last call. */
void own_time_take(struct own_time *o, int64_t *ret_worked_us, int64_t *ret_waited_us);
