/* Three rules that stop a failing stage: the canary (few attempts run until one has passed), the
 * breaker (the same failure in several attempts holds the stage) and the quarantine (a part that
 * fails while others pass is set aside). One struct breaker per stage. At takeover it is rebuilt by
 * breaker_reset to where it was last reset, then by feeding in the stage's attempts. Attempt ids
 * only grow; attempts started before the last reset are recognised by their id and do not count
 * against the new canary. Pure.
 *
 * Guarantees:
 * 1. While every attempt fails, at most max(canary, k) attempts are ever started, in any order of
 *    starts and ends. Attempts whose end says nothing about the work do not count.
 * 2. When they have all failed the stage is tripped, even if their signatures differ, so it never
 *    waits forever.
 * 3. Nothing starts once it is tripped, until breaker_reset.
 * Without a canary neither 1 nor 2 holds. */
#pragma once
#include "core/spec/spec.h"

#define BREAKER_OF_MAX 64 /* maximum n of the rules; also the number of signatures kept */

struct breaker_rules { /* from the spec, with defaults */
    int canary;        /* attempts at once until one has passed; default 3, 0: no canary */
    /* the same signature in k of the first n ends, or later in n ends in a row, holds the stage;
     * default 3 of 10, k 0: no breaker; n <= BREAKER_OF_MAX */
    int k, n;
    /* a part is set aside after this many counted failures with one signature while others pass;
     * default 3, 0: no quarantine */
    int quarantine;
};
struct breaker {
    bool passed; /* an attempt passed: first shard durable, succeeded, or 10 min alive (foreign) */
    int64_t since; /* attempts up to this id were started before the last reset */
    int64_t live;  /* attempts started since and not ended */
    int64_t ended; /* ends that say something about the work (counted causes and successes) */
    int64_t failed;
    int64_t paid_unpassed; /* attempts started while nothing had passed; bounded by the canary */
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
/* How many more attempts may start now: INT64_MAX after a pass or without a canary, 0 when
 * tripped. */
int64_t breaker_may_start(const struct breaker *b, const struct breaker_rules *r);
void breaker_started(struct breaker *b, int64_t attempt_id);
/* An attempt has shown that the work can succeed. */
void breaker_passed(struct breaker *b);
/* An attempt ended; CAUSE_NONE: it succeeded. counts: the row of cause.def counts it as an attempt
 * (quota, capacity, void and the like say nothing about the work and never trip anything). Returns
 * true when this end trips the breaker; the caller then holds the stage. */
bool breaker_ended(struct breaker *b, const struct breaker_rules *r, int64_t attempt_id,
                   enum cause cause, bool counts, uint64_t signature_hash);
/* The operator resumed the stage: start again with a canary. last_attempt_id: the highest given to
 * any attempt so far. */
void breaker_reset(struct breaker *b, int64_t last_attempt_id);
/* True when a part must be set aside: it has `same` counted failures with one signature while
 * others pass. */
bool breaker_quarantines(const struct breaker *b, const struct breaker_rules *r, int same);
