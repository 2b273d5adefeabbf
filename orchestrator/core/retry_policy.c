/* Cause to action: the rows of cause.def, a spec's own rows over them, and what the next attempt
 * does differently. */
#include "retry_policy.h"
#include "common/retry.h"

#define RUNTIME_S_MAX INT64_C(2419200) /* CreateTrainingJob: 28 days */

static const struct spec_retry defaults[CAUSE_COUNT] = {
#define X(c, name, counts_, times_, from_s, to_s, remedy)                                          \
    [CAUSE_##c] = {true, times_, from_s, to_s, counts_},
#include "cause.def"
#undef X
};

static int64_t wait_us(const struct spec_retry *row, int failures, struct rng *rng)
{
    struct retry_policy policy = {
        .base_us = row->wait_from_s * USEC_PER_SEC,
        .cap_us = row->wait_to_s * USEC_PER_SEC,
        .floor_us = row->wait_from_s * USEC_PER_SEC,
    };
    return retry_delay_us(&policy, failures, rng);
}

/* Disk full: twice the volume. False when it is as large as it may be: the same would happen again.
 */
static bool change_volume(const struct spec_stage *stage, struct retry_state *next)
{
    int now_gb = next->volume_gb > 0 ? next->volume_gb : stage->volume_gb;
    if (now_gb >= VOLUME_GB_MAX) {
        return false;
    }
    next->volume_gb = now_gb > VOLUME_GB_MAX / 2 ? VOLUME_GB_MAX : now_gb * 2;
    return true;
}

static void change_runtime(const struct spec_stage *stage, struct retry_state *next)
{
    int64_t now_s = next->max_runtime_s > 0 ? next->max_runtime_s : stage->max_runtime_s;
    next->max_runtime_s = MIN(now_s + now_s / 2, RUNTIME_S_MAX);
}

/* What the cause asks to be different. False: nothing can be, and the same would happen again. */
static bool change_for(const struct spec_stage *stage, enum cause cause, struct retry_state *next)
{
    switch (cause) {
    case CAUSE_DISK_FULL:
        return change_volume(stage, next);
    case CAUSE_TIMEOUT:
        change_runtime(stage, next);
        return true;
    case CAUSE_OOM: /* the ladder is written smallest first; on the last rung it may be chance */
        if (next->instance_type_i + 1 < stage->instance_type_n) {
            next->instance_type_i++;
        }
        return true;
    case CAUSE_CAPACITY: /* any rung may have room again: around the ladder */
        next->instance_type_i = (next->instance_type_i + 1) % stage->instance_type_n;
        return true;
    case CAUSE_NONE:
    case CAUSE_QUOTA:
    case CAUSE_THROTTLED:
    case CAUSE_SPOT_INTERRUPTED:
    case CAUSE_INTERNAL:
    case CAUSE_NETWORK:
    case CAUSE_STOPPED:
    case CAUSE_BAD_INPUT:
    case CAUSE_USER_CODE:
    case CAUSE_ACCESS_DENIED:
    case CAUSE_BAD_IMAGE:
    case CAUSE_BAD_REQUEST:
    case CAUSE_SHORT_OUTPUT:
    case CAUSE_UNKNOWN:
    case CAUSE_COUNT:
        return true;
    }
    return true;
}

void retry_decide(const struct spec_stage *stage, enum cause cause, const struct retry_state *now,
                  struct rng *rng, struct retry_decision *ret)
{
    ASSERT(cause > CAUSE_NONE && cause < CAUSE_COUNT);
    ASSERT(stage->instance_type_n > 0);
    const struct spec_retry *row =
        stage->retry[cause].set ? &stage->retry[cause] : &defaults[cause];
    *ret = (struct retry_decision){.counts = row->counts, .next = *now};
    int used = now->tries[cause];
    if ((row->times >= 0 && used >= row->times) || now->attempts >= ATTEMPTS_MAX ||
        !change_for(stage, cause, &ret->next)) {
        return;
    }
    ret->retry = true;
    ret->wait_us = wait_us(row, used, rng);
    ret->next.tries[cause] = used < INT32_MAX ? used + 1 : used;
    ret->changed = ret->next.instance_type_i != now->instance_type_i ||
                   ret->next.volume_gb != now->volume_gb ||
                   ret->next.max_runtime_s != now->max_runtime_s;
}
