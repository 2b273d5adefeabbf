/* Detects hung jobs and stragglers by comparing the worker's progress with what the part's size
 * predicts. Pure; wall clock. */
#pragma once
#include "core/duration/duration.h"

struct hang_detector_seen { /* a progress object of an attempt; all 0: not seen yet */
    usec_t at_us;           /* when the worker wrote it (LastModified) */
    int64_t rows_done, rows_total, bytes, shards_done;
    bool prepares; /* its rows are not known yet: it reads or removes objects first */
    int64_t prepared;
};
struct hang_detector_rules { /* 0: that rule is off */
    int64_t silent_us; /* no progress object for this long while running: hung; default 15 min */
    /* objects arrive but no figure grows for this long: hung; default 30 min. Of a preparation it
     * is start_us when that is longer. */
    int64_t standstill_us;
    int64_t start_us; /* no first object this long after the start: hung; default 30 min */
};
#define HANG_DETECTOR_RULES_DEFAULT                                                                \
    ((struct hang_detector_rules){15 * 60 * USEC_PER_SEC, 30 * 60 * USEC_PER_SEC,                  \
                                  30 * 60 * USEC_PER_SEC})

/* The caller keeps one for each live attempt; all 0 at first and after a takeover. */
struct hang_detector_state {
    struct hang_detector_seen first,
        last;        /* first: where it began, since a retry continues from durable shards */
    usec_t moved_us; /* when a figure last grew, as we saw it */
};
enum hang_detector_verdict {
    HANG_DETECTOR_NONE,
    HANG_DETECTOR_SILENT,
    HANG_DETECTOR_STANDSTILL,
    HANG_DETECTOR_NEVER_STARTED
};

/* Record what a listing showed (NULL: no object). An object older than the last one, or with
 * negative figures, changes nothing; figures that fell mean a restart inside the job, and the first
 * one after a preparation is where the rows begin. */
void hang_detector_saw(struct hang_detector_state *h, const struct hang_detector_seen *seen,
                       usec_t now_us);
/* running_since_us: the latest start; older objects belong to an earlier start. Returns
 * HANG_DETECTOR_NONE when a clock went back. */
enum hang_detector_verdict hang_detector_check(const struct hang_detector_state *h,
                                               const struct hang_detector_rules *r,
                                               usec_t running_since_us, usec_t now_us);
/* Expected end of this attempt from its own progress: remaining rows divided by the rate so far. At
 * least now_us; USEC_NEVER: unknown. */
usec_t hang_detector_expected_end_us(const struct hang_detector_state *h, usec_t running_since_us,
                                     usec_t now_us);
const char *hang_detector_verdict_name(enum hang_detector_verdict v);
