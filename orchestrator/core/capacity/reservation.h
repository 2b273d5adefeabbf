/* Reservations for multi-instance tasks: when enough instances are free at the same time, the start
 * promised from that, and which smaller tasks may run in the meantime (backfill). Pure; wall clock.
 *
 * A promise depends on many jobs at once: one late job of 24 is enough to be late. It is therefore
 * not taken from each job's own P95 but from the probability that the sum of late instances is
 * small enough, with jobs taken as independent. That probability is computed exactly where few may
 * be late and by a normal approximation where many may. The first promise is made with more
 * confidence than it needs (RESERVATION_PROMISE); backfilled parts may use up the difference to
 * RESERVATION_GUARD. When jobs end earlier than feared, backfill keeps to the earlier start
 * (target), so a promise made from mere bounds is not waited for. */
#pragma once
#include "core/duration/duration.h"

#define RESERVATION_KNOTS   9
#define RESERVATION_EXACT   64   /* late instances up to which probabilities are exact */
#define RESERVATION_PROMISE 0.99 /* probability with which a start is promised */
#define RESERVATION_GUARD   0.97 /* no backfilled part may bring it below */
#define RESERVATION_SEEN_US INT64_C(10000000) /* an end is observed at most this much later */

struct reservation_end { /* instances that come free, and when: times do not decrease */
    int instances;
    bool learned; /* from a model; else a bound, usually far from the actual end */
    usec_t at_us
        /* at probabilities 0, .25, .5, .75, .9, .97, .99, .999, 1; USEC_NEVER: not by then */
        [RESERVATION_KNOTS];
};
/* The reservation of one waiting task; the caller keeps it while the task waits. */
struct reservation {
    int64_t task_id; /* 0: no task */
    int instances;
    usec_t since_us;    /* when it was reserved */
    usec_t promised_us; /* first promised start; never moved later; USEC_NEVER: no promise */
    usec_t expected_us; /* P50 start as last computed, or USEC_NEVER */
    usec_t latest_us;   /* P95 start as last computed, or USEC_NEVER */
    usec_t target_us;   /* backfilled tasks end by then: the promise, or earlier */
    int64_t owed; /* instances that smaller tasks may start before this stage reserves again */
};
/* An end at one known time; USEC_NEVER: the instances do not come free. */
void reservation_end_at(int instances, usec_t at_us, struct reservation_end *ret);
/* An end with two known quantiles. */
void reservation_end_spread(int instances, usec_t p50_us, usec_t p90_us,
                            struct reservation_end *ret);
/* The end of a job of this size that runs since from_us, or is expected to begin then and may begin
 * a third of that wait later. Taken from its stage's model, and never after last_us, when the job
 * is stopped. d NULL or not known: at last_us. */
void reservation_end_model(const struct duration *d, uint32_t size_mb, int instances,
                           usec_t from_us, usec_t last_us, usec_t now_us,
                           struct reservation_end *ret);
/* The probability that it has ended by t, and the time of its P90. */
double reservation_end_by(const struct reservation_end *e, usec_t t_us);
usec_t reservation_end_p90(const struct reservation_end *e);

/* How many instances are still held at some instant: add each job with its probability of having
 * ended. */
struct reservation_odds {
    int64_t spare; /* no more may be late */
    double mean, var;
    double late[RESERVATION_EXACT + 1]; /* probability that exactly this many are late */
};
void reservation_odds_init(struct reservation_odds *o, int64_t spare);
void reservation_odds_add(struct reservation_odds *o, int instances, double back);
/* The probability that at most `spare` are late. */
double reservation_odds_met(const struct reservation_odds *o);

/* The first instant, to the second, at which with this probability at most `spare` of the held
 * instances (one end each, free ones have none) are still held. False: never, with what is
 * known. */
bool reservation_start(int64_t spare, const struct reservation_end *ends, size_t n, double chance,
                       usec_t now_us, usec_t *ret);
/* True when a smaller task of lower rank may start now: its P90 end is before the target, which is
 * never after the promise, or enough instances come free for the reservation without it. spare:
 * instances the reservation does not need, less those held by tasks whose P90 end is after the
 * target. */
bool reservation_may_backfill(const struct reservation *g, usec_t p90_end_us, int64_t want,
                              int64_t spare);
/* As reservation_may_backfill, and the probability of meeting the target stays high enough. */
bool reservation_may_pass(const struct reservation *g, const struct reservation_odds *o,
                          const struct reservation_end *end, int64_t spare);
