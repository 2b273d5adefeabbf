/* Cause to action: wait, times, what changes. The table is cause.def with a spec's rows over it.
 * Pure. */
#pragma once
#include "common/rng.h"
#include "core/spec/spec.h"

struct retry_state {
    int attempts;           /* counted so far, this one included when its cause counts */
    int tries[CAUSE_COUNT]; /* retries used by cause */
    int instance_type_i;
    int volume_gb;         /* 0: the stage's */
    int64_t max_runtime_s; /* 0: the stage's */
};
struct retry_decision {
    bool retry;
    bool counts; /* the ended attempt counts */
    int64_t wait_us;
    struct retry_state next; /* with the try counted and changes applied, when retry */
    bool changed;            /* instance type, volume or run time differs */
};
#define ATTEMPTS_MAX  20   /* counted attempts of one task, whatever the causes */
#define VOLUME_GB_MAX 2000 /* what a change enlarges a volume to, unless it says otherwise */
/* The cause's row with its own change, as it is without a spec. */
const struct spec_retry *retry_default(enum cause cause);
/* Does an end with this cause say something of the work (cause.def, whatever a spec's row says)?
 * What a breaker asks. */
bool retry_counts(enum cause cause);
void retry_decide(const struct spec_stage *stage, enum cause cause, const struct retry_state *now,
                  struct rng *rng, struct retry_decision *ret);
