/* What is done now and then outside of the leader's transactions: how much of it at once, which
 * campaigns are due for an archive, and when it is looked for again. Pure. */
#pragma once
#include "common/units.h"

#define MAINTENANCE_EVENTS   5000 /* old events deleted at once, of days without a table */
#define MAINTENANCE_KEYS     500  /* expired idempotency keys deleted at once */
#define MAINTENANCE_ARCHIVES 100  /* archives asked for at once */

/* True: campaigns that ended before *ret_us are due for their archive; days: of the setting. */
bool leader_archive_before(usec_t now_us, int64_t days, usec_t *ret_us);
struct maintenance_done {
    bool ok;
    int64_t events, keys, archives; /* of this time */
};
/* When to come again, in us; done NULL: nothing was tried, since somebody else leads. */
int64_t leader_maintenance_again_us(const struct maintenance_done *done);
