/* Cause to action: whether to retry, how long to wait, what to change. The table is cause.def
 * overridden by the spec's rows. Pure. */
#pragma once
#include "common/rng.h"
#include "core/spec/spec.h"

struct retry_state {
    int attempts;           /* counted so far, including this one when it counts */
    int tries[CAUSE_COUNT]; /* retries used by cause */
    int instance_type_i;
    int volume_gb;         /* 0: the stage's */
    int64_t max_runtime_s; /* 0: the stage's */
    bool ran;              /* the job of the attempt that ended had run, and failed */
};
struct retry_decision {
    bool retry;
    bool counts; /* the ended attempt counts */
    int64_t wait_us;
    struct retry_state next; /* when retry: with the try counted and the changes applied */
    bool changed;            /* instance type, volume or run time differs */
};
#define ATTEMPTS_MAX        20   /* maximum counted attempts of one task, all causes together */
#define VOLUME_GROWN_GB_MAX 2000 /* default maximum when a change enlarges the volume */
/* The cause's default row with its change, without a spec. */
const struct spec_retry *retry_default(enum cause cause);
/* The row that holds in the stage: the spec's, else the cause's own. */
const struct spec_retry *retry_row(const struct spec_stage *stage, enum cause cause);
/* True when an end with this cause says something about the work, by cause.def only. An attempt
 * whose job ran and failed counts besides, for the breaker too: what a job says of itself never
 * makes its failure free. */
bool retry_counts(enum cause cause);
/* True when the attempt that ended counts: its job ran and failed, or the row of its cause (the
 * spec's before cause.def's) counts it. */
bool retry_counts_in(const struct spec_stage *stage, enum cause cause, bool ran);
/* Seconds from a failed try to the next: the first wait of each cause, by how often it was seen
 * (seen[cause]) and is tried again at all; with none such, the wait after an unknown one. */
int64_t retry_wait_expected_s(const struct spec_stage *stage, const int64_t seen[CAUSE_COUNT]);
/* The longest wait after a failed try, in seconds. */
int64_t retry_wait_longest_s(const struct spec_stage *stage);
/* What the account's quotas ever allow an attempt; -1: no limit. A change beyond would wait for
 * ever. */
struct retry_bounds {
    int64_t run_s, volume_gb;
    bool rung_never[SPEC_LADDER_MAX]; /* nothing starts on it */
};
#define RETRY_BOUNDS_NONE                                                                          \
    {                                                                                              \
        .run_s = -1, .volume_gb = -1                                                               \
    }
void retry_decide(const struct spec_stage *stage, enum cause cause, const struct retry_state *now,
                  const struct retry_bounds *bounds, struct rng *rng, struct retry_decision *ret);
