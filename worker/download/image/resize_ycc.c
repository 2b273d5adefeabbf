/* A cell of colour covers two by two pixels of the canvas. At a border of odd width it is half
 * picture and half white. */
#include "resize_ycc.h"
#include "gamut.h"
#include "resize.h"

#define YCC_BLOCK 16
#define WHITE     255

#define SAMPLE_STEP 16 /* rows of brightness; one of this many is examined first */

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
    double offset = !f->form.narrow ? 0
                    : colour        ? COLOUR_NONE - COLOUR_NONE * NARROW_C
                                    : -16 * NARROW_Y;
    return resizer_new_cells(&across, &down, gain, offset, &p->plane[i], x, y);
}

struct resize_ycc *resize_ycc_new(const struct resize_ycc_fit *fit)
{
    ASSERT(fit->to_w <= fit->w && fit->to_h <= fit->h);
    struct resize_ycc *p = xcalloc(1, sizeof *p);
    p->fit = *fit;
    p->gamut = gamut_pick(false);
    p->clipped = xcalloc(COLOURS, (size_t)fit->w);
    p->w = fit->canvas_w;
    p->h = fit->canvas_h;
    int w = (p->w + YCC_BLOCK - 1) / YCC_BLOCK * YCC_BLOCK;
    int h = (p->h + YCC_BLOCK - 1) / YCC_BLOCK * YCC_BLOCK;
    for (int i = 0; i < PLANES; i++) {
        int by = i > 0 ? 2 : 1;
        struct image *im = &p->plane[i];
        if (!image_alloc(w / by, h / by, 1, im)) {
            resize_ycc_free(p);
            return NULL;
        }
        memset(im->px, i > 0 ? COLOUR_NONE : WHITE, (size_t)im->w * (size_t)im->h);
        p->resizer[i] = i < PLANES - 1 ? resizer_of(p, i) : resizer_new_beside(p->resizer[1], im);
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
    for (int i = PLANES - 1; i >= 0; i--) {
        resizer_free(p->resizer[i]);
        image_done(&p->plane[i]);
    }
    free(p->clipped);
    free(p);
}

/* A row of colour and its rows of brightness. */
static struct gamut_rows rows_at(const struct resize_ycc *p, const struct plane_strip *s, int i)
{
    int sub_y = p->fit.form.sub_y;
    int first = i * sub_y;
    struct gamut_rows g = {.w = p->fit.w, .form = p->fit.form, .y_n = MIN(sub_y, s->rows - first)};
    for (int k = 0; k < g.y_n; k++) {
        g.y[k] = s->y[first + k];
    }
    for (int k = 0; k < COLOURS; k++) {
        memcpy(g.c[k], s->c[k] + i, sizeof g.c[k]);
    }
    return g;
}

/* Whether a strip is examined throughout: a sample of it, or the one before it, exceeds RGB. */
static bool is_suspect(const struct resize_ycc *p, const struct plane_strip *s)
{
    int sub_y = p->fit.form.sub_y;
    int step = SAMPLE_STEP / sub_y;
    for (int i = p->strip_i * 3 % step; i * sub_y < s->rows; i += step) {
        struct gamut_rows g = rows_at(p, s, i);
        if (p->gamut->exceeds(&g)) {
            return true;
        }
    }
    return p->strip_exceeded;
}

void resize_ycc_strip(struct resize_ycc *p, const struct plane_strip *s)
{
    uint8_t *const c[COLOURS] = {p->clipped, p->clipped + p->fit.w};
    int sub_y = p->fit.form.sub_y;
    bool suspect = is_suspect(p, s);
    p->strip_exceeded = false;
    for (int i = 0; i * sub_y < s->rows; i++) {
        bool clipped = false;
        if (suspect) {
            struct gamut_rows g = rows_at(p, s, i);
            uint8_t *const y[2] = {s->y[i * sub_y], s->y[i * sub_y + g.y_n - 1]};
            clipped = p->gamut->clip(&g, y, c);
        }
        p->strip_exceeded = p->strip_exceeded || clipped;
        for (int k = 0; k < COLOURS; k++) {
            resizer_row(p->resizer[1 + k], clipped ? c[k] : s->c[k][1 + i]);
        }
    }
    resizer_rows(p->resizer[0], (const uint8_t *const *)s->y, s->rows);
    p->strip_i++;
}

static void half_grey(uint8_t *px, size_t step, int n)
{
    for (int i = 0; i < n; i++, px += step) {
        *px = (uint8_t)((*px + COLOUR_NONE + 1) / 2);
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
