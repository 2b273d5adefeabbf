/* Pictures in memory: recognising, header limits, decoding, filters, resizing, encoding. Pure:
 * bytes in, bytes out; runs in the decoding processes. */
#pragma once
#include "common/buf.h"

#define IMAGE_BODY_BYTES_MAX (20u << 20) /* compressed, as downloaded */
#define IMAGE_PIXELS_MAX     (64 * 1000 * 1000)
#define IMAGE_SIDE_MAX       16384
#define IMAGE_OUT_BYTES_MAX  (48u << 20) /* encoded */
#define IMAGE_EXIF_BYTES_MAX (64u << 10)

enum image_format { IMAGE_JPEG, IMAGE_PNG, IMAGE_WEBP, IMAGE_UNKNOWN };
enum resize_mode { RESIZE_NO, RESIZE_BORDER, RESIZE_KEEP, RESIZE_KEEP_LARGEST, RESIZE_CROP };
enum image_hash { HASH_NONE, HASH_SHA256, HASH_MD5 };
enum image_result {
    IMAGE_OK,
    IMAGE_BAD,         /* cannot be decoded */
    IMAGE_UNSUPPORTED, /* a picture, but none of JPEG, PNG, WebP */
    IMAGE_TOO_SMALL,
    IMAGE_AREA_TOO_LARGE,
    IMAGE_ASPECT_TOO_LARGE,
    IMAGE_OUT_TOO_LARGE /* encoded bytes beyond IMAGE_OUT_BYTES_MAX */
};

struct image { /* pixels of 1 (grey), 3 (RGB) or 4 (RGBA) bytes, rows without gaps */
    int w, h, channels;
    uint8_t *px;
};
struct image_options {
    enum resize_mode mode;
    enum image_format format;
    enum image_hash hash;
    int size, quality, min_size;
    double max_area, max_aspect;
    bool only_if_bigger, exif;
};

void image_done(struct image *im);
bool image_alloc(int w, int h, int channels, struct image *ret) MUST_CHECK;
/* By magic bytes; never by name or content type. */
enum image_format image_sniff(struct str body);
/* GIF, TIFF, BMP, AVIF, HEIF, ICO, SVG: counted apart from rubbish. */
bool image_is_foreign(struct str body);
/* Width and height out of the header alone, before any pixel is decoded. */
bool image_header(struct str body, enum image_format f, int64_t *ret_w, int64_t *ret_h) MUST_CHECK;
/* Sniff, check limits, decode; alpha is laid over white, 16 bits become 8. Orientation is not
 * applied. */
enum image_result image_decode(struct str body, struct image *ret);
/* The filters in img2dataset's order. */
enum image_result image_filter(const struct image *im, const struct image_options *o);
/* Replace *im by what the mode makes of it. */
enum image_result image_resize(struct image *im, const struct image_options *o);
/* Append the encoded picture to out. */
enum image_result image_encode(const struct image *im, const struct image_options *o,
                               struct buf *out);
/* img2dataset's text for the result; "" for IMAGE_OK. */
const char *image_result_text(enum image_result r);

/* One codec a file: decode into 1, 3 or 4 channels, encode from 1 or 3. */
bool jpeg_header(struct str body, int64_t *ret_w, int64_t *ret_h) MUST_CHECK;
bool jpeg_decode(struct str body, struct image *ret) MUST_CHECK;
bool jpeg_encode(const struct image *im, int quality, struct buf *out) MUST_CHECK;
bool png_decode(struct str body, struct image *ret) MUST_CHECK;
bool png_encode(const struct image *im, int level, struct buf *out) MUST_CHECK;
bool webp_decode(struct str body, struct image *ret) MUST_CHECK;
bool webp_encode(const struct image *im, int quality, struct buf *out) MUST_CHECK;
