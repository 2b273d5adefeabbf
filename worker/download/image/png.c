/* PNG over libspng. Grey stays grey, palettes and 16 bits are expanded and scaled by the library.
 */
#include "common/cleanup.h"
#include "png_filter.h"
#include "png_stored.h"
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

/* Convert a row of libspng in place: alpha over white; 16-bit grey comes as three equal bytes, one
 * is kept. */
static void give(struct image_rows *to, uint8_t *px, const struct spng_ihdr *ih, int channels)
{
    int w = (int)ih->width;
    if (channels == 4) {
        image_matte(px, px, w);
    } else if (channels == 3 && ih->color_type == SPNG_COLOR_TYPE_GRAYSCALE) {
        for (int x = 0; x < w; x++) {
            px[x] = px[3 * x];
        }
    }
    to->row(to, px);
}

/* Rows of an interlaced picture come out of order: decode it as a whole. */
static bool read_rows(spng_ctx *c, const struct spng_ihdr *ih, int fmt, int channels,
                      struct image_rows *to)
{
    size_t row_n = (size_t)ih->width * (size_t)channels;
    bool whole = ih->interlace_method != 0;
    size_t n = row_n * (whole ? ih->height : 1);
    uint8_t *px AUTO_FREE = image_bytes(n);
    if (px == NULL ||
        spng_decode_image(c, whole ? px : NULL, whole ? n : 0, fmt,
                          SPNG_DECODE_TRNS | (whole ? 0 : SPNG_DECODE_PROGRESSIVE)) != 0) {
        return false;
    }
    for (uint32_t y = 0; y < ih->height; y++) {
        uint8_t *row = px + (whole ? y * row_n : 0);
        int rc = whole ? 0 : spng_decode_row(c, row, row_n);
        if (rc != 0 && rc != SPNG_EOI) {
            return false;
        }
        give(to, row, ih, channels);
    }
    return true;
}

static spng_ctx *reader(struct str body)
{
    spng_ctx *c = spng_ctx_new(SPNG_CTX_IGNORE_ADLER32);
    if (c != NULL && spng_set_image_limits(c, IMAGE_SIDE_MAX, IMAGE_SIDE_MAX) == 0 &&
        spng_set_chunk_limits(c, CHUNK_BYTES_MAX, 2 * CHUNK_BYTES_MAX) == 0 &&
        spng_set_crc_action(c, SPNG_CRC_USE, SPNG_CRC_DISCARD) == 0 &&
        spng_set_png_buffer(c, body.p, body.n) == 0) {
        return c;
    }
    spng_ctx_free(c);
    return NULL;
}

/* Bytes of all rows with their filters; 0: rows are out of order. */
static size_t raw_bytes(const struct spng_ihdr *ih)
{
    static const uint8_t samples[] = {1, 0, 3, 1, 2, 0, 4}; /* of each colour type */
    size_t bits = (size_t)ih->width * ih->bit_depth * samples[ih->color_type];
    return ih->interlace_method != 0 ? 0 : ih->height * (1 + (bits + 7) / 8);
}

/* Eight bits of grey, RGB or RGBA, and every chunk before the image data is in order. */
static bool is_plain(spng_ctx *c, const struct spng_ihdr *ih)
{
    struct spng_trns trns;
    return ih->bit_depth == 8 && ih->interlace_method == 0 &&
           (ih->color_type == SPNG_COLOR_TYPE_GRAYSCALE ||
            ih->color_type == SPNG_COLOR_TYPE_TRUECOLOR ||
            ih->color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA) &&
           spng_get_trns(c, &trns) == SPNG_ECHUNKAVAIL;
}

/* A row is given when the one below it no longer needs it, since giving may change it. */
static bool raw_rows(uint8_t *raw, const struct spng_ihdr *ih, int channels, struct image_rows *to)
{
    size_t n = (size_t)ih->width * (size_t)channels;
    uint8_t *zeros AUTO_FREE = image_zeros(n + 1);
    const uint8_t *up = zeros;
    for (uint32_t y = 0; y < ih->height; y++) {
        uint8_t *row = raw + y * (1 + n) + 1;
        if (zeros == NULL || !png_unfilter(row[-1], row, up, n, channels)) {
            return false;
        }
        if (y > 0) {
            give(to, row - 1 - n, ih, channels);
        }
        up = row;
    }
    give(to, raw + (ih->height - 1) * (1 + n) + 1, ih, channels);
    return true;
}

bool png_read(struct str body, struct image_rows *rows)
{
    spng_ctx *c CLEANUP(ctx_freep)
    = reader(body);
    uint8_t *stored AUTO_FREE = NULL;
    uint8_t *raw AUTO_FREE = NULL;
    struct spng_ihdr ih;
    int fmt;
    int channels;
    size_t need;
    if (c == NULL || !choose(c, &ih, &fmt, &channels) ||
        spng_decoded_image_size(c, fmt, &need) != 0 ||
        need != (size_t)ih.width * ih.height * (size_t)channels) {
        return false;
    }
    int out = ih.color_type == SPNG_COLOR_TYPE_GRAYSCALE && channels != 4 ? 1 : 3;
    rows->matted = channels == 4;
    if (!image_fits(ih.width, ih.height) ||
        !rows->begin(rows, (int)ih.width, (int)ih.height, out)) {
        return false;
    }
    if (is_plain(c, &ih) && png_raw(body, raw_bytes(&ih), &raw)) {
        return raw_rows(raw, &ih, channels, rows);
    }
    size_t stored_n;
    if (png_stored(body, raw_bytes(&ih), &stored, &stored_n)) {
        spng_ctx_free(c);
        c = reader((struct str){(const char *)stored, stored_n});
    }
    return c != NULL && read_rows(c, &ih, fmt, channels, rows);
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
