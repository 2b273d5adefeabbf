/* Vertical filtering first: weighted input rows are added up into a line of floats, one long loop
 * over bytes. Only a finished line is filtered horizontally. The area filter adds each row as it
 * comes; for the others a row contributes to several lines, so as many rows as one line needs are
 * kept. */
#include "resize.h"
#include <math.h>

#define ROWS_KEPT 12 /* that are summed up at once */

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

/* Each line takes all of its rows at once. The last row of a line may be the first of the next. */
static void rows_added(struct resizer *r, const uint8_t *const *rows, int n)
{
    int end = r->row_i + n;
    while (r->line_i < r->h) {
        const struct simd_weights *t = &r->down.at[r->line_i];
        int from = MAX(r->row_i, t->start);
        int to = MIN(end, t->start + t->n);
        if (from >= to) {
            break;
        }
        int k = from - t->start;
        r->simd->sum(r->line, rows + n - (end - from), t->w + k, (size_t)(to - from), r->row_n,
                     k > 0);
        if (to < t->start + t->n) {
            break;
        }
        line_done(r);
        r->row_i = to - 1;
    }
    r->row_i = end;
}

static const uint8_t *kept_row(const struct resizer *r, int i)
{
    return r->kept + (size_t)(i % r->down.n_max) * r->row_n;
}

static void row_kept(struct resizer *r, const uint8_t *row)
{
    memcpy(r->kept + (size_t)(r->row_i % r->down.n_max) * r->row_n, row, r->row_n);
    while (r->line_i < r->h) {
        const struct simd_weights *t = &r->down.at[r->line_i];
        if (r->row_i < t->start + t->n - 1) {
            break;
        }
        for (int k = 0; k < t->n;) {
            const uint8_t *rows[ROWS_KEPT];
            int some = MIN(t->n - k, ROWS_KEPT);
            for (int i = 0; i < some; i++) {
                rows[i] = kept_row(r, t->start + k + i);
            }
            r->simd->sum(r->line, rows, t->w + k, (size_t)some, r->row_n, k > 0);
            k += some;
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
        r->row_i++;
    } else if (r->kept != NULL) {
        row_kept(r, row);
        r->row_i++;
    } else {
        rows_added(r, &row, 1);
    }
}

void resizer_rows(struct resizer *r, const uint8_t *const *rows, int n)
{
    if (!r->copy && r->kept == NULL) {
        rows_added(r, rows, n);
        return;
    }
    for (int i = 0; i < n; i++) {
        resizer_row(r, rows[i]);
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
