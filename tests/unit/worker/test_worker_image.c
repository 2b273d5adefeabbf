/* Aim: sniffing, header limits, codecs, filters and resizing do what image.h says, for whole and
 * broken input. Method: pictures made here, encoded and decoded again; broken by cutting and
 * flipping; sizes by Python's round(). Pixels against OpenCV:
 * tests/integration/worker/worker_download.py.
 */
#include "download/decode/decode.h"
#include "download/image/exif.h"
#include "download/image/png_filter.h"
#include "download/image/png_stored.h"
#include "download/image/resize.h"
#include "download/image/transform.h"
#include "worker_noise.h"
#include <math.h>

#define OUT_MAX (8u << 20)

static struct image picture(int w, int h, int channels)
{
    struct image im;
    assert_true(image_alloc(w, h, channels, &im));
    for (int i = 0; i < w * h * channels; i++) {
        int x = i / channels % w;
        int y = i / channels / w;
        im.px[i] = (uint8_t)(128 + 100 * sin(x * 0.05 + (i % channels)) * cos(y * 0.04));
    }
    return im;
}

static double psnr(const struct image *a, const struct image *b)
{
    assert_int_equal(a->w, b->w);
    assert_int_equal(a->h, b->h);
    assert_int_equal(a->channels, b->channels);
    double sum = 0;
    int n = a->w * a->h * a->channels;
    for (int i = 0; i < n; i++) {
        double d = (double)a->px[i] - b->px[i];
        sum += d * d;
    }
    return sum == 0 ? 99 : 10 * log10(255.0 * 255.0 * n / sum);
}

static struct buf encoded(const struct image *im, enum image_format f, int quality)
{
    struct image_options o = {.format = f, .quality = quality};
    struct buf b = BUF_INIT(OUT_MAX);
    assert_int_equal(image_encode(im, &o, &b), IMAGE_OK);
    return b;
}

/* Noise takes more bytes than the encoder's first buffer has, be it the least or the largest. */
static void test_worker_image__jpegs_outgrow_their_buffer(void **state UNUSED)
{
    static const int sides[] = {8, 48, 640};
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        struct image im = noise(sides[i], sides[i], 3, 1);
        struct image back;
        struct buf b = encoded(&im, IMAGE_JPEG, 100);
        size_t pixels = (size_t)sides[i] * (size_t)sides[i];
        assert_true(b.n > pixels && (i != 1 || b.n > 4096) && (i != 2 || b.n > (256u << 10)));
        assert_int_equal(image_decode(buf_str(&b), &back), IMAGE_OK);
        assert_true(psnr(&im, &back) >= 12); /* colour is halved */
        image_done(&im);
        image_done(&back);
        buf_done(&b);
    }
}

static void test_worker_image__codecs_go_both_ways(void **state UNUSED)
{
    static const struct {
        enum image_format f;
        int quality, channels;
        double least;
    } cases[] = {{IMAGE_JPEG, 95, 3, 40}, {IMAGE_JPEG, 95, 1, 45},  {IMAGE_PNG, 6, 3, 99},
                 {IMAGE_PNG, 0, 1, 99},   {IMAGE_WEBP, 101, 3, 99}, {IMAGE_WEBP, 90, 3, 35}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct image im = picture(123, 77, cases[i].channels);
        struct buf b = encoded(&im, cases[i].f, cases[i].quality);
        struct image back;
        int64_t w;
        int64_t h;
        assert_int_equal(image_sniff(buf_str(&b)), cases[i].f);
        assert_true(image_header(buf_str(&b), cases[i].f, &w, &h));
        assert_true(w == 123 && h == 77);
        assert_int_equal(image_decode(buf_str(&b), &back), IMAGE_OK);
        assert_true(psnr(&im, &back) >= cases[i].least);
        image_done(&im);
        image_done(&back);
        buf_done(&b);
    }
}

static void test_worker_image__nothing_else_is_taken(void **state UNUSED)
{
    static const struct {
        struct str body;
        enum image_result want;
    } cases[] = {{{"", 0}, IMAGE_BAD},
                 {{"\xff", 1}, IMAGE_BAD},
                 {{"\xff\xd8\xff", 3}, IMAGE_BAD},
                 {{"\x89PNG\r\n\x1a\n", 8}, IMAGE_BAD},
                 {{"RIFF\x04\0\0\0WEBP", 12}, IMAGE_BAD},
                 {{"<html><body>", 12}, IMAGE_BAD},
                 {{"GIF89a\1\0\1\0\0\0", 12}, IMAGE_BAD},
                 {{"GIF89a______", 12}, IMAGE_AREA_TOO_LARGE},
                 {{"II*\0________", 12}, IMAGE_BAD},
                 {{"BM__________", 12}, IMAGE_UNSUPPORTED},
                 {{"\0\0\0\x1c"
                   "ftypavif",
                   12},
                  IMAGE_BAD},
                 {{"\0\0\0\x18"
                   "ftypheic",
                   12},
                  IMAGE_UNSUPPORTED},
                 {STR("<svg xmlns="), IMAGE_UNSUPPORTED},
                 {STR("\xef\xbb\xbf<?xml version=\"1.0\"?>\n<svg/>"), IMAGE_UNSUPPORTED},
                 {STR("\n <!-- drawn --><svg>"), IMAGE_UNSUPPORTED},
                 {STR("<!DOCTYPE svg PUBLIC><svg>"), IMAGE_UNSUPPORTED},
                 {STR("<!-- a page --><html><svg>"), IMAGE_BAD},
                 {STR("<!DOCTYPE html><body><svg>"), IMAGE_BAD},
                 {STR("<?xml version=\"1.0\"?><feed/>"), IMAGE_BAD},
                 {STR("<svh"), IMAGE_BAD}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct image im;
        assert_int_equal(image_decode(cases[i].body, &im), cases[i].want);
    }
    assert_string_equal(image_result_text(IMAGE_BAD), image_result_text(IMAGE_UNSUPPORTED));
}

/* Every cut and many flips of a small picture: an answer, never a crash. */
static void test_worker_image__broken_bytes_never_crash(void **state UNUSED)
{
    static const enum image_format formats[] = {IMAGE_JPEG, IMAGE_PNG, IMAGE_WEBP};
    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        struct image im = picture(40, 30, 3);
        struct buf b = encoded(&im, formats[f], 9);
        size_t good = 0;
        for (size_t n = 0; n < b.n; n++) {
            struct image out = {0};
            char *copy =
                xmalloc(n + 1); /* its own block, so that a sanitizer sees each byte too far */
            memcpy(copy, b.p, n);
            good += image_decode((struct str){copy, n}, &out) == IMAGE_OK;
            image_done(&out);
            b.p[n] = (char)~b.p[n];
            (void)image_decode(buf_str(&b), &out);
            image_done(&out);
            b.p[n] = (char)~b.p[n];
            free(copy);
        }
        if (formats[f] == IMAGE_JPEG) {
            assert_true(good > 0); /* a cut JPEG has a grey rest */
        }
        image_done(&im);
        buf_done(&b);
    }
}

static void test_worker_image__header_limits_come_before_decoding(void **state UNUSED)
{
    struct image im = picture(16, 16, 1);
    struct buf b = encoded(&im, IMAGE_PNG, 6);
    static const struct {
        uint32_t w, h;
        enum image_result want;
    } cases[] = {{1000000, 1000000, IMAGE_AREA_TOO_LARGE},
                 {16385, 1, IMAGE_AREA_TOO_LARGE},
                 {1, 16385, IMAGE_AREA_TOO_LARGE},
                 {10001, 10000, IMAGE_AREA_TOO_LARGE},
                 {0, 1, IMAGE_BAD},
                 {0xffffffff, 0xffffffff, IMAGE_AREA_TOO_LARGE}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (int k = 0; k < 4; k++) {
            b.p[16 + k] = (char)(cases[i].w >> (24 - 8 * k));
            b.p[20 + k] = (char)(cases[i].h >> (24 - 8 * k));
        }
        struct image out;
        assert_int_equal(image_decode(buf_str(&b), &out), cases[i].want);
    }
    struct image no;
    assert_false(image_alloc(0, 1, 1, &no));
    assert_false(image_alloc(IMAGE_SIDE_MAX + 1, 1, 1, &no));
    image_done(&im);
    buf_done(&b);
}

static void test_worker_image__sides_round_half_to_even(void **state UNUSED)
{
    assert_int_equal(resize_side(480, 256, 640), 192);
    assert_int_equal(resize_side(5, 1, 2), 2); /* 2.5 */
    assert_int_equal(resize_side(7, 1, 2), 4); /* 3.5 */
    assert_int_equal(resize_side(3, 1, 2), 2); /* 1.5 */
    assert_int_equal(resize_side(1, 1, 2), 1); /* 0.5 is 0, but a side is at least 1 */
    assert_int_equal(resize_side(1, 256, 16000), 1);
    assert_int_equal(resize_side(256, 256, 256), 256);
    assert_int_equal(resize_side(16384, 256, 1), 4194304);
}

static void mode_gives(enum resize_mode mode, bool only_bigger, int w, int h, int want_w,
                       int want_h)
{
    struct image im = picture(w, h, 3);
    struct image_options o = {.mode = mode, .size = 100, .only_if_bigger = only_bigger};
    assert_int_equal(image_resize(&im, &o), IMAGE_OK);
    if (im.w != want_w || im.h != want_h) {
        fail_msg("mode %d of %dx%d: %dx%d", (int)mode, w, h, im.w, im.h);
    }
    image_done(&im);
}

static void test_worker_image__modes_and_sizes(void **state UNUSED)
{
    mode_gives(RESIZE_NO, false, 300, 200, 300, 200);
    mode_gives(RESIZE_BORDER, false, 300, 200, 100, 100);
    mode_gives(RESIZE_BORDER, false, 30, 20, 100, 100);
    mode_gives(RESIZE_BORDER, true, 30, 20, 30, 20);
    mode_gives(RESIZE_BORDER, true, 101, 20, 100, 100);
    mode_gives(RESIZE_KEEP, false, 300, 200, 150, 100);
    mode_gives(RESIZE_KEEP, false, 30, 20, 150, 100);
    mode_gives(RESIZE_KEEP, true, 300, 90, 300, 90);
    mode_gives(RESIZE_KEEP_LARGEST, false, 300, 200, 100, 67);
    mode_gives(RESIZE_CROP, false, 300, 200, 100, 100);
    mode_gives(RESIZE_CROP, false, 20, 31, 100, 100);
    mode_gives(RESIZE_CROP, false, 100, 100, 100, 100);
    struct image im = picture(2, 2000, 1);
    struct image_options o = {.mode = RESIZE_KEEP, .size = 100};
    assert_int_equal(image_resize(&im, &o), IMAGE_ASPECT_TOO_LARGE);
    image_done(&im);
}

static void test_worker_image__border_is_white_and_centred(void **state UNUSED)
{
    struct image im;
    assert_true(image_alloc(300, 99, 1, &im));
    memset(im.px, 7, 300 * 99);
    struct image_options o = {.mode = RESIZE_BORDER, .size = 100};
    assert_int_equal(image_resize(&im, &o), IMAGE_OK);
    int first = -1;
    int last = -1;
    for (int y = 0; y < 100; y++) {
        uint8_t v = im.px[y * 100 + 50];
        assert_true(v == 7 || v == 255);
        if (v == 7) {
            first = first < 0 ? y : first;
            last = y;
        }
    }
    assert_int_equal(first, 33); /* (100 - 33) / 2 rounded down */
    assert_int_equal(last, 65);
    image_done(&im);
}

static void test_worker_image__flat_stays_flat_and_means_hold(void **state UNUSED)
{
    static const int sizes[][2] = {{7, 5}, {100, 3}, {256, 256}, {1, 1}, {33, 200}};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct image im;
        struct image out;
        assert_true(image_alloc(97, 131, 3, &im));
        memset(im.px, 201, 97 * 131 * 3);
        assert_true(resize_to(&im, sizes[i][0], sizes[i][1], FILTER_AUTO, &out));
        for (int k = 0; k < out.w * out.h * 3; k++) {
            assert_int_equal(out.px[k], 201);
        }
        image_done(&im);
        image_done(&out);
    }
    struct image im = picture(640, 480, 1);
    struct image one;
    assert_true(resize_to(&im, 1, 1, FILTER_AUTO, &one));
    double sum = 0;
    for (int k = 0; k < 640 * 480; k++) {
        sum += im.px[k];
    }
    assert_true(fabs(sum / (640 * 480) - one.px[0]) <= 1);
    image_done(&im);
    image_done(&one);
}

static void test_worker_image__filters(void **state UNUSED)
{
    struct image_options o = {.min_size = 40, .max_area = 4000, .max_aspect = 2.5};
    assert_int_equal(image_filter(100, 40, &o), IMAGE_OK);
    o.min_size = 41;
    o.max_area = 1;
    assert_int_equal(image_filter(100, 40, &o), IMAGE_TOO_SMALL);
    o.min_size = 0;
    assert_int_equal(image_filter(100, 40, &o), IMAGE_AREA_TOO_LARGE);
    o.max_area = (double)INFINITY;
    o.max_aspect = 2.49;
    assert_int_equal(image_filter(100, 40, &o), IMAGE_ASPECT_TOO_LARGE);
}

/* The first chunk of image data becomes two, of which the first has n bytes. */
static struct buf split_data(struct str png, size_t n)
{
    struct buf b = BUF_INIT(OUT_MAX);
    const char *p = memmem(png.p, png.n, "IDAT", 4);
    assert_true(p != NULL);
    size_t at = (size_t)(p - png.p) - 4;
    const uint8_t *len = (const uint8_t *)p - 4;
    size_t all = (size_t)len[0] << 24 | (size_t)len[1] << 16 | (size_t)len[2] << 8 | len[3];
    assert_true(n <= all && all - n < 1u << 24 && n < 1u << 24);
    buf_add(&b, png.p, at);
    for (int i = 0; i < 2; i++) {
        size_t part = i == 0 ? n : all - n;
        const char head[8] = {0,  (char)(part >> 16), (char)(part >> 8), (char)part, 'I', 'D', 'A',
                              'T'};
        buf_add(&b, head, sizeof head);
        buf_add(&b, p + 4 + (i == 0 ? 0 : n), part);
        buf_add(&b, "sum?", 4);
    }
    buf_add(&b, p + 4 + all + 4, png.n - at - 12 - all);
    return b;
}

static void test_worker_image__png_with_stored_data_is_the_same(void **state UNUSED)
{
    static const struct {
        int w, h, channels, quality;
    } cases[] = {{1, 1, 1, 6},     {5, 3, 3, 6},    {257, 255, 1, 6},  {16384, 4, 1, 9},
                 {300, 200, 3, 6}, {90, 700, 3, 1}, {1700, 1700, 3, 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int w = cases[i].w;
        struct image im = i % 2 == 0 ? noise(w, cases[i].h, cases[i].channels, 7)
                                     : picture(w, cases[i].h, cases[i].channels);
        size_t n = (size_t)w * (size_t)im.h * (size_t)im.channels;
        size_t raw_n = n + (size_t)im.h;
        struct buf b = BUF_INIT(2 * OUT_MAX);
        assert_true(png_encode(&im, cases[i].quality, &b));
        struct image back;
        uint8_t *stored;
        size_t stored_n;
        assert_true(png_stored(buf_str(&b), raw_n, &stored, &stored_n));
        assert_int_equal(image_decode((struct str){(char *)stored, stored_n}, &back), IMAGE_OK);
        assert_memory_equal(back.px, im.px, n);
        image_done(&back);
        assert_int_equal(image_decode(buf_str(&b), &back), IMAGE_OK);
        assert_memory_equal(back.px, im.px, n);
        image_done(&back);
        free(stored);
        uint8_t *raw;
        assert_true(png_raw(buf_str(&b), raw_n, &raw));
        assert_true(raw[0] <= 4);
        free(raw);
        image_done(&im);
        buf_done(&b);
    }
}

/* Whatever is not exactly right is left to the library. */
static void test_worker_image__png_with_odd_data_is_not_stored(void **state UNUSED)
{
    struct image im = noise(100, 80, 3, 3);
    struct image back;
    struct buf b = encoded(&im, IMAGE_PNG, 6);
    struct buf two = split_data(buf_str(&b), 1000);
    struct buf none = split_data(buf_str(&b), 0);
    const size_t raw_n = 80 * 301;
    uint8_t *one;
    uint8_t *other;
    size_t one_n;
    size_t other_n;
    assert_true(png_stored(buf_str(&b), raw_n, &one, &one_n));
    assert_true(png_stored(buf_str(&two), raw_n, &other, &other_n));
    assert_true(one_n == other_n && memcmp(one, other, one_n) == 0);
    free(one);
    free(other);
    assert_false(png_stored(buf_str(&none), raw_n, &one, &one_n));
    const size_t wrong[] = {0, 1, raw_n - 1, raw_n + 1, PNG_STORED_RAW_MAX + 1, SIZE_MAX};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_false(png_stored(buf_str(&b), wrong[i], &one, &one_n) ||
                     png_raw(buf_str(&b), wrong[i], &one));
    }
    for (size_t n = 0; n < b.n; n += MAX(n / 3, (size_t)1)) {
        assert_false(png_stored((struct str){b.p, n}, raw_n, &one, &one_n));
    }
    /* A length beyond the end; then no stream of zlib. */
    char *data = memmem(b.p, b.n, "IDAT", 4);
    data[-4] = 1;
    assert_false(png_stored(buf_str(&b), raw_n, &one, &one_n));
    data[-4] = 0;
    data[4] ^= 1;
    assert_false(png_stored(buf_str(&b), raw_n, &one, &one_n));
    assert_int_equal(image_decode(buf_str(&b), &back), IMAGE_BAD);
    buf_done(&b);
    buf_done(&two);
    buf_done(&none);
    image_done(&im);
}

/* What a filter of PNG's definition takes from byte i of a row. */
static int predicted(int filter, const uint8_t *row, const uint8_t *up, int i, int bpp)
{
    int a = i >= bpp ? row[i - bpp] : 0;
    int b = up[i];
    int c = i >= bpp ? up[i - bpp] : 0;
    int p = a + b - c;
    int pa = abs(p - a);
    int pb = abs(p - b);
    int pc = abs(p - c);
    const int all[] = {0, a, b, (a + b) / 2, pa <= pb && pa <= pc ? a : pb <= pc ? b : c};
    return all[filter];
}

static void test_worker_image__png_filters_are_undone(void **state UNUSED)
{
    static const int bpps[] = {1, 3, 4};
    struct image im = noise(4 * 40, 3, 1, 11);
    uint8_t zeros[4 * 40 + 1] = {0};
    for (int w = 1; w <= 40; w++) {
        for (int k = 0; k < 15; k++) {
            int bpp = bpps[k % 3];
            int filter = k / 3;
            const uint8_t *plain = im.px + 160;
            const uint8_t *up = w % 4 == 0 ? zeros : im.px + 2 * w % 7;
            uint8_t row[4 * 40 + 1];
            for (int i = 0; i < w * bpp; i++) {
                row[i] = (uint8_t)(plain[i] - predicted(filter, plain, up, i, bpp));
            }
            row[w * bpp] = 7;
            assert_true(png_unfilter(filter, row, up, (size_t)(w * bpp), bpp));
            assert_memory_equal(row, plain, (size_t)(w * bpp));
            assert_int_equal(row[w * bpp], 7);
        }
        assert_false(png_unfilter(5, im.px, zeros, 3, 3) || png_unfilter(255, im.px, zeros, 3, 1));
    }
    image_done(&im);
}

static void test_worker_image__decode_one(void **state UNUSED)
{
    struct image im = picture(300, 200, 3);
    struct buf b = encoded(&im, IMAGE_PNG, 6);
    struct image_options o = {.mode = RESIZE_BORDER,
                              .size = 64,
                              .format = IMAGE_JPEG,
                              .quality = 95,
                              .hash = HASH_MD5,
                              .max_area = (double)INFINITY,
                              .max_aspect = (double)INFINITY,
                              .exif = true};
    struct decoded d = {.image = BUF_INIT(OUT_MAX), .exif = BUF_INIT(IMAGE_EXIF_BYTES_MAX)};
    decode_one(buf_str(&b), NULL, &o, &d);
    assert_int_equal(d.result, IMAGE_OK);
    assert_true(d.width == 64 && d.height == 64 && d.original_width == 300 &&
                d.original_height == 200);
    assert_int_equal(strlen(d.hash), 32);
    assert_string_equal(buf_cstr(&d.exif), "{}");
    assert_int_equal(image_sniff(buf_str(&d.image)), IMAGE_JPEG);
    decode_one(STR("rubbish"), NULL, &o, &d);
    assert_int_equal(d.result, IMAGE_BAD);
    assert_true(d.image.n == 0 && d.exif.n == 0 && d.hash[0] == '\0');
    buf_done(&d.image);
    buf_done(&d.exif);
    buf_done(&b);
    image_done(&im);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worker_image__codecs_go_both_ways),
        cmocka_unit_test(test_worker_image__jpegs_outgrow_their_buffer),
        cmocka_unit_test(test_worker_image__nothing_else_is_taken),
        cmocka_unit_test(test_worker_image__broken_bytes_never_crash),
        cmocka_unit_test(test_worker_image__header_limits_come_before_decoding),
        cmocka_unit_test(test_worker_image__sides_round_half_to_even),
        cmocka_unit_test(test_worker_image__modes_and_sizes),
        cmocka_unit_test(test_worker_image__border_is_white_and_centred),
        cmocka_unit_test(test_worker_image__flat_stays_flat_and_means_hold),
        cmocka_unit_test(test_worker_image__filters),
        cmocka_unit_test(test_worker_image__png_with_stored_data_is_the_same),
        cmocka_unit_test(test_worker_image__png_with_odd_data_is_not_stored),
        cmocka_unit_test(test_worker_image__png_filters_are_undone),
        cmocka_unit_test(test_worker_image__decode_one),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
