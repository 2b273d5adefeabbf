/* Canary, breaker and quarantine of one stage, from counts of starts and ends. */
#include "breaker.h"

struct breaker_rules breaker_rules_of(const struct spec_guard *g)
{
    return (struct breaker_rules){
        .canary = g->canary, .k = g->breaker_same, .n = g->breaker_of, .quarantine = g->quarantine};
}

void breaker_init(struct breaker *b)
{
    *b = (struct breaker){0};
}

int64_t breaker_may_start(const struct breaker *b, const struct breaker_rules *r)
{
    if (b->tripped) {
        return 0;
    }
    if (b->passed || r->canary <= 0) {
        return INT64_MAX;
    }
    int64_t bound = MAX(r->canary, r->k);
    return MAX(0, MIN(r->canary - b->live, bound - b->paid_unpassed));
}

void breaker_started(struct breaker *b, int64_t attempt_id)
{
    if (attempt_id > b->since) {
        b->live++;
        b->paid_unpassed += b->passed ? 0 : 1;
    }
}

void breaker_passed(struct breaker *b)
{
    b->passed = true;
}

/* The counter of this signature, created when it is new; NULL when there are too many
 * signatures. */
static int64_t *count_of(struct breaker *b, enum cause cause, uint64_t hash)
{
    for (int i = 0; i < b->signatures_n; i++) {
        if (b->signature[i].hash == hash) {
            return &b->signature[i].n;
        }
    }
    if (b->signatures_n == BREAKER_OF_MAX) {
        return NULL;
    }
    int i = b->signatures_n++;
    b->signature[i].hash = hash;
    b->signature[i].cause = cause;
    b->signature[i].n = 0;
    return &b->signature[i].n;
}

static void trip(struct breaker *b)
{
    b->tripped = true;
    b->tripped_i = 0;
    for (int i = 1; i < b->signatures_n; i++) {
        b->tripped_i = b->signature[i].n > b->signature[b->tripped_i].n ? i : b->tripped_i;
    }
}

/* Count a failure of the work itself; true when it trips the breaker. */
static bool failure_trips(struct breaker *b, const struct breaker_rules *r, enum cause cause,
                          uint64_t hash)
{
    b->failed++;
    b->streak = b->streak > 0 && b->streak_hash == hash ? b->streak + 1 : 1;
    b->streak_hash = hash;
    int64_t *same = count_of(b, cause, hash);
    if (same != NULL) {
        ++*same;
    }
    bool again = r->k > 0 && same != NULL && *same >= r->k && b->ended <= r->n;
    bool in_a_row = r->k > 0 && b->streak >= MAX(r->k, r->n);
    bool none_passed = !b->passed && r->canary > 0 && b->failed >= MAX(r->canary, r->k);
    return again || in_a_row || none_passed;
}

bool breaker_ended(struct breaker *b, const struct breaker_rules *r, int64_t attempt_id,
                   enum cause cause, bool counts, uint64_t signature_hash)
{
    bool stale = attempt_id <= b->since;
    ASSERT(stale || b->live > 0);
    b->live -= stale ? 0 : 1;
    if (cause == CAUSE_NONE) {
        b->passed = true;
        b->ended++;
        b->streak = 0;
        return false;
    }
    if (stale) {
        return false;
    }
    if (!counts) {
        b->paid_unpassed -= b->paid_unpassed > 0 ? 1 : 0;
        return false;
    }
    b->ended++;
    if (!failure_trips(b, r, cause, signature_hash) || b->tripped) {
        return false;
    }
    trip(b);
    return true;
}

void breaker_reset(struct breaker *b, int64_t last_attempt_id)
{
    *b = (struct breaker){.since = last_attempt_id};
}

bool breaker_quarantines(const struct breaker *b, const struct breaker_rules *r, int same)
{
    return r->quarantine > 0 && same >= r->quarantine && b->ended > b->failed;
}
