/* TIFF over libtiff: the first picture, upright as its orientation tag says, as OpenCV reads it. 16
 * bits become 8; alpha is laid over white; a picture without colour stays grey. */
#include "common/cleanup.h"
#include "image.h"
#include <tiffio.h>

#define ALLOC_BYTES_MAX ((tmsize_t)256 << 20) /* of the library, at once */

struct tiff_source {
    struct str body;
    size_t at;
};

static tmsize_t on_read(thandle_t h, void *out, tmsize_t n)
{
    struct tiff_source *r = h;
    size_t take = MIN((size_t)MAX(n, (tmsize_t)0), r->body.n - r->at);
    memcpy(out, r->body.p + r->at, take);
    r->at += take;
    return (tmsize_t)take;
}

static tmsize_t on_write(thandle_t h UNUSED, void *in UNUSED, tmsize_t n UNUSED)
{
    return 0;
}

static toff_t on_seek(thandle_t h, toff_t offset, int whence)
{
    struct tiff_source *r = h;
    uint64_t base = whence == SEEK_CUR ? r->at : whence == SEEK_END ? r->body.n : 0;
    uint64_t to = base + offset; /* offset may be a negative number */
    r->at = (size_t)MIN(to, (uint64_t)r->body.n);
    return to;
}

static int on_close(thandle_t h UNUSED)
{
    return 0;
}

static toff_t on_size(thandle_t h)
{
    return ((struct tiff_source *)h)->body.n;
}

static int on_message(TIFF *t UNUSED, void *ctx UNUSED, const char *module UNUSED,
                      const char *fmt UNUSED, va_list ap UNUSED)
{
    return 1; /* not to standard error */
}

static void tiff_closep(TIFF **t)
{
    if (*t != NULL) {
        TIFFClose(*t);
    }
}

/* Read the first directory. */
static TIFF *open_body(struct tiff_source *r)
{
    TIFFOpenOptions *o = TIFFOpenOptionsAlloc();
    if (o == NULL) {
        return NULL;
    }
    TIFFOpenOptionsSetMaxSingleMemAlloc(o, ALLOC_BYTES_MAX);
    TIFFOpenOptionsSetErrorHandlerExtR(o, on_message, NULL);
    TIFFOpenOptionsSetWarningHandlerExtR(o, on_message, NULL);
    TIFF *t = TIFFClientOpenExt("picture", "rm", r, on_read, on_write, on_seek, on_close, on_size,
                                NULL, NULL, o);
    TIFFOpenOptionsFree(o);
    return t;
}

struct form {
    uint32_t w, h; /* as stored */
    uint16_t orientation;
    bool grey;
};

static bool read_form(TIFF *t, struct form *ret)
{
    uint16_t photometric = PHOTOMETRIC_RGB;
    ret->orientation = ORIENTATION_TOPLEFT;
    (void)TIFFGetField(t, TIFFTAG_PHOTOMETRIC, &photometric);
    (void)TIFFGetField(t, TIFFTAG_ORIENTATION, &ret->orientation);
    ret->grey = photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
    return TIFFGetField(t, TIFFTAG_IMAGEWIDTH, &ret->w) == 1 &&
           TIFFGetField(t, TIFFTAG_IMAGELENGTH, &ret->h) == 1;
}

/* Columns and rows change places. */
static bool is_turned(const struct form *f)
{
    return f->orientation >= ORIENTATION_LEFTTOP && f->orientation <= ORIENTATION_LEFTBOT;
}

/* The stored pixel that is shown at x, y. */
static size_t stored_at(const struct form *f, uint32_t x, uint32_t y)
{
    uint32_t column = is_turned(f) ? y : x;
    uint32_t row = is_turned(f) ? x : y;
    bool right = f->orientation == ORIENTATION_TOPRIGHT || f->orientation == ORIENTATION_BOTRIGHT ||
                 f->orientation == ORIENTATION_RIGHTBOT || f->orientation == ORIENTATION_LEFTBOT;
    bool below = f->orientation == ORIENTATION_BOTRIGHT || f->orientation == ORIENTATION_BOTLEFT ||
                 f->orientation == ORIENTATION_RIGHTTOP || f->orientation == ORIENTATION_RIGHTBOT;
    column = right ? f->w - 1 - column : column;
    row = below ? f->h - 1 - row : row;
    return (size_t)row * f->w + column;
}

bool tiff_header(struct str body, int64_t *ret_w, int64_t *ret_h)
{
    struct tiff_source r = {body, 0};
    struct form f;
    TIFF *t CLEANUP(tiff_closep)
    = open_body(&r);
    if (t == NULL || !read_form(t, &f)) {
        return false;
    }
    *ret_w = is_turned(&f) ? f.h : f.w;
    *ret_h = is_turned(&f) ? f.w : f.h;
    return true;
}

/* The whole picture in the order it is stored in, 4 bytes a pixel. */
static bool decode(TIFF *t, const struct form *f, uint32_t *px, bool *ret_alpha)
{
    TIFFRGBAImage im;
    char why[1024];
    if (TIFFRGBAImageOK(t, why) != 1 || TIFFRGBAImageBegin(&im, t, 1, why) != 1) {
        return false;
    }
    im.orientation = ORIENTATION_TOPLEFT;
    im.req_orientation = ORIENTATION_TOPLEFT;
    *ret_alpha = im.alpha != 0;
    bool ok = im.width == f->w && im.height == f->h && TIFFRGBAImageGet(&im, px, f->w, f->h) == 1;
    TIFFRGBAImageEnd(&im);
    return ok;
}

static void give_rows(const uint32_t *px, const struct form *f, struct image_rows *to, uint8_t *row)
{
    uint32_t w = is_turned(f) ? f->h : f->w;
    uint32_t h = is_turned(f) ? f->w : f->h;
    for (uint32_t y = 0; y < h; y++) {
        for (uint32_t x = 0; x < w; x++) {
            uint32_t p = px[stored_at(f, x, y)];
            if (f->grey) {
                row[x] = TIFFGetR(p);
                continue;
            }
            const uint8_t rgba[4] = {(uint8_t)TIFFGetR(p), (uint8_t)TIFFGetG(p),
                                     (uint8_t)TIFFGetB(p), (uint8_t)TIFFGetA(p)};
            image_matte(rgba, row + 3 * (size_t)x, 1);
        }
        to->row(to, row);
    }
}

bool tiff_read(struct str body, struct image_rows *rows)
{
    struct tiff_source r = {body, 0};
    struct form f;
    bool alpha;
    TIFF *t CLEANUP(tiff_closep)
    = open_body(&r);
    if (t == NULL || !read_form(t, &f) || !image_fits(f.w, f.h)) {
        return false;
    }
    int w = (int)(is_turned(&f) ? f.h : f.w);
    int h = (int)(is_turned(&f) ? f.w : f.h);
    if (!rows->begin(rows, w, h, f.grey ? 1 : 3)) {
        return false;
    }
    uint32_t *px AUTO_FREE = image_bytes((size_t)f.w * f.h * sizeof *px);
    uint8_t *row AUTO_FREE = image_bytes((size_t)w * 3);
    if (px == NULL || row == NULL || !decode(t, &f, px, &alpha)) {
        return false;
    }
    rows->matted = alpha;
    give_rows(px, &f, rows, row);
    return true;
}
