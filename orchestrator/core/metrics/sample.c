/* See sample.h. */
#include "sample.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FRACTION_TERMS 500
#define FRACTION_LEAST 1e-300 /* in place of 0 */
#define FRACTION_EXACT 1e-15

static int by_value(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[i];
}

void sample_of(double *values, size_t n, struct metric_sample *ret)
{
    *ret = (struct metric_sample){.n = (int64_t)n};
    if (n == 0) {
        return;
    }
    double sum = 0, squares = 0;
    qsort(values, n, sizeof *values, by_value);
    for (size_t i = 0; i < n; i++) {
        sum += values[i];
    }
    ret->mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        squares += (values[i] - ret->mean) * (values[i] - ret->mean);
    }
    ret->variance = n > 1 ? squares / (double)(n - 1) : 0;
    ret->min = values[0];
    ret->max = values[n - 1];
    ret->p25 = quantile(values, n, 0.25);
    ret->median = quantile(values, n, 0.5);
    ret->p75 = quantile(values, n, 0.75);
}

static double not_zero(double v)
{
    return fabs(v) < FRACTION_LEAST ? FRACTION_LEAST : v;
}

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), f = d;
    for (int m = 1; m <= FRACTION_TERMS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / not_zero(1 + even * d);
        c = not_zero(1 + even / c);
        f *= c * d;
        d = 1 / not_zero(1 + odd * d);
        c = not_zero(1 + odd / c);
        f *= c * d;
        if (fabs(c * d - 1) < FRACTION_EXACT) {
            break;
        }
    }
    return f;
}

/* I_x(a, b) */
static double beta_regularised(double a, double b, double x)
{
    if (x <= 0 || x >= 1) {
        return x <= 0 ? 0 : 1;
    }
    int sign; /* lgamma() has a global for it, which threads would share */
    double gammas = lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign);
    double front = exp(gammas + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double sample_student_tail(double t, double df)
{
    ASSERT(df > 0);
    double p = beta_regularised(df / 2, 0.5, df / (df + t * t));
    return p < 0 ? 0 : p > 1 ? 1 : p;
}

bool sample_welch(const struct metric_sample *a, const struct metric_sample *b,
                  struct sample_test *ret)
{
    *ret = (struct sample_test){.p = 1};
    if (a->n < 2 || b->n < 2) {
        return false;
    }
    double of_a = a->variance / (double)a->n, of_b = b->variance / (double)b->n;
    double both = of_a + of_b, delta = b->mean - a->mean;
    if (!(both > 0)) { /* each is one value again and again */
        ret->p = delta == 0 ? 1 : 0;
        return true;
    }
    ret->t = delta / sqrt(both);
    ret->df = both * both / (of_a * of_a / (double)(a->n - 1) + of_b * of_b / (double)(b->n - 1));
    ret->p = sample_student_tail(ret->t, ret->df);
    return true;
}
