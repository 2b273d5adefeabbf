/* WebP over libwebp; animations are not still pictures and are refused. */
#include "image.h"
#include <webp/decode.h>
#include <webp/encode.h>

#define LOSSY 1 /* WebPBitstreamFeatures.format: planes inside; 2: pixels */

/* Decode into memory of the library, which the caller frees even on failure. fast: without the
 * deblocking filter, whose effect is invisible in a reduced picture. */
static bool decode(struct str body, const WebPBitstreamFeatures *f, WEBP_CSP_MODE mode, bool fast,
                   WebPDecoderConfig *ret)
{
    *ret = (WebPDecoderConfig){0};
    if (WebPInitDecoderConfig(ret) == 0) {
        return false;
    }
    ret->output.colorspace = mode;
    ret->options.bypass_filtering = fast;
    ret->options.no_fancy_upsampling = fast;
    return WebPDecode((const uint8_t *)body.p, body.n, ret) == VP8_STATUS_OK &&
           ret->output.width == f->width && ret->output.height == f->height;
}

static void give_planes(const WebPDecBuffer *b, struct image_rows *to)
{
    const WebPYUVABuffer *p = &b->u.YUVA;
    int colour_h = (b->height + 1) / 2;
    for (int at = 0; at < b->height; at += STRIP_ROWS_MAX) {
        struct plane_strip s = {.rows = MIN(STRIP_ROWS_MAX, b->height - at)};
        for (int i = 0; i < s.rows; i++) {
            s.y[i] = p->y + (size_t)(at + i) * (size_t)p->y_stride;
        }
        for (int i = 0; i < (s.rows + 1) / 2 + 2; i++) {
            size_t row = (size_t)MIN(MAX(at / 2 + i - 1, 0), colour_h - 1);
            s.c[0][i] = p->u + row * (size_t)p->u_stride;
            s.c[1][i] = p->v + row * (size_t)p->v_stride;
        }
        to->strip(to, &s);
    }
}

static void give_rows(const WebPDecBuffer *b, struct image_rows *to, bool has_alpha)
{
    to->matted = has_alpha;
    for (int y = 0; y < b->height; y++) {
        uint8_t *row = b->u.RGBA.rgba + (size_t)y * (size_t)b->u.RGBA.stride;
        if (has_alpha) {
            image_matte(row, row, b->width);
        }
        to->row(to, row);
    }
}

bool webp_read(struct str body, struct image_rows *rows)
{
    static const struct plane_form form = {2, 2, true};
    WebPBitstreamFeatures f;
    WebPDecoderConfig c;
    if (WebPGetFeatures((const uint8_t *)body.p, body.n, &f) != VP8_STATUS_OK || f.has_animation ||
        !image_fits(f.width, f.height)) {
        return false;
    }
    bool fast = rows->reduce != NULL && rows->reduce(rows, f.width, f.height) > 0;
    if (f.format == LOSSY && !f.has_alpha && rows->begin_planes != NULL &&
        rows->begin_planes(rows, f.width, f.height, &form)) {
        bool ok = decode(body, &f, MODE_YUV, fast, &c);
        if (ok) {
            give_planes(&c.output, rows);
        }
        WebPFreeDecBuffer(&c.output);
        return ok;
    }
    if (!rows->begin(rows, f.width, f.height, 3)) {
        return false;
    }
    bool ok = decode(body, &f, f.has_alpha ? MODE_RGBA : MODE_RGB, fast, &c);
    if (ok) {
        give_rows(&c.output, rows, f.has_alpha);
    }
    WebPFreeDecBuffer(&c.output);
    return ok;
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
