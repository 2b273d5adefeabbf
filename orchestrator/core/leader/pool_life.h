/* Warm pools. A pool is expected from the intent of the attempt that leaves it, stands alone from
 * the end of that attempt's job, and has ended when Describe of that job says Reused or Terminated:
 * only then its retained seconds are final, are booked once, and the account of the job is closed.
 * When those are not told, they are asked for again for some minutes, and estimated then.
 * Its instances are in slots all the time: held by the attempt, then idle, then returned or, when
 * an attempt was intended on it, that attempt's. Pure: the wall clock is now_us, CLOCK_BOOTTIME is
 * boot_us. */
#pragma once
#include "leader_state.h"

/* A pool that stands alone, as its row says at takeover. */
struct live_pool *leader_load_pool(struct leader_state *s, const struct pool_row *row,
                                   struct live_campaign *lc);
/* A List shows the job that left a pool: looked at when it differs from what is known. */
void leader_pool_listed(struct leader_state *s, const char *job, enum warm_pool_status status);
/* A call about the pool failed: no other before its back-off. */
void leader_pool_failed(struct live_pool *p, int64_t boot_us);
/* A Describe of its job was answered with *report, unless failed or not_found. False: it says
 * nothing, also when the job is not found; asked again after the back-off. When that is gone
 * (absence.h) after the pool's time was over, *report becomes that it was kept to the last. */
bool leader_pool_described(struct live_pool *p, bool failed, bool not_found, usec_t now_us,
                           int64_t boot_us, struct warm_pool_report *report);
/* So was the wish that it ends; one that was not taken is sent again, once the pool was looked at:
 * one that is refused for good ends all the same when its time is over. */
void leader_pool_end_answered(struct live_pool *p, bool failed, bool not_found, int64_t boot_us);

/* What an hour of a pool costs: as its row says, or, where its job was adopted before any price was
 * known (0), as is known now. */
musd_t leader_pool_price(const struct leader_state *s, const char *instance_type, musd_t of_row);
/* SageMaker hands pools out as it likes: the other available pool that the job which took p was
 * intended on, and which so is free for whom p was kept, or for anybody. 0: it went as intended, or
 * the job is not ours. */
int64_t leader_pool_meant(const struct leader_state *s, const struct live_pool *p,
                          const char *reused_by);

/* What a Describe of its job says of a pool. */
enum pool_fate {
    POOL_FATE_STAYS,
    POOL_FATE_THERE,     /* it is kept */
    POOL_FATE_OVER,      /* to be recorded */
    POOL_FATE_UNTOLD,    /* over, but not for how long it was kept: asked again */
    POOL_FATE_NOT_BOOKED /* over, and its cost cannot be booked (error): asked again */
};
struct pool_writes {
    enum pool_fate fate;
    struct pool_end end;                      /* OVER */
    struct ledger_account_of_attempt account; /* OVER: as it is then */
    int64_t swap_with; /* OVER: SageMaker gave this pool to a job that was intended on that other
                          one; the one that this was kept for gets the other. 0: no swap */
    struct err error;
};
/* job_ended: the same Describe shows that the job has ended; else it is an old one, which says
 * nothing when it reports no pool. */
void leader_plan_pool_seen(const struct leader_state *s, const struct live_pool *p,
                           const struct warm_pool_report *seen, bool job_ended, int64_t boot_us,
                           struct pool_writes *ret);
/* A Describe has come; nothing of it needs a commit. Call it before an OVER is written. What could
 * not be booked is asked again after a back-off. */
/* The times of its row, which are AWS's, become ours, when that was not done: an answer of AWS has
 * told how far the clocks are apart. It has stood idle since the end of its keep-alive less that,
 * and ends no later than a whole one from now. */
void leader_pool_timed(const struct leader_state *s, struct live_pool *p, usec_t now_us);
void leader_apply_pool_seen(struct leader_state *s, struct live_pool *p, enum pool_fate fate,
                            usec_t now_us, int64_t boot_us);
/* The end is committed. The caller removes the pool afterwards. */
void leader_apply_pool_end(struct leader_state *s, struct live_pool *p,
                           const struct pool_writes *w);

/* The scheduler wants its end: asked once. False: that was so before. */
bool leader_pool_want_end(struct leader_state *s, struct live_pool *p, enum warm_pool_end why);

/* People want the ends of these pools; one that a job takes meanwhile stays. Returns how many of
 * them are new. */
size_t leader_take_pool_ends(struct leader_state *s, const int64_t *ids, size_t n);

enum pool_action { POOL_ACT_NONE, POOL_ACT_DESCRIBE, POOL_ACT_END };
/* The next call about a pool that has none under way. None before it stands alone: its attempt's
 * calls tell of it until then. *wake_us is lowered to when to ask again. */
enum pool_action leader_pool_next(const struct live_pool *p, usec_t now_us, int64_t boot_us,
                                  int64_t *wake_us);

/* The row of p is written, and says how many instances of pools stand alone again: also of pools
 * whose campaign is not in memory. Call it before leader_apply_record. */
void leader_record_written(const struct leader_state *s, struct pending_record *p,
                           const struct attempt_record *row);
/* The record p of `a`, which releases its slots: pools that it, or who took its pool, was
 * intended on and did not take stand alone again. */
void leader_pools_stand_alone(struct leader_state *s, struct live_slots *slots,
                              const struct live_attempt *a, const struct pending_record *p);
