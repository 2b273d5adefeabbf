/* Aim: the resizer's parts keep their promises whatever the processor: weights add up and stay
 * inside the picture, both sets of loops agree, rows may be cropped or turned on their way. Method:
 * pictures of a fixed pseudo-random stream, small cases worked out by hand. Pixels against OpenCV:
 * tests/integration/worker/worker_pixels.py. */
#include "download/image/resize.h"
#include "download/image/resize_weights.h"
#include "download/image/transform.h"
#include "worker_noise.h"
#include <math.h>

#define ROWS 9 /* more than are summed up at once */

static void test_worker_resize__weights_add_up_and_stay_inside(void **state UNUSED)
{
    static const enum resize_filter filters[] = {FILTER_NEAREST, FILTER_LINEAR, FILTER_CUBIC,
                                                 FILTER_AREA, FILTER_LANCZOS};
    static const int sizes[][2] = {{1, 1},     {1, 7},     {7, 1},     {2, 3},     {256, 256},
                                   {257, 256}, {511, 256}, {512, 256}, {16384, 1}, {16384, 256},
                                   {5, 8192},  {97, 31},   {31, 97}};
    for (size_t f = 0; f < ARRAY_LEN(filters); f++) {
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            int in = sizes[i][0];
            int out = sizes[i][1];
            struct resize_weights t;
            assert_true(resize_weights_make(filters[f], out <= in, in, out, &t));
            for (int k = 0; k < out; k++) {
                const struct simd_weights *a = &t.at[k];
                double sum = 0;
                for (int n = 0; n < a->n; n++) {
                    sum += a->w[n];
                }
                for (int n = a->n; n % SIMD_PAD != 0; n++) {
                    assert_true(a->w[n] == 0);
                }
                assert_true(fabs(sum - 1) < 1e-4);
                assert_true(a->n > 0 && a->n <= t.n_max && a->start >= 0 && a->start + a->n <= in);
                assert_true(k == 0 || a->start >= t.at[k - 1].start);
            }
            resize_weights_done(&t);
        }
    }
}

static void test_worker_resize__area_is_the_mean_of_what_is_covered(void **state UNUSED)
{
    struct resize_weights t;
    assert_true(resize_weights_make(FILTER_AREA, true, 5, 2, &t)); /* 2.5 input pixels each */
    assert_int_equal(t.at[0].start, 0);
    assert_int_equal(t.at[0].n, 3);
    assert_true(fabs(t.at[0].w[0] - 0.4) < 1e-6 && fabs(t.at[0].w[2] - 0.2) < 1e-6);
    assert_int_equal(t.at[1].start, 2);
    assert_true(fabs(t.at[1].w[0] - 0.2) < 1e-6 && fabs(t.at[1].w[2] - 0.4) < 1e-6);
    resize_weights_done(&t);
}

/* Lengths around the blocks the loops work in. */
static void test_worker_resize__both_sets_of_loops_agree(void **state UNUSED)
{
    const struct simd *a = simd_pick(false);
    const struct simd *b = simd_pick(true);
    float la[300 + 104] = {0};
    float lb[300 + 104] = {0};
    struct image im = noise(300, 2, 1, 1);
    for (size_t n = 1; n <= 300; n++) {
        a->set(la, im.px, 0.37f, n);
        b->set(lb, im.px, 0.37f, n);
        a->add(la, im.px + 300, 0.63f, n);
        b->add(lb, im.px + 300, 0.63f, n);
        for (size_t i = 0; i < n; i++) {
            assert_true(fabsf(la[i] - lb[i]) < 1e-3f);
            assert_true(fabsf(la[i] - (0.37f * im.px[i] + 0.63f * im.px[300 + i])) < 1e-2f);
        }
    }
    for (int out = 1; out <= 99; out += 7) {
        struct resize_weights t;
        uint8_t pa[3 * 99];
        uint8_t pb[3 * 99];
        assert_true(resize_weights_make(FILTER_AREA, true, 100, out, &t));
        a->across_grey(la, t.at, out, t.blocks, 0, pa);
        b->across_grey(lb, t.at, out, t.blocks, 0, pb);
        for (int i = 0; i < out; i++) {
            double sum = 0;
            for (int k = 0; k < t.at[i].n; k++) {
                sum += (double)t.at[i].w[k] * (double)la[t.at[i].start + k];
            }
            assert_true(fabs(pa[i] - sum) < 0.51 && fabs(pb[i] - sum) < 0.51);
        }
        a->across_rgb(la, t.at, out, pa);
        b->across_rgb(lb, t.at, out, pb);
        for (int i = 0; i < 3 * out; i++) {
            assert_true(abs(pa[i] - pb[i]) <= 1);
        }
        resize_weights_done(&t);
    }
    image_done(&im);
}

/* Is a product rounded only once it is added? Else 3 + 3 * 2^-23 is rounded to 3 + 4 * 2^-23. */
static bool fuses(const struct simd *s)
{
    static const uint8_t three = 3;
    float line = -3.0f;
    s->add(&line, &three, 0x1.000002p0f, 1);
    return line < 0x1p-21f;
}

/* To the last bit, so that pictures do not depend on how rows arrive. Without optimization, as for
 * sanitizers, only the loops that ask for it fuse: there to a thousandth. */
static void same_line(const float *one, const float *all, size_t n, bool exact)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits_one, bits_all;
        memcpy(&bits_one, &one[i], sizeof bits_one);
        memcpy(&bits_all, &all[i], sizeof bits_all);
        assert_true(exact ? bits_one == bits_all : fabsf(one[i] - all[i]) < 1e-3f);
    }
}

static void test_worker_resize__rows_at_once_are_one_after_the_other(void **state UNUSED)
{
    static const float w[ROWS] = {0.37f, 0.41f, 0.11f, 0.03f, 0.29f, 0.17f, 0.23f, 0.07f, 0.31f};
    static const bool portable[] = {false, true};
    struct image im = noise(300, ROWS, 1, 3);
    const uint8_t *rows[ROWS];
    for (int k = 0; k < ROWS; k++) {
        rows[k] = im.px + (ptrdiff_t)k * 300;
    }
    for (size_t v = 0; v < ARRAY_LEN(portable); v++) {
        const struct simd *s = simd_pick(portable[v]);
        bool exact = portable[v] || s == simd_pick(true) || fuses(s);
        for (size_t n = 1; n <= 300; n++) {
            size_t rows_n = 1 + n % ROWS;
            float one[300] = {0};
            float all[300] = {0};
            for (int twice = 0; twice < 2; twice++) {
                for (size_t k = 0; k < rows_n; k++) {
                    (twice == 0 && k == 0 ? s->set : s->add)(one, rows[k], w[k], n);
                }
                s->sum(all, rows, w, rows_n, n, twice > 0);
                same_line(one, all, ARRAY_LEN(one), exact);
            }
        }
    }
    image_done(&im);
}

/* Through a resizer, in strips that end within lines or with them, or are copied or kept. */
static void test_worker_resize__strips_of_rows_make_the_same_picture(void **state UNUSED)
{
    static const int heights[] = {1, 7, 19, 31, 39, 40, 77};
    struct image im = noise(90, 77, 1, 4);
    const uint8_t *rows[77];
    for (int y = 0; y < 77; y++) {
        rows[y] = im.px + (ptrdiff_t)y * 90;
    }
    for (size_t i = 0; i < ARRAY_LEN(heights); i++) {
        struct image want;
        assert_true(resize_to(&im, 30, heights[i], FILTER_AUTO, &want));
        for (int strip = 1; strip <= 17; strip++) {
            struct image out;
            assert_true(image_alloc(30, heights[i], 1, &out));
            struct resizer *r = resizer_new(90, 77, 30, heights[i], FILTER_AUTO, &out, 0, 0);
            assert_non_null(r);
            for (int y = 0; y < 77; y += strip) {
                resizer_rows(r, rows + y, MIN(strip, 77 - y));
            }
            assert_memory_equal(out.px, want.px, (size_t)(30 * heights[i]));
            resizer_free(r);
            image_done(&out);
        }
        image_done(&want);
    }
    image_done(&im);
}

static void test_worker_resize__over_and_undershoot_are_clamped(void **state UNUSED)
{
    struct image im;
    assert_true(image_alloc(8, 8, 3, &im));
    for (int i = 0; i < 8 * 8 * 3; i++) {
        im.px[i] = (i / 3) % 8 < 4 ? 0 : 255; /* a hard edge: Lanczos rings on both sides */
    }
    struct image out;
    assert_true(resize_to(&im, 64, 64, FILTER_LANCZOS, &out));
    assert_int_equal(out.px[0], 0);
    assert_int_equal(out.px[3 * 63], 255);
    assert_int_equal(out.px[3 * 26], 0);   /* would be below 0 */
    assert_int_equal(out.px[3 * 37], 255); /* would be above 255 */
    image_done(&im);
    image_done(&out);
}

/* A window of the result is the same as the result cut afterwards, on every edge. */
static void test_worker_resize__what_falls_outside_is_dropped(void **state UNUSED)
{
    static const int at[][2] = {{0, 0}, {-7, -3}, {5, 9}, {-7, 9}, {30, 2}, {-40, 0}, {2, -40}};
    for (int channels = 1; channels <= 3; channels += 2) {
        struct image im = noise(90, 70, channels, 2);
        struct image whole;
        assert_true(resize_to(&im, 33, 29, FILTER_AUTO, &whole));
        for (size_t i = 0; i < ARRAY_LEN(at); i++) {
            struct image out;
            assert_true(image_alloc(25, 20, channels, &out));
            memset(out.px, 9, (size_t)(25 * 20 * channels));
            struct resizer *r = resizer_new(90, 70, 33, 29, FILTER_AUTO, &out, at[i][0], at[i][1]);
            assert_non_null(r);
            for (int y = 0; y < 70; y++) {
                resizer_row(r, im.px + y * 90 * channels);
            }
            resizer_free(r);
            for (int y = 0; y < 20; y++) {
                for (int x = 0; x < 25; x++) {
                    int sx = x - at[i][0];
                    int sy = y - at[i][1];
                    bool in = sx >= 0 && sx < 33 && sy >= 0 && sy < 29;
                    int want = in ? whole.px[(sy * 33 + sx) * channels] : 9;
                    assert_int_equal(out.px[(y * 25 + x) * channels], want);
                }
            }
            image_done(&out);
        }
        image_done(&im);
        image_done(&whole);
    }
}

static void turned(int orientation, int want_w, const char *want)
{
    static const uint8_t px[] = {'a', 'b', 'c', 'd', 'e', 'f'}; /* abc over def */
    struct image_options o = {.mode = RESIZE_NO, .max_area = 100, .max_aspect = 100};
    struct transform t;
    transform_init(&t, &o, orientation);
    assert_true(t.rows.begin(&t.rows, 3, 2, 1));
    t.rows.row(&t.rows, px);
    t.rows.row(&t.rows, px + 3);
    transform_finish(&t);
    assert_int_equal(t.out.w, want_w);
    assert_memory_equal(t.out.px, want, 6);
    transform_done(&t);
}

static void test_worker_resize__orientations(void **state UNUSED)
{
    turned(1, 3, "abcdef");
    turned(2, 3, "cbafed");
    turned(3, 3, "fedcba");
    turned(4, 3, "defabc");
    turned(5, 2, "adbecf");
    turned(6, 2, "daebfc");
    turned(7, 2, "fcebda");
    turned(8, 2, "cfbead");
}

static int reduction(const struct image_options *o, int w, int h, int orientation)
{
    struct transform t;
    transform_init(&t, o, orientation);
    int by = t.rows.reduce(&t.rows, w, h);
    transform_done(&t);
    return by;
}

static void test_worker_resize__fast_decode_leaves_enough_pixels(void **state UNUSED)
{
    struct image_options o = {.mode = RESIZE_BORDER, .size = 100, .fast = true};
    assert_int_equal(reduction(&o, 800, 100, 1), 8);
    assert_int_equal(reduction(&o, 799, 100, 1), 4);
    assert_int_equal(reduction(&o, 5000, 5000, 1), 8);
    assert_int_equal(reduction(&o, 199, 150, 1), 1);
    assert_int_equal(reduction(&o, 100, 60, 1), 0); /* every pixel is kept */
    assert_int_equal(reduction(&o, 60, 60, 1), 0);
    o.mode = RESIZE_CROP; /* the shorter side counts */
    assert_int_equal(reduction(&o, 800, 100, 1), 0);
    assert_int_equal(reduction(&o, 800, 200, 1), 2);
    assert_int_equal(reduction(&o, 200, 800, 6), 2);
    o.mode = RESIZE_NO;
    assert_int_equal(reduction(&o, 5000, 5000, 1), 0);
    o.mode = RESIZE_CROP;
    o.fast = false;
    assert_int_equal(reduction(&o, 800, 800, 1), 0);
}

static void test_worker_resize__sizes_out_of_bounds_are_refused(void **state UNUSED)
{
    struct image out;
    assert_true(image_alloc(1, 1, 3, &out));
    assert_null(resizer_new(10, 10, IMAGE_SIDE_MAX + 1, 1, FILTER_AUTO, &out, 0, 0));
    assert_null(resizer_new(10, 10, 1, IMAGE_SIDE_MAX + 1, FILTER_AUTO, &out, 0, 0));
    image_done(&out);
    struct image_options o = {.mode = RESIZE_KEEP, .size = 100, .max_area = 1e9, .max_aspect = 1e9};
    struct transform t;
    transform_init(&t, &o, 1);
    assert_false(t.rows.begin(&t.rows, 2, 2000, 1));
    assert_int_equal(t.result, IMAGE_ASPECT_TOO_LARGE);
    transform_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_resize__weights_add_up_and_stay_inside),
        cmocka_unit_test(test_worker_resize__area_is_the_mean_of_what_is_covered),
        cmocka_unit_test(test_worker_resize__both_sets_of_loops_agree),
        cmocka_unit_test(test_worker_resize__rows_at_once_are_one_after_the_other),
        cmocka_unit_test(test_worker_resize__strips_of_rows_make_the_same_picture),
        cmocka_unit_test(test_worker_resize__over_and_undershoot_are_clamped),
        cmocka_unit_test(test_worker_resize__what_falls_outside_is_dropped),
        cmocka_unit_test(test_worker_resize__orientations),
        cmocka_unit_test(test_worker_resize__fast_decode_leaves_enough_pixels),
        cmocka_unit_test(test_worker_resize__sizes_out_of_bounds_are_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
