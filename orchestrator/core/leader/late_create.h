/* A create whose answer was lost may still take effect while AWS honours its signature, and would
 * make again what is gone; and what was just made may not be readable everywhere. So nothing proves
 * an absence before that time is over. */
#pragma once
#include "common/units.h"
#include <stdbool.h>

struct late_create {
    int64_t signed_us; /* the last create was signed, by CLOCK_BOOTTIME; 0: it was answered */
    usec_t last_us;    /* after it none was signed: the thing was known, or its end had begun */
    int64_t window_us; /* how long AWS honours a signature */
    bool made;         /* at last_us it was made, and nothing has deleted it since */
};
#define LATE_READABLE_US (60 * USEC_PER_SEC) /* so long what was made may be unreadable */

/* now_us: the wall clock; boot_us: CLOCK_BOOTTIME. A new leader does not know when the last create
 * was signed and takes its own start for it; last_us bounds that, however often the leader changes:
 * by twice the window, since it was read from another clock, perhaps. */
bool late_create_possible(const struct late_create *l, usec_t now_us, int64_t boot_us);
/* When to look for it again, by CLOCK_BOOTTIME: within ten seconds, and once the window is over. */
int64_t late_create_look_us(int64_t window_ends_us, int64_t boot_us);
