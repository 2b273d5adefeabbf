/* How long a part runs: seconds over size, learned from finished parts of the stage, or what the
 * spec expects. A fixed-size value; the caller keeps one a stage. Pure.
 *
 * The model is seconds = (base + per_mb * size) * ratio: the line is fitted robustly (a part that
 * took ten times as long does not bend it), the ratios of all finished parts to the line are kept
 * as they are, slow ones included, and are what quantiles and draws come from. Beyond the slowest
 * ratio seen a job is expected to take a tenth of its elapsed time more. */
#pragma once
#include "common/rng.h"
#include "core/model.h"

#define DURATION_KEPT       512 /* newest finished parts */
#define DURATION_MIN        5   /* parts needed before anything is said without expect */
#define DURATION_EXPECT_SD  0.1 /* spread (log) assumed around what the spec expects */
#define DURATION_SHORTEST_S 0.1 /* no part is taken for shorter */

struct duration {
    int64_t expect_us;       /* of the spec, for a part of mean size; 0: not said */
    uint32_t expect_size_mb; /* the mean size it stands for; 0: holds for every size */
    struct {
        uint32_t size_mb;
        uint32_t deciseconds;
    } part[DURATION_KEPT];
    uint32_t n; /* all ever learned; the ring holds the newest */
    /* fitted: seconds = base + per_mb * size, and the sorted ratios of actual to fitted */
    double base_s, per_mb_s;
    float ratio[DURATION_KEPT];
    uint32_t ratios_n;
    double weight, weight_mb, weight_mb2; /* sums over the parts the line was fitted to */
    /* Of a world (duration_resample), 0 else: ratios beyond the slowest one. */
    double log_mean, log_sd, rare_times;
    bool stale; /* fit before the next question */
};
/* expect_us <= 0: the spec says nothing. */
void duration_init(struct duration *d, int64_t expect_us);
/* The mean size of the stage's parts: what the spec expects is scaled by size over it. */
void duration_expect_size(struct duration *d, uint32_t mean_size_mb);
/* A finished part: size as in the ready queue, run time (start to end as SageMaker saw it). A run
 * time <= 0 is not learned; longer than 13 years counts as that. */
void duration_learn(struct duration *d, uint32_t size_mb, int64_t run_us);
/* After learning; a no-op when nothing is new. O(n log n), n <= DURATION_KEPT. */
void duration_fit(struct duration *d);
/* DURATION_MIN parts were learned, or the spec says what to expect. Those learned win. */
bool duration_known(const struct duration *d);
/* Parts still to be finished before something can be said; 0: known. */
int duration_needs(const struct duration *d);
/* Quantile p (1..99 percent) for a part of this size; 0 when not known. After duration_fit. */
int64_t duration_quantile_us(const struct duration *d, uint32_t size_mb, int p);
/* Remaining time of a part that has run for `elapsed_us`: conditional quantile, > 0; 0 when not
 * known. */
int64_t duration_remaining_us(const struct duration *d, uint32_t size_mb, int64_t elapsed_us,
                              int p);
/* How far off the line itself may be at this size: a standard error, relative. Large where few
 * parts were seen: few parts, or sizes far from theirs. The quantiles do not hold it. */
double duration_doubt(const struct duration *d, uint32_t size_mb);
/* A draw, for a bootstrap; 0 when not known. */
int64_t duration_draw_us(const struct duration *d, uint32_t size_mb, struct rng *rng);
/* The draw that u in [0, 1) stands for, given that the part has run for elapsed_us (0: not begun):
 * the whole run time, > elapsed_us; 0 when not known. */
int64_t duration_at_us(const struct duration *d, uint32_t size_mb, int64_t elapsed_us, double u);

/* A part that still runs: what it has taken so far is a lower bound. */
struct duration_running {
    uint32_t size_mb;
    int64_t elapsed_us;
};
/* One world that could have given what was seen: finished parts and running ones drawn with
 * replacement, the running ones ended by a draw that what they have taken allows (leaving them out
 * would favour fast parts, which end first), and the line fitted anew. What is not known about the
 * line, the spread and rare slow parts so varies from world to world. ret is a fitted model; d is
 * fitted and known. */
void duration_resample(const struct duration *d, const struct duration_running *running, size_t n,
                       struct rng *rng, struct duration *ret);
