/* Sixteen samples of colour at a time, with the one or two pixels of a row that each belongs to:
 * pixels with even and odd places are two vectors, so that nothing is interleaved. Products have
 * 16 bits. Coefficients are read from a table: constants would be multiplied with by shifts and
 * additions, four of them for a multiplication that processors make at once. */
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
struct gamut_rgb {
    v16s r, g, b;
};
/* Between the levels of the planes and 0 to 255 in RGB. */
struct gamut_levels {
    v16s y_least, y_more, y_less; /* brightness that is black; 256ths to stretch and shrink it */
    v16s red_cr, green_cb, green_cr, blue_cb; /* 256ths of colour, beside the whole ones */
    struct gamut_rgb y_of, cb_of, cr_of;      /* 128ths */
};
#define EACH(x)                                                                                    \
    {                                                                                              \
        x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x                                             \
    }
static const struct gamut_levels FULL = {
    .y_least = EACH(0),
    .y_more = EACH(0),
    .y_less = EACH(0),
    .red_cr = EACH(103),
    .green_cb = EACH(88),
    .green_cr = EACH(183),
    .blue_cb = EACH(58),
    .y_of = {EACH(38), EACH(75), EACH(15)},
    .cb_of = {EACH(-22), EACH(-42), EACH(64)},
    .cr_of = {EACH(64), EACH(-54), EACH(-10)},
};
static const struct gamut_levels NARROW = {
    .y_least = EACH(16),
    .y_more = EACH(42),
    .y_less = EACH(36),
    .red_cr = EACH(153),
    .green_cb = EACH(100),
    .green_cr = EACH(208),
    .blue_cb = EACH(-4),
    .y_of = {EACH(33), EACH(65), EACH(12)},
    .cb_of = {EACH(-19), EACH(-37), EACH(56)},
    .cr_of = {EACH(56), EACH(-47), EACH(-9)},
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

/* count values of a row of n from `from` on; before and after the row its first and last. */
static void copy_repeated(const uint8_t *row, int n, int from, int count, uint8_t *out)
{
    int before = from < 0 ? -from : 0;
    int inside = MIN(count - before, n - from - before);
    memset(out, row[0], (size_t)before);
    memcpy(out + before, row + from + before, (size_t)inside);
    memset(out + before + inside, row[n - 1], (size_t)(count - before - inside));
}

static __attribute__((noinline)) void copy_edge(const struct gamut_rows *g, int at,
                                                struct edge_block *edge)
{
    for (int i = 0; i < 2; i++) {
        copy_repeated(g->y[MIN(i, g->y_n - 1)], g->w, at * g->form.sub_x, 2 * N, edge->y[i]);
        for (int k = 0; k < 3; k++) {
            copy_repeated(g->c[i][k], samples_of(g), at - 1, N + 2, edge->c[i][k]);
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

/* Loops over elements: compilers make the processor's maximum and minimum of them. */
INLINE void larger(v16s *a, const v16s *b)
{
    v16s v;
    for (int i = 0; i < N; i++) {
        v[i] = MAX((*a)[i], (*b)[i]);
    }
    *a = v;
}

INLINE void smaller(v16s *a, const v16s *b)
{
    v16s v;
    for (int i = 0; i < N; i++) {
        v[i] = MIN((*a)[i], (*b)[i]);
    }
    *a = v;
}

INLINE bool any_negative(const v16s *v)
{
    v4l m = (v4l)*v;
    return ((m[0] | m[1] | m[2] | m[3]) & (int64_t)UINT64_C(0x8000800080008000)) != 0;
}

/* What colour adds to brightness in RGB: levels 0 to 255, whatever those of the planes are. */
INLINE void added(const v16s *cb, const v16s *cr, const struct gamut_levels *l,
                  struct gamut_rgb *ret)
{
    ret->r = *cr + (*cr * l->red_cr >> 8);
    ret->g = -(*cb * l->green_cb >> 8) - (*cr * l->green_cr >> 8);
    ret->b = *cb * 2 - (*cb * l->blue_cb >> 8);
}

/* The brightest and the darkest of each sample's pixels. */
INLINE void brightness(const uint8_t *const y[2], int sub_x, v16s *ret_most, v16s *ret_least)
{
    v16s odd;
    v16s below_even;
    v16s below_odd;
    pixels(y[0], sub_x, ret_most, &odd);
    pixels(y[1], sub_x, &below_even, &below_odd);
    *ret_least = *ret_most;
    larger(ret_most, &odd);
    larger(ret_most, &below_even);
    larger(ret_most, &below_odd);
    smaller(ret_least, &odd);
    smaller(ret_least, &below_even);
    smaller(ret_least, &below_odd);
}

/* y[2] and c[2]: of a block. Colour is taken as the sample has it. */
INLINE bool block_exceeds(const uint8_t *const y[2], const uint8_t *const c[2], int sub_x,
                          const struct gamut_levels *l)
{
    v16s cb;
    v16s cr;
    struct gamut_rgb rgb;
    bytes(c[0], &cb);
    bytes(c[1], &cr);
    cb -= GREY;
    cr -= GREY;
    added(&cb, &cr, l, &rgb);
    v16s most = rgb.r;
    v16s least = rgb.r;
    larger(&most, &rgb.g);
    larger(&most, &rgb.b);
    smaller(&least, &rgb.g);
    smaller(&least, &rgb.b);
    v16s light = LIGHT + GAMUT_TOLERATED - most; /* brightness that would be too much */
    v16s dark = -GAMUT_TOLERATED - least;
    light += l->y_least - (light * l->y_less >> 8);
    dark += l->y_least - (dark * l->y_less >> 8);
    v16s y_most;
    v16s y_least;
    brightness(y, sub_x, &y_most, &y_least);
    v16s beyond = (light - y_most) | (y_least - dark); /* negative where a pixel is outside */
    return any_negative(&beyond);
}

/* The same of the block at sample `at`. */
INLINE bool exceeds_at(const struct gamut_rows *g, int at, int n, int sub_x,
                       const struct gamut_levels *l)
{
    struct edge_block edge;
    int from = MIN(at, MAX(g->w / sub_x - N, 0)); /* the last block overlaps the one before it */
    const uint8_t *y[2] = {g->y[0] + from * sub_x, g->y[g->y_n - 1] + from * sub_x};
    const uint8_t *c[2] = {g->c[0][1] + from, g->c[1][1] + from};
    if (g->w / sub_x < N || from + N < MIN(at + N, n)) { /* narrow, or an odd pixel at the end */
        copy_edge(g, at, &edge);
        for (int i = 0; i < 2; i++) {
            y[i] = edge.y[i];
            c[i] = edge.c[i][1] + 1;
        }
    }
    return block_exceeds(y, c, sub_x, l);
}

/* Three quarters of a sample and one of that in the row above or below: four times its colour. */
INLINE void of_both_rows(const uint8_t *near, const uint8_t *far, v16s *ret)
{
    v16s other;
    bytes(near, ret);
    bytes(far, &other);
    *ret = *ret * 3 + other;
}

/* Colour at the even and odd pixels of a row, as decoders make it: in each direction three quarters
 * of the nearer sample and one of the other. */
INLINE void blown_up(const uint8_t *const c[3], int sub_x, int sub_y, int row, v16s *ret_even,
                     v16s *ret_odd)
{
    v16s before;
    v16s here;
    v16s after;
    const uint8_t *far = sub_y == 1 ? c[1] : c[2 * row];
    of_both_rows(c[1], far, &here);
    if (sub_x == 1) {
        *ret_even = *ret_odd = (here + 2) >> 2;
    } else {
        of_both_rows(c[1] - 1, far - 1, &before);
        of_both_rows(c[1] + 1, far + 1, &after);
        here *= 3;
        *ret_even = (here + before + 8) >> 4;
        *ret_odd = (here + after + 7) >> 4;
    }
}

INLINE void to_byte(v16s *v)
{
    v16s r;
    for (int i = 0; i < N; i++) {
        r[i] = MIN(MAX((*v)[i], 0), LIGHT);
    }
    *v = r;
}

/* By how much a value must move into 0 to 255. */
INLINE void into_range(const v16s *v, v16s *ret)
{
    *ret = *v;
    to_byte(ret);
    *ret -= *v;
}

INLINE void sum_of(const struct gamut_rgb *d, const struct gamut_rgb *parts, v16s *ret)
{
    *ret = (parts->r * d->r + parts->g * d->g + parts->b * d->b + 64) >> 7;
}

/* What clipping in RGB does to pixels: the differences in the levels of the planes. */
INLINE void differences(const struct gamut_ycc *p, const struct gamut_levels *l,
                        struct gamut_ycc *ret)
{
    v16s cb = p->cb - GREY;
    v16s cr = p->cr - GREY;
    v16s y = p->y - l->y_least;
    struct gamut_rgb rgb;
    struct gamut_rgb d;
    y += y * l->y_more >> 8;
    added(&cb, &cr, l, &rgb);
    rgb.r += y;
    rgb.g += y;
    rgb.b += y;
    into_range(&rgb.r, &d.r);
    into_range(&rgb.g, &d.g);
    into_range(&rgb.b, &d.b);
    sum_of(&d, &l->y_of, &ret->y);
    sum_of(&d, &l->cb_of, &ret->cb);
    sum_of(&d, &l->cr_of, &ret->cr);
}

INLINE void put_bytes(const v16s *v, uint8_t *out)
{
    v16b b = __builtin_convertvector(*v, v16b);
    memcpy(out, &b, sizeof b);
}

/* Clip the brightness of pixels; add the differences of their colours to sum. */
INLINE void pixels_clip(struct gamut_ycc *p, const struct gamut_levels *l, v16s sum[2])
{
    struct gamut_ycc d;
    differences(p, l, &d);
    p->y += d.y;
    to_byte(&p->y);
    sum[0] += d.cb;
    sum[1] += d.cr;
}

INLINE void row_clip(const struct block *b, int sub_x, int sub_y, const struct gamut_levels *l,
                     int row, uint8_t *y, v16s sum[2])
{
    struct gamut_ycc even;
    struct gamut_ycc odd;
    pixels(b->y[row], sub_x, &even.y, &odd.y);
    blown_up(b->c[0], sub_x, sub_y, row, &even.cb, &odd.cb);
    blown_up(b->c[1], sub_x, sub_y, row, &even.cr, &odd.cr);
    pixels_clip(&even, l, sum);
    if (sub_x == 1) {
        put_bytes(&even.y, y);
    } else {
        pixels_clip(&odd, l, sum);
        v16u both = (v16u)even.y | (v16u)odd.y << 8;
        memcpy(y, &both, sizeof both);
    }
}

INLINE void block_clip(const struct block *b, int sub_x, int sub_y, int y_n,
                       const struct gamut_levels *l, uint8_t *const y[2], uint8_t *const c[2])
{
    v16s sum[2] = {0};
    int shift = (sub_x == 2) + (y_n == 2);
    for (int i = 0; i < y_n; i++) {
        row_clip(b, sub_x, sub_y, l, i, y[i], sum);
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
                      int sub_y, const struct gamut_levels *l, uint8_t *const y[2],
                      uint8_t *const c[2])
{
    int first = at * sub_x;
    struct edge_block out;
    uint8_t *const y_to[2] = {b->whole ? y[0] + first : out.y[0],
                              b->whole ? y[1] + first : out.y[1]};
    uint8_t *const c_to[2] = {b->whole ? c[0] + at : out.c[0][0],
                              b->whole ? c[1] + at : out.c[1][0]};
    block_clip(b, sub_x, sub_y, g->y_n, l, y_to, c_to);
    for (int i = 0; i < 2 && !b->whole; i++) {
        if (i < g->y_n) {
            memcpy(y[i] + first, out.y[i], (size_t)MIN(N * sub_x, g->w - first));
        }
        memcpy(c[i] + at, out.c[i][0], (size_t)MIN(N, n - at));
    }
}

INLINE const struct gamut_levels *levels_of(const struct gamut_rows *g)
{
    return g->form.narrow ? &NARROW : &FULL;
}

INLINE bool exceeds_form(const struct gamut_rows *g, int sub_x)
{
    int n = samples_of(g);
    const struct gamut_levels *l = levels_of(g);
    for (int at = 0; at < n; at += N) {
        if (exceeds_at(g, at, n, sub_x, l)) {
            return true;
        }
    }
    return false;
}

INLINE bool clip_form(const struct gamut_rows *g, int sub_x, int sub_y, uint8_t *const y[2],
                      uint8_t *const c[2])
{
    int n = samples_of(g);
    const struct gamut_levels *l = levels_of(g);
    bool clipped = false;
    for (int at = 0; at < n; at += N) {
        struct edge_block edge;
        struct block b;
        if (!exceeds_at(g, at, n, sub_x, l)) {
            continue;
        }
        for (int i = 0; !clipped && i < 2; i++) {
            memcpy(y[i], g->y[MIN(i, g->y_n - 1)], (size_t)g->w);
            memcpy(c[i], g->c[i][1], (size_t)n);
        }
        clipped = true;
        block_at(g, at, sub_x, n, &edge, &b);
        put_block(g, &b, at, n, sub_x, sub_y, l, y, c);
    }
    return clipped;
}

/* The compiler makes a loop of its own for the usual forms. */
INLINE bool exceeds(const struct gamut_rows *g)
{
    return g->form.sub_x == 2 ? exceeds_form(g, 2) : exceeds_form(g, 1);
}

INLINE bool clip(const struct gamut_rows *g, uint8_t *const y[2], uint8_t *const c[2])
{
    const struct plane_form *f = &g->form;
    return f->sub_x == 2 && f->sub_y == 2 ? clip_form(g, 2, 2, y, c)
                                          : clip_form(g, f->sub_x, f->sub_y, y, c);
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
