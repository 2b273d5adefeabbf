/* What happens to a picture, apart from the codecs and the filter. */
#include "image.h"
#include "resize.h"
#include <math.h>
#include <webp/decode.h>

void image_done(struct image *im)
{
    free(im->px);
    im->px = NULL;
}

bool image_alloc(int w, int h, int channels, struct image *ret)
{
    if (w < 1 || h < 1 || w > IMAGE_SIDE_MAX || h > IMAGE_SIDE_MAX ||
        (int64_t)w * h > IMAGE_PIXELS_MAX) {
        return false;
    }
    ASSERT(channels == 1 || channels == 3 || channels == 4);
    *ret = (struct image){w, h, channels, malloc((size_t)w * (size_t)h * (size_t)channels)};
    return ret->px != NULL;
}

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
    return IMAGE_UNKNOWN;
}

bool image_is_foreign(struct str body)
{
    static const struct {
        size_t at;
        const char *magic;
        size_t n;
    } known[] = {{0, "GIF8", 4},     {0, "II*\0", 4},          {0, "MM\0*", 4},    {0, "BM", 2},
                 {4, "ftypavif", 8}, {4, "ftypheic", 8},       {4, "ftypmif1", 8}, {0, "<svg", 4},
                 {0, "\0\0\1\0", 4}, {0, "\0\0\0\x0cjP  ", 8}, {0, "\xff\x0a", 2}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (body.n >= known[i].at + known[i].n &&
            memcmp(body.p + known[i].at, known[i].magic, known[i].n) == 0) {
            return true;
        }
    }
    return false;
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
    case IMAGE_UNKNOWN:
        break;
    }
    return false;
}

/* RGBA over white to RGB, in place: rint(a/255 * c + 255 - a). */
static void matte(struct image *im)
{
    size_t n = (size_t)im->w * (size_t)im->h;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *from = im->px + 4 * i;
        uint8_t *to = im->px + 3 * i;
        double a = from[3];
        for (int c = 0; c < 3; c++) {
            to[c] = (uint8_t)lrint(a / 255.0 * from[c] + 255.0 - a);
        }
    }
    im->channels = 3;
}

enum image_result image_decode(struct str body, struct image *ret)
{
    enum image_format f = image_sniff(body);
    if (f == IMAGE_UNKNOWN) {
        return image_is_foreign(body) ? IMAGE_UNSUPPORTED : IMAGE_BAD;
    }
    int64_t w;
    int64_t h;
    if (!image_header(body, f, &w, &h) || w < 1 || h < 1) {
        return IMAGE_BAD;
    }
    if (w > IMAGE_SIDE_MAX || h > IMAGE_SIDE_MAX || w * h > IMAGE_PIXELS_MAX) {
        return IMAGE_AREA_TOO_LARGE;
    }
    struct image im = {0};
    bool ok = f == IMAGE_JPEG  ? jpeg_decode(body, &im)
              : f == IMAGE_PNG ? png_decode(body, &im)
                               : webp_decode(body, &im);
    if (!ok) {
        image_done(&im);
        return IMAGE_BAD;
    }
    if (im.channels == 4) {
        matte(&im);
    }
    *ret = im;
    return IMAGE_OK;
}

enum image_result image_filter(const struct image *im, const struct image_options *o)
{
    double longer = MAX(im->w, im->h);
    double shorter = MIN(im->w, im->h);
    if (shorter < o->min_size) {
        return IMAGE_TOO_SMALL;
    }
    if (longer * shorter > o->max_area) {
        return IMAGE_AREA_TOO_LARGE;
    }
    return longer / shorter > o->max_aspect ? IMAGE_ASPECT_TOO_LARGE : IMAGE_OK;
}

/* Copy the part of `from` that falls into a w x h picture when its corner is put at (x, y); what
 * is not covered is white. Negative corners crop. */
static bool place(const struct image *from, int w, int h, int x, int y, struct image *ret)
{
    struct image out;
    if (!image_alloc(w, h, from->channels, &out)) {
        return false;
    }
    size_t c = (size_t)from->channels;
    memset(out.px, 255, (size_t)w * (size_t)h * c);
    int x0 = MAX(x, 0);
    int x1 = MIN(x + from->w, w);
    for (int row = MAX(y, 0); row < MIN(y + from->h, h) && x1 > x0; row++) {
        memcpy(out.px + ((size_t)row * (size_t)w + (size_t)x0) * c,
               from->px + ((size_t)(row - y) * (size_t)from->w + (size_t)(x0 - x)) * c,
               (size_t)(x1 - x0) * c);
    }
    *ret = out;
    return true;
}

static bool replace(struct image *im, struct image *with)
{
    image_done(im);
    *im = *with;
    return true;
}

static bool scale_to(struct image *im, int w, int h)
{
    struct image out;
    if (w == im->w && h == im->h) {
        return true;
    }
    return resize_to(im, w, h, &out) && replace(im, &out);
}

enum image_result image_resize(struct image *im, const struct image_options *o)
{
    bool by_longer = o->mode == RESIZE_BORDER || o->mode == RESIZE_KEEP_LARGEST;
    int base = by_longer ? MAX(im->w, im->h) : MIN(im->w, im->h);
    if (o->mode == RESIZE_NO || (o->only_if_bigger && base <= o->size)) {
        return IMAGE_OK;
    }
    struct image out;
    if (!scale_to(im, resize_side(im->w, o->size, base), resize_side(im->h, o->size, base))) {
        return IMAGE_ASPECT_TOO_LARGE; /* a thread blown up to a side beyond IMAGE_SIDE_MAX */
    }
    bool ok = true;
    if (o->mode == RESIZE_BORDER) {
        ok = place(im, o->size, o->size, (o->size - im->w) / 2, (o->size - im->h) / 2, &out) &&
             replace(im, &out);
    } else if (o->mode == RESIZE_CROP) {
        ok =
            place(im, o->size, o->size, -((im->w - o->size) / 2), -((im->h - o->size) / 2), &out) &&
            replace(im, &out);
    }
    return ok ? IMAGE_OK : IMAGE_BAD;
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
    case IMAGE_UNSUPPORTED: /* counted apart in the worker's own line, the word is the same */
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
