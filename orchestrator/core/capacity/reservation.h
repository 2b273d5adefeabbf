/* Tasks of several instances: when enough instances are free together, the promise made from it,
 * and which smaller tasks may run meanwhile (backfill). Pure; wall clock.
 *
 * The promise is about many jobs at once: one late job of 24 is enough to be late. So it is not
 * read off each job's own P95 but off the chance that the sum of late instances is small enough,
 * jobs taken as independent. That chance is counted out exactly where few may be late and taken as
 * normal where many may. The first promise is made with more confidence than it needs
 * (RESERVATION_PROMISE): what lies between it and RESERVATION_GUARD is what backfilled parts may
 * use up. When jobs end sooner than was to be feared, backfill keeps to the sooner start (target),
 * so that a promise made from mere bounds is not waited for. */
#pragma once
#include "core/duration/duration.h"

#define RESERVATION_KNOTS   9
#define RESERVATION_EXACT   64   /* late instances up to which chances are counted out */
#define RESERVATION_PROMISE 0.99 /* chance with which a start is promised */
#define RESERVATION_GUARD   0.97 /* no backfilled part may bring it below */
#define RESERVATION_SEEN_US INT64_C(10000000) /* an end is seen so much later at most */

struct reservation_end { /* instances that come back, and when: times never fall */
    int instances;
    bool learned; /* by a model; else a bound, mostly far from the end that will be */
    usec_t at_us
        [RESERVATION_KNOTS]; /* by chances 0, .25, .5, .75, .9, .97, .99, .999, 1; USEC_NEVER */
};
/* The reservation of one waiting task; the caller keeps it while the task waits. */
struct reservation {
    int64_t task_id; /* 0: none */
    int instances;
    usec_t since_us; /* reserved then */
    usec_t
        promised_us; /* first promised start; never moved later; USEC_NEVER: none could be made */
    usec_t expected_us; /* P50 start as computed last; USEC_NEVER */
    usec_t latest_us;   /* P95 start as computed last; USEC_NEVER */
    usec_t target_us;   /* what is backfilled is back by then: the promise, or sooner */
    int64_t owed; /* instances that smaller tasks may start before this stage reserves again */
};
/* An end at one known time; USEC_NEVER: it does not come back. */
void reservation_end_at(int instances, usec_t at_us, struct reservation_end *ret);
/* An end of which two quantiles are known. */
void reservation_end_spread(int instances, usec_t p50_us, usec_t p90_us,
                            struct reservation_end *ret);
/* The end of a job of this size that runs since from_us, or is expected to begin then, which may
 * come a third of that span later. As its stage's model says, and never after last_us, when it is
 * stopped. d NULL or not known: at last_us. */
void reservation_end_model(const struct duration *d, uint32_t size_mb, int instances,
                           usec_t from_us, usec_t last_us, usec_t now_us,
                           struct reservation_end *ret);
/* The chance that it has ended by t, and the time of its P90. */
double reservation_end_by(const struct reservation_end *e, usec_t t_us);
usec_t reservation_end_p90(const struct reservation_end *e);

/* How many instances may not be back by some instant: add each job with its chance to be back. */
struct reservation_odds {
    int64_t spare; /* no more may be late */
    double mean, var;
    double late[RESERVATION_EXACT + 1]; /* chance that exactly so many are late */
};
void reservation_odds_init(struct reservation_odds *o, int64_t spare);
void reservation_odds_add(struct reservation_odds *o, int instances, double back);
/* The chance that no more than spare are late. */
double reservation_odds_met(const struct reservation_odds *o);

/* The first instant at which, with this chance, no more than `spare` instances of all that are held
 * (one end each, free ones have none) are still held. To the second. False: never with what is
 * known. */
bool reservation_start(int64_t spare, const struct reservation_end *ends, size_t n, double chance,
                       usec_t now_us, usec_t *ret);
/* May a smaller task of lower rank start now: its P90 end comes before the target, which is never
 * after the promise, or enough comes free for the gang without it. spare: instances the gang will
 * not need, less those that others hold whose P90 end lies after the target. */
bool reservation_may_backfill(const struct reservation *g, usec_t p90_end_us, int64_t want,
                              int64_t spare);
/* The same, and the chance that the target is met stays as high as it must. */
bool reservation_may_pass(const struct reservation *g, const struct reservation_odds *o,
                          const struct reservation_end *end, int64_t spare);
