/* Pictures of strangers: sniffing, header limits, decoding, exif, the whole way to a thumbnail,
 * with boxes to blur that the last bytes say; the bytes as a text of boxes.
 * A picture that is said to be large is not decoded here: the limits are checked, time is not lost.
 */
#include "common/hash.h"
#include "download/decode/decode.h"
#include "download/image/exif.h"
#include "fuzz.h"
#include <jansson.h>
#include <math.h>

#define PIXELS_MAX (512 * 512)

/* Whatever the bytes: boxes within the picture, and no more than there is room for. */
static void parse_boxes(struct str text)
{
    static struct bboxes b;
    struct err err = ERR_INIT;
    if (bbox_parse(text, &b, &err)) {
        ASSERT(b.n >= 0 && b.n <= BBOX_MAX);
        for (int i = 0; i < b.n; i++) {
            const struct bbox *x = &b.at[i];
            ASSERT(x->x0 >= 0 && x->x0 <= x->x1 && x->x1 <= 1);
            ASSERT(x->y0 >= 0 && x->y0 <= x->y1 && x->y1 <= 1);
        }
    }
}

/* None, or up to three of the last bytes: corners in either order. */
static void boxes_of(const uint8_t *data, size_t size, struct bboxes *ret)
{
    ret->n = size < 16 ? 0 : data[size - 1] % 4;
    for (int i = 0; i < ret->n; i++) {
        const uint8_t *at = data + size - 5 - 4 * (size_t)i;
        double n[4] = {at[0] / 255.0, at[1] / 255.0, at[2] / 255.0, at[3] / 255.0};
        ret->at[i] =
            (struct bbox){MIN(n[0], n[2]), MIN(n[1], n[3]), MAX(n[0], n[2]), MAX(n[1], n[3])};
    }
}

/* Each change of the input is tried under options of its own: every mode with every filter. */
static struct image_options options_of(const uint8_t *data, size_t size)
{
    uint32_t n = hash_crc32(data, size);
    struct image_options o = {.hash = HASH_MD5,
                              .quality = 9,
                              .max_area = (double)INFINITY,
                              .max_aspect = (double)INFINITY,
                              .exif = true};
    o.mode = (enum resize_mode)(n % 5);
    o.format = (enum image_format)(n / 5 % 3);
    o.up = (enum resize_filter)(n / 15 % 6);
    o.down = (enum resize_filter)(n / 90 % 6);
    o.orient = n / 540 % 2 == 0;
    o.fast = n / 1080 % 2 == 0;
    o.keep_same = n / 2160 % 4 == 0;
    o.only_if_bigger = n / 8640 % 4 == 0;
    o.size = n / 34560 % 3 == 0 ? 30 : n / 34560 % 3 == 1 ? 48 : 7;
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = {(const char *)data, size};
    enum image_format f = image_sniff(body);
    struct buf exif = BUF_INIT(IMAGE_EXIF_BYTES_MAX);
    static struct bboxes boxes;
    int64_t w = 0;
    int64_t h = 0;
    parse_boxes(body);
    boxes_of(data, size, &boxes);
    exif_json(body, &exif);
    json_t *tags = json_loadb(exif.p, exif.n, 0, NULL); /* whatever the camera wrote, it is JSON */
    ASSERT(json_is_object(tags));
    json_decref(tags);
    buf_done(&exif);
    if (!image_header(body, f, &w, &h) || (image_fits(w, h) && w * h > PIXELS_MAX)) {
        return 0;
    }
    struct image_options o = options_of(data, size);
    if (MAX(w, h) > 8 * MIN(w, h)) {
        boxes.n =
            0; /* a thread blown up and blurred whole is within bounds, and slow in this build */
    }
    struct decoded d = {.image = BUF_INIT(IMAGE_OUT_BYTES_MAX),
                        .exif = BUF_INIT(IMAGE_EXIF_BYTES_MAX)};
    decode_one(body, &boxes, &o, &d);
    if (d.result == IMAGE_OK) {
        ASSERT((d.original_width == w && d.original_height == h) ||
               (o.orient && d.original_width == h && d.original_height == w));
        ASSERT(d.width > 0 && d.width <= IMAGE_SIDE_MAX && d.height > 0);
        ASSERT(image_sniff(buf_str(&d.image)) == o.format);
    }
    buf_done(&d.image);
    buf_done(&d.exif);
    return 0;
}
