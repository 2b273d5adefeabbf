/* Bills that come late. A job that Describe shows as ended without BillableTimeInSeconds is settled
 * at once by what it costs at most (cost_billable_s), so that slots, parts and stages wait for
 * nothing and no cap is passed by a bill that is too low. Its row says so, and it is described
 * again until its bill is there: then the difference is booked, whether its campaign goes on, has
 * ended or has left memory; what its rules have found by then comes with it. After the last time
 * it stays an estimate. A stray (strays.h) is booked by an estimate, with its idle pool, when its
 * bill has not come for minutes; it is corrected, too. So is a job that was found at AWS before the
 * price of its type was known: it is booked as 0, which is an estimate, and corrected once there is
 * one. Seconds that are estimated as well are booked as 0, too: a bill of fewer would take seconds
 * back and add money, which no entry does.
 *
 * The times count from when this leader has read the row: another leader begins again, so a bill is
 * given up only by one that has asked in vain for hours. Pure; boot_us is CLOCK_BOOTTIME. */
#pragma once
#include "core/capacity/job_report.h"
#include "leader_state.h"

/* Rows that are still asked for; those that are known stay as they are. */
void leader_take_bills(struct leader_state *s, const struct bill_row *rows, size_t n,
                       int64_t boot_us);
/* Prices were read: rows without one are read again, with what is known by now. */
void leader_forget_unpriced_bills(struct leader_state *s);
/* Whose job is described next; NULL: none yet, and *wake_us is lowered to when to ask again. */
struct live_bill *leader_bill_next(struct leader_state *s, int64_t boot_us, int64_t *wake_us);
struct live_bill *leader_bill_of(struct leader_state *s, const char *job);

enum bill_fate {
    BILL_UNANSWERED, /* the call failed, or told of an older time: asked again after a back-off */
    BILL_AWAITED,    /* not there yet: asked again at its time */
    BILL_CAME,       /* *ret is to be written */
    BILL_NEVER,      /* given up, which is to be written */
    BILL_GONE        /* its row has gone another way */
};
/* What a Describe says. job NULL: the call failed, or (not_found) no job has this name. */
enum bill_fate leader_plan_bill(const struct live_bill *b, const struct job_description *job,
                                bool not_found, int64_t boot_us, struct bill_correction *ret);
/* It is committed, or needed no commit. correction: of CAME, else not looked at. */
void leader_apply_bill(struct leader_state *s, const char *job, enum bill_fate fate,
                       const struct bill_correction *correction, int64_t boot_us);
