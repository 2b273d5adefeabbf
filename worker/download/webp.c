/* WebP over libwebp; animations are not still pictures and are refused. */
#include "common/cleanup.h"
#include "image.h"
#include <webp/decode.h>
#include <webp/encode.h>

#define LOSSY 1 /* WebPBitstreamFeatures.format: planes inside; 2: pixels */

/* *ret_again: rows are wanted. */
static bool read_planes(struct str body, const WebPBitstreamFeatures *f, struct image_rows *to,
                        bool *ret_again)
{
    int w;
    int h;
    uint8_t *u;
    uint8_t *v;
    int stride;
    int colour_stride;
    uint8_t *y =
        WebPDecodeYUV((const uint8_t *)body.p, body.n, &w, &h, &u, &v, &stride, &colour_stride);
    bool ok = y != NULL && w == f->width && h == f->height;
    bool going = ok;
    for (int i = 0; going && i < h; i++) {
        size_t at = (size_t)(i / 2) * (size_t)colour_stride;
        going = to->plane_row(to, 0, y + (size_t)i * (size_t)stride) &&
                (i % 2 != 0 || (to->plane_row(to, 1, u + at) && to->plane_row(to, 2, v + at)));
    }
    *ret_again = ok && !going;
    WebPFree(y);
    return going;
}

static bool read_rows(struct str body, const WebPBitstreamFeatures *f, struct image_rows *to)
{
    const uint8_t *p = (const uint8_t *)body.p;
    to->matted = f->has_alpha != 0;
    int stride = f->width * (f->has_alpha ? 4 : 3);
    size_t n = (size_t)stride * (size_t)f->height;
    uint8_t *px AUTO_FREE = malloc(n);
    if (px == NULL || (f->has_alpha ? WebPDecodeRGBAInto(p, body.n, px, n, stride)
                                    : WebPDecodeRGBInto(p, body.n, px, n, stride)) == NULL) {
        return false;
    }
    for (int y = 0; y < f->height; y++) {
        uint8_t *row = px + (size_t)y * (size_t)stride;
        if (f->has_alpha) {
            image_matte(row, row, f->width);
        }
        to->row(to, row);
    }
    return true;
}

bool webp_read(struct str body, struct image_rows *rows)
{
    static const struct plane_form form = {2, 2, true};
    WebPBitstreamFeatures f;
    if (WebPGetFeatures((const uint8_t *)body.p, body.n, &f) != VP8_STATUS_OK || f.has_animation ||
        !image_fits(f.width, f.height)) {
        return false;
    }
    if (f.format == LOSSY && !f.has_alpha && rows->begin_planes != NULL &&
        rows->begin_planes(rows, f.width, f.height, &form)) {
        bool again;
        if (read_planes(body, &f, rows, &again) || !again) {
            return !again;
        }
    }
    return rows->begin(rows, f.width, f.height, 3) && read_rows(body, &f, rows);
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
