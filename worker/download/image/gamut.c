/* Sixteen samples of colour at a time, with the one or two pixels of a row that each belongs to:
 * pixels with even and odd places are two vectors, so that nothing is interleaved. Products of
 * 16 bits; a coefficient is a whole number and 256ths. */
#include "gamut.h"

#define INLINE static inline __attribute__((always_inline))
#define N      16 /* samples of a block */
#define GREY   128
#define LIGHT  255

typedef int16_t v16s __attribute__((vector_size(32)));
typedef uint16_t v16u __attribute__((vector_size(32)));
typedef uint8_t v16b __attribute__((vector_size(16)));
typedef int64_t v4l __attribute__((vector_size(32)));

struct gamut_ycc {
    v16s y, cb, cr;
};
/* Where a block's pixels and samples are; colour is read from one sample before it to one after. */
struct block {
    const uint8_t *y[2];
    const uint8_t *c[2][3];
    bool whole; /* false: at an edge, in `edge`, with the last pixels repeated */
};
struct edge_block {
    uint8_t y[2][2 * N];
    uint8_t c[2][3][N + 2];
};

static int samples_of(const struct gamut_rows *g)
{
    return (g->w + g->form.sub_x - 1) / g->form.sub_x;
}

static int inside(int x, int n)
{
    return MIN(MAX(x, 0), n - 1);
}

static __attribute__((noinline)) void copy_edge(const struct gamut_rows *g, int at,
                                                struct edge_block *edge)
{
    int n = samples_of(g);
    int first = at * g->form.sub_x;
    for (int i = 0; i < 2; i++) {
        for (int x = 0; x < 2 * N; x++) {
            edge->y[i][x] = g->y[MIN(i, g->y_n - 1)][inside(first + x, g->w)];
        }
        for (int k = 0; k < 3; k++) {
            for (int x = 0; x < N + 2; x++) {
                edge->c[i][k][x] = g->c[i][k][inside(at - 1 + x, n)];
            }
        }
    }
}

INLINE void block_at(const struct gamut_rows *g, int at, int sub_x, int n, struct edge_block *edge,
                     struct block *ret)
{
    ret->whole = at > 0 && at + N < n;
    if (!ret->whole) {
        copy_edge(g, at, edge);
    }
    for (int i = 0; i < 2; i++) {
        ret->y[i] = ret->whole ? g->y[MIN(i, g->y_n - 1)] + at * sub_x : edge->y[i];
        for (int k = 0; k < 3; k++) {
            ret->c[i][k] = ret->whole ? g->c[i][k] + at : edge->c[i][k] + 1;
        }
    }
}

INLINE void bytes(const uint8_t *p, v16s *ret)
{
    v16b b;
    memcpy(&b, p, sizeof b);
    *ret = __builtin_convertvector(b, v16s);
}

/* The pixels of each sample: with one they are the same twice. */
INLINE void pixels(const uint8_t *y, int sub_x, v16s *ret_even, v16s *ret_odd)
{
    if (sub_x == 1) {
        bytes(y, ret_even);
        *ret_odd = *ret_even;
        return;
    }
    v16s both;
    memcpy(&both, y, sizeof both);
    *ret_even = both & 255;
    *ret_odd = (both >> 8) & 255;
}

INLINE void larger(v16s *a, const v16s *b)
{
    v16s m = *a > *b;
    *a = (*a & m) | (*b & ~m);
}

INLINE void smaller(v16s *a, const v16s *b)
{
    v16s m = *a < *b;
    *a = (*a & m) | (*b & ~m);
}

INLINE bool any_negative(const v16s *v)
{
    v4l m = (v4l)*v;
    return ((m[0] | m[1] | m[2] | m[3]) & (int64_t)UINT64_C(0x8000800080008000)) != 0;
}

/* What colour adds to brightness in RGB: levels 0 to 255, whatever those of the planes are. */
INLINE void added(const v16s *cb, const v16s *cr, bool narrow, v16s rgb[3])
{
    if (narrow) {
        rgb[0] = *cr + (*cr * 153 >> 8);
        rgb[1] = -(*cb * 100 >> 8) - (*cr * 208 >> 8);
        rgb[2] = *cb * 2 + (*cb * 4 >> 8);
    } else {
        rgb[0] = *cr + (*cr * 103 >> 8);
        rgb[1] = -(*cb * 88 >> 8) - (*cr * 183 >> 8);
        rgb[2] = *cb * 2 - (*cb * 58 >> 8);
    }
}

INLINE void full_range(bool narrow, v16s *y)
{
    if (narrow) {
        *y -= 16;
        *y += *y * 42 >> 8;
    }
}

/* y[2] and c[2]: of a block. Colour is taken as the sample has it. */
INLINE bool block_exceeds(const uint8_t *const y[2], const uint8_t *const c[2], int sub_x,
                          bool narrow)
{
    v16s cb;
    v16s cr;
    v16s rgb[3];
    bytes(c[0], &cb);
    bytes(c[1], &cr);
    cb -= GREY;
    cr -= GREY;
    added(&cb, &cr, narrow, rgb);
    v16s most = rgb[0];
    v16s least = rgb[0];
    for (int i = 1; i < 3; i++) {
        larger(&most, &rgb[i]);
        smaller(&least, &rgb[i]);
    }
    v16s light = LIGHT + GAMUT_TOLERATED - most; /* brightness that would be too much */
    v16s dark = -GAMUT_TOLERATED - least;
    if (narrow) {
        light = light - (light * 36 >> 8) + 16;
        dark = dark - (dark * 36 >> 8) + 16;
    }
    v16s beyond = {0}; /* negative where a pixel is outside */
    for (int i = 0; i < 2; i++) {
        v16s even;
        v16s odd;
        pixels(y[i], sub_x, &even, &odd);
        beyond |= (light - even) | (even - dark) | (light - odd) | (odd - dark);
    }
    return any_negative(&beyond);
}

/* The same of the block at sample `at`. */
INLINE bool exceeds_at(const struct gamut_rows *g, int at, int n, int sub_x, bool narrow)
{
    struct edge_block edge;
    int from = MIN(at, MAX(g->w / sub_x - N, 0)); /* the last block overlaps the one before it */
    const uint8_t *y[2] = {g->y[0] + from * sub_x, g->y[g->y_n - 1] + from * sub_x};
    const uint8_t *c[2] = {g->c[0][1] + from, g->c[1][1] + from};
    if (from + N < MIN(at + N, n)) { /* narrow, or an odd pixel at the end */
        copy_edge(g, at, &edge);
        for (int i = 0; i < 2; i++) {
            y[i] = edge.y[i];
            c[i] = edge.c[i][1] + 1;
        }
    }
    return block_exceeds(y, c, sub_x, narrow);
}

/* Colour at the even and odd pixels of a row, as decoders make it: in each direction three quarters
 * of the nearer sample and one of the other. */
INLINE void blown_up(const uint8_t *const c[3], int sub_x, int sub_y, int row, v16s *ret_even,
                     v16s *ret_odd)
{
    v16s at[3]; /* the sample before, this one, the next */
    const uint8_t *far = sub_y == 1 ? c[1] : c[2 * row];
    for (int i = 0; i < 3; i++) {
        v16s other;
        bytes(c[1] + i - 1, &at[i]);
        bytes(far + i - 1, &other);
        at[i] = at[i] * 3 + other;
    }
    if (sub_x == 1) {
        *ret_even = *ret_odd = (at[1] + 2) >> 2;
    } else {
        *ret_even = (at[1] * 3 + at[0] + 8) >> 4;
        *ret_odd = (at[1] * 3 + at[2] + 7) >> 4;
    }
}

/* By how much a value must move into 0 to 255. */
INLINE void into_range(const v16s *v, v16s *ret)
{
    v16s over = *v > LIGHT;
    v16s under = *v < 0;
    *ret = ((LIGHT - *v) & over) | (-*v & under);
}

/* What clipping in RGB does to pixels: the differences in the levels of the planes. */
INLINE void differences(const struct gamut_ycc *p, bool narrow, struct gamut_ycc *ret)
{
    v16s cb = p->cb - GREY;
    v16s cr = p->cr - GREY;
    v16s y = p->y;
    v16s rgb[3];
    v16s d[3];
    full_range(narrow, &y);
    added(&cb, &cr, narrow, rgb);
    for (int i = 0; i < 3; i++) {
        rgb[i] += y;
        into_range(&rgb[i], &d[i]);
    }
    ret->y = (19 * d[0] + 38 * d[1] + 7 * d[2] + 32) >> 6;
    ret->cb = (-11 * d[0] - 21 * d[1] + 32 * d[2] + 32) >> 6;
    ret->cr = (32 * d[0] - 27 * d[1] - 5 * d[2] + 32) >> 6;
    if (narrow) {
        ret->y -= (ret->y * 36 + 128) >> 8;
        ret->cb -= (ret->cb * 31 + 128) >> 8;
        ret->cr -= (ret->cr * 31 + 128) >> 8;
    }
}

INLINE void to_byte(v16s *v)
{
    v16s d;
    into_range(v, &d);
    *v += d;
}

INLINE void put_bytes(const v16s *v, uint8_t *out)
{
    v16b b = __builtin_convertvector(*v, v16b);
    memcpy(out, &b, sizeof b);
}

/* Clip one row of brightness; add the differences of its colours to sum. */
INLINE void row_clip(const struct block *b, int sub_x, int sub_y, bool narrow, int row, uint8_t *y,
                     v16s sum[2])
{
    struct gamut_ycc p[2]; /* even, odd */
    struct gamut_ycc d;
    pixels(b->y[row], sub_x, &p[0].y, &p[1].y);
    blown_up(b->c[0], sub_x, sub_y, row, &p[0].cb, &p[1].cb);
    blown_up(b->c[1], sub_x, sub_y, row, &p[0].cr, &p[1].cr);
    for (int i = 0; i < sub_x; i++) {
        differences(&p[i], narrow, &d);
        p[i].y += d.y;
        to_byte(&p[i].y);
        sum[0] += d.cb;
        sum[1] += d.cr;
    }
    if (sub_x == 1) {
        put_bytes(&p[0].y, y);
    } else {
        v16u both = (v16u)p[0].y | (v16u)p[1].y << 8;
        memcpy(y, &both, sizeof both);
    }
}

INLINE void block_clip(const struct block *b, int sub_x, int sub_y, int y_n, bool narrow,
                       uint8_t *const y[2], uint8_t *const c[2])
{
    v16s sum[2] = {0};
    int shift = (sub_x == 2) + (y_n == 2);
    for (int i = 0; i < y_n; i++) {
        row_clip(b, sub_x, sub_y, narrow, i, y[i], sum);
    }
    for (int i = 0; i < 2; i++) {
        v16s v;
        bytes(b->c[i][1], &v);
        v += (sum[i] + (int16_t)(1 << shift >> 1)) >> shift;
        to_byte(&v);
        put_bytes(&v, c[i]);
    }
}

/* The block at sample `at` into the rows y, c. */
INLINE void put_block(const struct gamut_rows *g, const struct block *b, int at, int n, int sub_x,
                      int sub_y, bool narrow, uint8_t *const y[2], uint8_t *const c[2])
{
    int first = at * sub_x;
    struct edge_block out;
    uint8_t *const y_to[2] = {b->whole ? y[0] + first : out.y[0],
                              b->whole ? y[1] + first : out.y[1]};
    uint8_t *const c_to[2] = {b->whole ? c[0] + at : out.c[0][0],
                              b->whole ? c[1] + at : out.c[1][0]};
    block_clip(b, sub_x, sub_y, g->y_n, narrow, y_to, c_to);
    for (int i = 0; i < 2 && !b->whole; i++) {
        if (i < g->y_n) {
            memcpy(y[i] + first, out.y[i], (size_t)MIN(N * sub_x, g->w - first));
        }
        memcpy(c[i] + at, out.c[i][0], (size_t)MIN(N, n - at));
    }
}

INLINE bool exceeds_form(const struct gamut_rows *g, int sub_x, bool narrow)
{
    int n = samples_of(g);
    for (int at = 0; at < n; at += N) {
        if (exceeds_at(g, at, n, sub_x, narrow)) {
            return true;
        }
    }
    return false;
}

INLINE bool clip_form(const struct gamut_rows *g, int sub_x, int sub_y, bool narrow,
                      uint8_t *const y[2], uint8_t *const c[2])
{
    int n = samples_of(g);
    bool clipped = false;
    for (int at = 0; at < n; at += N) {
        struct edge_block edge;
        struct block b;
        if (!exceeds_at(g, at, n, sub_x, narrow)) {
            continue;
        }
        for (int i = 0; !clipped && i < 2; i++) {
            memcpy(y[i], g->y[MIN(i, g->y_n - 1)], (size_t)g->w);
            memcpy(c[i], g->c[i][1], (size_t)n);
        }
        clipped = true;
        block_at(g, at, sub_x, n, &edge, &b);
        put_block(g, &b, at, n, sub_x, sub_y, narrow, y, c);
    }
    return clipped;
}

/* The compiler makes a loop of its own for the usual forms. */
INLINE bool exceeds(const struct gamut_rows *g)
{
    const struct plane_form *f = &g->form;
    return f->sub_x == 2 && !f->narrow ? exceeds_form(g, 2, false)
           : f->sub_x == 2             ? exceeds_form(g, 2, true)
                                       : exceeds_form(g, 1, f->narrow);
}

INLINE bool clip(const struct gamut_rows *g, uint8_t *const y[2], uint8_t *const c[2])
{
    const struct plane_form *f = &g->form;
    return f->sub_x == 2 && f->sub_y == 2 && !f->narrow ? clip_form(g, 2, 2, false, y, c)
           : f->sub_x == 2 && f->sub_y == 2             ? clip_form(g, 2, 2, true, y, c)
                                            : clip_form(g, f->sub_x, f->sub_y, f->narrow, y, c);
}

#define GAMUT_FOR(X, suffix, attributes)                                                           \
    attributes static bool exceeds_##suffix(const struct gamut_rows *g)                            \
    {                                                                                              \
        return exceeds(g);                                                                         \
    }                                                                                              \
    attributes static bool clip_##suffix(const struct gamut_rows *g, uint8_t *const y[2],          \
                                         uint8_t *const c[2])                                      \
    {                                                                                              \
        return clip(g, y, c);                                                                      \
    }                                                                                              \
    static const struct gamut X = {#suffix, exceeds_##suffix, clip_##suffix};

GAMUT_FOR(any_processor, portable, )
#ifdef __x86_64__
GAMUT_FOR(with_avx2, avx2, __attribute__((target("avx2"))))
#endif

const struct gamut *gamut_pick(bool portable)
{
#ifdef __x86_64__
    if (!portable && __builtin_cpu_supports("avx2")) {
        return &with_avx2;
    }
#endif
    (void)portable;
    return &any_processor;
}
