/* OpenCV's filters. Only area uses all input pixels when a picture shrinks; the others use a fixed
 * number around the centre. Pixels beyond the edge equal the edge pixel, so their weights are added
 * to it. */
#include "resize_weights.h"
#include <math.h>

#define LANCZOS_A 4
#define CUBIC_A   (-0.75)
#define SPAN_MAX  (2 * LANCZOS_A)

void resize_weights_done(struct resize_weights *t)
{
    free(t->at);
    free(t->weights);
    *t = (struct resize_weights){0};
}

static bool taps_alloc(int out_n, int n_max, struct resize_weights *ret)
{
    size_t blocks = ((size_t)n_max + SIMD_PAD - 1) / SIMD_PAD;
    size_t stride = blocks * SIMD_PAD;
    struct resize_weights t = {calloc((size_t)out_n, sizeof *t.at),
                               calloc((size_t)out_n * stride, sizeof *t.weights), n_max, blocks};
    if (t.at == NULL || t.weights == NULL) {
        resize_weights_done(&t);
        return false;
    }
    for (int i = 0; i < out_n; i++) {
        t.at[i].w = t.weights + (size_t)i * stride;
    }
    *ret = t;
    return true;
}

/* The weights of at[i]; callers have them const. */
static float *weights_of(struct resize_weights *t, int i)
{
    return t->weights + (t->at[i].w - t->weights);
}

/* Leave no room between weights that nothing needs. */
static void pack(struct resize_weights *t, int n)
{
    size_t blocks = ((size_t)t->n_max + SIMD_PAD - 1) / SIMD_PAD;
    for (int i = 0; blocks < t->blocks && i < n; i++) {
        float *to = t->weights + (size_t)i * blocks * SIMD_PAD;
        memmove(to, t->at[i].w, blocks * SIMD_PAD * sizeof *to);
        t->at[i].w = to;
    }
    t->blocks = blocks;
}

/* Distribute a pixel's weight to its samples; w is that of sample `start`. */
static void give(const struct resize_weights_cells *c, int pixel, float weight, int start, float *w)
{
    if (c->sub == 1) {
        w[pixel - start] += weight;
        return;
    }
    int last = (c->in_n - 1) / 2;
    int near = pixel / 2;
    int other = pixel % 2 != 0 ? MIN(near + 1, last) : MAX(near - 1, 0);
    w[near - start] += 0.75f * weight;
    w[other - start] += 0.25f * weight;
}

/* Each cell covers a stretch of the input: a pixel's weight is its covered share. */
bool resize_weights_make_cells(const struct resize_weights_cells *c, double gain,
                               struct resize_weights *ret)
{
    ASSERT(c->n > 0 && c->scale >= 1 && c->group >= 1 && (c->sub == 1 || c->sub == 2));
    int most = (int)ceil(c->scale * c->group) + 2; /* pixels of a cell */
    if (!taps_alloc(c->n, c->sub == 1 ? most : most / 2 + 3, ret)) {
        return false;
    }
    int taken = 0; /* by the largest cell: often less than any could */
    for (int i = 0; i < c->n; i++) {
        int pixel = c->first + c->group * i;
        double from = MAX(pixel, c->from) * c->scale;
        double to = MIN(MIN(pixel + c->group, c->to) * c->scale, (double)c->in_n);
        int first = (int)floor(from + 1e-6);
        int end = MIN((int)ceil(to - 1e-6), c->in_n);
        int start = c->sub == 1 ? first : MAX((first - 1) / 2, 0);
        int stop = c->sub == 1 ? end : MIN(end / 2, (c->in_n - 1) / 2) + 1;
        float *w = weights_of(ret, i);
        double each = gain / (to - from);
        ASSERT(end > first && stop - start <= ret->n_max);
        give(c, first, (float)((MIN(to, first + 1.0) - from) * each), start, w);
        for (int k = first + 1; k < end - 1; k++) {
            give(c, k, (float)each, start, w);
        }
        if (end - 1 > first) {
            give(c, end - 1, (float)((to - (end - 1)) * each), start, w);
        }
        ret->at[i].start = start;
        ret->at[i].n = stop - start;
        taken = MAX(taken, stop - start);
    }
    ret->n_max = taken;
    pack(ret, c->n);
    return true;
}

static bool area(int in_n, int out_n, struct resize_weights *ret)
{
    struct resize_weights_cells c = {in_n, 1, (double)in_n / out_n, 0, out_n, 0, 1, out_n};
    return resize_weights_make_cells(&c, 1, ret);
}

static double lanczos(double x)
{
    if (fabs(x) < 1e-8) {
        return 1;
    }
    if (fabs(x) >= LANCZOS_A) {
        return 0;
    }
    double p = M_PI * x;
    return LANCZOS_A * sin(p) * sin(p / LANCZOS_A) / (p * p);
}

static double cubic(double x)
{
    x = fabs(x);
    if (x <= 1) {
        return ((CUBIC_A + 2) * x - (CUBIC_A + 3)) * x * x + 1;
    }
    return x < 2 ? ((CUBIC_A * x - 5 * CUBIC_A) * x + 8 * CUBIC_A) * x - 4 * CUBIC_A : 0;
}

/* OpenCV's area filter when enlarging: linear, but it blends only where an output pixel covers the
 * border of two input pixels. */
static double area_up_centre(int i, int in_n, int out_n)
{
    double scale = 1 / ((double)out_n / in_n);
    double at = floor(i * scale);
    double share = (i + 1) - (at + 1) * ((double)out_n / in_n);
    return at + (share <= 0 ? 0 : share - floor(share));
}

static double weight(enum resize_filter f, double x)
{
    switch (f) {
    case FILTER_LANCZOS:
        return lanczos(x);
    case FILTER_CUBIC:
        return cubic(x);
    case FILTER_NEAREST:
        return fabs(x) < 0.5 ? 1 : 0;
    case FILTER_LINEAR:
    case FILTER_AREA:
    case FILTER_AUTO:
        break;
    }
    return MAX(1 - fabs(x), 0.0);
}

static bool fixed(enum resize_filter f, int in_n, int out_n, struct resize_weights *ret)
{
    double scale = 1 / ((double)out_n / in_n); /* rounded like OpenCV; `nearest` depends on it */
    int span = f == FILTER_LANCZOS ? 2 * LANCZOS_A : f == FILTER_CUBIC ? 4 : 2;
    if (!taps_alloc(out_n, span, ret)) {
        return false;
    }
    for (int i = 0; i < out_n; i++) {
        double centre = f == FILTER_NEAREST ? MIN(floor(i * scale), in_n - 1.0)
                        : f == FILTER_AREA  ? area_up_centre(i, in_n, out_n)
                                            : (i + 0.5) * scale - 0.5;
        int first = (int)floor(centre) - (span / 2 - 1);
        int start = MIN(MAX(first, 0), in_n - 1);
        int end = MIN(MAX(first + span - 1, 0), in_n - 1) + 1;
        double raw[SPAN_MAX];
        double sum = 0;
        for (int k = 0; k < span; k++) {
            raw[k] = weight(f, centre - (first + k));
            sum += raw[k];
        }
        float *w = weights_of(ret, i);
        for (int k = 0; k < span; k++) {
            w[MIN(MAX(first + k, 0), in_n - 1) - start] += (float)(raw[k] / sum);
        }
        ret->at[i].start = start;
        ret->at[i].n = end - start;
    }
    return true;
}

bool resize_weights_make(enum resize_filter filter, bool shrinks, int in_n, int out_n,
                         struct resize_weights *ret)
{
    ASSERT(in_n > 0 && out_n > 0 && filter != FILTER_AUTO && (!shrinks || out_n <= in_n));
    return filter == FILTER_AREA && shrinks ? area(in_n, out_n, ret)
                                            : fixed(filter, in_n, out_n, ret);
}
