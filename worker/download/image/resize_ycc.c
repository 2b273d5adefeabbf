/* A cell of colour covers two by two pixels of the canvas. At a border of odd width it is half
 * picture and half white. */
#include "resize_ycc.h"
#include "resize.h"

#define BLOCK 16
#define WHITE 255
#define GREY  128 /* no colour */

/* Mean square of the values that RGB would clip: 48 dB. */
#define CUT_MAX     1.0
#define SAMPLE_STEP 7
#define SAMPLE_ROWS 16 /* at most what JPEG passes of one plane at once */

/* Video levels to full range: brightness is 16 to 235, colour 16 to 240. */
#define NARROW_Y (255.0 / 219)
#define NARROW_C (255.0 / 224)

static struct resize_weights_cells pixels(int in, int out)
{
    return (struct resize_weights_cells){in, 1, (double)in / out, 0, out, 0, 1, out};
}

/* Cells of colour in one direction; *ret_at: position of the first one in the plane. */
static struct resize_weights_cells cells(int in, int out, int sub, int at, int canvas, int *ret_at)
{
    int first = MAX(at, 0) / 2;
    int end = (MIN(at + out, canvas) + 1) / 2;
    *ret_at = first;
    return (struct resize_weights_cells){.in_n = in,
                                         .sub = sub,
                                         .scale = (double)in / out,
                                         .to = MIN(out, canvas - at),
                                         .first = 2 * first - at,
                                         .group = 2,
                                         .n = end - first};
}

static struct resizer *resizer_of(struct resize_ycc *p, int i)
{
    const struct resize_ycc_fit *f = &p->fit;
    int x = f->x;
    int y = f->y;
    bool colour = i > 0;
    struct resize_weights_cells across =
        colour ? cells(f->w, f->to_w, f->form.sub_x, f->x, f->canvas_w, &x) : pixels(f->w, f->to_w);
    struct resize_weights_cells down =
        colour ? cells(f->h, f->to_h, f->form.sub_y, f->y, f->canvas_h, &y) : pixels(f->h, f->to_h);
    double gain = !f->form.narrow ? 1 : colour ? NARROW_C : NARROW_Y;
    double offset = !f->form.narrow ? 0 : colour ? GREY - GREY * NARROW_C : -16 * NARROW_Y;
    return resizer_new_cells(&across, &down, gain, offset, &p->plane[i], x, y);
}

struct resize_ycc *resize_ycc_new(const struct resize_ycc_fit *fit)
{
    ASSERT(fit->to_w <= fit->w && fit->to_h <= fit->h);
    struct resize_ycc *p = xcalloc(1, sizeof *p);
    p->fit = *fit;
    p->sample_i = -1;
    p->sample = xcalloc(PLANES, (size_t)fit->w);
    p->w = fit->canvas_w;
    p->h = fit->canvas_h;
    int w = (p->w + BLOCK - 1) / BLOCK * BLOCK;
    int h = (p->h + BLOCK - 1) / BLOCK * BLOCK;
    for (int i = 0; i < PLANES; i++) {
        int by = i > 0 ? 2 : 1;
        struct image *im = &p->plane[i];
        if (!image_alloc(w / by, h / by, 1, im)) {
            resize_ycc_free(p);
            return NULL;
        }
        memset(im->px, i > 0 ? GREY : WHITE, (size_t)im->w * (size_t)im->h);
        p->resizer[i] = resizer_of(p, i);
        if (p->resizer[i] == NULL) {
            resize_ycc_free(p);
            return NULL;
        }
    }
    return p;
}

void resize_ycc_free(struct resize_ycc *p)
{
    if (p == NULL) {
        return;
    }
    for (int i = 0; i < PLANES; i++) {
        resizer_free(p->resizer[i]);
        image_done(&p->plane[i]);
    }
    free(p->sample);
    free(p);
}

/* By how much a value in 256ths exceeds the range of a byte. Most are inside. */
static int beyond(int v)
{
    return (unsigned)v <= 255 * 256 ? 0 : (v < 0 ? v : v - 255 * 256) >> 8;
}

static int64_t square(int v)
{
    return (int64_t)v * v;
}

/* Brightness and colours of one row, scaled to full range: what RGB would clip. */
static double cut_off(const struct resize_ycc *p)
{
    const struct resize_ycc_fit *f = &p->fit;
    const uint8_t *y = p->sample;
    const uint8_t *cb = y + f->w;
    const uint8_t *cr = cb + f->w;
    int gain_y = f->form.narrow ? (int)(256 * NARROW_Y) : 256;
    int gain_c = f->form.narrow ? (int)(256 * NARROW_C) : 256;
    int least = f->form.narrow ? 16 : 0;
    int half = f->form.sub_x - 1;
    int64_t sum = 0;
    for (int x = 0; x < f->w; x += SAMPLE_STEP) {
        int light = (y[x] - least) * gain_y;
        int blue = (cb[x >> half] - GREY) * gain_c / 256;
        int red = (cr[x >> half] - GREY) * gain_c / 256;
        sum += square(beyond(light + 359 * red)) + square(beyond(light - 88 * blue - 183 * red)) +
               square(beyond(light + 454 * blue));
    }
    return (double)sum * SAMPLE_STEP;
}

/* Sample one row of each SAMPLE_ROWS, not always the same. */
static bool is_sample(int y)
{
    return y % SAMPLE_ROWS == y / SAMPLE_ROWS * 7 % SAMPLE_ROWS;
}

/* False: the samples clip more than allowed for the whole picture. */
static bool looked_at(struct resize_ycc *p, int plane, const uint8_t *px)
{
    const struct resize_ycc_fit *f = &p->fit;
    int i = p->row_i[plane];
    if (plane == 0 && is_sample(i)) {
        p->sample_i = i;
    }
    if (p->sample_i < 0 || i != (plane == 0 ? p->sample_i : p->sample_i / f->form.sub_y)) {
        return true;
    }
    int w = plane == 0 ? f->w : (f->w + f->form.sub_x - 1) / f->form.sub_x;
    memcpy(p->sample + (size_t)plane * (size_t)f->w, px, (size_t)w);
    if (plane < PLANES - 1) {
        return true;
    }
    p->cut += cut_off(p);
    p->sample_i = -1;
    int rows = 1 + f->h / SAMPLE_ROWS;
    return p->cut <= CUT_MAX * PLANES * f->w * rows;
}

bool resize_ycc_row(struct resize_ycc *p, int plane, const uint8_t *px)
{
    resizer_row(p->resizer[plane], px);
    bool ok = looked_at(p, plane, px);
    p->row_i[plane]++;
    return ok;
}

static void half_grey(uint8_t *px, size_t step, int n)
{
    for (int i = 0; i < n; i++, px += step) {
        *px = (uint8_t)((*px + GREY + 1) / 2);
    }
}

/* Blend the cells at the edges that the picture half covers. */
static void mix_edges(const struct resize_ycc_fit *f, struct image *im)
{
    size_t w = (size_t)im->w;
    int right = f->x + f->to_w;
    int below = f->y + f->to_h;
    if (f->x > 0 && f->x % 2 != 0) {
        half_grey(im->px + f->x / 2, w, im->h);
    }
    if (right < f->canvas_w && right % 2 != 0) {
        half_grey(im->px + right / 2, w, im->h);
    }
    if (f->y > 0 && f->y % 2 != 0) {
        half_grey(im->px + (size_t)(f->y / 2) * w, 1, im->w);
    }
    if (below < f->canvas_h && below % 2 != 0) {
        half_grey(im->px + (size_t)(below / 2) * w, 1, im->w);
    }
}

/* Repeat the last column and row to the end of the block. */
static void pad(struct image *im, int w, int h)
{
    size_t row_n = (size_t)im->w;
    for (int y = 0; y < h; y++) {
        uint8_t *row = im->px + (size_t)y * row_n;
        memset(row + w, row[w - 1], row_n - (size_t)w);
    }
    for (int y = h; y < im->h; y++) {
        memcpy(im->px + (size_t)y * row_n, im->px + (size_t)(h - 1) * row_n, row_n);
    }
}

void resize_ycc_finish(struct resize_ycc *p)
{
    for (int i = 0; i < PLANES; i++) {
        int by = i > 0 ? 2 : 1;
        if (i > 0) {
            mix_edges(&p->fit, &p->plane[i]);
        }
        pad(&p->plane[i], (p->w + by - 1) / by, (p->h + by - 1) / by);
    }
}
