/* WebP over libwebp; animations are not still pictures and are refused. */
#include "image.h"
#include <webp/decode.h>
#include <webp/encode.h>

bool webp_decode(struct str body, struct image *ret)
{
    const uint8_t *p = (const uint8_t *)body.p;
    WebPBitstreamFeatures f;
    if (WebPGetFeatures(p, body.n, &f) != VP8_STATUS_OK || f.has_animation) {
        return false;
    }
    struct image im = {0};
    if (!image_alloc(f.width, f.height, f.has_alpha ? 4 : 3, &im)) {
        return false;
    }
    size_t n = (size_t)im.w * (size_t)im.h * (size_t)im.channels;
    int stride = im.w * im.channels;
    uint8_t *ok = f.has_alpha ? WebPDecodeRGBAInto(p, body.n, im.px, n, stride)
                              : WebPDecodeRGBInto(p, body.n, im.px, n, stride);
    if (ok == NULL) {
        image_done(&im);
        return false;
    }
    *ret = im;
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
