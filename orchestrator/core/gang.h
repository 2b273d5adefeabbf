/* Tasks of several instances: a reservation with a promised start, and which smaller tasks may run
 * meanwhile (backfill). Pure; wall clock. */
#pragma once
#include "model.h"

struct gang_end {          /* instances that come back */
    usec_t p50_us, p95_us; /* expected release of a live job; USEC_NEVER: not known */
    int instances;
};
struct gang { /* the reservation of one waiting task; the caller keeps it while the task waits */
    int64_t task_id; /* 0: none */
    int instances;
    usec_t since_us;    /* reserved then */
    usec_t promised_us; /* first promised P95 start; never moved later */
    usec_t expected_us; /* P50 start as computed last */
    usec_t latest_us;   /* P95 start as computed last */
};
/* When `want` instances are free together: free ones plus ends in order. sorted by p95. False:
 * never with what is known. */
bool gang_start(int64_t free, const struct gang_end *ends, size_t n, int64_t want, int p,
                usec_t now_us, usec_t *ret);
/* May a smaller task of lower rank start on these slots now: its P90 end comes before the promise,
 * or enough stays free for the gang without it (spare: instances the gang will not need). */
bool gang_may_backfill(const struct gang *g, usec_t p90_end_us, int64_t want, int64_t spare);
