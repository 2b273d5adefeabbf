/* WebP over libwebp; animations are not still pictures and are refused. */
#include "common/cleanup.h"
#include "image.h"
#include <webp/decode.h>
#include <webp/encode.h>

bool webp_read(struct str body, struct image_rows *rows)
{
    const uint8_t *p = (const uint8_t *)body.p;
    WebPBitstreamFeatures f;
    if (WebPGetFeatures(p, body.n, &f) != VP8_STATUS_OK || f.has_animation ||
        !image_fits(f.width, f.height) || !rows->begin(rows, f.width, f.height, 3)) {
        return false;
    }
    rows->matted = f.has_alpha != 0;
    int stride = f.width * (f.has_alpha ? 4 : 3);
    size_t n = (size_t)stride * (size_t)f.height;
    uint8_t *px AUTO_FREE = malloc(n);
    if (px == NULL || (f.has_alpha ? WebPDecodeRGBAInto(p, body.n, px, n, stride)
                                   : WebPDecodeRGBInto(p, body.n, px, n, stride)) == NULL) {
        return false;
    }
    for (int y = 0; y < f.height; y++) {
        uint8_t *row = px + (size_t)y * (size_t)stride;
        if (f.has_alpha) {
            image_matte(row, row, f.width);
        }
        rows->row(rows, row);
    }
    return true;
}

bool webp_encode(const struct image *im, int quality, struct buf *out)
{
    struct image rgb = {0};
    const uint8_t *px = im->px;
    if (im->channels == 1) {
        if (!image_alloc(im->w, im->h, 3, &rgb)) {
            return false;
        }
        size_t n = (size_t)im->w * (size_t)im->h;
        for (size_t i = 0; i < n; i++) {
            memset(rgb.px + 3 * i, im->px[i], 3);
        }
        px = rgb.px;
    }
    uint8_t *webp = NULL;
    size_t n = quality > 100 ? WebPEncodeLosslessRGB(px, im->w, im->h, 3 * im->w, &webp)
                             : WebPEncodeRGB(px, im->w, im->h, 3 * im->w, (float)quality, &webp);
    if (n > 0) {
        buf_add(out, webp, n);
    }
    WebPFree(webp);
    image_done(&rgb);
    return n > 0;
}
