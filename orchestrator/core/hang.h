/* Hung jobs and stragglers: expectation from the worker's progress against the part's size. Pure;
 * wall clock. */
#pragma once
#include "duration.h"

struct hang_seen { /* the last progress object of an attempt; all 0: none seen yet */
    usec_t at_us;  /* when the worker wrote it (LastModified) */
    int64_t rows_done, rows_total, bytes, shards_done;
};
struct hang_rules {
    int64_t silent_us; /* no progress object for this long while running: hung; default 15 min */
    int64_t standstill_us; /* objects come, rows_done does not grow: hung; default 30 min */
    int64_t start_us;      /* no first object this long after the start: hung; default 30 min */
};
struct hang_state { /* the caller keeps one a live attempt */
    struct hang_seen last;
    usec_t moved_us; /* when rows_done last grew */
};
enum hang_verdict { HANG_NONE, HANG_SILENT, HANG_STANDSTILL, HANG_NEVER_STARTED };
/* Feed what a listing showed (NULL: nothing there). */
void hang_saw(struct hang_state *h, const struct hang_seen *seen, usec_t now_us);
enum hang_verdict hang_check(const struct hang_state *h, const struct hang_rules *r,
                             usec_t running_since_us, usec_t now_us);
/* When this attempt will end by its own progress: rows left over rate so far; USEC_NEVER unknown.
 */
usec_t hang_expected_end_us(const struct hang_state *h, usec_t running_since_us, usec_t now_us);
/* Is a twin worth it: nothing waits, slots are free, the attempt is among the last parts, and a
 * fresh try (P50) would end well before its own expected end. */
bool hang_wants_twin(const struct hang_state *h, const struct duration *d, uint32_t size_mb,
                     usec_t running_since_us, usec_t now_us);
