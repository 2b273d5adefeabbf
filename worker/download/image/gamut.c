/* Sixteen samples of colour at a time, with the one or two pixels of a row that each belongs to:
 * pixels with even and odd places are two vectors, so that nothing is interleaved. Colour is held
 * 256 times as large where it is multiplied: the upper half of the product is whole levels.
 * Coefficients are read from a table: constants would be multiplied with by shifts and additions,
 * four of them for a multiplication that processors make at once. */
#include "gamut.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define N     16 /* samples of a block */
#define LIGHT 255

typedef int16_t v16s __attribute__((vector_size(32)));
typedef uint16_t v16u __attribute__((vector_size(32)));
typedef uint8_t v16b __attribute__((vector_size(16)));
typedef uint8_t v32b __attribute__((vector_size(32)));
typedef int64_t v4l __attribute__((vector_size(32)));

struct gamut_ycc {
    v16s y, cb, cr;
};
struct gamut_rgb {
    v16s r, g, b;
};
/* Between the levels of the planes and 0 to 255 in RGB. */
struct gamut_levels {
    v16s grey, byte, light, dark; /* no colour; 255; the limits in RGB, with what is tolerated */
    v16s y_least, y_more, y_less; /* brightness that is black; 256ths to stretch and shrink it */
    v16s red_cr, green_cb, green_cr, blue_cb; /* 256ths of colour */
    struct gamut_rgb y_of, cb_of, cr_of;      /* 128ths */
};
#define EACH(x)                                                                                    \
    {                                                                                              \
        x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x                                             \
    }
#define LIMITS                                                                                     \
    .grey = EACH(COLOUR_NONE), .byte = EACH(255), .light = EACH(LIGHT + GAMUT_TOLERATED),          \
    .dark = EACH(-GAMUT_TOLERATED)
static const struct gamut_levels FULL = {
    LIMITS,
    .y_least = EACH(0),
    .y_more = EACH(0),
    .y_less = EACH(0),
    .red_cr = EACH(256 + 103),
    .green_cb = EACH(88),
    .green_cr = EACH(183),
    .blue_cb = EACH(58 - 512),
    .y_of = {EACH(38), EACH(75), EACH(15)},
    .cb_of = {EACH(-22), EACH(-42), EACH(64)},
    .cr_of = {EACH(64), EACH(-54), EACH(-10)},
};
static const struct gamut_levels NARROW = {
    LIMITS,
    .y_least = EACH(16),
    .y_more = EACH(42),
    .y_less = EACH(36),
    .red_cr = EACH(256 + 153),
    .green_cb = EACH(100),
    .green_cr = EACH(208),
    .blue_cb = EACH(-4 - 512),
    .y_of = {EACH(33), EACH(65), EACH(12)},
    .cb_of = {EACH(-19), EACH(-37), EACH(56)},
    .cr_of = {EACH(56), EACH(-47), EACH(-9)},
};
/* Where a block's pixels and samples are; colour is read from one sample before it to one after. */
struct block {
    const uint8_t *y[2];
    const uint8_t *c[2][3];
};
/* What is needed to see whether a block exceeds RGB. */
struct places {
    const uint8_t *y0, *y1, *cb, *cr;
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

ALWAYS_INLINE void block_at(const struct gamut_rows *g, int at, int sub_x, struct block *ret)
{
    ret->y[0] = g->y[0] + at * sub_x;
    ret->y[1] = g->y[g->y_n - 1] + at * sub_x;
    for (int k = 0; k < 3; k++) {
        ret->c[0][k] = g->c[0][k] + at;
        ret->c[1][k] = g->c[1][k] + at;
    }
}

#ifdef __x86_64__
/* One instruction each, which the compiler does not find. */
static inline __attribute__((target("avx2"))) void bytes_avx2(const uint8_t *p, v16s *ret)
{
    __m128i b;
    memcpy(&b, p, sizeof b);
    *ret = (v16s)_mm256_cvtepu8_epi16(b);
}

static inline __attribute__((target("avx2"))) bool any_negative_avx2(const v16s *v)
{
    return _mm256_testz_si256((__m256i)*v, _mm256_set1_epi16(INT16_MIN)) == 0;
}
#endif

ALWAYS_INLINE void bytes(const uint8_t *p, bool avx2, v16s *ret)
{
#ifdef __x86_64__
    if (avx2) {
        bytes_avx2(p, ret);
        return;
    }
#endif
    v16b b;
    (void)avx2;
    memcpy(&b, p, sizeof b);
    *ret = __builtin_convertvector(b, v16s);
}

/* The pixels of each sample: with one they are the same twice. */
ALWAYS_INLINE void pixels(const uint8_t *y, int sub_x, bool avx2, v16s *ret_even, v16s *ret_odd)
{
    if (sub_x == 1) {
        bytes(y, avx2, ret_even);
        *ret_odd = *ret_even;
        return;
    }
    v16s both;
    memcpy(&both, y, sizeof both);
    *ret_even = both & 255;
    *ret_odd = (both >> 8) & 255;
}

/* Loops over elements: compilers make the processor's maximum and minimum of them. */
ALWAYS_INLINE void larger(v16s *a, const v16s *b)
{
    v16s v = *a;
    for (int i = 0; i < N; i++) {
        v[i] = MAX((*a)[i], (*b)[i]);
    }
    *a = v;
}

ALWAYS_INLINE void smaller(v16s *a, const v16s *b)
{
    v16s v = *a;
    for (int i = 0; i < N; i++) {
        v[i] = MIN((*a)[i], (*b)[i]);
    }
    *a = v;
}

ALWAYS_INLINE bool any_negative(const v16s *v, bool avx2)
{
#ifdef __x86_64__
    if (avx2) {
        return any_negative_avx2(v);
    }
#endif
    v4l m = (v4l)*v;
    (void)avx2;
    m |= __builtin_shufflevector(m, m, 2, 3, 0, 1);
    return ((m[0] | m[1]) & (int64_t)UINT64_C(0x8000800080008000)) != 0;
}

/* The upper half of each product. */
ALWAYS_INLINE void high(const v16s *a, const v16s *b, v16s *ret)
{
    v16s v = *a;
    for (int i = 0; i < N; i++) {
        v[i] = (int16_t)((*a)[i] * (*b)[i] >> 16);
    }
    *ret = v;
}

/* What colour adds to the brightness of red and takes from that of green and blue in RGB: levels 0
 * to 255, whatever those of the planes are. cb, cr: 256 times the colour. */
ALWAYS_INLINE void added(const v16s *cb, const v16s *cr, const struct gamut_levels *l,
                         struct gamut_rgb *ret)
{
    v16s of_cb;
    high(cr, &l->red_cr, &ret->r);
    high(cb, &l->green_cb, &of_cb);
    high(cr, &l->green_cr, &ret->g);
    ret->g += of_cb;
    high(cb, &l->blue_cb, &ret->b);
}

/* The brightest and the darkest of each sample's pixels: first of both rows, as bytes. */
ALWAYS_INLINE void brightness(const struct places *p, int sub_x, bool avx2,
                              const struct gamut_levels *l, v16s *ret_most, v16s *ret_least)
{
    v32b upper;
    v32b lower;
    if (sub_x == 1) {
        v16s below;
        bytes(p->y0, avx2, ret_most);
        bytes(p->y1, avx2, &below);
        *ret_least = *ret_most;
        larger(ret_most, &below);
        smaller(ret_least, &below);
        return;
    }
    memcpy(&upper, p->y0, sizeof upper);
    memcpy(&lower, p->y1, sizeof lower);
    v32b most = upper;
    v32b least = upper;
    for (int i = 0; i < 2 * N; i++) {
        most[i] = MAX(upper[i], lower[i]);
    }
    for (int i = 0; i < 2 * N; i++) {
        least[i] = MIN(upper[i], lower[i]);
    }
    v16s odd = (v16s)((v16u)most >> 8);
    *ret_most = (v16s)most & l->byte;
    larger(ret_most, &odd);
    odd = (v16s)((v16u)least >> 8);
    *ret_least = (v16s)least & l->byte;
    smaller(ret_least, &odd);
}

/* Colour is taken as the sample has it. */
ALWAYS_INLINE bool block_exceeds(const struct places *p, int sub_x, bool narrow, bool avx2,
                                 const struct gamut_levels *l)
{
    v16s cb;
    v16s cr;
    struct gamut_rgb rgb;
    bytes(p->cb, avx2, &cb);
    bytes(p->cr, avx2, &cr);
    cb = (cb - l->grey) << 8;
    cr = (cr - l->grey) << 8;
    added(&cb, &cr, l, &rgb);
    // cppcheck-suppress duplicateAssignExpression ; both begin with green
    v16s most = rgb.g;
    v16s least = rgb.g;
    smaller(&most, &rgb.b);
    larger(&least, &rgb.b);
    most = -most;
    least = -least;
    larger(&most, &rgb.r);
    smaller(&least, &rgb.r);
    v16s light = l->light - most; /* brightness that would be too much */
    v16s dark = l->dark - least;
    if (narrow) {
        light += l->y_least - (light * l->y_less >> 8);
        dark += l->y_least - (dark * l->y_less >> 8);
    }
    v16s y_most;
    v16s y_least;
    brightness(p, sub_x, avx2, l, &y_most, &y_least);
    v16s beyond = (light - y_most) | (y_least - dark); /* negative where a pixel is outside */
    return any_negative(&beyond, avx2);
}

ALWAYS_INLINE void places_at(const struct gamut_rows *g, int at, int sub_x, struct places *ret)
{
    *ret = (struct places){g->y[0] + at * sub_x, g->y[g->y_n - 1] + at * sub_x, g->c[0][1] + at,
                           g->c[1][1] + at};
}

/* A block that reaches beyond the last sample of a narrow picture, or of one with an odd pixel at
 * the end. */
static __attribute__((noinline)) bool end_exceeds(const struct gamut_rows *g, int at,
                                                  const struct gamut_levels *l)
{
    struct edge_block e;
    int sub_x = g->form.sub_x;
    const uint8_t *const c[2] = {g->c[0][1], g->c[1][1]};
    for (int i = 0; i < 2; i++) {
        // cppcheck-suppress uninitvar ; it is filled here
        copy_repeated(g->y[MIN(i, g->y_n - 1)], g->w, at * sub_x, N * sub_x, e.y[i]);
        copy_repeated(c[i], samples_of(g), at, N, e.c[i][1]);
    }
    const struct places p = {e.y[0], e.y[1], e.c[0][1], e.c[1][1]};
    return sub_x == 2 ? block_exceeds(&p, 2, g->form.narrow, false, l)
                      : block_exceeds(&p, 1, g->form.narrow, false, l);
}

/* first: of the rows; last: the last sample that a whole block begins at. What is left behind it is
 * a block that overlaps the one before. */
ALWAYS_INLINE bool exceeds_at(const struct gamut_rows *g, const struct places *first, int at,
                              int last, int sub_x, bool avx2, const struct gamut_levels *l)
{
    if (at > last) {
        if (last < 0 || (sub_x == 2 && g->w % 2 != 0)) {
            return end_exceeds(g, at, l);
        }
        at = last;
    }
    const struct places p = {first->y0 + at * sub_x, first->y1 + at * sub_x, first->cb + at,
                             first->cr + at};
    return block_exceeds(&p, sub_x, g->form.narrow, avx2, l);
}

/* Three quarters of a sample and one of that in the row above or below: four times its colour. */
ALWAYS_INLINE void of_both_rows(const uint8_t *near, const uint8_t *far, bool avx2, v16s *ret)
{
    v16s other;
    bytes(near, avx2, ret);
    bytes(far, avx2, &other);
    *ret = *ret * 3 + other;
}

/* Colour at the even and odd pixels of a row, as decoders make it: in each direction three quarters
 * of the nearer sample and one of the other. */
ALWAYS_INLINE void blown_up(const uint8_t *const c[3], int sub_x, int sub_y, bool avx2, int row,
                            v16s *ret_even, v16s *ret_odd)
{
    v16s before;
    v16s here;
    v16s after;
    const uint8_t *far = sub_y == 1 ? c[1] : c[2 * row];
    of_both_rows(c[1], far, avx2, &here);
    if (sub_x == 1) {
        *ret_even = *ret_odd = (here + 2) >> 2;
    } else {
        of_both_rows(c[1] - 1, far - 1, avx2, &before);
        of_both_rows(c[1] + 1, far + 1, avx2, &after);
        here *= 3;
        *ret_even = (here + before + 8) >> 4;
        *ret_odd = (here + after + 7) >> 4;
    }
}

ALWAYS_INLINE void to_byte(v16s *v)
{
    v16s r = *v;
    for (int i = 0; i < N; i++) {
        r[i] = MIN(MAX((*v)[i], 0), LIGHT);
    }
    *v = r;
}

/* By how much a value must move into 0 to 255. */
ALWAYS_INLINE void into_range(const v16s *v, v16s *ret)
{
    *ret = *v;
    to_byte(ret);
    *ret -= *v;
}

ALWAYS_INLINE void sum_of(const struct gamut_rgb *d, const struct gamut_rgb *parts, v16s *ret)
{
    *ret = (parts->r * d->r + parts->g * d->g + parts->b * d->b + 64) >> 7;
}

/* What clipping in RGB does to pixels: the differences in the levels of the planes. */
ALWAYS_INLINE void differences(const struct gamut_ycc *p, const struct gamut_levels *l,
                               struct gamut_ycc *ret)
{
    v16s cb = (p->cb - COLOUR_NONE) << 8;
    v16s cr = (p->cr - COLOUR_NONE) << 8;
    v16s y = p->y - l->y_least;
    struct gamut_rgb rgb;
    struct gamut_rgb d;
    y += y * l->y_more >> 8;
    added(&cb, &cr, l, &rgb);
    rgb.r = y + rgb.r;
    rgb.g = y - rgb.g;
    rgb.b = y - rgb.b;
    into_range(&rgb.r, &d.r);
    into_range(&rgb.g, &d.g);
    into_range(&rgb.b, &d.b);
    sum_of(&d, &l->y_of, &ret->y);
    sum_of(&d, &l->cb_of, &ret->cb);
    sum_of(&d, &l->cr_of, &ret->cr);
}

ALWAYS_INLINE void put_bytes(const v16s *v, uint8_t *out)
{
    v16b b = __builtin_convertvector(*v, v16b);
    memcpy(out, &b, sizeof b);
}

/* Clip the brightness of pixels; add the differences of their colours to sum. */
ALWAYS_INLINE void pixels_clip(struct gamut_ycc *p, const struct gamut_levels *l, v16s sum[2])
{
    struct gamut_ycc d;
    differences(p, l, &d);
    p->y += d.y;
    to_byte(&p->y);
    sum[0] += d.cb;
    sum[1] += d.cr;
}

ALWAYS_INLINE void row_clip(const struct block *b, int sub_x, int sub_y, bool avx2,
                            const struct gamut_levels *l, int row, uint8_t *y, v16s sum[2])
{
    struct gamut_ycc even;
    struct gamut_ycc odd;
    pixels(b->y[row], sub_x, avx2, &even.y, &odd.y);
    blown_up(b->c[0], sub_x, sub_y, avx2, row, &even.cb, &odd.cb);
    blown_up(b->c[1], sub_x, sub_y, avx2, row, &even.cr, &odd.cr);
    pixels_clip(&even, l, sum);
    if (sub_x == 1) {
        put_bytes(&even.y, y);
    } else {
        pixels_clip(&odd, l, sum);
        v16u both = (v16u)even.y | (v16u)odd.y << 8;
        memcpy(y, &both, sizeof both);
    }
}

ALWAYS_INLINE void block_clip(const struct block *b, int sub_x, int sub_y, bool avx2, int y_n,
                              const struct gamut_levels *l, uint8_t *const y[2],
                              uint8_t *const c[2])
{
    v16s sum[2] = {0};
    int shift = (sub_x == 2) + (y_n == 2);
    for (int i = 0; i < y_n; i++) {
        row_clip(b, sub_x, sub_y, avx2, l, i, y[i], sum);
    }
    for (int i = 0; i < 2; i++) {
        v16s v;
        bytes(b->c[i][1], avx2, &v);
        v += (sum[i] + (int16_t)(1 << shift >> 1)) >> shift;
        to_byte(&v);
        put_bytes(&v, c[i]);
    }
}

/* A block at the left or right edge into the rows y, c. Not inlined, and the same for all
 * processors: there are few. */
static __attribute__((noinline)) void clip_edge(const struct gamut_rows *g, int at,
                                                const struct gamut_levels *l, uint8_t *const y[2],
                                                uint8_t *const c[2])
{
    struct edge_block edge;
    struct edge_block out;
    struct block b;
    int sub_x = g->form.sub_x;
    int first = at * sub_x;
    // cppcheck-suppress uninitvar ; where they are
    uint8_t *const y_to[2] = {out.y[0], out.y[1]};
    uint8_t *const c_to[2] = {out.c[0][0], out.c[1][0]};
    copy_edge(g, at, &edge);
    for (int i = 0; i < 2; i++) {
        b.y[i] = edge.y[i];
        for (int k = 0; k < 3; k++) {
            b.c[i][k] = edge.c[i][k] + 1;
        }
    }
    block_clip(&b, sub_x, g->form.sub_y, false, g->y_n, l, y_to, c_to);
    for (int i = 0; i < g->y_n; i++) {
        memcpy(y[i] + first, out.y[i], (size_t)MIN(N * sub_x, g->w - first));
    }
    for (int i = 0; i < 2; i++) {
        memcpy(c[i] + at, out.c[i][0], (size_t)MIN(N, samples_of(g) - at));
    }
}

/* The block at sample `at` into the rows y, c. */
ALWAYS_INLINE void clip_at(const struct gamut_rows *g, int at, int n, int sub_x, int sub_y,
                           bool avx2, const struct gamut_levels *l, uint8_t *const y[2],
                           uint8_t *const c[2])
{
    if (at == 0 || at + N >= n) {
        clip_edge(g, at, l, y, c);
        return;
    }
    struct block b;
    uint8_t *const y_to[2] = {y[0] + at * sub_x, y[1] + at * sub_x};
    uint8_t *const c_to[2] = {c[0] + at, c[1] + at};
    block_at(g, at, sub_x, &b);
    block_clip(&b, sub_x, sub_y, avx2, g->y_n, l, y_to, c_to);
}

ALWAYS_INLINE const struct gamut_levels *levels_of(const struct gamut_rows *g)
{
    return g->form.narrow ? &NARROW : &FULL;
}

ALWAYS_INLINE bool exceeds_form(const struct gamut_rows *g, int sub_x, bool avx2)
{
    int n = samples_of(g);
    int last = g->w / sub_x - N;
    const struct gamut_levels *l = levels_of(g);
    struct places first;
    places_at(g, 0, sub_x, &first);
    for (int at = 0; at < n; at += N) {
        if (exceeds_at(g, &first, at, last, sub_x, avx2, l)) {
            return true;
        }
    }
    return false;
}

/* Brightness stays where it is when it is clipped in place. */
static void copy_rows(const struct gamut_rows *g, int n, uint8_t *const y[2], uint8_t *const c[2])
{
    for (int i = 0; i < 2; i++) {
        const uint8_t *from = g->y[MIN(i, g->y_n - 1)];
        if (y[i] != from) {
            memcpy(y[i], from, (size_t)g->w);
        }
        memcpy(c[i], g->c[i][1], (size_t)n);
    }
}

/* The last block is examined first: it may overlap the one before, still unchanged then. */
ALWAYS_INLINE bool clip_form(const struct gamut_rows *g, int sub_x, int sub_y, bool avx2,
                             uint8_t *const y[2], uint8_t *const c[2])
{
    int n = samples_of(g);
    int last = g->w / sub_x - N;
    int last_at = (n - 1) / N * N;
    const struct gamut_levels *l = levels_of(g);
    struct places first;
    bool clipped = false;
    places_at(g, 0, sub_x, &first);
    bool end = exceeds_at(g, &first, last_at, last, sub_x, avx2, l);
    for (int at = 0; at <= last_at; at += N) {
        if (at == last_at ? !end : !exceeds_at(g, &first, at, last, sub_x, avx2, l)) {
            continue;
        }
        if (!clipped) {
            copy_rows(g, n, y, c);
        }
        clipped = true;
        clip_at(g, at, n, sub_x, sub_y, avx2, l, y, c);
    }
    return clipped;
}

/* The compiler makes a loop of its own for the usual forms. */
ALWAYS_INLINE bool exceeds(const struct gamut_rows *g, bool avx2)
{
    return g->form.sub_x == 2 ? exceeds_form(g, 2, avx2) : exceeds_form(g, 1, avx2);
}

ALWAYS_INLINE bool clip(const struct gamut_rows *g, bool avx2, uint8_t *const y[2],
                        uint8_t *const c[2])
{
    const struct plane_form *f = &g->form;
    return f->sub_x == 2 && f->sub_y == 2 ? clip_form(g, 2, 2, avx2, y, c)
                                          : clip_form(g, f->sub_x, f->sub_y, avx2, y, c);
}

#define GAMUT_FOR(X, suffix, is_avx2, attributes)                                                  \
    attributes static bool exceeds_##suffix(const struct gamut_rows *g)                            \
    {                                                                                              \
        return exceeds(g, is_avx2);                                                                \
    }                                                                                              \
    attributes static bool clip_##suffix(const struct gamut_rows *g, uint8_t *const y[2],          \
                                         uint8_t *const c[2])                                      \
    {                                                                                              \
        return clip(g, is_avx2, y, c);                                                             \
    }                                                                                              \
    static const struct gamut X = {#suffix, exceeds_##suffix, clip_##suffix};

GAMUT_FOR(any_processor, portable, false, )
#ifdef __x86_64__
GAMUT_FOR(with_avx2, avx2, true, __attribute__((target("avx2"))))
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
