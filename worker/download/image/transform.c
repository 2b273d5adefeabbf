/* Sizes by img2dataset's rules: the longer side (border, keep_ratio_largest) or the shorter one
 * (keep_ratio, center_crop) becomes image_size. Sides are rounded half to even. Border and crop put
 * the odd pixel at the right and at the bottom. */
#include "transform.h"
#include "blur.h"
#include "resize.h"
#include "resize_ycc.h"

/* With less shrinking, the corrections of clipped colours would be blurred (gamut.h). */
#define PLANES_SHRINK 1.5

struct plan {
    int w, h;               /* resized */
    int x, y;               /* position in the canvas; negative: cropped */
    int canvas_w, canvas_h; /* size of the result */
    enum resize_filter filter;
};

static bool planned(const struct image_options *o, int w, int h, struct plan *ret)
{
    bool by_longer = o->mode == RESIZE_BORDER || o->mode == RESIZE_KEEP_LARGEST;
    int base = by_longer ? MAX(w, h) : MIN(w, h);
    struct plan p = {.w = w, .h = h, .filter = base > o->size ? o->down : o->up};
    bool leave = o->mode == RESIZE_NO || (o->only_if_bigger && base <= o->size);
    if (!leave) {
        p.w = resize_side(w, o->size, base);
        p.h = resize_side(h, o->size, base);
    }
    p.canvas_w = p.w;
    p.canvas_h = p.h;
    if (!leave && (o->mode == RESIZE_BORDER || o->mode == RESIZE_CROP)) {
        p.canvas_w = p.canvas_h = o->size;
        /* Division rounds towards zero: down for a border; for a crop the cut is positive. */
        p.x = (o->size - p.w) / 2;
        p.y = (o->size - p.h) / 2;
    }
    *ret = p;
    /* A very narrow picture can exceed IMAGE_SIDE_MAX when enlarged. */
    return image_fits(p.w, p.h);
}

static bool is_boxed(const struct transform *t)
{
    return t->boxes != NULL && t->boxes->n > 0;
}

static bool swaps_sides(const struct transform *t)
{
    return t->turned >= 5;
}

/* The plan for the upright picture. */
static bool plan_of(const struct transform *t, struct plan *ret)
{
    return swaps_sides(t) ? planned(t->o, t->h, t->w, ret) : planned(t->o, t->w, t->h, ret);
}

static int transform_reduce(struct image_rows *rows, int w, int h)
{
    struct transform *t = (struct transform *)(void *)rows;
    struct plan p;
    t->w = w;
    t->h = h;
    if (!t->o->fast || !plan_of(t, &p)) {
        return 0;
    }
    int least_w = swaps_sides(t) ? p.h : p.w;
    int least_h = swaps_sides(t) ? p.w : p.h;
    int by = 1;
    while (by < 8 && w / (2 * by) >= least_w && h / (2 * by) >= least_h) {
        by *= 2;
    }
    return w > least_w ? by : 0; /* only reduction hides it */
}

static bool transform_begin(struct image_rows *rows, int w, int h, int channels)
{
    struct transform *t = (struct transform *)(void *)rows;
    struct plan p;
    if (t->w == 0) {
        t->w = w;
        t->h = h;
    }
    t->result = image_filter(t->w, t->h, t->o);
    if (t->result != IMAGE_OK) {
        return false;
    }
    if (!plan_of(t, &p)) {
        t->result = IMAGE_ASPECT_TOO_LARGE;
        return false;
    }
    t->result = IMAGE_BAD; /* when memory is short */
    if (is_boxed(t)) {
        t->frame = (struct transform_frame){p.canvas_w, p.canvas_h, p.x, p.y};
        p = (struct plan){p.w, p.h, 0, 0, p.w, p.h, p.filter};
    }
    if (!image_alloc(p.canvas_w, p.canvas_h, channels, &t->out)) {
        return false;
    }
    if (p.w < p.canvas_w || p.h < p.canvas_h) {
        memset(t->out.px, 255, (size_t)p.canvas_w * (size_t)p.canvas_h * (size_t)channels);
    }
    t->x = p.x;
    t->y = p.y;
    if (t->turned == 1) {
        t->resizer = resizer_new(w, h, p.w, p.h, p.filter, &t->out, p.x, p.y);
    } else {
        int small_w = swaps_sides(t) ? p.h : p.w;
        int small_h = swaps_sides(t) ? p.w : p.h;
        if (image_alloc(small_w, small_h, channels, &t->small)) {
            t->resizer = resizer_new(w, h, small_w, small_h, p.filter, &t->small, 0, 0);
        }
    }
    return t->resizer != NULL;
}

/* Planes are used when the result is a JPEG, shrinks enough, and no step needs pixels. */
static bool transform_begin_planes(struct image_rows *rows, int w, int h,
                                   const struct plane_form *form)
{
    struct transform *t = (struct transform *)(void *)rows;
    struct plan p;
    int header_w = t->w != 0 ? t->w : w;
    int header_h = t->w != 0 ? t->h : h;
    if (is_boxed(t) || t->turned != 1 || t->o->format != IMAGE_JPEG ||
        image_filter(header_w, header_h, t->o) != IMAGE_OK ||
        !planned(t->o, header_w, header_h, &p) ||
        (p.filter != FILTER_AREA && p.filter != FILTER_AUTO) || w < PLANES_SHRINK * p.w ||
        h < PLANES_SHRINK * p.h) {
        return false;
    }
    t->w = header_w;
    t->h = header_h;
    t->planes = resize_ycc_new(
        &(struct resize_ycc_fit){w, h, *form, p.w, p.h, p.x, p.y, p.canvas_w, p.canvas_h});
    t->out = (struct image){p.canvas_w, p.canvas_h, PLANES, NULL};
    return t->planes != NULL;
}

static void transform_strip(struct image_rows *rows, const struct plane_strip *s)
{
    resize_ycc_strip(((struct transform *)(void *)rows)->planes, s);
}

static void transform_row(struct image_rows *rows, const uint8_t *px)
{
    resizer_row(((struct transform *)(void *)rows)->resizer, px);
}

void transform_init(struct transform *t, const struct image_options *o, int turned)
{
    ASSERT(turned >= 1 && turned <= 8);
    *t = (struct transform){.rows = {.reduce = transform_reduce,
                                     .begin = transform_begin,
                                     .row = transform_row,
                                     .begin_planes = transform_begin_planes,
                                     .strip = transform_strip,
                                     .max_pixels = o->max_pixels},
                            .o = o,
                            .turned = turned,
                            .result = IMAGE_BAD};
}

void transform_done(struct transform *t)
{
    resizer_free(t->resizer);
    resize_ycc_free(t->planes);
    image_done(&t->small);
    image_done(&t->out);
    t->resizer = NULL;
    t->planes = NULL;
}

/* The pixel of an unrotated picture of w x h that appears at (x, y) after rotation. */
static size_t seen_at(int turned, int w, int h, int x, int y)
{
    bool swap = turned >= 5;
    int sx = swap ? y : x;
    int sy = swap ? x : y;
    if (turned == 2 || turned == 3 || turned == 7 || turned == 8) {
        sx = w - 1 - sx;
    }
    if (turned == 3 || turned == 4 || turned == 6 || turned == 7) {
        sy = h - 1 - sy;
    }
    return (size_t)sy * (size_t)w + (size_t)sx;
}

static void turn(struct transform *t)
{
    const struct image *from = &t->small;
    int w = swaps_sides(t) ? from->h : from->w;
    int h = swaps_sides(t) ? from->w : from->h;
    size_t channels = (size_t)from->channels;
    for (int y = MAX(t->y, 0); y < MIN(t->y + h, t->out.h); y++) {
        for (int x = MAX(t->x, 0); x < MIN(t->x + w, t->out.w); x++) {
            size_t at = seen_at(t->turned, from->w, from->h, x - t->x, y - t->y);
            memcpy(t->out.px + ((size_t)y * (size_t)t->out.w + (size_t)x) * channels,
                   from->px + at * channels, channels);
        }
    }
}

/* Add the border or crop to a picture made without it. */
static bool put_in_frame(struct transform *t)
{
    const struct transform_frame *f = &t->frame;
    struct image in = {0};
    if (f->w == t->out.w && f->h == t->out.h) {
        return true;
    }
    if (!image_alloc(f->w, f->h, t->out.channels, &in)) {
        return false;
    }
    size_t c = (size_t)in.channels;
    memset(in.px, 255, (size_t)in.w * (size_t)in.h * c);
    int x = MAX(f->x, 0);
    size_t n = (size_t)(MIN(f->x + t->out.w, in.w) - x) * c;
    for (int y = MAX(f->y, 0); y < MIN(f->y + t->out.h, in.h); y++) {
        size_t from = (size_t)(y - f->y) * (size_t)t->out.w + (size_t)(x - f->x);
        memcpy(in.px + ((size_t)y * (size_t)in.w + (size_t)x) * c, t->out.px + from * c, n);
    }
    image_done(&t->out);
    t->out = in;
    return true;
}

void transform_finish(struct transform *t)
{
    t->result = IMAGE_OK;
    if (t->planes != NULL) {
        resize_ycc_finish(t->planes);
    }
    if (t->turned != 1) {
        turn(t);
    }
    if (is_boxed(t) && (!blur_boxes(&t->out, t->boxes) || !put_in_frame(t))) {
        t->result = IMAGE_BAD;
    }
}

enum image_result transform_encode(const struct transform *t, struct buf *out)
{
    if (t->planes == NULL) {
        return image_encode(&t->out, t->o, out);
    }
    bool ok = jpeg_encode_planes(t->planes, t->o->quality, out);
    return out->overflow ? IMAGE_OUT_TOO_LARGE : ok ? IMAGE_OK : IMAGE_BAD;
}

enum image_result image_resize(struct image *im, const struct image_options *o)
{
    struct transform t;
    struct image_options any = *o;
    any.min_size = 0;
    any.max_area = any.max_aspect = IMAGE_SIDE_MAX * (double)IMAGE_SIDE_MAX;
    transform_init(&t, &any, 1);
    if (transform_begin(&t.rows, im->w, im->h, im->channels)) {
        size_t row_n = (size_t)im->w * (size_t)im->channels;
        for (int y = 0; y < im->h; y++) {
            transform_row(&t.rows, im->px + (size_t)y * row_n);
        }
        transform_finish(&t);
        image_done(im);
        *im = t.out;
        t.out.px = NULL;
    }
    enum image_result result = t.result;
    transform_done(&t);
    return result;
}
