/* Bootstrap samples of the duration model. Three things make few parts less certain than they look:
 * the line is fitted to them, the slow ones still run, and rare events have not happened yet. */
#include "duration_work.h"
#include <math.h>

#define RARE_TIMES   1.5 /* times as long again, in the median sample */
#define SPREAD_LEAST 0.01
#define ROUNDS       2 /* of fitting and of ending running parts */
#define MOMENTS      4 /* steps towards mean and spread inside one */

struct spread { /* of the logarithms of ratios */
    double mean, sd;
};

/* Mean and spread of the ratios, running parts counted with their expected final ratio
 * (expectation-maximisation). p: ended parts; c: running parts, with y the time elapsed. */
static struct spread spread_of(const struct duration *d, const struct duration_point *p, size_t n,
                               const struct duration_point *c, size_t c_n)
{
    struct spread s = {0, SPREAD_LEAST};
    double total = (double)(n + c_n);
    for (int round = 0; round < MOMENTS; round++) {
        bool first = round == 0; /* from ended parts only */
        double sum = 0;
        double squares = 0;
        for (size_t i = 0; i < n; i++) {
            double l = log(p[i].y / duration_line_at(d, p[i].x));
            sum += l;
            squares += l * l;
        }
        for (size_t i = 0; !first && i < c_n; i++) {
            double a = (log(c[i].y / duration_line_at(d, c[i].x)) - s.mean) / s.sd;
            double z = duration_tail_mean(a);
            double z2 = 1 + a * z;
            sum += s.mean + s.sd * z;
            squares += s.mean * s.mean + 2 * s.mean * s.sd * z + s.sd * s.sd * z2;
        }
        double of = first ? (double)n : total;
        s.mean = sum / of;
        s.sd = MAX(sqrt(MAX(squares / of - s.mean * s.mean, 0)), SPREAD_LEAST);
    }
    return s;
}

/* Draw the end of each running part given its size and elapsed time. */
static void end_running(const struct duration *d, const struct spread *s,
                        const struct duration_point *c, size_t n, struct rng *rng,
                        struct duration_point *ret)
{
    for (size_t i = 0; i < n; i++) {
        double f = duration_line_at(d, c[i].x);
        double a = (log(c[i].y / f) - s->mean) / s->sd;
        double l = s->mean + s->sd * duration_tail_at(MAX(a, -10), rng_unit(rng));
        ret[i] = (struct duration_point){c[i].x, MAX(f * exp(l), c[i].y)};
    }
}

/* The probability of a rare slow event (a straggler, a wait for capacity) that is still possible
 * after n parts: Gamma(RARE_PRIOR) / (n + RARE_PARTS), usually near 0, sometimes several per cent.
 * A plain bootstrap knows only past events. */
static double rare_draw(struct rng *rng, size_t n)
{
    double u = 1 - rng_unit(rng);
    double e = -log(1 - rng_unit(rng)); /* close to Gamma(1 + RARE_PRIOR) */
    return pow(u, 1 / RARE_PRIOR) * e / ((double)n + RARE_PARTS);
}

static int float_cmp(const void *a, const void *b)
{
    float x = *(const float *)a;
    float y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* A smoothed bootstrap that keeps the spread: each ratio is moved by a normal step of Silverman's
 * width and all are shrunk accordingly. Rare events are added. */
static void smooth(struct duration *d, size_t seen, struct rng *rng)
{
    uint32_t n = d->ratios_n;
    double mean = 0;
    double var = 0;
    for (uint32_t i = 0; i < n; i++) {
        mean += log((double)d->ratio[i]) / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        double off = log((double)d->ratio[i]) - mean;
        var += off * off / n;
    }
    double range = log(duration_ratio_quantile(d, 0, 0.75) / duration_ratio_quantile(d, 0, 0.25));
    double width = MIN(0.9 * range / 1.34 * pow((double)seen, -0.2), sqrt(var / 2));
    double in = var > 0 ? sqrt(1 - width * width / var) : 1;
    double rare = rare_draw(rng, seen);
    for (uint32_t i = 0; i < n; i++) {
        double off = in * (log((double)d->ratio[i]) - mean) + width * rng_normal(rng);
        double ratio = exp(mean + off);
        if (rng_unit(rng) < rare) {
            ratio *= 1 - d->rare_times * log(1 - rng_unit(rng));
        }
        d->ratio[i] = (float)ratio;
    }
    qsort(d->ratio, n, sizeof d->ratio[0], float_cmp);
    d->log_mean = mean;
    d->log_sd = MAX(sqrt(var), SPREAD_LEAST);
}

/* Residuals of a line fitted to n points are smaller than the true errors: two degrees of freedom
 * went into the line. */
static void widen(const struct duration *d, struct duration_point *p, size_t n)
{
    double by = sqrt((double)n / ((double)n - 2));
    double mean = 0;
    for (size_t i = 0; i < n; i++) {
        mean += log(p[i].y / duration_line_at(d, p[i].x)) / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        double f = duration_line_at(d, p[i].x);
        p[i].y = f * exp(mean + by * (log(p[i].y / f) - mean));
    }
}

/* A sample around the spec's expectation, which itself is uncertain by as much as its spread. */
static void resample_expected(const struct duration *d, struct rng *rng, struct duration *ret)
{
    *ret = *d;
    double off = exp(DURATION_EXPECT_SD * rng_normal(rng));
    ret->base_s *= off;
    ret->per_mb_s *= off;
    if (d->expect_size_mb > 0) { /* the share that grows with size is not known */
        double base_s = ret->base_s * 2 * rng_unit(rng);
        ret->per_mb_s += (ret->base_s - base_s) / d->expect_size_mb;
        ret->base_s = base_s;
    }
}

void duration_resample(const struct duration *d, const struct duration_running *running, size_t n,
                       struct rng *rng, struct duration *ret)
{
    if (d->n < DURATION_MIN) {
        resample_expected(d, rng, ret);
        return;
    }
    struct duration_point all[DURATION_KEPT];
    struct duration_point ended[DURATION_KEPT];
    struct duration_point live[DURATION_KEPT];
    struct duration_point p[DURATION_KEPT];
    size_t seen = duration_points(d, all);
    widen(d, all, seen);
    double share = rng_unit(rng);
    /* As many of each kind as there are, or in proportion when more were seen than are kept. */
    size_t want = MIN(seen + n, (size_t)DURATION_KEPT);
    size_t live_n = (size_t)((double)want * (double)n / ((double)d->n + (double)n) + 0.5);
    live_n = MIN(live_n, want - DURATION_MIN);
    size_t ended_n = want - live_n;
    for (size_t i = 0; i < ended_n; i++) {
        ended[i] = all[rng_below(rng, seen)];
    }
    for (size_t i = 0; i < live_n; i++) {
        const struct duration_running *r = &running[rng_below(rng, n)];
        live[i] = (struct duration_point){r->size_mb, (double)MAX(r->elapsed_us, 1) / 1e6};
    }
    *ret = *d;
    ret->rare_times = RARE_TIMES * exp(rng_normal(rng));
    // cppcheck-suppress uninitvar ; ended_n of them were filled above
    memcpy(p, ended, ended_n * sizeof *p);
    duration_fit_points(ret, p, ended_n, share);
    for (int round = 0; live_n > 0 && round < ROUNDS; round++) {
        struct spread s = spread_of(ret, ended, ended_n, live, live_n);
        memcpy(p, ended, ended_n * sizeof *p);
        end_running(ret, &s, live, live_n, rng, p + ended_n);
        duration_fit_points(ret, p, want, share);
    }
    smooth(ret, seen, rng);
}
