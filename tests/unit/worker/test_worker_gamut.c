/* Aim: pixels that RGB cannot show are clipped in the planes as a decoder of RGB clips them.
 * Method: that decoder spelled out here in doubles, for each subsampling, both ranges of levels,
 * rows of any width; the version for any processor gives the same bytes. */
#include "common/rng.h"
#include "download/image/gamut.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define W_MAX 131

struct rows {
    uint8_t y[2][W_MAX];
    uint8_t c[2][3][W_MAX];
    struct gamut_rows g;
};
struct colour_ycc {
    double y, cb, cr;
};

static int samples(const struct gamut_rows *g)
{
    return (g->w + g->form.sub_x - 1) / g->form.sub_x;
}

/* Colours move in steps of a few pixels; strong: far outside RGB here and there. */
static void fill(struct rows *r, int w, int sub_x, int sub_y, bool narrow, bool strong,
                 uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    r->g = (struct gamut_rows){
        .w = w, .form = {sub_x, sub_y, narrow}, .y_n = sub_y, .y = {r->y[0], r->y[1]}};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 3; i++) {
            r->g.c[k][i] = r->c[k][i];
        }
    }
    int y = 128;
    int c[2] = {128, 128};
    for (int x = 0; x < W_MAX; x++) {
        if (rng_chance(&rng, 0.2)) {
            y = strong ? (int)rng_below(&rng, 256) : 100 + (int)rng_below(&rng, 50);
            c[0] = strong ? (int)rng_below(&rng, 256) : 120 + (int)rng_below(&rng, 16);
            c[1] = strong ? (int)rng_below(&rng, 256) : 120 + (int)rng_below(&rng, 16);
        }
        for (int i = 0; i < 3; i++) {
            int noise = (int)rng_below(&rng, 5) - 2;
            r->y[i % 2][x] = (uint8_t)MIN(MAX(y + noise, 0), 255);
            r->c[0][i][x] = (uint8_t)MIN(MAX(c[0] + noise, 0), 255);
            r->c[1][i][x] = (uint8_t)MIN(MAX(c[1] - noise, 0), 255);
        }
    }
}

static double colour_at(const struct gamut_rows *g, int k, int row, int x)
{
    int last = samples(g) - 1;
    int cx = x / g->form.sub_x;
    int other = g->form.sub_x == 1 ? cx : MIN(MAX(x % 2 != 0 ? cx + 1 : cx - 1, 0), last);
    const uint8_t *near = g->c[k][1];
    const uint8_t *far = g->form.sub_y == 1 ? near : g->c[k][2 * row];
    return 0.75 * (0.75 * near[cx] + 0.25 * near[other]) +
           0.25 * (0.75 * far[cx] + 0.25 * far[other]);
}

/* What clipping moves, in the levels of the planes; *ret_beyond: by how much RGB is exceeded. */
static struct colour_ycc moved(struct colour_ycc p, bool narrow, double *ret_beyond)
{
    double gy = narrow ? 255.0 / 219 : 1;
    double gc = narrow ? 255.0 / 224 : 1;
    double y = (p.y - (narrow ? 16 : 0)) * gy;
    double cb = (p.cb - 128) * gc;
    double cr = (p.cr - 128) * gc;
    double rgb[3] = {y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb};
    double d[3];
    *ret_beyond = 0;
    for (int i = 0; i < 3; i++) {
        d[i] = MIN(MAX(rgb[i], 0.0), 255.0) - rgb[i];
        *ret_beyond = MAX(*ret_beyond, fabs(d[i]));
    }
    return (struct colour_ycc){(0.299 * d[0] + 0.587 * d[1] + 0.114 * d[2]) / gy,
                               (-0.168736 * d[0] - 0.331264 * d[1] + 0.5 * d[2]) / gc,
                               (0.5 * d[0] - 0.418688 * d[1] - 0.081312 * d[2]) / gc};
}

static double into_byte(double v)
{
    return MIN(MAX(v, 0.0), 255.0);
}

static void near_enough(const char *what, int x, double have, double want)
{
    if (fabs(have - want) > 3.5) {
        fail_msg("%s %d: %g, not %g", what, x, have, want);
    }
}

/* Each sample of colour with its pixels: as it was, or moved as in RGB; it must be moved when one
 * of the pixels is far outside, with its own colour and with the sample's. */
static void check_sample(const struct rows *r, int i, uint8_t *const y[2], uint8_t *const c[2])
{
    const struct gamut_rows *g = &r->g;
    double sum[2] = {0};
    double most = 0;
    int n = 0;
    bool same = c[0][i] == g->c[0][1][i] && c[1][i] == g->c[1][1][i];
    for (int row = 0; row < g->y_n; row++) {
        for (int x = i * g->form.sub_x; x < (i + 1) * g->form.sub_x; x++) {
            int at = MIN(x, g->w - 1);
            double beyond;
            double plain;
            struct colour_ycc p = {g->y[row][at], colour_at(g, 0, row, x), colour_at(g, 1, row, x)};
            struct colour_ycc d = moved(p, g->form.narrow, &beyond);
            (void)moved((struct colour_ycc){p.y, g->c[0][1][i], g->c[1][1][i]}, g->form.narrow,
                        &plain);
            most = MAX(most, MIN(plain, beyond));
            same = same && y[row][at] == g->y[row][at];
            sum[0] += d.cb;
            sum[1] += d.cr;
            n++;
        }
    }
    assert_true(!same || most < GAMUT_TOLERATED + 4);
    for (int row = 0; row < g->y_n && !same; row++) {
        for (int x = i * g->form.sub_x; x < MIN((i + 1) * g->form.sub_x, g->w); x++) {
            double beyond;
            struct colour_ycc p = {g->y[row][x], colour_at(g, 0, row, x), colour_at(g, 1, row, x)};
            struct colour_ycc d = moved(p, g->form.narrow, &beyond);
            near_enough("pixel", x, y[row][x], into_byte(p.y + d.y));
        }
    }
    for (int k = 0; k < 2 && !same; k++) {
        near_enough("sample", i, c[k][i], into_byte(g->c[k][1][i] + sum[k] / n));
    }
}

/* As into rows of its own; the last block still sees the one before it as it was. */
static void in_place(const struct rows *r, bool want, uint8_t out[4][W_MAX])
{
    for (int v = 0; v < 2; v++) {
        static struct rows own;
        uint8_t colour[2][W_MAX] = {0};
        own = *r;
        own.g.y[0] = own.y[0];
        own.g.y[1] = own.y[1];
        uint8_t *const y[2] = {own.y[0], own.y[r->g.y_n - 1]};
        uint8_t *const c[2] = {colour[0], colour[1]};
        assert_int_equal(gamut_pick(v == 1)->clip(&own.g, y, c), want);
        for (int i = 0; want && i < r->g.y_n; i++) {
            assert_memory_equal(own.y[i], out[i], (size_t)r->g.w);
        }
        assert_memory_equal(colour, out[2], sizeof colour);
    }
}

static void check(const struct rows *r)
{
    uint8_t out[2][4][W_MAX];
    bool any[2];
    memset(out, 0, sizeof out);
    for (int v = 0; v < 2; v++) {
        uint8_t *const y[2] = {out[v][0], out[v][1]};
        uint8_t *const c[2] = {out[v][2], out[v][3]};
        any[v] = gamut_pick(v == 1)->clip(&r->g, y, c);
        assert_int_equal(gamut_pick(v == 1)->exceeds(&r->g), any[v]);
    }
    assert_int_equal(any[0], any[1]);
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    in_place(r, any[0], out[0]);
    if (!any[0]) {
        memcpy(out[0][0], r->y[0], W_MAX);
        memcpy(out[0][1], r->y[1], W_MAX);
        memcpy(out[0][2], r->c[0][1], W_MAX);
        memcpy(out[0][3], r->c[1][1], W_MAX);
    }
    uint8_t *const y[2] = {out[0][0], out[0][1]};
    uint8_t *const c[2] = {out[0][2], out[0][3]};
    for (int i = 0; i < samples(&r->g); i++) {
        check_sample(r, i, y, c);
    }
}

static void test_worker_gamut__pixels_are_clipped_as_in_rgb(void **state UNUSED)
{
    static struct rows r;
    for (uint64_t i = 0; i < 4000; i++) {
        int w = i < 300 ? 1 + (int)i % 40 : 1 + (int)(i * 7 % W_MAX);
        fill(&r, w, 1 + (i & 1), 1 + (i >> 1 & 1), (i & 4) != 0, (i & 24) != 0, i);
        check(&r);
        if (r.g.y_n == 2) { /* the last row of a picture of odd height */
            r.g.y_n = 1;
            check(&r);
        }
    }
}

static void one_colour(struct rows *r, int y, int cb, int cr, bool narrow)
{
    fill(r, 100, 2, 2, narrow, false, 1);
    memset(r->y, y, sizeof r->y);
    memset(r->c[0], cb, sizeof r->c[0]);
    memset(r->c[1], cr, sizeof r->c[1]);
}

static void test_worker_gamut__colours_of_rgb_stay(void **state UNUSED)
{
    static const struct {
        int y, cb, cr;
        bool narrow, exceeds;
    } cases[] = {
        {255, 128, 128, false, false}, {0, 128, 128, false, false}, {76, 85, 255, false, false},
        {29, 255, 107, false, false},  {149, 43, 21, false, false}, {235, 128, 128, true, false},
        {16, 128, 128, true, false},   {82, 90, 240, true, false},  {255, 85, 255, false, true},
        {0, 85, 255, false, true},     {235, 90, 240, true, true},  {5, 128, 128, true, true},
        {250, 128, 128, true, true},   {40, 43, 21, false, true}};
    static struct rows r;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        one_colour(&r, cases[i].y, cases[i].cb, cases[i].cr, cases[i].narrow);
        if (gamut_pick(false)->exceeds(&r.g) != cases[i].exceeds) {
            fail_msg("case %zu", i);
        }
        check(&r);
    }
}

static void beyond(struct rows *r, uint8_t value)
{
    size_t w = (size_t)r->g.w;
    size_t n = (size_t)samples(&r->g);
    for (int i = 0; i < 3; i++) {
        memset(r->y[i % 2] + w, value, W_MAX - w);
        memset(r->c[0][i] + n, value, W_MAX - n);
        memset(r->c[1][i] + n, value, W_MAX - n);
    }
}

/* Decoders' rows end where the picture ends, or the next row begins there. */
static void test_worker_gamut__what_is_beyond_a_row_is_not_read(void **state UNUSED)
{
    static struct rows r;
    for (int i = 0; i < 800; i++) {
        uint8_t out[2][4][W_MAX];
        bool strong = i >= 400;
        fill(&r, 1 + i / 4 % 100, 1 + (i & 1), 1 + (i >> 1 & 1), false, strong, (uint64_t)i);
        memset(out, 0, sizeof out);
        for (int v = 0; v < 2; v++) {
            uint8_t *const y[2] = {out[v][0], out[v][1]};
            uint8_t *const c[2] = {out[v][2], out[v][3]};
            beyond(&r, v == 0 ? 128 : 255);
            bool clipped = gamut_pick(false)->clip(&r.g, y, c);
            assert_true(strong || !clipped);
            assert_int_equal(gamut_pick(true)->exceeds(&r.g), clipped);
        }
        assert_memory_equal(out[0], out[1], sizeof out[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_gamut__pixels_are_clipped_as_in_rgb),
        cmocka_unit_test(test_worker_gamut__colours_of_rgb_stay),
        cmocka_unit_test(test_worker_gamut__what_is_beyond_a_row_is_not_read),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
