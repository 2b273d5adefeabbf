/* out = px * (1 - m) + g(px) * m with m = g(mask), g the Gaussian, only where m is not 0. Each row
 * is filtered vertically into a row of floats, then horizontally, so only the unchanged picture and
 * the mask are in memory. Beyond the edge the picture is mirrored without its outermost pixel
 * (OpenCV's BORDER_REFLECT_101).
 *
 * The cost grows with the kernel: a face that fills a large photograph would exceed the time limit
 * of a decoding process. Beyond a bound the picture and the kernel are reduced by an odd factor and
 * the blurred result is enlarged again; it is smooth enough for that. */
#include "blur.h"
#include "resize.h"
#include "simd.h"
#include <math.h>

#define GROWN      0.1 /* share of a box's longer side added at each edge */
#define SIGMA      0.1 /* of the longest side of all boxes */
#define BLUR_BLOCK 32

#define WORK_MAX      (INT64_C(1) << 30) /* maximum of pixels times reach: a second or two */
#define REACH_REDUCED 48                 /* approximate kernel after reduction */

typedef float v8f __attribute__((vector_size(32)));

struct area { /* pixels x0 <= x < x1; y likewise */
    int x0, y0, x1, y1;
};
struct blur {
    const struct simd *simd;
    void (*across)(float *out, const float *line, size_t n, size_t step, const float *kernel,
                   int reach);
    int reach;
    float kernel[BLUR_REACH_MAX + 1];
    struct image px, mask; /* unchanged, or reduced */
    float *line;           /* a row before horizontal filtering, with `reach` pixels at each end */
    float *soft_px, *soft_mask;
    int areas_n;
    struct area areas[BBOX_MAX];
};

int blur_kernel(int side, float *kernel)
{
    double sigma = SIGMA * side;
    int reach = (int)ceil(sigma);
    ASSERT(side >= 0 && reach <= BLUR_REACH_MAX);
    double sum = 1;
    for (int i = 1; i <= reach; i++) {
        sum += 2 * exp(-i * i / (2 * sigma * sigma));
    }
    kernel[0] = (float)(1 / sum);
    for (int i = 1; i <= reach; i++) {
        kernel[i] = (float)(exp(-i * i / (2 * sigma * sigma)) / sum);
    }
    return reach;
}

static int mirrored(int i, int n)
{
    if (n == 1) {
        return 0;
    }
    while (i < 0 || i >= n) { /* several times where the kernel is larger than the picture */
        i = i < 0 ? -i : 2 * (n - 1) - i;
    }
    return i;
}

/* Floats out[n], from line[n] with what the kernel needs before and behind it. n is a multiple of
 * BLUR_BLOCK; step: floats of a pixel. */
static inline __attribute__((always_inline)) void
across(float *out, const float *line, size_t n, size_t step, const float *kernel, int reach)
{
    for (size_t i = 0; i < n; i += BLUR_BLOCK) {
        v8f sum[BLUR_BLOCK / 8];
        for (size_t v = 0; v < BLUR_BLOCK / 8; v++) {
            memcpy(&sum[v], line + i + 8 * v, sizeof sum[v]);
            sum[v] *= kernel[0];
        }
        for (size_t k = 1; k <= (size_t)reach; k++) {
            for (size_t v = 0; v < BLUR_BLOCK / 8; v++) {
                v8f a;
                v8f b;
                memcpy(&a, line + i + 8 * v - k * step, sizeof a);
                memcpy(&b, line + i + 8 * v + k * step, sizeof b);
                sum[v] += (a + b) * kernel[k];
            }
        }
        memcpy(out + i, sum, sizeof sum);
    }
}

static void across_portable(float *out, const float *line, size_t n, size_t step,
                            const float *kernel, int reach)
{
    across(out, line, n, step, kernel, reach);
}
#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void
across_avx2(float *out, const float *line, size_t n, size_t step, const float *kernel, int reach)
{
    across(out, line, n, step, kernel, reach);
}
#endif

static size_t padded(size_t n)
{
    return (n + BLUR_BLOCK - 1) / BLUR_BLOCK * BLUR_BLOCK;
}

/* Pixels x0 <= x < x1 of row y of a picture, blurred. */
static void soften(const struct blur *b, const struct image *im, int y, int x0, int x1, float *out)
{
    size_t c = (size_t)im->channels;
    size_t row_n = (size_t)im->w * c;
    /* Fill the pixels beyond the edge from the mirrored ones inside. */
    int from = MAX(x0 - b->reach, 0);
    int to = MIN(x1 + b->reach, im->w);
    from = to == im->w ? MIN(from, MAX(im->w - 1 - b->reach, 0)) : from;
    to = from == 0 ? MAX(to, MIN(b->reach + 1, im->w)) : to;
    size_t n = (size_t)(to - from) * c;
    float *line = b->line + ((size_t)b->reach + (size_t)from) * c; /* pixel 0 is at `reach` */
    for (int k = -b->reach; k <= b->reach; k++) {
        const uint8_t *row = im->px + (size_t)mirrored(y + k, im->h) * row_n + (size_t)from * c;
        float w = b->kernel[k < 0 ? -k : k];
        if (k == -b->reach) {
            b->simd->set(line, row, w, n);
        } else {
            b->simd->add(line, row, w, n);
        }
    }
    float *zero = b->line + (size_t)b->reach * c;
    for (int x = x0 - b->reach; x < x1 + b->reach; x++) {
        if (x < 0 || x >= im->w) {
            float *at = b->line + (size_t)(x + b->reach) * c;
            memcpy(at, zero + (size_t)mirrored(x, im->w) * c, c * sizeof *at);
        }
    }
    b->across(out, zero + (size_t)x0 * c, padded((size_t)(x1 - x0) * c), c, b->kernel, b->reach);
}

static void blend(const struct blur *b, struct image *im, int y, int x0, int x1)
{
    int c = im->channels;
    soften(b, &b->mask, y, x0, x1, b->soft_mask);
    soften(b, &b->px, y, x0, x1, b->soft_px);
    uint8_t *px = im->px + ((size_t)y * (size_t)im->w + (size_t)x0) * (size_t)c;
    for (int i = 0; i < (x1 - x0) * c; i++) {
        float m = b->soft_mask[i / c];
        float v = (float)px[i] * (1 - m) + b->soft_px[i] * m + 0.5f;
        px[i] = (uint8_t)MIN(MAX(v, 0.0f), 255.0f);
    }
}

/* Grow the boxes into areas and return the longest side of a box. Rounding as img2dataset's
 * int(). */
static int grow(const struct image *im, const struct bboxes *boxes, struct blur *b)
{
    int longest = 0;
    for (int i = 0; i < boxes->n; i++) {
        const struct bbox *box = &boxes->at[i];
        int x0 = (int)(box->x0 * im->w);
        int y0 = (int)(box->y0 * im->h);
        int x1 = (int)(box->x1 * im->w);
        int y1 = (int)(box->y1 * im->h);
        int side = MAX(x1 - x0, y1 - y0);
        longest = MAX(longest, side);
        struct area a = {MAX((int)(x0 - GROWN * side), 0), MAX((int)(y0 - GROWN * side), 0),
                         MIN((int)(x1 + GROWN * side), im->w),
                         MIN((int)(y1 + GROWN * side), im->h)};
        if (a.x0 < a.x1 && a.y0 < a.y1) {
            b->areas[b->areas_n++] = a;
        }
    }
    return longest;
}

/* The mask, of 0 and value. */
static bool mark(struct blur *b, const struct image *im, int value)
{
    if (!image_alloc(im->w, im->h, 1, &b->mask)) {
        return false;
    }
    memset(b->mask.px, 0, (size_t)im->w * (size_t)im->h);
    for (int i = 0; i < b->areas_n; i++) {
        const struct area *a = &b->areas[i];
        for (int y = a->y0; y < a->y1; y++) {
            memset(b->mask.px + (size_t)y * (size_t)im->w + (size_t)a->x0, value,
                   (size_t)(a->x1 - a->x0));
        }
    }
    return true;
}

/* For rows of b->px. */
static bool make_lines(struct blur *b)
{
    size_t c = (size_t)b->px.channels;
    size_t row = padded((size_t)b->px.w * c);
    b->line = calloc(row + 2 * (size_t)b->reach * c + BLUR_BLOCK, sizeof *b->line);
    b->soft_px = calloc(row, sizeof *b->soft_px);
    b->soft_mask = calloc(row, sizeof *b->soft_mask);
    return b->line != NULL && b->soft_px != NULL && b->soft_mask != NULL;
}

static void blur_free(struct blur *b)
{
    image_done(&b->px);
    image_done(&b->mask);
    free(b->line);
    free(b->soft_px);
    free(b->soft_mask);
    free(b);
}

/* The columns of a row that some area reaches. False: none. */
static bool reached(const struct blur *b, const struct image *im, int y, int *ret_x0, int *ret_x1)
{
    int x0 = im->w;
    int x1 = 0;
    for (int i = 0; i < b->areas_n; i++) {
        const struct area *a = &b->areas[i];
        if (y >= a->y0 - b->reach && y < a->y1 + b->reach) {
            x0 = MIN(x0, MAX(a->x0 - b->reach, 0));
            x1 = MAX(x1, MIN(a->x1 + b->reach, im->w));
        }
    }
    *ret_x0 = x0;
    *ret_x1 = x1;
    return x0 < x1;
}

static int64_t work(const struct blur *b, const struct image *im)
{
    int64_t pixels = 0;
    for (int y = 0; y < im->h; y++) {
        int x0;
        int x1;
        pixels += reached(b, im, y, &x0, &x1) ? x1 - x0 : 0;
    }
    return pixels * b->reach;
}

static bool blur_whole(struct blur *b, struct image *im)
{
    if (!image_alloc(im->w, im->h, im->channels, &b->px) || !mark(b, im, 1) || !make_lines(b)) {
        return false;
    }
    memcpy(b->px.px, im->px, (size_t)im->w * (size_t)im->h * (size_t)im->channels);
    for (int y = 0; y < im->h; y++) {
        int x0;
        int x1;
        if (reached(b, im, y, &x0, &x1)) {
            blend(b, im, y, x0, x1);
        }
    }
    return true;
}

/* Weights of pixels become weights of cells of `by` pixels; by is odd. */
static void reduce_kernel(struct blur *b, int by)
{
    int reach = (b->reach + by / 2) / by;
    for (int cell = 0; cell <= reach; cell++) {
        float sum = 0;
        for (int i = cell * by - by / 2; i <= cell * by + by / 2; i++) {
            sum += i <= b->reach ? b->kernel[abs(i)] : 0;
        }
        b->kernel[cell] = sum; /* cells further out do not contribute */
    }
    b->reach = reach;
}

/* Enlarge a blurred small picture to w x h. */
static bool soften_all(const struct blur *b, const struct image *im, int w, int h,
                       struct image *ret)
{
    struct image small = {0};
    if (!image_alloc(im->w, im->h, im->channels, &small)) {
        return false;
    }
    size_t n = (size_t)im->w * (size_t)im->channels;
    for (int y = 0; y < im->h; y++) {
        soften(b, im, y, 0, im->w, b->soft_px);
        for (size_t i = 0; i < n; i++) {
            small.px[(size_t)y * n + i] = (uint8_t)MIN(MAX(b->soft_px[i] + 0.5f, 0.0f), 255.0f);
        }
    }
    bool ok = resize_to(&small, w, h, FILTER_LINEAR, ret);
    image_done(&small);
    return ok;
}

static bool blur_reduced(struct blur *b, struct image *im)
{
    struct image mask = {0};
    struct image soft = {0};
    int by = MAX(b->reach / REACH_REDUCED | 1, 3);
    int w = MAX(im->w / by, 1);
    int h = MAX(im->h / by, 1);
    reduce_kernel(b, by);
    bool ok = mark(b, im, 255) && resize_to(&b->mask, w, h, FILTER_AREA, &mask);
    image_done(&b->mask);
    b->mask = mask;
    mask = (struct image){0};
    ok = ok && resize_to(im, w, h, FILTER_AREA, &b->px) && make_lines(b) &&
         soften_all(b, &b->mask, im->w, im->h, &mask) && soften_all(b, &b->px, im->w, im->h, &soft);
    size_t n = ok ? (size_t)im->w * (size_t)im->h : 0;
    size_t c = (size_t)im->channels;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = i * c; mask.px[i] > 0 && k < (i + 1) * c; k++) {
            int m = mask.px[i];
            im->px[k] = (uint8_t)((im->px[k] * (255 - m) + soft.px[k] * m + 127) / 255);
        }
    }
    image_done(&mask);
    image_done(&soft);
    return ok;
}

bool blur_boxes(struct image *im, const struct bboxes *boxes)
{
    ASSERT(boxes->n >= 0 && boxes->n <= BBOX_MAX);
    struct blur *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return false;
    }
    b->simd = simd_pick(false);
    b->across = across_portable;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        b->across = across_avx2;
    }
#endif
    b->reach = blur_kernel(grow(im, boxes, b), b->kernel);
    bool ok = b->reach == 0 || b->areas_n == 0 ||
              (work(b, im) > WORK_MAX ? blur_reduced(b, im) : blur_whole(b, im));
    blur_free(b);
    return ok;
}
