/* Pictures of strangers: sniffing, header limits, decoding, exif, the whole way to a thumbnail.
 * A picture that is said to be large is not decoded here: the limits are checked, time is not lost.
 */
#include "download/decode.h"
#include "download/exif.h"
#include "fuzz.h"
#include <jansson.h>
#include <math.h>

#define PIXELS_MAX (512 * 512)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = {(const char *)data, size};
    enum image_format f = image_sniff(body);
    struct buf exif = BUF_INIT(IMAGE_EXIF_BYTES_MAX);
    int64_t w = 0;
    int64_t h = 0;
    exif_json(body, &exif);
    json_t *tags = json_loadb(exif.p, exif.n, 0, NULL); /* whatever the camera wrote, it is JSON */
    ASSERT(json_is_object(tags));
    json_decref(tags);
    buf_done(&exif);
    if (!image_header(body, f, &w, &h) || (image_fits(w, h) && w * h > PIXELS_MAX)) {
        return 0;
    }
    struct image_options o = {.mode = (enum resize_mode)(size % 5),
                              .size = 48,
                              .format = (enum image_format)(size % 3),
                              .hash = HASH_MD5,
                              .quality = 9,
                              .max_area = (double)INFINITY,
                              .max_aspect = (double)INFINITY,
                              .exif = true,
                              .up = (enum resize_filter)(size % 6),
                              .down = (enum resize_filter)(size / 6 % 6),
                              .orient = size % 2 == 0,
                              .fast = size % 4 == 1,
                              .keep_same = size % 8 == 3};
    struct decoded d = {.image = BUF_INIT(IMAGE_OUT_BYTES_MAX),
                        .exif = BUF_INIT(IMAGE_EXIF_BYTES_MAX)};
    decode_one(body, &o, &d);
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
