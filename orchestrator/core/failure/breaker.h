/* When a stage must not go on: the canary (few attempts run until one has passed), the breaker (the
 * same failure again and again holds the stage) and quarantine (a part that fails while others pass
 * is set aside). One struct breaker a stage; rebuilt at takeover by breaker_reset to where it was
 * last reset and the stage's attempts fed in. Attempt ids only grow; what was started before the
 * last reset is known by its id and not held against the new canary. Pure.
 *
 * It holds to: 1. while every attempt fails, no more than max(canary, k) are ever started (those
 * whose end says nothing of the work aside), in whatever order starts and ends come. 2. When they
 * have all failed the stage is tripped, whatever their signatures: it never waits for ever.
 * 3. Nothing starts once it is tripped, until breaker_reset. Without a canary neither 1 nor 2. */
#pragma once
#include "core/spec/spec.h"

#define BREAKER_OF_MAX 64 /* n of the rules at most: so many signatures are told apart */

struct breaker_rules { /* from the spec, with defaults */
    int canary;        /* attempts at once until one passed; default 3, 0 none */
    int k, n;       /* same signature in k of the first n ends, or later in n ends in a row: hold;
                       default 3 of 10, k 0 none; n <= BREAKER_OF_MAX */
    int quarantine; /* counted failures of one part with one signature, while others pass, that
                       set it aside; default 3, 0 none */
};
struct breaker {
    bool passed; /* an attempt passed: first shard durable, succeeded, or 10 min alive (foreign) */
    int64_t since; /* attempts up to this id were started before the last reset */
    int64_t live;  /* attempts started since and not ended */
    int64_t ended; /* ends that say something of the work (counted causes and successes) */
    int64_t failed;
    int64_t paid_unpassed; /* attempts started while nothing had passed; the bound of the canary */
    int64_t streak;        /* failures in a row with streak_hash */
    uint64_t streak_hash;
    struct {
        uint64_t hash; /* of the failure's signature */
        int64_t n;
        enum cause cause;
    } signature[BREAKER_OF_MAX];
    int signatures_n;
    bool tripped;
    int tripped_i; /* into signature: the most frequent one when it tripped */
};
struct breaker_rules breaker_rules_of(const struct spec_guard *g);
void breaker_init(struct breaker *b);
/* How many more attempts may start now: INT64_MAX when proven or without a canary, 0 when tripped.
 */
int64_t breaker_may_start(const struct breaker *b, const struct breaker_rules *r);
void breaker_started(struct breaker *b, int64_t attempt_id);
/* An attempt shows that the work can be done. */
void breaker_passed(struct breaker *b);
/* An attempt ended; CAUSE_NONE: it succeeded. counts: the row of cause.def counts it as an attempt
 * (quota, capacity and the like say nothing of the work and never trip anything; a void is such an
 * end). True: this end trips the breaker, the stage is to be held. */
bool breaker_ended(struct breaker *b, const struct breaker_rules *r, int64_t attempt_id,
                   enum cause cause, bool counts, uint64_t signature_hash);
/* The operator resumed the stage: start again with a canary. last_attempt_id: the highest given to
 * any attempt so far. */
void breaker_reset(struct breaker *b, int64_t last_attempt_id);
/* Is a part to be set aside: `same` counted failures of its own with one signature, others pass? */
bool breaker_quarantines(const struct breaker *b, const struct breaker_rules *r, int same);
