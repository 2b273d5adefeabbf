/* How long a part runs: seconds over size, learned from finished parts of the stage, or what the
 * spec expects. A fixed-size value; the caller keeps one a stage. Pure. */
#pragma once
#include "common/rng.h"
#include "model.h"

#define DURATION_KEPT 512 /* newest finished parts */
#define DURATION_MIN  5   /* parts needed before anything is said without expect */

struct duration {
    int64_t expect_us; /* of the spec; 0: not said */
    struct {
        uint32_t size_mb;
        uint32_t deciseconds;
    } part[DURATION_KEPT];
    uint32_t n; /* all ever learned; the ring holds the newest */
    /* fitted: seconds = base + per_mb * size, and the sorted ratios of actual to fitted */
    double base_s, per_mb_s;
    float ratio[DURATION_KEPT];
    uint32_t ratios_n;
    bool stale; /* fit before the next question */
};
void duration_init(struct duration *d, int64_t expect_us);
/* A finished part: size as in the ready queue, run time (start to end as SageMaker saw it). */
void duration_learn(struct duration *d, uint32_t size_mb, int64_t run_us);
void duration_fit(struct duration *d); /* after learning; a no-op when nothing is new */
bool duration_known(const struct duration *d);
/* Quantile p (1..99 percent) for a part of this size; 0 when not known. After duration_fit. */
int64_t duration_quantile_us(const struct duration *d, uint32_t size_mb, int p);
/* Remaining time of a part that has run for `elapsed_us`: conditional quantile, > 0. */
int64_t duration_remaining_us(const struct duration *d, uint32_t size_mb, int64_t elapsed_us,
                              int p);
/* A draw, for a bootstrap; `quality` draws are shared by one world: pass the same rng. */
int64_t duration_draw_us(const struct duration *d, uint32_t size_mb, struct rng *rng);
