/* Two passes with precomputed taps: each source row is filtered across once, into a ring of as
 * many rows as one output row needs; output rows are weighted sums of those. */
#include "resize.h"
#include <math.h>

#define LANCZOS_A 4

struct taps { /* of one output pixel */
    int start;
    int n;
    const float *w;
};
struct filter {
    struct taps *taps; /* taps[out_n] */
    float *weights;
    int n_max;
};

int resize_side(int side, int size, int base)
{
    ASSERT(side > 0 && size > 0 && base > 0);
    double scale = (double)size / (double)base;
    double v = nearbyint((double)side * scale);
    return v < 1 ? 1 : v > 1e9 ? 1000000000 : (int)v;
}

static void filter_done(struct filter *f)
{
    free(f->taps);
    free(f->weights);
}

/* Each output pixel covers [i*scale, (i+1)*scale) of the input: weight = covered share. */
static bool filter_area(int in_n, int out_n, struct filter *ret)
{
    double scale = (double)in_n / out_n;
    int n_max = (int)ceil(scale) + 2;
    struct filter f = {calloc((size_t)out_n, sizeof *f.taps),
                       calloc((size_t)out_n * (size_t)n_max, sizeof *f.weights), n_max};
    if (f.taps == NULL || f.weights == NULL) {
        filter_done(&f);
        return false;
    }
    for (int i = 0; i < out_n; i++) {
        double from = i * scale;
        double to = MIN(from + scale, (double)in_n);
        int start = (int)floor(from + 1e-6);
        int end = MIN((int)ceil(to - 1e-6), in_n);
        float *w = f.weights + (size_t)i * (size_t)n_max;
        ASSERT(end > start && end - start <= n_max);
        for (int k = start; k < end; k++) {
            w[k - start] = (float)((MIN(to, k + 1.0) - MAX(from, (double)k)) / (to - from));
        }
        f.taps[i] = (struct taps){start, end - start, w};
    }
    *ret = f;
    return true;
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

/* Eight taps round the centre, edge pixels repeated (their weights are added up), sum 1. */
static bool filter_lanczos(int in_n, int out_n, struct filter *ret)
{
    double scale = (double)in_n / out_n;
    int n_max = 2 * LANCZOS_A;
    struct filter f = {calloc((size_t)out_n, sizeof *f.taps),
                       calloc((size_t)out_n * (size_t)n_max, sizeof *f.weights), n_max};
    if (f.taps == NULL || f.weights == NULL) {
        filter_done(&f);
        return false;
    }
    for (int i = 0; i < out_n; i++) {
        double centre = (i + 0.5) * scale - 0.5;
        int first = (int)floor(centre) - (LANCZOS_A - 1);
        int start = MIN(MAX(first, 0), in_n - 1);
        int end = MIN(MAX(first + n_max - 1, 0), in_n - 1) + 1;
        double sum = 0;
        double raw[2 * LANCZOS_A];
        for (int k = 0; k < n_max; k++) {
            raw[k] = lanczos(centre - (first + k));
            sum += raw[k];
        }
        float *w = f.weights + (size_t)i * (size_t)n_max;
        for (int k = 0; k < n_max; k++) {
            int at = MIN(MAX(first + k, 0), in_n - 1) - start;
            w[at] += (float)(raw[k] / sum);
        }
        f.taps[i] = (struct taps){start, end - start, w};
    }
    *ret = f;
    return true;
}

static void across(const uint8_t *row, const struct filter *f, int out_w, int channels, float *out)
{
    for (int x = 0; x < out_w; x++) {
        const struct taps *t = &f->taps[x];
        const uint8_t *p = row + (size_t)t->start * (size_t)channels;
        if (channels == 3) {
            float r = 0;
            float g = 0;
            float b = 0;
            for (int k = 0; k < t->n; k++, p += 3) {
                r += t->w[k] * (float)p[0];
                g += t->w[k] * (float)p[1];
                b += t->w[k] * (float)p[2];
            }
            out[3 * x] = r;
            out[3 * x + 1] = g;
            out[3 * x + 2] = b;
        } else {
            float v = 0;
            for (int k = 0; k < t->n; k++) {
                v += t->w[k] * (float)p[k];
            }
            out[x] = v;
        }
    }
}

static void store_row(const float *sum, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        float v = sum[i] + 0.5f;
        out[i] = v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
    }
}

static bool run(const struct image *im, const struct filter *fx, const struct filter *fy,
                struct image *out)
{
    size_t row_n = (size_t)out->w * (size_t)out->channels;
    size_t in_row = (size_t)im->w * (size_t)im->channels;
    int ring_n = fy->n_max;
    float *ring = malloc((size_t)ring_n * row_n * sizeof *ring);
    float *sum = malloc(row_n * sizeof *sum);
    if (ring == NULL || sum == NULL) {
        free(ring);
        free(sum);
        return false;
    }
    int next = 0; /* first source row not yet filtered */
    for (int y = 0; y < out->h; y++) {
        const struct taps *t = &fy->taps[y];
        memset(sum, 0, row_n * sizeof *sum);
        for (int k = 0; k < t->n; k++) {
            int src = t->start + k;
            float *line = ring + (size_t)(src % ring_n) * row_n;
            if (src >= next) {
                across(im->px + (size_t)src * in_row, fx, out->w, out->channels, line);
                next = src + 1;
            }
            float w = t->w[k];
            for (size_t i = 0; i < row_n; i++) {
                sum[i] += w * line[i];
            }
        }
        store_row(sum, row_n, out->px + (size_t)y * row_n);
    }
    free(ring);
    free(sum);
    return true;
}

bool resize_to(const struct image *im, int w, int h, struct image *ret)
{
    ASSERT(im->channels == 1 || im->channels == 3);
    struct image out;
    if (!image_alloc(w, h, im->channels, &out)) {
        return false;
    }
    bool area = w <= im->w && h <= im->h;
    struct filter fx = {0};
    struct filter fy = {0};
    bool ok = (area ? filter_area : filter_lanczos)(im->w, w, &fx) &&
              (area ? filter_area : filter_lanczos)(im->h, h, &fy) && run(im, &fx, &fy, &out);
    filter_done(&fx);
    filter_done(&fy);
    if (!ok) {
        image_done(&out);
        return false;
    }
    *ret = out;
    return true;
}
