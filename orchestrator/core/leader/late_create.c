/* See late_create.h. */
#include "late_create.h"

bool late_create_possible(const struct late_create *l, usec_t now_us, int64_t boot_us)
{
    if (l->made && now_us < l->last_us + LATE_READABLE_US) {
        return true;
    }
    return l->signed_us > 0 && boot_us < l->signed_us + l->window_us &&
           now_us < l->last_us + 2 * l->window_us;
}

int64_t late_create_look_us(int64_t window_ends_us, int64_t boot_us)
{
    int64_t soonest_us = boot_us + USEC_PER_SEC;
    return MIN(MAX(window_ends_us, soonest_us), boot_us + 10 * USEC_PER_SEC);
}
