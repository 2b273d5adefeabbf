/* What the two files of the duration model share: fitting (duration.c) and worlds
 * (duration_world.c). Not for others: they see duration.h. */
#pragma once
#include "duration.h"

struct duration_point {
    double x, y; /* megabytes, seconds */
};
/* Line and ratios of d from these points (n >= 1; reordered). one_size_share: of the time that is
 * taken to grow with size when all parts have one size. */
void duration_fit_points(struct duration *d, struct duration_point *p, size_t n,
                         double one_size_share);
/* What was learned and is kept; p has room for DURATION_KEPT. Their number. */
size_t duration_points(const struct duration *d, struct duration_point *p);
/* Seconds of the line at this size. */
double duration_line_at(const struct duration *d, double size_mb);
/* Quantile q of the sorted ratios from index `from` on. */
double duration_ratio_quantile(const struct duration *d, uint32_t from, double q);
/* A ratio above r, which itself is above all of d's: the one that u in [0, 1) stands for. */
double duration_beyond(const struct duration *d, double r, double u);
