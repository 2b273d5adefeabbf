/* Aim: boxes of a picture are blurred as they should be: the kernel, which pixels, the mirrored
 * edge, beside the boxes nothing; boxes as rows say them are understood or refused. Method: the
 * blur spelled out here in doubles, as one sum over a square for each pixel, against the rows of
 * blur.c, on pictures of random noise down to one pixel; the way through transform and decode. */
#include "download/decode/decode.h"
#include "download/image/blur.h"
#include "download/image/exif.h"
#include "download/image/resize.h"
#include "download/image/transform.h"
#include "download/part/sample.h"
#include "worker_noise.h"
#include <math.h>

static struct image copy_of(const struct image *im)
{
    struct image out;
    assert_true(image_alloc(im->w, im->h, im->channels, &out));
    memcpy(out.px, im->px, (size_t)im->w * (size_t)im->h * (size_t)im->channels);
    return out;
}

static struct bboxes boxes_of(const char *text)
{
    struct bboxes b;
    struct err err = ERR_INIT;
    if (!bbox_parse(str_of(text), &b, &err)) {
        fail_msg("%s: %s", text, err.message);
    }
    return b;
}

static int reflect(int i, int n)
{
    int period = MAX(2 * (n - 1), 1);
    i = ((i % period) + period) % period;
    return n == 1 ? 0 : MIN(i, period - i);
}

#define REACH_MAX 256

/* weight[d]: of a pixel d away, in one direction; a square's is the product of its two. */
struct soft {
    int reach, side;
    double sigma, sum;
    double weight[REACH_MAX + 1];
};

static double soft_at(const struct soft *s, const double *px, int w, int h, int x, int y)
{
    int column[2 * REACH_MAX + 1] = {0};
    double v = 0;
    for (int i = 0; i <= 2 * s->reach; i++) {
        column[i] = reflect(x - s->reach + i, w);
    }
    for (int dy = -s->reach; dy <= s->reach; dy++) {
        const double *row = px + (ptrdiff_t)reflect(y + dy, h) * w;
        for (int dx = -s->reach; dx <= s->reach; dx++) {
            v += s->weight[abs(dy)] * s->weight[abs(dx)] / s->sum * row[column[dx + s->reach]];
        }
    }
    return v;
}

/* Marks the boxes in the mask, gives the Gaussian. */
static struct soft marked(const struct bboxes *b, int w, int h, double *mask)
{
    struct soft s = {0};
    for (int i = 0; i < b->n; i++) {
        int x0 = (int)(b->at[i].x0 * w);
        int y0 = (int)(b->at[i].y0 * h);
        int x1 = (int)(b->at[i].x1 * w);
        int y1 = (int)(b->at[i].y1 * h);
        int side = MAX(x1 - x0, y1 - y0);
        s.side = MAX(s.side, side);
        for (int y = 0; y < h; y++) {
            for (int x = 0; x < w; x++) {
                if (x >= (int)(x0 - 0.1 * side) && x < (int)(x1 + 0.1 * side) &&
                    y >= (int)(y0 - 0.1 * side) && y < (int)(y1 + 0.1 * side)) {
                    mask[y * w + x] = 1;
                }
            }
        }
    }
    s.sigma = 0.1 * s.side;
    s.reach = (int)ceil(s.sigma);
    assert_in_range(s.reach, 0, REACH_MAX);
    for (int d = 0; d <= s.reach; d++) {
        s.weight[d] = exp(-(d * d) / (2 * s.sigma * s.sigma));
    }
    for (int dy = -s.reach; dy <= s.reach; dy++) {
        for (int dx = -s.reach; dx <= s.reach; dx++) {
            s.sum += s.weight[abs(dy)] * s.weight[abs(dx)];
        }
    }
    return s;
}

/* Each pixel within rounding of the long way. */
static void check(int w, int h, int channels, const char *text, uint64_t seed)
{
    struct bboxes b = boxes_of(text);
    struct image im = noise(w, h, channels, seed);
    struct image was = copy_of(&im);
    double *mask = xcalloc((size_t)w * (size_t)h, sizeof *mask);
    double *px = xcalloc((size_t)w * (size_t)h, sizeof *px);
    struct soft s = marked(&b, w, h, mask);
    assert_true(blur_boxes(&im, &b));
    for (int c = 0; c < channels; c++) {
        for (int i = 0; i < w * h; i++) {
            px[i] = was.px[i * channels + c];
        }
        for (int i = 0; i < w * h; i++) {
            double m = s.reach == 0 ? 0 : soft_at(&s, mask, w, h, i % w, i / w);
            double v = m <= 0 ? px[i] : px[i] * (1 - m) + m * soft_at(&s, px, w, h, i % w, i / w);
            double have = im.px[i * channels + c];
            if (fabs(have - v) > 0.51 || (m <= 0 && im.px[i * channels + c] != (uint8_t)px[i])) {
                fail_msg("%dx%dx%d %s: %.3f at %d, %d is %.0f", w, h, channels, text, v, i % w,
                         i / w, have);
            }
        }
    }
    free(mask);
    free(px);
    image_done(&im);
    image_done(&was);
}

static void test_worker_blur__pixels_are_those_of_the_long_way(void **state UNUSED)
{
    static const char *const boxes[] = {
        "[[0.2,0.3,0.6,0.8]]",
        "[[0,0,1,1]]",
        "[[0,0,0.3,0.3],[0.6,0.6,1,1]]",
        "[[0.9,0.1,1,0.3],[0,0.5,0.1,0.9],[0.4,0,0.5,0.1],[0.4,0.95,0.6,1]]",
        "[[0.5,0.5,0.52,0.52]]",
        "[[0.4,0,0.45,1]]",
        "[[0.1,0.1,0.6,0.6],[0.3,0.3,0.9,0.7]]",
        "[[0.3,0.3,0.3,0.3],[0.7,0.2,0.9,0.3]]",
        "[[-0.5,-0.5,0.2,0.2],[0.8,0.8,2,2]]",
    };
    static const int sizes[][3] = {{41, 33, 3}, {33, 41, 1}, {67, 20, 3}, {32, 32, 4}, {11, 50, 3}};
    for (size_t i = 0; i < ARRAY_LEN(boxes); i++) {
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            check(sizes[k][0], sizes[k][1], sizes[k][2], boxes[i], 100 * i + k);
        }
    }
}

/* A camera's picture that a face fills: samples, since each is a sum over hundreds of thousands. */
static void test_worker_blur__large_areas_of_large_pictures(void **state UNUSED)
{
    enum { W = 2500, H = 2203, SAMPLES = 60 };
    static const char *const boxes[] = {"[[0,0,1,1]]", "[[0.03,0.1,0.97,1]]"};
    double *mask = xcalloc((size_t)W * H, sizeof *mask);
    double *px = xcalloc((size_t)W * H, sizeof *px);
    for (size_t i = 0; i < ARRAY_LEN(boxes); i++) {
        struct bboxes b = boxes_of(boxes[i]);
        struct image im;
        struct rng rng;
        rng_seed(&rng, i);
        assert_true(image_alloc(W, H, 1, &im));
        for (int k = 0; k < W * H; k++) { /* squares of one level each */
            im.px[k] = (uint8_t)(((k % W / 170) * 7919 + (k / W / 130) * 104729) % 256);
            px[k] = im.px[k];
        }
        memset(mask, 0, (size_t)W * H * sizeof *mask);
        struct soft s = marked(&b, W, H, mask);
        assert_true(blur_boxes(&im, &b));
        for (int k = 0; k < SAMPLES; k++) {
            int x = k % 4 == 0 ? (int)(rng_u64(&rng) % 40) : (int)(rng_u64(&rng) % W);
            int y = k % 4 == 1 ? H - 1 - (int)(rng_u64(&rng) % 40) : (int)(rng_u64(&rng) % H);
            double m = soft_at(&s, mask, W, H, x, y);
            double v = px[y * W + x] * (1 - m) + m * soft_at(&s, px, W, H, x, y);
            if (fabs(im.px[y * W + x] - v) > 2.6) {
                fail_msg("%s: %.2f at %d, %d is %d", boxes[i], v, x, y, im.px[y * W + x]);
            }
        }
        image_done(&im);
    }
    free(mask);
    free(px);
}

static void test_worker_blur__small_and_thin_pictures(void **state UNUSED)
{
    /* The kernel is larger than the picture: mirrored more than once. */
    for (int n = 1; n < 12; n++) {
        check(n, 1, 3, "[[0,0,1,1]]", 1);
        check(1, n, 1, "[[0,0,1,1]]", 2);
        check(n, n, 3, "[[0,0,1,1]]", 3);
        check(90, n, 3, "[[0,0,1,1]]", 4);
        check(n, 90, 1, "[[0.1,0.2,0.9,0.9]]", 5);
        check(60, n, 3, "[[0.8,0,1,1]]", 6);
    }
}

static void test_worker_blur__kernel_is_a_gaussian_of_sum_one(void **state UNUSED)
{
    static float kernel[BLUR_REACH_MAX + 1];
    assert_int_equal(blur_kernel(0, kernel), 0);
    static const int sides[] = {1, 2, 9, 10, 11, 30, 100, 255, 4000, IMAGE_SIDE_MAX};
    static const int reaches[] = {1, 1, 1, 1, 2, 3, 10, 26, 400, 1639};
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        int reach = blur_kernel(sides[i], kernel);
        assert_int_equal(reach, reaches[i]);
        double sum = kernel[0];
        for (int k = 1; k <= reach; k++) {
            assert_true(kernel[k] <= kernel[k - 1] && kernel[k] >= 0);
            sum += 2 * (double)kernel[k];
        }
        assert_true(fabs(sum - 1) < 1e-5);
    }
    (void)blur_kernel(30, kernel); /* sigma 3: e^(-1/2) three pixels out */
    assert_true(fabs(kernel[3] / kernel[0] - exp(-0.5)) < 1e-6);
}

static void test_worker_blur__nothing_for_boxes_of_nothing(void **state UNUSED)
{
    static const char *const none[] = {"[]",          "null",        "[[0.5,0.5,0.5,0.5]]",
                                       "[[0,0,0,0]]", "[[1,1,1,1]]", "[[0.51,0.51,0.519,0.519]]"};
    struct image im = noise(50, 40, 3, 7);
    struct image was = copy_of(&im);
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        struct bboxes b = boxes_of(none[i]);
        assert_true(blur_boxes(&im, &b));
        assert_memory_equal(im.px, was.px, 50 * 40 * 3);
    }
    image_done(&im);
    image_done(&was);
}

static void test_worker_blur__even_pictures_stay_even(void **state UNUSED)
{
    struct bboxes b = boxes_of("[[0.1,0.1,0.9,0.8],[0,0,0.2,0.2]]");
    for (int v = 0; v < 256; v += 51) {
        struct image im;
        assert_true(image_alloc(70, 60, 3, &im));
        memset(im.px, v, 70 * 60 * 3);
        assert_true(blur_boxes(&im, &b));
        for (int i = 0; i < 70 * 60 * 3; i++) {
            assert_int_equal(im.px[i], v);
        }
        image_done(&im);
    }
}

static void test_worker_blur__a_thousand_boxes(void **state UNUSED)
{
    struct bboxes b = {.n = BBOX_MAX};
    struct image one = noise(120, 90, 3, 9);
    struct image many = copy_of(&one);
    for (int i = 0; i < b.n; i++) {
        b.at[i] = (struct bbox){0.2, 0.3, 0.7, 0.6};
    }
    assert_true(blur_boxes(&many, &b));
    b.n = 1;
    assert_true(blur_boxes(&one, &b));
    assert_memory_equal(one.px, many.px, 120 * 90 * 3);
    image_done(&one);
    image_done(&many);
}

static void test_worker_blur__boxes_are_read(void **state UNUSED)
{
    struct bboxes b = boxes_of(" [[0, 0.25, 1, 0.5], [1e-1, 2E-1, 0.3, 0.4]]\n");
    assert_int_equal(b.n, 2);
    assert_true(b.at[0].x0 == 0 && b.at[0].y0 == 0.25 && b.at[0].x1 == 1 && b.at[0].y1 == 0.5);
    assert_true(b.at[1].x0 == 0.1 && b.at[1].y1 == 0.4);
    b = boxes_of("[[-1,-0.5,2,1.5]]");
    assert_true(b.at[0].x0 == 0 && b.at[0].y0 == 0 && b.at[0].x1 == 1 && b.at[0].y1 == 1);
    b = boxes_of("[[1,1,1,1],[-0.1,0,0,0.2]]");
    assert_true(b.n == 2 && b.at[1].x0 == 0 && b.at[1].x1 == 0);
    b = boxes_of("null");
    assert_int_equal(b.n, 0);
    b = boxes_of("[]");
    assert_int_equal(b.n, 0);
}

static void test_worker_blur__boxes_are_refused(void **state UNUSED)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "no list"},
        {"nul", "no list"},
        {"{}", "no list"},
        {"0.5", "no list"},
        {"\"[]\"", "no list"},
        {"[[0.1,0.2,0.3,0.4]", "no list"},
        {"[[0.1,0.2,0.3,NaN]]", "no list"},
        {"[[0.1,0.2,0.3,Infinity]]", "no list"},
        {"[[0.1,0.2,0.3,1e400]]", "no list"},
        {"[[0.1,0.2,0.3,0.4]] x", "no list"},
        {"[0.1,0.2,0.3,0.4]", "a box is no"},
        {"[[]]", "a box is no"},
        {"[null]", "a box is no"},
        {"[[0.1,0.2,0.3]]", "a box is no"},
        {"[[0.1,0.2,0.3,0.4,0.5]]", "a box is no"},
        {"[[0.1,0.2,0.3,null]]", "four numbers"},
        {"[[0.1,0.2,0.3,true]]", "four numbers"},
        {"[[0.1,0.2,0.3,[0.4]]]", "four numbers"},
        {"[[0.5,0.2,0.3,0.4]]", "upside down"},
        {"[[0.1,0.5,0.3,0.4]]", "upside down"},
        {"[[10,20,30,40]]", "no fraction"},
        {"[[0.1,0.2,2.01,0.4]]", "no fraction"},
        {"[[-1.01,0.2,0.3,0.4]]", "no fraction"},
        {"[[0.1,0.2,0.3,1e300]]", "no fraction"},
        {"[[1.01,0.2,1.3,0.4]]", "outside"},
        {"[[0.1,0.2,0.3,0.4],[0.1,-0.4,0.3,-0.1]]", "outside"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct bboxes b;
        struct err err = ERR_INIT;
        assert_false(bbox_parse(str_of(bad[i].text), &b, &err));
        if (strstr(err.message, bad[i].why) == NULL ||
            strncmp(err.message, "bounding boxes: ", 16) != 0) {
            fail_msg("%s: %s", bad[i].text, err.message);
        }
    }
}

static void test_worker_blur__boxes_are_bounded(void **state UNUSED)
{
    static const char one[] = "[0.1,0.1,0.2,0.2]";
    for (int n = BBOX_MAX; n <= BBOX_MAX + 1; n++) {
        struct buf text = BUF_INIT(1u << 20);
        struct bboxes b;
        struct err err = ERR_INIT;
        for (int i = 0; i < n; i++) {
            buf_addf(&text, "%s%s", i == 0 ? "[" : ",", one);
        }
        buf_add_cstr(&text, "]");
        assert_int_equal(bbox_parse(buf_str(&text), &b, &err), n == BBOX_MAX);
        assert_string_equal(err.message, n == BBOX_MAX ? "" : "bounding boxes: more than 1000");
        buf_done(&text);
    }
    struct buf text = BUF_INIT(1u << 20);
    struct bboxes b;
    struct err err = ERR_INIT;
    buf_add_cstr(&text, "[[");
    while (text.n <= BBOX_TEXT_BYTES_MAX) {
        buf_add_cstr(&text, "0.1, ");
    }
    assert_false(bbox_parse(buf_str(&text), &b, &err));
    assert_non_null(strstr(err.message, "bytes of text"));
    buf_done(&text);
}

static void test_worker_blur__cells(void **state UNUSED)
{
    struct sample *s = sample_new(1);
    struct bboxes b = {.n = 5};
    struct err err = ERR_INIT;
    assert_true(sample_boxes(s, 0, &b, &err)); /* null */
    assert_int_equal(b.n, 0);
    s->cells[0] = (struct cell){.kind = CELL_JSON, .s = STR("[[0,0,1,1]]")};
    assert_true(sample_boxes(s, 0, &b, &err));
    assert_int_equal(b.n, 1);
    s->cells[0] = (struct cell){.kind = CELL_TEXT, .s = STR("[]")};
    assert_true(sample_boxes(s, 0, &b, &err));
    assert_int_equal(b.n, 0);
    s->cells[0] = (struct cell){.kind = CELL_INT, .i = 0};
    assert_false(sample_boxes(s, 0, &b, &err));
    sample_free(s);
    static const char *const fit[] = {"DOUBLE[][]", "FLOAT[4][]", "DECIMAL(3,2)[][]", "VARCHAR",
                                      "JSON",       "INTEGER",    "INTEGER[][]"};
    static const char *const not [] = {
        "", "DOUBLE", "BIGINT", "BOOLEAN", "MAP(VARCHAR, INTEGER)", "STRUCT(a DOUBLE[])", "DATE"};
    for (size_t i = 0; i < ARRAY_LEN(fit); i++) {
        assert_true(bbox_type_fits(fit[i]));
        assert_false(bbox_type_fits(not [i]));
    }
}

/* What a picture becomes: resized alone, blurred, laid into the frame; against one go. */
static void frame_check(enum resize_mode mode, int turned, int w, int h, bool only_if_bigger)
{
    struct image_options o = {.mode = mode,
                              .size = 48,
                              .format = IMAGE_PNG,
                              .max_area = (double)INFINITY,
                              .max_aspect = (double)INFINITY,
                              .only_if_bigger = only_if_bigger};
    struct bboxes b = boxes_of("[[0.1,0.2,0.7,0.6],[0.8,0.8,1,1]]");
    struct image im = noise(w, h, 3, (uint64_t)w);
    enum resize_mode unframed = mode == RESIZE_BORDER ? RESIZE_KEEP_LARGEST
                                : mode == RESIZE_CROP ? RESIZE_KEEP
                                                      : mode;
    struct transform t[3];
    for (int i = 0; i < 3; i++) { /* with boxes, without a frame, plain */
        struct image_options own = o;
        own.mode = i == 1 ? unframed : mode;
        transform_init(&t[i], &own, turned);
        t[i].boxes = i == 0 ? &b : NULL;
        assert_true(t[i].rows.begin(&t[i].rows, w, h, 3));
        for (int y = 0; y < h; y++) {
            t[i].rows.row(&t[i].rows, im.px + (size_t)(y * w * 3));
        }
        transform_finish(&t[i]);
        assert_int_equal(t[i].result, IMAGE_OK);
    }
    assert_true(blur_boxes(&t[1].out, &b));
    const struct image *have = &t[0].out;
    const struct image *plain = &t[2].out;
    const struct image *small = &t[1].out;
    assert_int_equal(have->w, plain->w);
    assert_int_equal(have->h, plain->h);
    int left = (have->w - small->w) / 2;
    int top = (have->h - small->h) / 2;
    for (int i = 0; i < have->w * have->h; i++) {
        int x = i % have->w - left;
        int y = i / have->w - top;
        bool in = x >= 0 && y >= 0 && x < small->w && y < small->h;
        const uint8_t *want = in ? small->px + (ptrdiff_t)(y * small->w + x) * 3 : NULL;
        for (int c = 0; c < 3; c++) {
            assert_int_equal(have->px[3 * i + c], in ? want[c] : 255);
        }
    }
    for (int i = 0; i < 3; i++) {
        transform_done(&t[i]);
    }
    image_done(&im);
}

static void test_worker_blur__after_resizing_before_the_frame(void **state UNUSED)
{
    for (int mode = RESIZE_NO; mode <= RESIZE_CROP; mode++) {
        for (int turned = 1; turned <= 8; turned++) {
            frame_check((enum resize_mode)mode, turned, 91, 60, false);
            frame_check((enum resize_mode)mode, turned, 31, 47, false);
            frame_check((enum resize_mode)mode, turned, 31, 47, true);
            frame_check((enum resize_mode)mode, turned, 48, 48, false);
        }
    }
}

/* The body of a picture with boxes is never what is stored; without, it is where that is asked. */
static void test_worker_blur__no_bytes_are_kept(void **state UNUSED)
{
    struct image_options o = {.mode = RESIZE_NO,
                              .size = 48,
                              .quality = 95,
                              .max_area = (double)INFINITY,
                              .max_aspect = (double)INFINITY};
    struct image im = noise(48, 48, 3, 1);
    struct buf body = BUF_INIT(1u << 20);
    struct decoded d = {.image = BUF_INIT(IMAGE_OUT_BYTES_MAX),
                        .exif = BUF_INIT(IMAGE_EXIF_BYTES_MAX)};
    assert_int_equal(image_encode(&im, &o, &body), IMAGE_OK);
    static const char *const boxes[] = {"[]", "[[0.2,0.2,0.8,0.8]]", "[[0,0,0,0]]"};
    for (int all = 0; all < 2; all++) {
        o.keep_same = all == 0;
        o.keep_all = all == 1;
        for (size_t i = 0; i < ARRAY_LEN(boxes); i++) {
            struct bboxes b = boxes_of(boxes[i]);
            decode_one(buf_str(&body), &b, &o, &d);
            assert_int_equal(d.result, IMAGE_OK);
            assert_int_equal(str_eq(buf_str(&d.image), buf_str(&body)), i == 0);
        }
        decode_one(buf_str(&body), NULL, &o, &d);
        assert_true(str_eq(buf_str(&d.image), buf_str(&body)));
    }
    buf_done(&d.image);
    buf_done(&d.exif);
    buf_done(&body);
    image_done(&im);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_blur__pixels_are_those_of_the_long_way),
        cmocka_unit_test(test_worker_blur__large_areas_of_large_pictures),
        cmocka_unit_test(test_worker_blur__small_and_thin_pictures),
        cmocka_unit_test(test_worker_blur__kernel_is_a_gaussian_of_sum_one),
        cmocka_unit_test(test_worker_blur__nothing_for_boxes_of_nothing),
        cmocka_unit_test(test_worker_blur__even_pictures_stay_even),
        cmocka_unit_test(test_worker_blur__a_thousand_boxes),
        cmocka_unit_test(test_worker_blur__boxes_are_read),
        cmocka_unit_test(test_worker_blur__boxes_are_refused),
        cmocka_unit_test(test_worker_blur__boxes_are_bounded),
        cmocka_unit_test(test_worker_blur__cells),
        cmocka_unit_test(test_worker_blur__after_resizing_before_the_frame),
        cmocka_unit_test(test_worker_blur__no_bytes_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
