/* Since when a file system is there and when its time is over: its ttl counts from its creation as
 * AWS tells it, and so for long as it waits to be created nothing of it has passed. Pure. */
#pragma once
#include "leader_state.h"

#define FILESYSTEM_CREATE_MAX_US (INT64_C(7200) * USEC_PER_SEC) /* longer: it has failed */
#define FILESYSTEM_EXPORT_MAX_US (INT64_C(3600) * USEC_PER_SEC) /* after its time is over */

/* When its time is over; before it is created, what can be said if that comes soon. */
usec_t leader_filesystem_until(const struct filesystem_row *r);
/* When it is deleted although its export has not succeeded. */
usec_t leader_filesystem_deadline(const struct filesystem_row *r);
/* Its export was tried some times, each in vain, and none is under way. */
bool leader_filesystem_in_vain(const struct live_filesystem *f);
/* EXPORTING: why it is deleted before that deadline, since its export is in vain: an hour after its
 * end began when a person asked for that or its campaign was cancelled; a day when its campaign has
 * ended, for then nobody said that what is in it is not wanted. NULL: it is exported on. */
const char *leader_filesystem_given_up(const struct leader_state *s,
                                       const struct live_filesystem *f, usec_t now_us);
/* How long it still has, EXPORTING for that; 0: its time is over. While AWS' clock is not known for
 * sure it is not: what is deleted does not come back. */
int64_t leader_filesystem_left_us(const struct leader_state *s, const struct filesystem_row *r,
                                  usec_t now_us);
/* Since when it is there, at the latest: by AWS' clock or by ours; before, its intent. */
usec_t leader_filesystem_made_us(const struct filesystem_row *r);
/* AWS says since when it is billed; 0: not said. What its row says counts, unless that lies before
 * its intent: then nobody knows it but AWS. */
void leader_filesystem_created(struct live_filesystem *f, usec_t told_us, usec_t now_us);
