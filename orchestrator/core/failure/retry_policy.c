/* Cause to action: the rows of cause.def, overridden by the spec's rows, and the changes of the
 * next attempt. */
#include "retry_policy.h"
#include "common/retry.h"

/* Changes of the next attempt by cause. After a full disk the volume is doubled. The ladder lists
 * the smallest type first. A task out of memory moves up and stays on the last rung, where the
 * failure may have been chance. After a capacity error it goes around the ladder, because capacity
 * may be back on any rung. */
static const struct spec_change changes[CAUSE_COUNT] = {
    [CAUSE_CAPACITY] = {.next = NEXT_AROUND},
    [CAUSE_OOM] = {.next = NEXT_UP},
    [CAUSE_DISK_FULL] = {.volume_x100 = 200, .volume_max_gb = VOLUME_GROWN_GB_MAX},
    [CAUSE_TIMEOUT] = {.runtime_x100 = 150},
};
static const struct spec_retry defaults[CAUSE_COUNT] = {
#define X(c, name, counts_, times_, from_s, to_s, remedy)                                          \
    [CAUSE_##c] = {true, times_, from_s, to_s, counts_, false, {0}},
#include "cause.def"
#undef X
};

const struct spec_retry *retry_default(enum cause cause)
{
    ASSERT(cause < CAUSE_COUNT);
    return &defaults[cause];
}

bool retry_counts(enum cause cause)
{
    return retry_default(cause)->counts;
}

const struct spec_retry *retry_row(const struct spec_stage *stage, enum cause cause)
{
    return stage->retry[cause].set ? &stage->retry[cause] : &defaults[cause];
}

bool retry_counts_in(const struct spec_stage *stage, enum cause cause, bool ran)
{
    return ran || retry_row(stage, cause)->counts;
}

static int64_t wait_us(const struct spec_retry *row, int failures, struct rng *rng)
{
    struct retry_policy policy = {
        .base_us = row->wait_from_s * USEC_PER_SEC,
        .cap_us = row->wait_to_s * USEC_PER_SEC,
        .floor_us = row->wait_from_s * USEC_PER_SEC,
    };
    return retry_delay_us(&policy, failures, rng);
}

int64_t retry_wait_expected_s(const struct spec_stage *stage, const int64_t seen[CAUSE_COUNT])
{
    int64_t n = 0, sum_s = 0;
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++) {
        const struct spec_retry *row = retry_row(stage, (enum cause)c);
        if (row->times != 0) {
            n += seen[c];
            sum_s += seen[c] * row->wait_from_s;
        }
    }
    return n > 0 ? sum_s / n : retry_row(stage, CAUSE_UNKNOWN)->wait_from_s;
}

int64_t retry_wait_longest_s(const struct spec_stage *stage)
{
    int64_t s = 0;
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++) {
        const struct spec_retry *row = retry_row(stage, (enum cause)c);
        s = MAX(s, MAX(row->wait_from_s, row->wait_to_s));
    }
    return s;
}

/* now * x100 / 100, rounded up, at most max. */
static int64_t times(int64_t now, int x100, int64_t max)
{
    return MIN(max, (now * x100 + 99) / 100);
}

static int64_t bounded(int64_t max, int64_t bound)
{
    return bound < 0 ? max : MIN(max, bound);
}

/* False: the volume is at its maximum, so a retry would fail the same way. */
static bool change_volume(const struct spec_stage *stage, const struct spec_change *change,
                          const struct retry_bounds *bounds, struct retry_state *next)
{
    int64_t now_gb = next->volume_gb > 0 ? next->volume_gb : stage->volume_gb;
    int64_t max_gb = change->volume_max_gb > 0 ? change->volume_max_gb : VOLUME_GROWN_GB_MAX;
    max_gb = bounded(max_gb, bounds->volume_gb);
    if (change->volume_x100 == 0) {
        return true;
    }
    if (now_gb >= max_gb) {
        return false;
    }
    next->volume_gb = (int)times(now_gb, change->volume_x100, max_gb);
    return true;
}

/* At the maximum run time it is retried unchanged: a job continues from what is durable. */
static void change_runtime(const struct spec_stage *stage, const struct spec_change *change,
                           const struct retry_bounds *bounds, struct retry_state *next)
{
    int64_t now_s = next->max_runtime_s > 0 ? next->max_runtime_s : stage->max_runtime_s;
    int64_t max_s = change->runtime_max_s > 0 ? change->runtime_max_s : SPEC_RUNTIME_S_MAX;
    max_s = bounded(max_s, bounds->run_s);
    if (change->runtime_x100 > 0 && now_s < max_s) {
        next->max_runtime_s = times(now_s, change->runtime_x100, max_s);
    }
}

/* To the next rung on which anything starts; where there is none it stays. */
static void change_type(const struct spec_stage *stage, enum spec_next how,
                        const struct retry_bounds *bounds, struct retry_state *next)
{
    int n = stage->instance_type_n;
    int i = next->instance_type_i;
    for (int k = 1; how != NEXT_SAME && k < n; k++) {
        int to = how == NEXT_UP ? i + k : (i + k) % n;
        if (to < n && !bounds->rung_never[to]) {
            next->instance_type_i = to;
            return;
        }
    }
}

/* Apply the cause's change to the next attempt. False: no change is possible, so a retry would fail
 * the same way. */
static bool apply(const struct spec_stage *stage, const struct spec_change *change,
                  const struct retry_bounds *bounds, struct retry_state *next)
{
    change_runtime(stage, change, bounds, next);
    change_type(stage, change->next, bounds, next);
    return change_volume(stage, change, bounds, next);
}

void retry_decide(const struct spec_stage *stage, enum cause cause, const struct retry_state *now,
                  const struct retry_bounds *bounds, struct rng *rng, struct retry_decision *ret)
{
    ASSERT(cause > CAUSE_NONE && cause < CAUSE_COUNT);
    ASSERT(stage->instance_type_n > 0);
    const struct spec_retry *row = retry_row(stage, cause);
    *ret = (struct retry_decision){.counts = retry_counts_in(stage, cause, now->ran), .next = *now};
    ret->next.ran = false;
    const struct spec_change *change = row->set_change ? &row->change : &changes[cause];
    int used = now->tries[cause];
    if ((row->times >= 0 && used >= row->times) || now->attempts >= ATTEMPTS_MAX ||
        !apply(stage, change, bounds, &ret->next)) {
        return;
    }
    ret->retry = true;
    ret->wait_us = wait_us(row, used, rng);
    ret->next.tries[cause] = used < INT32_MAX ? used + 1 : used;
    ret->changed = ret->next.instance_type_i != now->instance_type_i ||
                   ret->next.volume_gb != now->volume_gb ||
                   ret->next.max_runtime_s != now->max_runtime_s;
}
