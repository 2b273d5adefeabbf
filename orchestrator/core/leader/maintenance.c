/* See maintenance.h. */
#include "maintenance.h"

#define EVERY_US             (3600 * USEC_PER_SEC)
#define MAINTENANCE_AGAIN_US (60 * USEC_PER_SEC) /* after a failure: there are two days to try */
#define SOON_US              USEC_PER_SEC        /* there may be more to do */
#define DAY_US               (24 * 3600 * USEC_PER_SEC)

bool leader_archive_before(usec_t now_us, int64_t days, usec_t *ret_us)
{
    *ret_us = now_us - days * DAY_US;
    return days > 0;
}

int64_t leader_maintenance_again_us(const struct maintenance_done *done)
{
    if (done == NULL) {
        return EVERY_US;
    }
    bool more = done->events == MAINTENANCE_EVENTS || done->keys == MAINTENANCE_KEYS ||
                done->archives == MAINTENANCE_ARCHIVES;
    return !done->ok ? MAINTENANCE_AGAIN_US : more ? SOON_US : EVERY_US;
}
