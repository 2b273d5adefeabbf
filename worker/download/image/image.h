/* Pictures in memory: recognition, header limits, decoding, filters, resizing, encoding. Pure:
 * bytes in, bytes out; runs in the decoding processes. */
#pragma once
#include "common/buf.h"
#include "worker_protocol.h"

#define IMAGE_PIXELS_USUAL   (100 * 1000 * 1000) /* unless max_image_pixels says otherwise */
#define IMAGE_OUT_BYTES_MAX  (48u << 20)         /* encoded */
#define IMAGE_EXIF_BYTES_MAX (64u << 10)

/* The first three can be written, too. */
enum image_format {
    IMAGE_JPEG,
    IMAGE_PNG,
    IMAGE_WEBP,
    IMAGE_AVIF,
    IMAGE_GIF,
    IMAGE_TIFF,
    IMAGE_UNKNOWN
};
enum resize_mode { RESIZE_NO, RESIZE_BORDER, RESIZE_KEEP, RESIZE_KEEP_LARGEST, RESIZE_CROP };
enum resize_filter {
    FILTER_AUTO, /* area for smaller, Lanczos for larger */
    FILTER_NEAREST,
    FILTER_LINEAR,
    FILTER_CUBIC,
    FILTER_AREA,
    FILTER_LANCZOS
};
enum image_hash { HASH_NONE, HASH_SHA256, HASH_MD5, HASH_SHA512 };
#define IMAGE_HASH_HEX_N 129 /* of the longest, with its NUL */
enum image_result {
    IMAGE_OK,
    IMAGE_BAD,         /* cannot be decoded */
    IMAGE_UNSUPPORTED, /* a picture of a format that is not read */
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
    int64_t max_pixels;          /* larger pictures are not decoded; 0: IMAGE_PIXELS_USUAL */
    enum resize_filter up, down; /* for enlarging, for reducing */
    bool only_if_bigger, exif;
    bool keep_same; /* the body itself when nothing about the picture changes */
    bool keep_all;  /* the body itself, unread */
    bool orient;    /* rotate by the EXIF orientation */
    bool fast;      /* skip decoding work that is hardly visible in a smaller picture */
};

struct plane_form {   /* a picture as Y, Cb, Cr planes, colours as in JPEG (BT.601) */
    int sub_x, sub_y; /* pixels per sample of colour: 1 or 2 */
    bool narrow;      /* video levels: 16 to 235, colour to 240; else 0 to 255 */
};

#define STRIP_ROWS_MAX 16
#define COLOURS        2 /* Cb, Cr */

/* Some rows of a picture in planes. Colour planes have the sides divided by sub, rounded up. */
struct plane_strip {
    int rows;                   /* of brightness: a multiple of sub_y unless the picture ends */
    uint8_t *y[STRIP_ROWS_MAX]; /* the receiver may change them */
    /* The row above the strip, its own, the row below; at an edge of the picture its own again. */
    const uint8_t *c[COLOURS][STRIP_ROWS_MAX + 2];
};

/* Receives a picture's rows while they are decoded. Rows have 1 (grey) or 3 (RGB) bytes per pixel:
 * alpha is composited over white, 16 bits become 8. */
struct image_rows {
    /* Called with the size in the header: returns by how much the decoder may divide both sides (1,
     * 2, 4 or 8) and skip detail that is then invisible; 0 (and NULL): full detail. */
    int (*reduce)(struct image_rows *r, int w, int h);
    /* h rows of w pixels will follow. False: the picture is not wanted. */
    bool (*begin)(struct image_rows *r, int w, int h, int channels);
    void (*row)(struct image_rows *r, const uint8_t *px);
    /* A decoder with planes calls this before begin: true when planes are wanted instead of rows;
     * they then come as strips from the top. NULL: rows only. */
    bool (*begin_planes)(struct image_rows *r, int w, int h, const struct plane_form *form);
    void (*strip)(struct image_rows *r, const struct plane_strip *s);
    int64_t max_pixels; /* larger pictures are not decoded; 0: IMAGE_PIXELS_USUAL */
    bool matted;        /* set by the decoder: alpha was laid over white */
};

void image_done(struct image *im);
bool image_alloc(int w, int h, int channels, struct image *ret) MUST_CHECK;
/* Memory for AUTO_FREE, NULL without any. Functions of another file: clang's analyzer does not know
 * the cleanup attribute and takes what malloc gave in the same file for leaked. */
void *image_bytes(size_t n) MUST_CHECK;
void *image_zeros(size_t n) MUST_CHECK;
/* Within IMAGE_SIDE_MAX and IMAGE_PIXELS_MAX, and not empty. */
bool image_fits(int64_t w, int64_t h);
/* By magic bytes, never by name or content type. */
enum image_format image_sniff(struct str body);
/* Pictures of formats that are not read, counted separately from undecodable bodies. */
enum image_foreign {
    FOREIGN_NONE,
    FOREIGN_BMP,
    FOREIGN_HEIF,
    FOREIGN_ICO,
    FOREIGN_JPEG_2000,
    FOREIGN_JPEG_XL,
    FOREIGN_SVG,
    FOREIGN_COUNT
};
enum image_foreign image_foreign(struct str body);
const char *image_foreign_name(enum image_foreign f); /* "bmp" */
/* Width and height from the header alone, before any pixel is decoded. */
bool image_header(struct str body, enum image_format f, int64_t *ret_w, int64_t *ret_h) MUST_CHECK;
/* Sniff, check limits, decode into rows. Orientation is not applied. IMAGE_BAD also when begin
 * returned false or bytes are missing; some rows may already have been delivered. ret_w, ret_h: of
 * the header. */
enum image_result image_read(struct str body, struct image_rows *rows, int *ret_w, int *ret_h);
/* The same into a complete picture. */
enum image_result image_decode(struct str body, struct image *ret);
/* Apply the filters in img2dataset's order. */
enum image_result image_filter(int w, int h, const struct image_options *o);
/* Append the encoded picture to out. */
enum image_result image_encode(const struct image *im, const struct image_options *o,
                               struct buf *out);
/* img2dataset's text for the result; "" for IMAGE_OK. */
const char *image_result_text(enum image_result r);

/* One codec per file: decode into rows, encode from 1 or 3 channels. */
bool jpeg_header(struct str body, int64_t *ret_w, int64_t *ret_h) MUST_CHECK;
bool jpeg_read(struct str body, struct image_rows *rows) MUST_CHECK;
bool jpeg_encode(const struct image *im, int quality, struct buf *out) MUST_CHECK;
struct resize_ycc;
bool jpeg_encode_planes(const struct resize_ycc *p, int quality, struct buf *out) MUST_CHECK;
bool png_read(struct str body, struct image_rows *rows) MUST_CHECK;
bool png_encode(const struct image *im, int level, struct buf *out) MUST_CHECK;
bool webp_read(struct str body, struct image_rows *rows) MUST_CHECK;
bool webp_encode(const struct image *im, int quality, struct buf *out) MUST_CHECK;
bool avif_is(struct str body); /* also a file of another main brand that has AVIF inside */
bool avif_header(struct str body, int64_t *ret_w, int64_t *ret_h) MUST_CHECK;
bool avif_read(struct str body, struct image_rows *rows) MUST_CHECK;
bool gif_header(struct str body, int64_t *ret_w, int64_t *ret_h) MUST_CHECK;
bool gif_read(struct str body, struct image_rows *rows) MUST_CHECK;
bool tiff_header(struct str body, int64_t *ret_w, int64_t *ret_h) MUST_CHECK;
bool tiff_read(struct str body, struct image_rows *rows) MUST_CHECK;
/* A row of RGBA over white to RGB: rint(a/255 * c + 255 - a). out may be in. */
void image_matte(const uint8_t *in, uint8_t *out, int w);
