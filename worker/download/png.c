/* PNG over libspng. Grey stays grey, palettes and 16 bits are expanded and scaled by the library.
 */
#include "image.h"
#include <spng.h>

#define CHUNK_BYTES_MAX (8u << 20)

static void ctx_freep(spng_ctx **c)
{
    spng_ctx_free(*c);
}

static bool choose(spng_ctx *c, struct spng_ihdr *ih, int *fmt, int *channels)
{
    struct spng_trns trns;
    if (spng_get_ihdr(c, ih) != 0) {
        return false;
    }
    bool alpha = (ih->color_type & 4u) != 0 || spng_get_trns(c, &trns) == 0;
    if (alpha) {
        *fmt = SPNG_FMT_RGBA8;
        *channels = 4;
    } else if (ih->color_type == SPNG_COLOR_TYPE_GRAYSCALE && ih->bit_depth <= 8) {
        *fmt = SPNG_FMT_G8;
        *channels = 1;
    } else {
        *fmt = SPNG_FMT_RGB8;
        *channels = 3;
    }
    return true;
}

/* Grey of 16 bits comes out as three equal bytes: keep one. */
static void to_grey(struct image *im)
{
    size_t n = (size_t)im->w * (size_t)im->h;
    for (size_t i = 0; i < n; i++) {
        im->px[i] = im->px[3 * i];
    }
    im->channels = 1;
}

bool png_decode(struct str body, struct image *ret)
{
    spng_ctx *c CLEANUP(ctx_freep)
    = spng_ctx_new(SPNG_CTX_IGNORE_ADLER32);
    struct spng_ihdr ih;
    int fmt;
    int channels;
    size_t need;
    if (c == NULL || spng_set_image_limits(c, IMAGE_SIDE_MAX, IMAGE_SIDE_MAX) != 0 ||
        spng_set_chunk_limits(c, CHUNK_BYTES_MAX, 2 * CHUNK_BYTES_MAX) != 0 ||
        spng_set_crc_action(c, SPNG_CRC_USE, SPNG_CRC_DISCARD) != 0 ||
        spng_set_png_buffer(c, body.p, body.n) != 0 || !choose(c, &ih, &fmt, &channels) ||
        spng_decoded_image_size(c, fmt, &need) != 0) {
        return false;
    }
    struct image im = {0};
    if (!image_alloc((int)ih.width, (int)ih.height, channels, &im) ||
        need != (size_t)im.w * (size_t)im.h * (size_t)channels ||
        spng_decode_image(c, im.px, need, fmt, SPNG_DECODE_TRNS) != 0) {
        image_done(&im);
        return false;
    }
    if (channels == 3 && ih.color_type == SPNG_COLOR_TYPE_GRAYSCALE) {
        to_grey(&im);
    }
    *ret = im;
    return true;
}

bool png_encode(const struct image *im, int level, struct buf *out)
{
    spng_ctx *c CLEANUP(ctx_freep)
    = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr ih = {.width = (uint32_t)im->w,
                           .height = (uint32_t)im->h,
                           .bit_depth = 8,
                           .color_type = im->channels == 1 ? SPNG_COLOR_TYPE_GRAYSCALE
                                                           : SPNG_COLOR_TYPE_TRUECOLOR};
    size_t n = (size_t)im->w * (size_t)im->h * (size_t)im->channels;
    size_t png_n = 0;
    int rc = 0;
    if (c == NULL || spng_set_option(c, SPNG_ENCODE_TO_BUFFER, 1) != 0 ||
        spng_set_option(c, SPNG_IMG_COMPRESSION_LEVEL, level) != 0 || spng_set_ihdr(c, &ih) != 0 ||
        spng_encode_image(c, im->px, n, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE) != 0) {
        return false;
    }
    void *png = spng_get_png_buffer(c, &png_n, &rc);
    if (png == NULL || rc != 0) {
        free(png);
        return false;
    }
    buf_add(out, png, png_n);
    free(png);
    return true;
}
