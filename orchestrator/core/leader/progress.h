/* How live parts get on, from the progress object that our worker keeps next to its output: it
 * proves the stage's work (a first durable shard), tells when the part will end, and shows one that
 * hangs. Such a job is stopped and its part tried again, from its last durable shard. Pure;
 * boot_us is CLOCK_BOOTTIME. */
#pragma once
#include "common/aws_outcome.h"
#include "core/failure/hang_detector.h"
#include "leader_state.h"

#define PROGRESS_BYTES_MAX 65536

/* True: its progress object is to be read now; it is read again after interval_us. */
bool leader_progress_due(struct live_attempt *a, int64_t boot_us, int64_t interval_us);
/* True when its worker keeps a progress object that says something now. */
bool leader_progress_watched(const struct live_attempt *a);

enum progress_answer {
    PROGRESS_UNKNOWN, /* S3 did not answer: nothing is known */
    PROGRESS_ABSENT,  /* there is none of this attempt that can be read */
    PROGRESS_THERE    /* *ret is set */
};
/* What GetObject of it said. An object of an earlier attempt says nothing yet. */
enum progress_answer leader_progress_answer(const struct live_attempt *a, enum aws_outcome outcome,
                                            int status, struct str text,
                                            struct hang_detector_seen *ret);

/* Takes an answer in. seen NULL: PROGRESS_ABSENT. True: it looks hung, and SageMaker must say first
 * that the job still runs. */
bool leader_progress_saw(struct leader_state *s, struct live_attempt *a,
                         const struct hang_detector_seen *seen, int64_t boot_us);
/* Takes what was found of a job that hangs. True: it is to be stopped; *ret says how it hangs. */
bool leader_progress_stops(struct live_attempt *a, enum hang_detector_verdict *ret);
/* Why it is stopped, for people. */
void leader_hung_text(enum hang_detector_verdict v, char *ret, size_t size);
/* After it is written that the attempt hangs: it is tried again for this cause. */
void leader_apply_hung(struct live_attempt *a);
