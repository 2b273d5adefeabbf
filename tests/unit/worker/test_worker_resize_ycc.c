/* Aim: a picture made by planes is the picture made the long way: colour blown up as decoders do,
 * shrunk by area, laid on a canvas, averaged two by two. Method: that long way spelled out here in
 * doubles, for every subsampling, odd and even places, borders and crops; colours beyond RGB. */
#include "common/rng.h"
#include "download/image/resize.h"
#include "download/image/resize_ycc.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SIDE_MAX 160

struct plane { /* of doubles */
    int w, h;
    double px[SIDE_MAX * SIDE_MAX];
};

static double at(const struct plane *p, int x, int y)
{
    return p->px[MIN(MAX(y, 0), p->h - 1) * p->w + MIN(MAX(x, 0), p->w - 1)];
}

/* Smooth but lively, and never so colourful that RGB would cut it off. */
static void fill(struct plane *p, int w, int h, int least, int most, uint64_t seed)
{
    struct rng r;
    rng_seed(&r, seed);
    p->w = w;
    p->h = h;
    for (int i = 0; i < w * h; i++) {
        p->px[i] = least + (double)(rng_u64(&r) % (uint64_t)(most - least + 1));
    }
}

static void blow_up(const struct plane *in, int w, int h, int sub_x, int sub_y, struct plane *ret)
{
    ret->w = w;
    ret->h = h;
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            int cx = x / sub_x;
            int cy = y / sub_y;
            int dx = sub_x == 1 ? 0 : x % 2 != 0 ? 1 : -1;
            int dy = sub_y == 1 ? 0 : y % 2 != 0 ? 1 : -1;
            double near = 0.75 * at(in, cx, cy) + 0.25 * at(in, cx + dx, cy);
            double far = 0.75 * at(in, cx, cy + dy) + 0.25 * at(in, cx + dx, cy + dy);
            ret->px[y * w + x] = 0.75 * near + 0.25 * far;
        }
    }
}

static double covered(double from, double to, int pixel)
{
    return MAX(0.0, MIN(to, pixel + 1.0) - MAX(from, (double)pixel));
}

static void shrink(const struct plane *in, int w, int h, struct plane *ret)
{
    double sx = (double)in->w / w;
    double sy = (double)in->h / h;
    ret->w = w;
    ret->h = h;
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            double sum = 0;
            for (int v = (int)(y * sy); v < in->h && v < (y + 1) * sy; v++) {
                for (int u = (int)(x * sx); u < in->w && u < (x + 1) * sx; u++) {
                    sum += covered(x * sx, (x + 1) * sx, u) * covered(y * sy, (y + 1) * sy, v) *
                           at(in, u, v);
                }
            }
            ret->px[y * w + x] = sum / (sx * sy);
        }
    }
}

static void lay(const struct plane *in, const struct resize_ycc_fit *f, double ground,
                struct plane *ret)
{
    ret->w = f->canvas_w;
    ret->h = f->canvas_h;
    for (int y = 0; y < ret->h; y++) {
        for (int x = 0; x < ret->w; x++) {
            int u = x - f->x;
            int v = y - f->y;
            bool inside = u >= 0 && v >= 0 && u < in->w && v < in->h;
            ret->px[y * ret->w + x] = inside ? in->px[v * in->w + u] : ground;
        }
    }
}

/* One plane in bytes, and row y of it; outside its first or last one. */
struct bytes {
    int w, h;
    uint8_t px[SIDE_MAX * SIDE_MAX];
};

static void to_bytes(const struct plane *in, struct bytes *ret)
{
    ret->w = in->w;
    ret->h = in->h;
    for (int i = 0; i < in->w * in->h; i++) {
        ret->px[i] = (uint8_t)in->px[i];
    }
}

static uint8_t *row_of(struct bytes *p, int y)
{
    return p->px + (ptrdiff_t)MIN(MAX(y, 0), p->h - 1) * p->w;
}

static struct resize_ycc *made(const struct resize_ycc_fit *f, const struct plane in[PLANES])
{
    static struct bytes b[PLANES];
    struct resize_ycc *p = resize_ycc_new(f);
    assert_non_null(p);
    for (int i = 0; i < PLANES; i++) {
        to_bytes(&in[i], &b[i]);
    }
    int step = f->w % 3 == 0 ? STRIP_ROWS_MAX : 2 * f->form.sub_y;
    for (int at = 0; at < f->h; at += step) {
        struct plane_strip s = {.rows = MIN(step, f->h - at)};
        for (int y = 0; y < s.rows; y++) {
            s.y[y] = row_of(&b[0], at + y);
        }
        for (int k = 0; k < COLOURS; k++) {
            for (int y = 0; y < step / f->form.sub_y + 2; y++) {
                s.c[k][y] = row_of(&b[1 + k], at / f->form.sub_y + y - 1);
            }
        }
        resize_ycc_strip(p, &s);
    }
    resize_ycc_finish(p);
    return p;
}

static void pixel_is(const struct image *im, int x, int y, double want, double near)
{
    double have = im->px[y * im->w + x];
    if (fabs(have - want) > near) {
        print_error("at %d,%d: %g, not %g\n", x, y, have, want);
    }
    assert_true(fabs(have - want) <= near);
}

static void compare(const struct resize_ycc_fit *f, const struct plane in[PLANES])
{
    static struct plane big;
    static struct plane small;
    static struct plane canvas;
    struct resize_ycc *p = made(f, in);
    for (int i = 0; i < PLANES; i++) {
        const struct image *im = &p->plane[i];
        blow_up(&in[i], f->w, f->h, i > 0 ? f->form.sub_x : 1, i > 0 ? f->form.sub_y : 1, &big);
        shrink(&big, f->to_w, f->to_h, &small);
        lay(&small, f, i > 0 ? 128 : 255, &canvas);
        int by = i > 0 ? 2 : 1;
        assert_int_equal(im->w % (16 / by), 0);
        assert_true(im->w * by >= f->canvas_w && im->h * by >= f->canvas_h);
        for (int y = 0; y < im->h; y++) {
            for (int x = 0; x < im->w; x++) { /* at() goes on with the last pixel */
                double sum = at(&canvas, by * x, by * y) + at(&canvas, by * x + by - 1, by * y) +
                             at(&canvas, by * x, by * y + by - 1) +
                             at(&canvas, by * x + by - 1, by * y + by - 1);
                bool beyond = by * x >= f->canvas_w || by * y >= f->canvas_h;
                int last_x = MIN(x, (f->canvas_w - 1) / by);
                int last_y = MIN(y, (f->canvas_h - 1) / by);
                if (beyond) {
                    pixel_is(im, x, y, im->px[last_y * im->w + last_x], 0);
                } else {
                    pixel_is(im, x, y, sum / 4, 1.01); /* rounded up to three times */
                }
            }
        }
    }
    resize_ycc_free(p);
}

static void test_worker_planes__are_the_long_way(void **state UNUSED)
{
    /* shrunk to, at, canvas */
    static const int fits[][6] = {
        {64, 43, 0, 10, 64, 64},  {64, 43, 0, 11, 64, 64},  {41, 64, 11, 0, 64, 64},
        {41, 64, 12, 0, 64, 64},  {95, 64, -15, 0, 64, 64}, {96, 64, -16, 0, 64, 64},
        {64, 90, 0, -13, 64, 64}, {61, 47, 0, 0, 61, 47},   {33, 33, 1, 1, 35, 35},
        {63, 42, 0, 10, 63, 63},  {75, 51, -12, 0, 51, 51}, {1, 2, 31, 31, 64, 64}};
    static const int sizes[][2] = {{147, 99}, {100, 100}, {96, 90}, {150, 91}};
    static const int subs[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
    static struct plane in[PLANES];
    for (size_t i = 0; i < ARRAY_LEN(fits) * ARRAY_LEN(sizes) * ARRAY_LEN(subs); i++) {
        const int *t = fits[i % ARRAY_LEN(fits)];
        const int *s = sizes[i / ARRAY_LEN(fits) % ARRAY_LEN(sizes)];
        const int *sub = subs[i / ARRAY_LEN(fits) / ARRAY_LEN(sizes)];
        struct resize_ycc_fit f = {s[0], s[1], {sub[0], sub[1], false}, t[0], t[1], t[2], t[3],
                                   t[4], t[5]};
        fill(&in[0], s[0], s[1], 60, 190, i);
        for (int k = 1; k < PLANES; k++) {
            fill(&in[k], (s[0] + sub[0] - 1) / sub[0], (s[1] + sub[1] - 1) / sub[1], 110, 146,
                 1000 * (uint64_t)k + i);
        }
        compare(&f, in);
    }
}

static void test_worker_planes__sides_that_stay_are_copied(void **state UNUSED)
{
    static struct plane in[PLANES];
    struct resize_ycc_fit f = {80, 64, {2, 2, false}, 80, 32, 0, 3, 80, 40};
    fill(&in[0], 80, 64, 50, 200, 1);
    fill(&in[1], 40, 32, 110, 146, 2);
    fill(&in[2], 40, 32, 110, 146, 3);
    compare(&f, in);
}

/* WebP's levels; ends of the range and no colour stay what they are. */
static void test_worker_planes__video_levels_are_spread(void **state UNUSED)
{
    static const int levels[][2][PLANES] = {{{16, 128, 128}, {0, 128, 128}},
                                            {{235, 128, 128}, {255, 128, 128}},
                                            {{126, 100, 150}, {128, 96, 153}},
                                            {{100, 128, 128}, {98, 128, 128}}};
    static struct plane in[PLANES];
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        for (int k = 0; k < PLANES; k++) {
            int by = k > 0 ? 2 : 1;
            fill(&in[k], 64 / by, 48 / by, levels[i][0][k], levels[i][0][k], 1);
        }
        struct resize_ycc_fit f = {64, 48, {2, 2, true}, 32, 24, 0, 0, 32, 24};
        struct resize_ycc *p = made(&f, in);
        for (int k = 0; k < PLANES; k++) {
            pixel_is(&p->plane[k], 5, 5, levels[i][1][k], 0.5);
        }
        resize_ycc_free(p);
    }
}

/* What a decoder makes of planes at full size: clipped in RGB, and back. */
static void clip(struct plane full[PLANES])
{
    for (int i = 0; i < full[0].w * full[0].h; i++) {
        double cb = full[1].px[i] - 128;
        double cr = full[2].px[i] - 128;
        double r = full[0].px[i] + 1.402 * cr;
        double g = full[0].px[i] - 0.344136 * cb - 0.714136 * cr;
        double b = full[0].px[i] + 1.772 * cb;
        r = MIN(MAX(r, 0.0), 255.0);
        g = MIN(MAX(g, 0.0), 255.0);
        b = MIN(MAX(b, 0.0), 255.0);
        full[0].px[i] = 0.299 * r + 0.587 * g + 0.114 * b;
        full[1].px[i] = 128 + (b - full[0].px[i]) / 1.772;
        full[2].px[i] = 128 + (r - full[0].px[i]) / 1.402;
    }
}

/* Red stripes on white with their colour at half size: without clipping, the white beside them
 * would be too dark. Colour, which is corrected by sample, may be a little off. */
static void test_worker_planes__colours_rgb_does_not_have_are_clipped(void **state UNUSED)
{
    static struct plane in[PLANES];
    static struct plane full[PLANES];
    static struct plane small[PLANES];
    static const int red[PLANES] = {100, 80, 255};
    static const int white[PLANES] = {255, 128, 128};
    struct resize_ycc_fit f = {120, 160, {2, 2, false}, 60, 80, 0, 0, 60, 80};
    for (int k = 0; k < PLANES; k++) {
        int by = k > 0 ? 2 : 1;
        fill(&in[k], f.w / by, f.h / by, 0, 0, 1);
        for (int i = 0; i < in[k].w * in[k].h; i++) {
            int x = i % in[k].w * by;
            in[k].px[i] = x % 24 < 12 ? red[k] : white[k];
        }
        blow_up(&in[k], f.w, f.h, by, by, &full[k]);
    }
    clip(full);
    struct resize_ycc *p = made(&f, in);
    for (int k = 0; k < PLANES; k++) {
        shrink(&full[k], f.to_w, f.to_h, &small[k]);
    }
    for (int i = 0; i < f.to_w * f.to_h; i++) {
        int x = i % f.to_w;
        int y = i / f.to_w;
        double cr = (at(&small[2], x / 2 * 2, y) + at(&small[2], x / 2 * 2 + 1, y)) / 2;
        pixel_is(&p->plane[0], x, y, small[0].px[i], 2);
        pixel_is(&p->plane[2], x / 2, y / 2, cr, 5);
    }
    resize_ycc_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_planes__are_the_long_way),
        cmocka_unit_test(test_worker_planes__sides_that_stay_are_copied),
        cmocka_unit_test(test_worker_planes__video_levels_are_spread),
        cmocka_unit_test(test_worker_planes__colours_rgb_does_not_have_are_clipped),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
