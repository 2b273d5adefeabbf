/* How long a part runs: seconds over size, learned from finished parts of the stage, or from
 * `expect:` in the spec. A fixed-size value; the caller keeps one per stage. Pure.
 *
 * The model is seconds = (base + per_mb * size) * ratio. The line is fitted robustly: a part that
 * took ten times as long does not move it. The ratios of all finished parts to the line, slow ones
 * included, are kept unchanged; quantiles and draws come from them. Beyond the slowest ratio seen a
 * job is expected to take another tenth of its elapsed time. */
#pragma once
#include "common/rng.h"
#include "core/model.h"

#define DURATION_KEPT       512 /* number of newest finished parts kept */
#define DURATION_MIN        5   /* finished parts needed when the spec has no expect */
#define DURATION_EXPECT_SD  0.1 /* spread (log) assumed around what the spec expects */
#define DURATION_SHORTEST_S 0.1 /* minimum run time of a part */
/* The longest time that is ever answered, 31 years: sums of thousands of them do not overflow. */
#define DURATION_LONGEST_US (INT64_C(1000) * 1000 * 1000 * USEC_PER_SEC)

struct duration {
    int64_t expect_us;       /* of the spec, for a part of mean size; 0: not given */
    uint32_t expect_size_mb; /* the mean size it refers to; 0: valid for every size */
    struct {
        uint32_t size_mb;
        uint32_t deciseconds;
    } part[DURATION_KEPT];
    uint32_t n; /* number ever learned; the ring holds the newest */
    /* fitted: seconds = base + per_mb * size, and the sorted ratios of actual to fitted */
    double base_s, per_mb_s;
    float ratio[DURATION_KEPT];
    uint32_t ratios_n;
    double weight, weight_mb, weight_mb2; /* sums over the parts the line was fitted to */
    /* Set by duration_resample, else 0: ratios beyond the slowest one. */
    double log_mean, log_sd, rare_times;
    bool stale; /* must be fitted before the next query */
};
/* expect_us <= 0: the spec has no expect. */
void duration_init(struct duration *d, int64_t expect_us);
/* Set the mean size of the stage's parts: the spec's expectation is scaled by size / mean size. */
void duration_expect_size(struct duration *d, uint32_t mean_size_mb);
/* Learn from a finished part: size as in the ready queue, run time from start to end as SageMaker
 * reports it. A run time <= 0 is ignored; one above 13 years counts as 13 years. */
void duration_learn(struct duration *d, uint32_t size_mb, int64_t run_us);
/* Fit the model after learning; does nothing when nothing is new. O(n log n), n <=
 * DURATION_KEPT. */
void duration_fit(struct duration *d);
/* True when DURATION_MIN parts were learned or the spec has an expect. Learned parts take
 * precedence. */
bool duration_known(const struct duration *d);
/* Finished parts still needed before durations are known; 0: known. */
int duration_needs(const struct duration *d);
/* Quantile p (1..99 percent) for a part of this size; 0 when not known. After duration_fit. */
int64_t duration_quantile_us(const struct duration *d, uint32_t size_mb, int p);
/* Remaining time of a part that has run for `elapsed_us`: conditional quantile, > 0; 0 when not
 * known. */
int64_t duration_remaining_us(const struct duration *d, uint32_t size_mb, int64_t elapsed_us,
                              int p);
/* Relative standard error of the line at this size. Large when few parts were seen or their sizes
 * are far from this one. The quantiles do not include it. */
double duration_doubt(const struct duration *d, uint32_t size_mb);
/* A draw, for a bootstrap; 0 when not known. */
int64_t duration_draw_us(const struct duration *d, uint32_t size_mb, struct rng *rng);
/* The whole run time at probability u in [0, 1), given that the part has run for elapsed_us (0: not
 * started). Greater than elapsed_us; 0 when not known. */
int64_t duration_at_us(const struct duration *d, uint32_t size_mb, int64_t elapsed_us, double u);

/* A part that still runs: its elapsed time is a lower bound. */
struct duration_running {
    uint32_t size_mb;
    int64_t elapsed_us;
};
/* One bootstrap sample: finished and running parts are drawn with replacement, running ones get an
 * end drawn given their elapsed time (leaving them out would favour fast parts, which end first),
 * and the line is fitted to the sample. The uncertainty about the line, the spread and rare slow
 * parts thus varies between samples. ret is a fitted model; d must be fitted and known. */
void duration_resample(const struct duration *d, const struct duration_running *running, size_t n,
                       struct rng *rng, struct duration *ret);
