/* Shared by the files of the duration model: fitting (duration.c), bootstrap samples
 * (duration_bootstrap.c) and tails (duration_tail.c). Other modules use duration.h. */
#pragma once
#include "duration.h"

/* Prior probability of a rare slow event, with the weight of RARE_PARTS parts. */
#define RARE_PRIOR 0.3
#define RARE_PARTS 10.0

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
/* Mean of a standard normal deviate that is above a. */
double duration_tail_mean(double a);
/* The standard normal deviate above a at probability u in [0, 1). */
double duration_tail_at(double a, double u);
