/* The upper tail of the normal distribution, and of the ratios of a duration model. */
#include "duration_work.h"
#include <math.h>

#define OVERDUE 0.2 /* of the elapsed time, outside a sample */

static double tail(double z)
{
    return erfc(z * M_SQRT1_2) / 2;
}

/* E[z | z > a]. Far out the tail is tiny and the ratio tends to a. */
double duration_tail_mean(double a)
{
    return a > 30 ? a : exp(-a * a / 2) / (sqrt(2 * M_PI) * tail(a));
}

static double poly(const double *k, int n, double x)
{
    double sum = k[0];
    for (int i = 1; i < n; i++) {
        sum = sum * x + k[i];
    }
    return sum;
}

/* The normal deviate with probability p above it, 0 < p < 1: Acklam's rational approximation, to
 * 1e-8. */
static double tail_inverse(double p)
{
    static const double mid_up[] = {-3.969683028665376e+01, 2.209460984245205e+02,
                                    -2.759285104469687e+02, 1.383577518672690e+02,
                                    -3.066479806614716e+01, 2.506628277459239e+00};
    static const double mid_down[] = {-5.447609879822406e+01, 1.615858368580409e+02,
                                      -1.556989798598866e+02, 6.680131188771972e+01,
                                      -1.328068155288572e+01, 1};
    static const double end_up[] = {-7.784894002430293e-03, -3.223964580411365e-01,
                                    -2.400758277161838e+00, -2.549732539343734e+00,
                                    4.374664141464968e+00,  2.938163982698783e+00};
    static const double end_down[] = {7.784695709041462e-03, 3.224671290700398e-01,
                                      2.445134137142996e+00, 3.754408661907416e+00, 1};
    if (p > 0.5) {
        return -tail_inverse(1 - p);
    }
    if (p < 0.02425) {
        double q = sqrt(-2 * log(p));
        return -poly(end_up, 6, q) / poly(end_down, 5, q);
    }
    double q = p - 0.5;
    return -poly(mid_up, 6, q * q) * q / poly(mid_down, 6, q * q);
}

/* The deviate above a at probability u in [0, 1). */
double duration_tail_at(double a, double u)
{
    if (a > 30) {
        return a - log(1 - u) / a;
    }
    return MAX(a, tail_inverse(tail(a) * (1 - u)));
}

double duration_beyond(const struct duration *d, double r, double u)
{
    if (d->rare_times <= 0) {
        return r * (1 + OVERDUE * u);
    }
    /* In a sample it is either the tail of the spread, or a rare event, which has no upper
     * bound. */
    double a = (log(r) - d->log_mean) / d->log_sd;
    double common = tail(a);
    double rare = RARE_PRIOR / (d->ratios_n + RARE_PARTS) * exp(-MAX(r - 1, 0) / d->rare_times);
    double at = u * (common + rare);
    if (at < common) {
        return exp(d->log_mean + d->log_sd * duration_tail_at(a, at / common));
    }
    return r - d->rare_times * log(1 - MIN((at - common) / rare, 1 - 1e-9));
}
