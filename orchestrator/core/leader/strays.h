/* Strays: jobs of this installation that are no attempt of it, because a failover or a restore has
 * lost their rows, or because they came to life after their attempt was given up. A stray holds
 * slots and money of the installation until a Describe shows its end, then it is booked on a line
 * of its own. Pure; boot_us is CLOCK_BOOTTIME. */
#pragma once
#include "core/capacity/job_report.h"
#include "leader_state.h"

/* The row of a job that is a stray; campaign_id, task_id and n are the caller's to set. False: the
 * job does not say what it uses. */
bool leader_plan_stray(struct leader_state *s, const struct job_description *job, const char *arn,
                       const char *why, struct stray_row *ret);
/* The row is committed: slots and money are held. A name that is known is taken once. */
void leader_apply_stray(struct leader_state *s, const struct stray_row *row);
/* At takeover, and again at any time: the open rows as they are now. Slots and money count already,
 * by rows of their own. True: a stop was asked for. */
bool leader_take_strays(struct leader_state *s, const struct stray_row *rows, size_t n);
struct live_stray *leader_stray_named(struct leader_state *s, const char *name);
/* A List shows it. */
void leader_stray_listed(struct leader_state *s, const char *name, const char *status);

enum stray_action { STRAY_ACT_NONE, STRAY_ACT_DESCRIBE, STRAY_ACT_STOP, STRAY_ACT_END_POOL };
/* The next call about a stray that has none under way. *wake_us is lowered to when to ask again. */
enum stray_action leader_stray_next(const struct live_stray *st, int64_t boot_us, int64_t *wake_us);
/* The call was answered; failed: no other before its back-off, and then a look first. True: *job is
 * a description to be looked at. A job that is not found is asked about again: it was there. Once
 * it is gone (absence.h), *job becomes one that ran, and kept its pool, for as long as it could.
 * now_us: wall. */
bool leader_stray_answered(struct live_stray *st, enum stray_action action, bool failed,
                           bool not_found, usec_t now_us, int64_t boot_us,
                           struct job_description *job);
/* What job and idle pool of a stray cost together, as a Describe of the ended job tells: one line
 * of the ledger, two of the bill, each rounded by itself. False: more than can be booked. */
bool leader_stray_cost(const struct job_description *job, int instances, musd_t price_musd_per_hour,
                       int64_t *ret_s, musd_t *ret_musd, bool *ret_estimated);
enum stray_seen {
    STRAY_AS_BEFORE,
    STRAY_NEWS, /* its row is to say so */
    STRAY_OVER, /* it and its pool have ended: *ret is to be written */
};
/* It was found while no price of its type was known, and one is by now: *ret is its row with that
 * and with what is reserved by it, to be written. */
bool leader_plan_stray_price(struct leader_state *s, const struct live_stray *st,
                             const struct job_description *job, struct stray_row *ret);
/* That is committed: it is booked by the price, and holds the money. */
void leader_apply_stray_price(struct leader_state *s, struct live_stray *st,
                              const struct stray_row *row);
/* What a Describe says. Name and status of *ret point into st and job. */
enum stray_seen leader_plan_stray_seen(struct live_stray *st, const struct job_description *job,
                                       int64_t boot_us, struct stray_end *ret);
/* The end is committed: slots and money are free, the stray is gone. */
void leader_apply_stray_end(struct leader_state *s, const struct stray_end *e);
