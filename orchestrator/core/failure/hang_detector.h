/* Hung jobs and stragglers: expectation from the worker's progress against the part's size. Pure;
 * wall clock. */
#pragma once
#include "core/duration/duration.h"

struct hang_detector_seen { /* a progress object of an attempt; all 0: none seen yet */
    usec_t at_us;           /* when the worker wrote it (LastModified) */
    int64_t rows_done, rows_total, bytes, shards_done;
};
struct hang_detector_rules { /* 0: that rule is off */
    int64_t silent_us; /* no progress object for this long while running: hung; default 15 min */
    int64_t standstill_us; /* objects come, no figure grows: hung; default 30 min */
    int64_t start_us;      /* no first object this long after the start: hung; default 30 min */
};
#define HANG_DETECTOR_RULES_DEFAULT                                                                \
    ((struct hang_detector_rules){15 * 60 * USEC_PER_SEC, 30 * 60 * USEC_PER_SEC,                  \
                                  30 * 60 * USEC_PER_SEC})
/* What a fresh try needs before its work begins, and how much sooner than the old one it must end
 * for a twin to be worth its money. */
#define HANG_DETECTOR_TWIN_START_US (5 * 60 * USEC_PER_SEC)
#define HANG_DETECTOR_TWIN_GAIN     1.5

/* The caller keeps one for each live attempt; all 0 at first and after a takeover. */
struct hang_detector_state {
    struct hang_detector_seen first,
        last;        /* first: what it began with, since a retry goes on from shards */
    usec_t moved_us; /* when a figure last grew, as we saw it */
};
enum hang_detector_verdict {
    HANG_DETECTOR_NONE,
    HANG_DETECTOR_SILENT,
    HANG_DETECTOR_STANDSTILL,
    HANG_DETECTOR_NEVER_STARTED
};

/* Feed what a listing showed (NULL: nothing there). An object older than the last one, or one with
 * negative figures, changes nothing; figures that fell mean a new start inside the job. */
void hang_detector_saw(struct hang_detector_state *h, const struct hang_detector_seen *seen,
                       usec_t now_us);
/* running_since_us: of the latest start; objects older than that are an earlier start's. Clocks
 * that went back give HANG_DETECTOR_NONE. */
enum hang_detector_verdict hang_detector_check(const struct hang_detector_state *h,
                                               const struct hang_detector_rules *r,
                                               usec_t running_since_us, usec_t now_us);
/* When this attempt will end by its own progress: rows left over rate so far; never before now_us;
 * USEC_NEVER unknown. */
usec_t hang_detector_expected_end_us(const struct hang_detector_state *h, usec_t running_since_us,
                                     usec_t now_us);
/* Is a twin worth it: the attempt has outlived nine of ten of its size, and a fresh try (P50 and
 * its start) would end well before its own expected end. That nothing waits, slots are free and the
 * attempt is among the last parts is the caller's to see. False while durations are not known. */
bool hang_detector_wants_twin(const struct hang_detector_state *h, const struct duration *d,
                              uint32_t size_mb, usec_t running_since_us, usec_t now_us);
const char *hang_detector_verdict_name(enum hang_detector_verdict v);
