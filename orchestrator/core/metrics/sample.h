/* Figures of a set of values, and whether two sets differ by more than chance. Pure. */
#pragma once
#include "common/base.h"

struct metric_sample {
    int64_t n; /* 0: all else is 0 */
    double mean;
    double variance; /* of the sample: over n - 1; 0 with one value */
    double min, p25, median, p75, max;
};
/* values[n], finite; sorted in place. Quartiles are interpolated between neighbours, as Python's
 * statistics.quantiles(method="inclusive") does. */
void sample_of(double *values, size_t n, struct metric_sample *ret);

#define SAMPLE_SIGNIFICANT_P 0.05

struct sample_test {
    double t, df; /* 0 when neither set varies */
    double p;     /* two-sided: the chance of such a difference of the means when there is none */
};
/* Welch's t-test. False: a set has fewer than two values. The values are taken as independent of
 * each other. Source: B. L. Welch, The generalization of Student's problem when several different
 * population variances are involved, Biometrika 34, 1947. */
bool sample_welch(const struct metric_sample *a, const struct metric_sample *b,
                  struct sample_test *ret);
/* The two-sided tail of Student's t with df > 0 degrees of freedom, by the regularised incomplete
 * beta function. Source: NIST Digital Library of Mathematical Functions, 8.17. */
double sample_student_tail(double t, double df);
