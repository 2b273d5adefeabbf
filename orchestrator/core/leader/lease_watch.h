/* The lease: when ours has to be renewed and when it has lapsed; when a standby may take over from
 * somebody else. Pure; times are CLOCK_BOOTTIME of one machine. */
#pragma once
#include "common/units.h"
#include "tx_error.h"

struct lease_terms {
    int64_t length_us, renew_us;
};
/* The end of a lease that was asked for at asked_us: counted from before the request was sent. */
int64_t lease_end_us(const struct lease_terms *t, int64_t asked_us);
/* The timer was a moment early, or a lock delayed the renewal: it is tried again after this. */
int64_t lease_renew_again_us(const struct lease_terms *t);
/* The longest lease that may last, which a renewal keeps in the row: longest_us as the takeover
 * found it until alone_us, from when on nobody else's lasts, then our own. */
int64_t lease_longest_us(const struct lease_terms *t, int64_t longest_us, int64_t alone_us,
                         int64_t boot_us);
/* The length that the lease's row tells, which may be another droverd's. What is longer than any
 * setting allows nobody has written: then our own counts. */
int64_t lease_told_us(const struct lease_terms *t, int64_t row_length_us);
bool lease_renewal_due(const struct lease_terms *t, int64_t end_us, int64_t boot_us);
/* After a renewal that failed: true when the lease stays ours until it lapses, since only a lock or
 * a time-out was in its way. */
bool lease_outlives_renewal(enum tx_meaning failed);
/* Nothing may be signed or committed any more; a request that waits to be sent is dropped. */
bool lease_lapsed(int64_t end_us, int64_t boot_us);

/* What a standby has seen of the leader; all zero at first. */
struct lease_watch {
    int64_t renewals, renewals_at_us;
    int failures; /* to reach the database, in a row */
};
enum lease_step {
    LEASE_STEP_TAKE,             /* nobody holds the lock */
    LEASE_STEP_WAIT,             /* its holder renews, or may do so in time */
    LEASE_STEP_TAKE_FROM_FROZEN, /* its holder has not renewed for a whole lease */
};
/* locked: the advisory lock is ours; else renewals and length_us are of the lease's row. We may be
 * frozen between question and answer: what is new was there at answered_us at the latest, what is
 * old was so at asked_us. */
struct lease_look {
    bool locked;
    int64_t renewals, length_us, asked_us, answered_us;
};
enum lease_step lease_watch_step(struct lease_watch *w, const struct lease_look *l,
                                 const struct lease_terms *t);

enum lease_try {
    LEASE_TRY_NO_DATABASE,
    LEASE_TRY_NOT_DURABLE, /* its settings would lose commits: not led */
    LEASE_TRY_FAILED,
    LEASE_TRY_HELD, /* somebody else leads */
    LEASE_TRY_LOST, /* we have led a moment ago */
    LEASE_TRY_LEADS,
};
/* How a try to lead ended. Returns the pause before the next; -1 while we lead. */
int64_t lease_watch_pause_us(struct lease_watch *w, enum lease_try how,
                             const struct lease_terms *t);
