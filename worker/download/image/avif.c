/* AVIF over libavif and dav1d: the first frame, as OpenCV reads it. Not rotated nor mirrored (irot,
 * imir); 10 and 12 bits become 8; a picture without colour stays grey. */
#include "common/cleanup.h"
#include "image.h"
#include <avif/avif.h>

static void decoder_freep(avifDecoder **d)
{
    if (*d != NULL) {
        avifDecoderDestroy(*d);
    }
}

/* Read the boxes; no pixel is decoded. No frame inside has more than max_pixels. One thread: the
 * sandbox allows no other. The caller destroys *ret also on failure. */
static bool open_body(struct str body, int64_t max_pixels, avifDecoder **ret)
{
    avifDecoder *d = avifDecoderCreate();
    *ret = d;
    if (d == NULL) {
        return false;
    }
    d->codecChoice = AVIF_CODEC_CHOICE_DAV1D;
    d->maxThreads = 1;
    d->strictFlags = AVIF_STRICT_DISABLED;
    d->ignoreExif = AVIF_TRUE;
    d->ignoreXMP = AVIF_TRUE;
    d->imageSizeLimit = (uint32_t)MIN(max_pixels, (int64_t)IMAGE_PIXELS_MAX);
    d->imageDimensionLimit = IMAGE_SIDE_MAX;
    return avifDecoderSetIOMemory(d, (const uint8_t *)body.p, body.n) == AVIF_RESULT_OK &&
           avifDecoderParse(d) == AVIF_RESULT_OK;
}

bool avif_is(struct str body)
{
    const avifROData data = {(const uint8_t *)body.p, body.n};
    return body.n >= 12 && memcmp(body.p + 4, "ftyp", 4) == 0 &&
           avifPeekCompatibleFileType(&data) != 0;
}

bool avif_header(struct str body, int64_t *ret_w, int64_t *ret_h)
{
    avifDecoder *d CLEANUP(decoder_freep)
    = NULL;
    if (!open_body(body, IMAGE_PIXELS_MAX, &d)) {
        return false;
    }
    *ret_w = d->image->width;
    *ret_h = d->image->height;
    return true;
}

static void give_rows(const uint8_t *px, size_t stride, const avifImage *im, bool grey, bool alpha,
                      struct image_rows *to, uint8_t *row)
{
    int channels = alpha ? 4 : 3;
    for (uint32_t y = 0; y < im->height; y++) {
        const uint8_t *from = px + y * stride;
        if (alpha) {
            image_matte(from, row, (int)im->width);
            from = row;
            channels = 3;
        }
        if (grey) {
            for (uint32_t x = 0; x < im->width; x++) {
                row[x] = from[x * (uint32_t)channels];
            }
            from = row;
        }
        to->row(to, from);
    }
}

bool avif_read(struct str body, struct image_rows *rows)
{
    avifDecoder *d CLEANUP(decoder_freep)
    = NULL;
    int64_t max_pixels = rows->max_pixels > 0 ? rows->max_pixels : IMAGE_PIXELS_USUAL;
    if (!open_body(body, max_pixels, &d)) {
        return false;
    }
    uint32_t w = d->image->width;
    uint32_t h = d->image->height;
    bool grey = d->image->yuvFormat == AVIF_PIXEL_FORMAT_YUV400;
    bool alpha = d->alphaPresent != AVIF_FALSE;
    if (!image_fits(w, h) || !rows->begin(rows, (int)w, (int)h, grey ? 1 : 3) ||
        avifDecoderNextImage(d) != AVIF_RESULT_OK || d->image->width != w ||
        d->image->height != h) {
        return false;
    }
    bool is_grey = d->image->yuvFormat == AVIF_PIXEL_FORMAT_YUV400;
    avifRGBImage rgb;
    avifRGBImageSetDefaults(&rgb, d->image);
    rgb.depth = 8;
    rgb.format = alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    rgb.rowBytes = w * (alpha ? 4 : 3);
    uint8_t *px AUTO_FREE = image_bytes((size_t)rgb.rowBytes * h);
    uint8_t *row AUTO_FREE = image_bytes((size_t)w * 3);
    rgb.pixels = px;
    if (px == NULL || row == NULL || is_grey != grey ||
        avifImageYUVToRGB(d->image, &rgb) != AVIF_RESULT_OK) {
        return false;
    }
    rows->matted = alpha;
    give_rows(px, rgb.rowBytes, d->image, grey, alpha, rows, row);
    return true;
}
