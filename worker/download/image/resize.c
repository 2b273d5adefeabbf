/* Vertical filtering first: weighted input rows are added up into a line of floats, one long loop
 * over bytes. Only a finished line is filtered horizontally. The area filter adds each row as it
 * comes; for the others a row contributes to several lines, so as many rows as one line needs are
 * kept. */
#include "resize.h"
#include <math.h>

struct resizer {
    const struct simd *simd;
    struct resize_weights across, down;
    struct image *out;
    int x, y, w, h; /* of the result within out */
    size_t row_n;   /* bytes of an input row */
    int row_i;      /* of the next input row */
    int line_i;     /* of the line being made */
    bool copy;      /* same size */
    bool lent;      /* the weights are another's */
    float offset;   /* repeat each value of a grey picture */
    float *line;
    uint8_t *kept; /* kept[down.n_max][row_n]; NULL: rows are added as they come */
};

int resize_side(int side, int size, int base)
{
    ASSERT(side > 0 && size > 0 && base > 0);
    double scale = (double)size / (double)base;
    double v = nearbyint((double)side * scale);
    return v < 1 ? 1 : v > 1e9 ? 1000000000 : (int)v;
}

void resizer_free(struct resizer *r)
{
    if (r == NULL) {
        return;
    }
    if (!r->lent) {
        resize_weights_done(&r->across);
        resize_weights_done(&r->down);
    }
    free(r->line);
    free(r->kept);
    free(r);
}

static struct resizer *make(struct image *out, int x, int y, int w, int h, size_t row_n)
{
    struct resizer *r = xcalloc(1, sizeof *r);
    r->simd = simd_pick(false);
    r->out = out;
    r->x = x;
    r->y = y;
    r->w = w;
    r->h = h;
    r->row_n = row_n;
    return r;
}

/* Zeros behind the line, for vectors that reach beyond it. */
static float *line_new(const struct resizer *r)
{
    return calloc(r->row_n + r->across.blocks * SIMD_PAD, sizeof *r->line);
}

struct resizer *resizer_new(int in_w, int in_h, int w, int h, enum resize_filter filter,
                            struct image *out, int x, int y)
{
    ASSERT(out->channels == 1 || out->channels == 3);
    if (!image_fits(w, h)) {
        return NULL;
    }
    struct resizer *r = make(out, x, y, w, h, (size_t)in_w * (size_t)out->channels);
    r->copy = w == in_w && h == in_h;
    bool shrinks = w <= in_w && h <= in_h;
    if (filter == FILTER_AUTO) {
        filter = shrinks ? FILTER_AREA : FILTER_LANCZOS;
    }
    if (r->copy) {
        return r;
    }
    bool ok = resize_weights_make(filter, shrinks, in_w, w, &r->across) &&
              resize_weights_make(filter, shrinks, in_h, h, &r->down);
    r->line = ok ? line_new(r) : NULL;
    if (ok && (filter != FILTER_AREA || !shrinks)) {
        r->kept = malloc((size_t)r->down.n_max * r->row_n);
        ok = r->kept != NULL;
    }
    if (!ok || r->line == NULL) {
        resizer_free(r);
        return NULL;
    }
    return r;
}

struct resizer *resizer_new_cells(const struct resize_weights_cells *across,
                                  const struct resize_weights_cells *down, double gain,
                                  double offset, struct image *out, int x, int y)
{
    ASSERT(out->channels == 1);
    size_t row_n = (size_t)((across->in_n + across->sub - 1) / across->sub);
    struct resizer *r = make(out, x, y, across->n, down->n, row_n);
    r->offset = (float)offset;
    if (!resize_weights_make_cells(across, gain, &r->across) ||
        !resize_weights_make_cells(down, 1, &r->down) || (r->line = line_new(r)) == NULL ||
        (down->sub > 1 && (r->kept = malloc((size_t)r->down.n_max * row_n)) == NULL)) {
        resizer_free(r);
        return NULL;
    }
    return r;
}

struct resizer *resizer_new_beside(const struct resizer *first, struct image *out)
{
    ASSERT(out->channels == 1 && !first->copy && first->row_i == 0);
    struct resizer *r = make(out, first->x, first->y, first->w, first->h, first->row_n);
    r->lent = true;
    r->across = first->across;
    r->down = first->down;
    r->offset = first->offset;
    r->line = line_new(r);
    r->kept = first->kept != NULL ? malloc((size_t)r->down.n_max * r->row_n) : NULL;
    if (r->line == NULL || (first->kept != NULL && r->kept == NULL)) {
        resizer_free(r);
        return NULL;
    }
    return r;
}

/* Where output row i goes and which of its pixels are inside. NULL: none. */
static uint8_t *target(const struct resizer *r, int i, int *ret_from, int *ret_to)
{
    const struct image *out = r->out;
    *ret_from = MAX(0, -r->x);
    *ret_to = MIN(r->w, out->w - r->x);
    int64_t y = (int64_t)r->y + i;
    if (y < 0 || y >= out->h || *ret_to <= *ret_from) {
        return NULL;
    }
    size_t at = (size_t)y * (size_t)out->w + (size_t)(r->x + *ret_from);
    return out->px + at * (size_t)out->channels;
}

static void line_done(struct resizer *r)
{
    int from;
    int to;
    uint8_t *out = target(r, r->line_i, &from, &to);
    if (out != NULL) {
        if (r->out->channels == 3) {
            r->simd->across_rgb(r->line, r->across.at + from, to - from, out);
        } else {
            r->simd->across_grey(r->line, r->across.at + from, to - from, r->across.blocks,
                                 r->offset, out);
        }
    }
    r->line_i++;
}

static void row_added(struct resizer *r, const uint8_t *row)
{
    while (r->line_i < r->h) {
        const struct simd_taps *t = &r->down.at[r->line_i];
        int k = r->row_i - t->start;
        if (k < 0) {
            break;
        }
        (k == 0 ? r->simd->set : r->simd->add)(r->line, row, t->w[k], r->row_n);
        if (k < t->n - 1) {
            break;
        }
        line_done(r);
    }
}

/* Both rows at once while they belong to the same line. */
static void two_rows_added(struct resizer *r, const uint8_t *row, const uint8_t *next)
{
    const struct simd_taps *t = r->line_i < r->h ? &r->down.at[r->line_i] : NULL;
    int k = t != NULL ? r->row_i - t->start : -1;
    if (k < 0 || k + 1 >= t->n) {
        row_added(r, row);
        r->row_i++;
        row_added(r, next);
    } else {
        (k == 0 ? r->simd->set_two : r->simd->add_two)(r->line, row, next, t->w + k, r->row_n);
        r->row_i++;
        if (k + 1 == t->n - 1) {
            line_done(r);
            row_added(r, next);
        }
    }
    r->row_i++;
}

static const uint8_t *kept_row(const struct resizer *r, int i)
{
    return r->kept + (size_t)(i % r->down.n_max) * r->row_n;
}

static void row_kept(struct resizer *r, const uint8_t *row)
{
    memcpy(r->kept + (size_t)(r->row_i % r->down.n_max) * r->row_n, row, r->row_n);
    while (r->line_i < r->h) {
        const struct simd_taps *t = &r->down.at[r->line_i];
        if (r->row_i < t->start + t->n - 1) {
            break;
        }
        int k = 0;
        for (; k + 1 < t->n; k += 2) {
            (k == 0 ? r->simd->set_two : r->simd->add_two)(r->line, kept_row(r, t->start + k),
                                                           kept_row(r, t->start + k + 1), t->w + k,
                                                           r->row_n);
        }
        if (k < t->n) {
            (k == 0 ? r->simd->set : r->simd->add)(r->line, kept_row(r, t->start + k), t->w[k],
                                                   r->row_n);
        }
        line_done(r);
    }
}

void resizer_row(struct resizer *r, const uint8_t *row)
{
    if (r->copy) {
        int from;
        int to;
        size_t channels = (size_t)r->out->channels;
        uint8_t *out = target(r, r->row_i, &from, &to);
        if (out != NULL) {
            memcpy(out, row + (size_t)from * channels, (size_t)(to - from) * channels);
        }
    } else if (r->kept != NULL) {
        row_kept(r, row);
    } else {
        row_added(r, row);
    }
    r->row_i++;
}

void resizer_two_rows(struct resizer *r, const uint8_t *row, const uint8_t *next)
{
    if (r->copy || r->kept != NULL) {
        resizer_row(r, row);
        resizer_row(r, next);
    } else {
        two_rows_added(r, row, next);
    }
}

bool resize_to(const struct image *im, int w, int h, enum resize_filter filter, struct image *ret)
{
    struct image out;
    if (!image_alloc(w, h, im->channels, &out)) {
        return false;
    }
    struct resizer *r = resizer_new(im->w, im->h, w, h, filter, &out, 0, 0);
    if (r == NULL) {
        image_done(&out);
        return false;
    }
    size_t row_n = (size_t)im->w * (size_t)im->channels;
    for (int y = 0; y < im->h; y++) {
        resizer_row(r, im->px + (size_t)y * row_n);
    }
    resizer_free(r);
    *ret = out;
    return true;
}
