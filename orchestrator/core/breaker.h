/* When a stage must not go on: the canary (few attempts run until one has passed), the breaker (the
 * same failure again and again holds the stage) and quarantine (a part that fails while others pass
 * is set aside). One struct breaker a stage; rebuilt from the stage's attempts at takeover. Pure.
 */
#pragma once
#include "spec.h"

#define BREAKER_SIGNATURES 16

struct breaker_rules { /* from the spec, with defaults */
    int canary;        /* attempts at once until one passed; default 3, 0 none */
    int k, n;       /* same signature in k of the first n ends: hold; default 3 of 10, k 0 none */
    int quarantine; /* counted failures of one part with one signature, while others pass, that
                       set it aside; default 3 */
};
struct breaker {
    bool passed;  /* an attempt passed: first shard durable, succeeded, or 10 min alive (foreign) */
    int64_t live; /* attempts of the stage that hold a slot, not passed themselves */
    int64_t ended; /* ends that say something of the work (counted causes and successes) */
    int64_t failed;
    int64_t paid_unpassed; /* attempts started while nothing had passed; the bound of the canary */
    struct {
        uint64_t hash; /* of cause and signature */
        int64_t n;
        enum cause cause;
    } signature[BREAKER_SIGNATURES];
    int signatures_n;
    bool tripped;
    int tripped_i; /* into signature */
};
void breaker_init(struct breaker *b);
/* How many more attempts may start now: INT64_MAX when proven, 0 when tripped. No more than
 * max(canary, k) are ever paid before the stage is held when every one fails. */
int64_t breaker_may_start(const struct breaker *b, const struct breaker_rules *r);
void breaker_started(struct breaker *b);
/* An attempt shows that the work can be done. */
void breaker_passed(struct breaker *b);
/* An attempt ended. counts: its cause counts as an attempt (quota, capacity and the like never trip
 * anything). True: this end trips the breaker, the stage is to be held. */
bool breaker_ended(struct breaker *b, const struct breaker_rules *r, enum cause cause, bool counts,
                   uint64_t signature_hash);
/* The operator resumed the stage: start again with a canary. */
void breaker_reset(struct breaker *b);
/* Is a part to be set aside: `same` counted failures of its own with one signature, others pass? */
bool breaker_quarantines(const struct breaker *b, const struct breaker_rules *r, int same);
