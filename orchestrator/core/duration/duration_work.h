/* Shared by the two files of the duration model: fitting (duration.c) and bootstrap samples
 * (duration_bootstrap.c). Other modules use duration.h. */
#pragma once
#include "duration.h"

struct duration_point {
    double x, y; /* megabytes, seconds */
};
/* Fit line and ratios of d to these points (n >= 1; reordered). one_size_share: the share of the
 * time assumed to grow with size when all parts have one size. */
void duration_fit_points(struct duration *d, struct duration_point *p, size_t n,
                         double one_size_share);
/* Copy the learned points that are kept to p, which has room for DURATION_KEPT; returns their
 * number. */
size_t duration_points(const struct duration *d, struct duration_point *p);
/* Seconds of the line at this size. */
double duration_line_at(const struct duration *d, double size_mb);
/* Quantile q of the sorted ratios from index `from` on. */
double duration_ratio_quantile(const struct duration *d, uint32_t from, double q);
/* A ratio above r at probability u in [0, 1); r is above all of d's ratios. */
double duration_beyond(const struct duration *d, double r, double u);
