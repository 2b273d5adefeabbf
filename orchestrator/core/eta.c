/* Bootstrap of the time a stage still takes. Each round draws a set of durations as long as the one
 * seen (how sure we are of the mean), and from it the last parts one by one onto the slots (how
 * ragged the end is); what stands before those counts by its mean. */
#include "eta.h"
#include "common/rng.h"
#include <math.h>

#define ROUNDS   101
#define SEEN_MAX 512    /* durations drawn from */
#define TAIL_MAX 2048   /* parts placed one by one */
#define SPAN_MAX 4.0e15 /* 126 years in us: beyond it a figure says nothing */

/* Put one part onto the slot that is free first: a binary heap of times at which slots are free. */
static void place(double *free_at, size_t slots, double duration)
{
    double t = free_at[0] + duration;
    size_t i = 0;
    for (size_t child = 1; child < slots; child = 2 * i + 1) {
        if (child + 1 < slots && free_at[child + 1] < free_at[child]) {
            child++;
        }
        if (free_at[child] >= t) {
            break;
        }
        free_at[i] = free_at[child];
        i = child;
    }
    free_at[i] = t;
}

static double round_us(const int64_t *durations_us, size_t n, int64_t remaining, size_t slots,
                       struct rng *rng, double *free_at)
{
    double seen[SEEN_MAX];
    double mean = 0;
    for (size_t i = 0; i < n; i++) {
        seen[i] = (double)durations_us[rng_below(rng, n)];
        mean += seen[i] / (double)n;
    }
    int64_t tail = MIN(remaining, (int64_t)TAIL_MAX);
    double before = (double)(remaining - tail) * mean / (double)slots;
    for (size_t i = 0; i < slots; i++) {
        free_at[i] = 0;
    }
    for (int64_t i = 0; i < tail; i++) {
        place(free_at, slots, seen[rng_below(rng, n)]);
    }
    double last = 0;
    for (size_t i = 0; i < slots; i++) {
        last = free_at[i] > last ? free_at[i] : last;
    }
    return before + last;
}

static int double_cmp(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void eta_estimate(const int64_t *durations_us, size_t n, int64_t remaining, int64_t slots,
                  uint64_t seed, struct eta *ret)
{
    *ret = (struct eta){0};
    if (n < ETA_PARTS_MIN || slots < 1 || remaining < 0) {
        return;
    }
    size_t used = MIN(n, (size_t)SEEN_MAX);
    const int64_t *newest = durations_us + (n - used);
    double mean = 0;
    for (size_t i = 0; i < used; i++) {
        mean += (double)newest[i] / (double)used;
    }
    if (!(mean > 0)) {
        return;
    }
    int64_t at_once = MIN(slots, (int64_t)ETA_SLOTS_MAX);
    ret->known = true;
    ret->parts_per_h = (double)at_once * 3600e6 / mean;
    if (remaining == 0) {
        return;
    }
    size_t lanes = (size_t)MIN(at_once, remaining);
    double *free_at = xcalloc(lanes, sizeof *free_at);
    double rounds[ROUNDS];
    struct rng rng;
    rng_seed(&rng, seed);
    for (size_t i = 0; i < ROUNDS; i++) {
        rounds[i] = fmin(round_us(newest, used, remaining, lanes, &rng, free_at), SPAN_MAX);
    }
    free(free_at);
    qsort(rounds, ROUNDS, sizeof rounds[0], double_cmp);
    ret->p10_us = (int64_t)rounds[ROUNDS / 10];
    ret->p50_us = (int64_t)rounds[ROUNDS / 2];
    ret->p90_us = (int64_t)rounds[ROUNDS * 9 / 10];
}
