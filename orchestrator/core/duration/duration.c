/* Duration model: a robust line of seconds over size, and the ratios of observed to fitted times.
 *
 * The first estimate is Theil's line over pairs half the range apart, which tolerates a quarter of
 * outliers; three rounds of least squares on relative errors with Tukey's weights refine it.
 * Neither base nor slope may be negative: more bytes never take less time. */
#include "duration_work.h"
#include <math.h>

#define SIZES_TELL       1.02 /* minimum ratio of largest to smallest size for fitting a slope */
#define TUKEY_K          4.685
#define MAD_TO_SD        1.4826
#define LEAST_SPREAD     0.01 /* relative error below which no part is an outlier */
#define IRLS_ROUNDS      3
#define EXPECT_RATIOS    41
#define EXPECT_BASE      0.25 /* share of the expected time that does not depend on size */
#define ONE_SIZE_SD      0.29 /* of the share that grows with size, when all parts had one size */
#define OVERDUE_AT_MOST  0.2  /* of the elapsed time, beyond the slowest ratio seen */
#define DECISECONDS_MAX  UINT32_MAX
#define USEC_PER_DECISEC INT64_C(100000)

struct fitted_line {
    double base, slope;
};

void duration_init(struct duration *d, int64_t expect_us)
{
    d->expect_us = MAX(expect_us, 0);
    d->expect_size_mb = d->n = d->ratios_n = 0; /* what the arrays hold behind is not read */
    d->base_s = d->per_mb_s = 0;
    d->weight = d->weight_mb = d->weight_mb2 = 0;
    d->log_mean = d->log_sd = d->rare_times = 0;
    d->stale = true;
}

void duration_expect_size(struct duration *d, uint32_t mean_size_mb)
{
    d->stale = d->stale || d->expect_size_mb != mean_size_mb;
    d->expect_size_mb = mean_size_mb;
}

void duration_learn(struct duration *d, uint32_t size_mb, int64_t run_us)
{
    if (run_us <= 0) {
        return;
    }
    int64_t deci = MAX(run_us / USEC_PER_DECISEC, 1);
    uint32_t at = d->n % DURATION_KEPT;
    d->part[at].size_mb = size_mb;
    d->part[at].deciseconds = (uint32_t)MIN(deci, (int64_t)DECISECONDS_MAX);
    /* The count saturates: it must not wrap to a small number. */
    d->n = d->n == UINT32_MAX ? UINT32_MAX - DURATION_KEPT + 1 : d->n + 1;
    d->stale = true;
}

static uint32_t kept(const struct duration *d)
{
    return MIN(d->n, (uint32_t)DURATION_KEPT);
}

static int float_cmp(const void *a, const void *b)
{
    float x = *(const float *)a;
    float y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static int point_cmp(const void *a, const void *b)
{
    const struct duration_point *p = a;
    const struct duration_point *q = b;
    if (p->x != q->x) {
        return p->x < q->x ? -1 : 1;
    }
    return p->y < q->y ? -1 : p->y > q->y;
}

static void swap(double *a, double *b)
{
    double t = *a;
    *a = *b;
    *b = t;
}

/* Hoare's selection: v[k] becomes what a sort would put there, what is smaller comes before it. */
static void select_nth(double *v, int64_t n, int64_t k)
{
    int64_t from = 0;
    int64_t to = n - 1;
    while (from < to) {
        double pivot = v[k];
        int64_t i = from;
        int64_t j = to;
        while (i <= j) {
            /* At first both stop at the pivot, later at a value that was swapped: i and j stay
             * between from and to. */
            /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): so v[i] is set */
            while (v[i] < pivot) {
                i++;
            }
            /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): so v[j] is set */
            while (pivot < v[j]) {
                j--;
            }
            if (i <= j) {
                swap(&v[i++], &v[j--]);
            }
        }
        from = j < k ? i : from;
        to = k < i ? j : to;
    }
}

/* The order of v changes. */
static double median(double *v, size_t n)
{
    ASSERT(n > 0);
    select_nth(v, (int64_t)n, (int64_t)n / 2);
    if (n % 2 == 1) {
        return v[n / 2];
    }
    double below = v[0];
    for (size_t i = 1; 2 * i < n; i++) {
        below = fmax(below, v[i]);
    }
    return (below + v[n / 2]) / 2;
}

static double on_line(const struct fitted_line *l, double x)
{
    return fmax(l->base + l->slope * x, DURATION_SHORTEST_S);
}

/* p sorted by x, not all of one size. */
static struct fitted_line first_guess(const struct duration_point *p, size_t n)
{
    double v[DURATION_KEPT];
    size_t half = n / 2;
    size_t slopes = 0;
    for (size_t i = 0; i + half < n; i++) {
        double dx = p[i + half].x - p[i].x;
        if (dx > 0) {
            v[slopes++] = (p[i + half].y - p[i].y) / dx;
        }
    }
    /* Most parts have one size: only the ends of the range are left. */
    double slope = slopes > 0 ? median(v, slopes) : (p[n - 1].y - p[0].y) / (p[n - 1].x - p[0].x);
    struct fitted_line l = {.slope = fmax(slope, 0)};
    for (size_t i = 0; i < n; i++) {
        v[i] = p[i].y - l.slope * p[i].x;
    }
    l.base = median(v, n);
    if (l.base >= 0) {
        return l;
    }
    size_t some = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i].x > 0) {
            v[some++] = p[i].y / p[i].x;
        }
    }
    return (struct fitted_line){.slope = median(v, some)};
}

/* One round: weights from the last line's relative errors, then least squares with both bounds. */
static struct fitted_line sharpen(const struct duration_point *p, size_t n,
                                  const struct fitted_line *last)
{
    double v[DURATION_KEPT];
    for (size_t i = 0; i < n; i++) {
        v[i] = fabs(p[i].y / on_line(last, p[i].x) - 1);
    }
    double far = TUKEY_K * fmax(MAD_TO_SD * median(v, n), LEAST_SPREAD);
    double w = 0;
    double wx = 0;
    double wy = 0;
    double wxx = 0;
    double wxy = 0;
    for (size_t i = 0; i < n; i++) {
        double f = on_line(last, p[i].x);
        double off = fabs(p[i].y / f - 1);
        double near = off < far ? 1 - off * off / (far * far) : 0;
        double weight = near * near / (f * f);
        w += weight;
        wx += weight * p[i].x;
        wy += weight * p[i].y;
        wxx += weight * p[i].x * p[i].x;
        wxy += weight * p[i].x * p[i].y;
    }
    double det = w * wxx - wx * wx;
    if (!(det > 1e-12 * w * wxx)) {
        return *last;
    }
    struct fitted_line l = {.base = (wy * wxx - wx * wxy) / det,
                            .slope = (w * wxy - wx * wy) / det};
    if (l.slope < 0) {
        return (struct fitted_line){.base = wy / w};
    }
    return l.base < 0 ? (struct fitted_line){.slope = wxy / wxx} : l;
}

/* Parts of one size say nothing about other sizes: half of the time is assumed to grow with
 * size. */
static struct fitted_line of_one_size(const struct duration_point *p, size_t n, double share)
{
    double v[DURATION_KEPT];
    double x = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = p[i].y;
        x += p[i].x / (double)n;
    }
    double y = median(v, n);
    return x > 0 ? (struct fitted_line){.base = y * (1 - share), .slope = y * share / x}
                 : (struct fitted_line){.base = y};
}

void duration_fit_points(struct duration *d, struct duration_point *p, size_t n,
                         double one_size_share)
{
    qsort(p, n, sizeof *p, point_cmp);
    struct fitted_line l;
    if (p[n - 1].x <= p[0].x * SIZES_TELL) {
        l = of_one_size(p, n, one_size_share);
    } else {
        l = first_guess(p, n);
        for (int i = 0; i < IRLS_ROUNDS; i++) {
            l = sharpen(p, n, &l);
        }
    }
    d->base_s = l.base;
    d->per_mb_s = l.slope;
    d->ratios_n = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        d->ratio[i] = (float)(p[i].y / on_line(&l, p[i].x));
    }
    qsort(d->ratio, n, sizeof d->ratio[0], float_cmp);
}

/* What the spec expects, with the quantiles of a log-normal spread of mean 1 around it. */
static void fit_expected(struct duration *d)
{
    /* z of (i + 1/2) / 41, the upper half; the lower one mirrors it. */
    static const double z[EXPECT_RATIOS / 2 + 1] = {
        0,     0.061, 0.123, 0.184, 0.247, 0.311, 0.375, 0.442, 0.510, 0.581, 0.655,
        0.733, 0.816, 0.904, 1.000, 1.107, 1.228, 1.370, 1.547, 1.792, 2.251};
    double s = (double)d->expect_us / (double)USEC_PER_SEC;
    bool scaled = d->expect_size_mb > 0;
    d->base_s = scaled ? s * EXPECT_BASE : s;
    d->per_mb_s = scaled ? s * (1 - EXPECT_BASE) / d->expect_size_mb : 0;
    d->ratios_n = EXPECT_RATIOS;
    for (int i = 0; i < EXPECT_RATIOS; i++) {
        int from_mid = i - EXPECT_RATIOS / 2;
        double zi = from_mid < 0 ? -z[-from_mid] : z[from_mid];
        d->ratio[i] =
            (float)exp(DURATION_EXPECT_SD * zi - DURATION_EXPECT_SD * DURATION_EXPECT_SD / 2);
    }
}

size_t duration_points(const struct duration *d, struct duration_point *p)
{
    size_t n = kept(d);
    for (size_t i = 0; i < n; i++) {
        p[i] = (struct duration_point){d->part[i].size_mb, d->part[i].deciseconds / 10.0};
    }
    return n;
}

static void weigh(struct duration *d, const struct duration_point *p, size_t n)
{
    struct fitted_line l = {d->base_s, d->per_mb_s};
    d->weight = 0;
    d->weight_mb = 0;
    d->weight_mb2 = 0;
    for (size_t i = 0; i < n; i++) {
        double f = on_line(&l, p[i].x);
        d->weight += 1 / (f * f);
        d->weight_mb += p[i].x / (f * f);
        d->weight_mb2 += p[i].x * p[i].x / (f * f);
    }
}

void duration_fit(struct duration *d)
{
    if (!d->stale) {
        return;
    }
    d->stale = false;
    d->ratios_n = 0;
    if (d->n >= DURATION_MIN) {
        struct duration_point p[DURATION_KEPT];
        size_t n = duration_points(d, p);
        duration_fit_points(d, p, n, 0.5);
        weigh(d, p, n);
    } else if (d->expect_us > 0) {
        fit_expected(d);
    }
}

bool duration_known(const struct duration *d)
{
    return duration_needs(d) == 0;
}

int duration_needs(const struct duration *d)
{
    return d->expect_us > 0 || d->n >= DURATION_MIN ? 0 : (int)(DURATION_MIN - d->n);
}

double duration_line_at(const struct duration *d, double size_mb)
{
    struct fitted_line l = {d->base_s, d->per_mb_s};
    return on_line(&l, size_mb);
}

static double fitted_s(const struct duration *d, uint32_t size_mb)
{
    return duration_line_at(d, size_mb);
}

static int64_t to_us(double s)
{
    return s < 1 ? MAX((int64_t)(s * 1e6), 1) : (int64_t)MIN(s * 1e6, (double)DURATION_LONGEST_US);
}

/* Index of the first ratio above r. */
static uint32_t first_above(const struct duration *d, double r)
{
    uint32_t from = 0;
    uint32_t to = d->ratios_n;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if ((double)d->ratio[mid] > r) {
            to = mid;
        } else {
            from = mid + 1;
        }
    }
    return from;
}

/* Quantile q of the sorted ratios [from, ratios_n): between (n+1)q-th values, so that few values
 * give wide quantiles rather than narrow ones. */
double duration_ratio_quantile(const struct duration *d, uint32_t from, double q)
{
    uint32_t n = d->ratios_n - from;
    double at = q * (n + 1) - 1;
    if (at <= 0) {
        return (double)d->ratio[from];
    }
    uint32_t i = (uint32_t)at;
    if (i + 1 >= n) {
        return (double)d->ratio[d->ratios_n - 1];
    }
    double low = (double)d->ratio[from + i];
    return low + (at - i) * ((double)d->ratio[from + i + 1] - low);
}

int64_t duration_quantile_us(const struct duration *d, uint32_t size_mb, int p)
{
    ASSERT(p >= 1 && p <= 99);
    if (d->ratios_n == 0) {
        return 0;
    }
    return to_us(fitted_s(d, size_mb) * duration_ratio_quantile(d, 0, p / 100.0));
}

int64_t duration_remaining_us(const struct duration *d, uint32_t size_mb, int64_t elapsed_us, int p)
{
    ASSERT(p >= 1 && p <= 99);
    if (d->ratios_n == 0) {
        return 0;
    }
    double f = fitted_s(d, size_mb);
    double elapsed_s = (double)MAX(elapsed_us, 0) / 1e6;
    uint32_t from = elapsed_us > 0 ? first_above(d, elapsed_s / f) : 0;
    if (from == d->ratios_n) {
        return to_us(elapsed_s * OVERDUE_AT_MOST * p / 100.0);
    }
    return to_us(f * duration_ratio_quantile(d, from, p / 100.0) - elapsed_s);
}

int64_t duration_at_us(const struct duration *d, uint32_t size_mb, int64_t elapsed_us, double u)
{
    ASSERT(u >= 0 && u < 1);
    if (d->ratios_n == 0) {
        return 0;
    }
    double f = fitted_s(d, size_mb);
    if (elapsed_us <= 0) {
        return to_us(f * (double)d->ratio[(uint32_t)(u * d->ratios_n)]);
    }
    double elapsed_s = (double)elapsed_us / 1e6;
    uint32_t from = first_above(d, elapsed_s / f);
    int64_t whole = from == d->ratios_n
                        ? to_us(f * duration_beyond(d, elapsed_s / f, u))
                        : to_us(f * (double)d->ratio[from + (uint32_t)(u * (d->ratios_n - from))]);
    return MAX(whole, elapsed_us + 1);
}

int64_t duration_draw_us(const struct duration *d, uint32_t size_mb, struct rng *rng)
{
    return duration_at_us(d, size_mb, 0, rng_unit(rng));
}

double duration_doubt(const struct duration *d, uint32_t size_mb)
{
    if (d->n < DURATION_MIN || d->ratios_n == 0) {
        return DURATION_EXPECT_SD;
    }
    double f = fitted_s(d, size_mb);
    double mean_mb = d->weight_mb / d->weight;
    double spread_mb2 = d->weight_mb2 / d->weight - mean_mb * mean_mb;
    double off_mb = size_mb - mean_mb;
    double at_mean_s = d->base_s + d->per_mb_s * mean_mb;
    /* Of the middle two thirds: an outlier says nothing about the line. */
    double sd =
        fmax((duration_ratio_quantile(d, 0, 0.84) - duration_ratio_quantile(d, 0, 0.16)) / 2,
             LEAST_SPREAD);
    if (spread_mb2 <= (SIZES_TELL - 1) * (SIZES_TELL - 1) / 12 * mean_mb * mean_mb) {
        double share_s = mean_mb > 0 ? ONE_SIZE_SD * at_mean_s * off_mb / mean_mb : 0;
        return hypot(sd / sqrt(d->ratios_n), share_s / f);
    }
    return sd / f * sqrt((1 + off_mb * off_mb / spread_mb2) / d->weight);
}
