/* Formats, limits, filters and encoding; codecs and resizing are in other files. */
#include "image.h"
#include <assert.h>
#include <webp/decode.h>

#define SVG_HEAD_BYTES 1024

enum image_format image_sniff(struct str body)
{
    if (body.n >= 3 && memcmp(body.p, "\xff\xd8\xff", 3) == 0) {
        return IMAGE_JPEG;
    }
    if (body.n >= 8 && memcmp(body.p, "\x89PNG\r\n\x1a\n", 8) == 0) {
        return IMAGE_PNG;
    }
    if (body.n >= 12 && memcmp(body.p, "RIFF", 4) == 0 && memcmp(body.p + 8, "WEBP", 4) == 0) {
        return IMAGE_WEBP;
    }
    if (body.n >= 6 && (memcmp(body.p, "GIF87a", 6) == 0 || memcmp(body.p, "GIF89a", 6) == 0)) {
        return IMAGE_GIF;
    }
    if (body.n >= 8 && (memcmp(body.p, "II*\0", 4) == 0 || memcmp(body.p, "MM\0*", 4) == 0 ||
                        memcmp(body.p, "II+\0", 4) == 0 || memcmp(body.p, "MM\0+", 4) == 0)) {
        return IMAGE_TIFF;
    }
    return avif_is(body) ? IMAGE_AVIF : IMAGE_UNKNOWN;
}

/* SVG, also behind a byte order mark, an XML declaration, a comment or a document type. An HTML
 * page that contains an SVG does not count. */
static bool is_svg(struct str body)
{
    struct str head = {body.p, MIN(body.n, (size_t)SVG_HEAD_BYTES)};
    if (str_starts(head, "\xef\xbb\xbf")) {
        head = (struct str){head.p + 3, head.n - 3};
    }
    head = str_trim(head);
    ptrdiff_t svg = str_find(head, STR("<svg"));
    return svg == 0 || (svg > 0 &&
                        (str_starts(head, "<?xml") || str_starts(head, "<!--") ||
                         str_starts(head, "<!DOCTYPE svg")) &&
                        str_find((struct str){head.p, (size_t)svg}, STR("<html")) < 0);
}

enum image_foreign image_foreign(struct str body)
{
    static const struct {
        enum image_foreign is;
        size_t at;
        const char *magic;
        size_t n;
    } known[] = {{FOREIGN_BMP, 0, "BM", 2},           {FOREIGN_HEIF, 4, "ftypheic", 8},
                 {FOREIGN_HEIF, 4, "ftypheix", 8},    {FOREIGN_HEIF, 4, "ftypmif1", 8},
                 {FOREIGN_ICO, 0, "\0\0\1\0", 4},     {FOREIGN_JPEG_2000, 0, "\0\0\0\x0cjP  ", 8},
                 {FOREIGN_JPEG_XL, 0, "\xff\x0a", 2}, {FOREIGN_JPEG_XL, 0, "\0\0\0\x0cJXL ", 8}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (body.n >= known[i].at + known[i].n &&
            memcmp(body.p + known[i].at, known[i].magic, known[i].n) == 0) {
            return known[i].is;
        }
    }
    return is_svg(body) ? FOREIGN_SVG : FOREIGN_NONE;
}

const char *image_foreign_name(enum image_foreign f)
{
    static const char *const names[] = {"", "bmp", "heif", "ico", "jpeg2000", "jpegxl", "svg"};
    static_assert(ARRAY_LEN(names) == FOREIGN_COUNT, "one name each");
    return names[f];
}

static int64_t be32(const char *p)
{
    const uint8_t *u = (const uint8_t *)p;
    return (int64_t)u[0] << 24 | (int64_t)u[1] << 16 | (int64_t)u[2] << 8 | u[3];
}

bool image_header(struct str body, enum image_format f, int64_t *ret_w, int64_t *ret_h)
{
    switch (f) {
    case IMAGE_JPEG:
        return jpeg_header(body, ret_w, ret_h);
    case IMAGE_PNG:
        if (body.n < 24 || memcmp(body.p + 12, "IHDR", 4) != 0) {
            return false;
        }
        *ret_w = be32(body.p + 16);
        *ret_h = be32(body.p + 20);
        return true;
    case IMAGE_WEBP: {
        int w;
        int h;
        if (WebPGetInfo((const uint8_t *)body.p, body.n, &w, &h) == 0) {
            return false;
        }
        *ret_w = w;
        *ret_h = h;
        return true;
    }
    case IMAGE_AVIF:
        return avif_header(body, ret_w, ret_h);
    case IMAGE_GIF:
        return gif_header(body, ret_w, ret_h);
    case IMAGE_TIFF:
        return tiff_header(body, ret_w, ret_h);
    case IMAGE_UNKNOWN:
        break;
    }
    return false;
}

static bool read_rows(struct str body, enum image_format f, struct image_rows *rows)
{
    switch (f) {
    case IMAGE_JPEG:
        return jpeg_read(body, rows);
    case IMAGE_PNG:
        return png_read(body, rows);
    case IMAGE_WEBP:
        return webp_read(body, rows);
    case IMAGE_AVIF:
        return avif_read(body, rows);
    case IMAGE_GIF:
        return gif_read(body, rows);
    case IMAGE_TIFF:
        return tiff_read(body, rows);
    case IMAGE_UNKNOWN:
        break;
    }
    return false;
}

enum image_result image_read(struct str body, struct image_rows *rows, int *ret_w, int *ret_h)
{
    enum image_format f = image_sniff(body);
    if (f == IMAGE_UNKNOWN) {
        return image_foreign(body) != FOREIGN_NONE ? IMAGE_UNSUPPORTED : IMAGE_BAD;
    }
    int64_t w;
    int64_t h;
    if (!image_header(body, f, &w, &h) || w < 1 || h < 1) {
        return IMAGE_BAD;
    }
    int64_t max_pixels = rows->max_pixels > 0 ? rows->max_pixels : IMAGE_PIXELS_USUAL;
    if (!image_fits(w, h) || w * h > max_pixels) {
        return IMAGE_AREA_TOO_LARGE;
    }
    *ret_w = (int)w;
    *ret_h = (int)h;
    return read_rows(body, f, rows) ? IMAGE_OK : IMAGE_BAD;
}

struct whole { /* collects the rows of a picture */
    struct image_rows rows;
    struct image im;
    uint8_t *next;
};

static bool whole_begin(struct image_rows *r, int w, int h, int channels)
{
    struct whole *t = (struct whole *)(void *)r;
    if (!image_alloc(w, h, channels, &t->im)) {
        return false;
    }
    t->next = t->im.px;
    return true;
}

static void whole_row(struct image_rows *r, const uint8_t *px)
{
    struct whole *t = (struct whole *)(void *)r;
    size_t n = (size_t)t->im.w * (size_t)t->im.channels;
    memcpy(t->next, px, n);
    t->next += n;
}

enum image_result image_decode(struct str body, struct image *ret)
{
    struct whole t = {.rows = {.begin = whole_begin, .row = whole_row}};
    int w;
    int h;
    enum image_result result = image_read(body, &t.rows, &w, &h);
    if (result != IMAGE_OK) {
        image_done(&t.im);
        return result;
    }
    *ret = t.im;
    return IMAGE_OK;
}

enum image_result image_filter(int w, int h, const struct image_options *o)
{
    double longer = MAX(w, h);
    double shorter = MIN(w, h);
    if (shorter < o->min_size) {
        return IMAGE_TOO_SMALL;
    }
    if (longer * shorter > o->max_area) {
        return IMAGE_AREA_TOO_LARGE;
    }
    return longer / shorter > o->max_aspect ? IMAGE_ASPECT_TOO_LARGE : IMAGE_OK;
}

enum image_result image_encode(const struct image *im, const struct image_options *o,
                               struct buf *out)
{
    bool ok = false;
    switch (o->format) {
    case IMAGE_JPEG:
        ok = jpeg_encode(im, o->quality, out);
        break;
    case IMAGE_PNG:
        ok = png_encode(im, o->quality, out);
        break;
    case IMAGE_WEBP:
        ok = webp_encode(im, o->quality, out);
        break;
    case IMAGE_AVIF:
    case IMAGE_GIF:
    case IMAGE_TIFF:
    case IMAGE_UNKNOWN:
        break;
    }
    if (out->overflow) {
        return IMAGE_OUT_TOO_LARGE;
    }
    return ok ? IMAGE_OK : IMAGE_BAD;
}

const char *image_result_text(enum image_result r)
{
    switch (r) {
    case IMAGE_OK:
        return "";
    case IMAGE_BAD:
    case IMAGE_UNSUPPORTED: /* counted separately in the worker's log; the text is the same */
        return "Image decoding error";
    case IMAGE_TOO_SMALL:
        return "image too small";
    case IMAGE_AREA_TOO_LARGE:
        return "image area too large";
    case IMAGE_ASPECT_TOO_LARGE:
        return "aspect ratio too large";
    case IMAGE_OUT_TOO_LARGE:
        return "encoded image too large";
    }
    return "";
}
