/* One function body per loop, always inlined into a function for each instruction set. Vectors have
 * eight floats; without AVX the compiler splits them. */
#include "simd.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define BLOCK 32
#define SMALL 8

#define ROWS_AT_ONCE 6 /* as many rows as have a weight and a pointer in registers */

typedef float v8f __attribute__((vector_size(32)));
typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef int32_t v4i __attribute__((vector_size(16)));

/* Blocks of fixed length and pointers that do not alias: the compiler vectorises these loops and
 * widens sixteen bytes at a time, which the vector types of the language cannot express as well. */
ALWAYS_INLINE void lines(float *restrict line, const uint8_t *restrict row, float w, size_t n,
                         bool add)
{
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        for (size_t k = 0; k < BLOCK; k++) {
            float x = w * (float)row[i + k];
            line[i + k] = add ? line[i + k] + x : x;
        }
    }
    for (; i + SMALL <= n; i += SMALL) {
        for (size_t k = 0; k < SMALL; k++) {
            float x = w * (float)row[i + k];
            line[i + k] = add ? line[i + k] + x : x;
        }
    }
    for (; i < n; i++) {
        float x = w * (float)row[i];
        line[i] = add ? line[i] + x : x;
    }
}

/* The line is read and written once for two rows. Adding to 0 keeps the order of operations: with
 * FMA the compiler could otherwise round the second product instead of the first. */
ALWAYS_INLINE void lines_two(float *restrict line, const uint8_t *restrict row,
                             const uint8_t *restrict next, const float *w, size_t n, bool add)
{
    const float first = w[0];
    const float second = w[1];
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        for (size_t k = 0; k < BLOCK; k++) {
            float x = (add ? line[i + k] : 0.0f) + first * (float)row[i + k];
            line[i + k] = x + second * (float)next[i + k];
        }
    }
    for (; i + SMALL <= n; i += SMALL) {
        for (size_t k = 0; k < SMALL; k++) {
            float x = (add ? line[i + k] : 0.0f) + first * (float)row[i + k];
            line[i + k] = x + second * (float)next[i + k];
        }
    }
    for (; i < n; i++) {
        float x = (add ? line[i] : 0.0f) + first * (float)row[i];
        line[i] = x + second * (float)next[i];
    }
}

/* As many rows as there are, two at a time. */
static void sum_portable(float *line, const uint8_t *const *rows, const float *w, size_t rows_n,
                         size_t n, bool add)
{
    size_t k = 0;
    for (; k + 1 < rows_n; k += 2) {
        lines_two(line, rows[k], rows[k + 1], w + k, n, add || k > 0);
    }
    if (k < rows_n) {
        lines(line, rows[k], w[k], n, add || k > 0);
    }
}

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2,fma")))

/* Widening eight bytes is one instruction, which the compiler does not find. */
static inline AVX2 void eight_floats(const uint8_t *p, __m256 *ret)
{
    *ret =
        _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

/* From value i on `vectors` times eight of a line, which stay in registers until each row is
 * added. */
ALWAYS_INLINE AVX2 void sum_block(float *line, const uint8_t *const *rows, const float *w,
                                  int rows_n, size_t i, int vectors, bool add)
{
    __m256 sum[BLOCK / SMALL];
    __m256 px;
#pragma GCC unroll 8
    for (int r = 0; r < rows_n; r++) {
        __m256 weight = _mm256_set1_ps(w[r]);
#pragma GCC unroll 8
        for (int k = 0; k < vectors; k++) {
            eight_floats(rows[r] + i + SMALL * k, &px);
            if (r == 0) {
                sum[k] = add ? _mm256_fmadd_ps(weight, px, _mm256_loadu_ps(line + i + SMALL * k))
                             : _mm256_mul_ps(weight, px);
            } else {
                sum[k] = _mm256_fmadd_ps(weight, px, sum[k]);
            }
        }
    }
#pragma GCC unroll 8
    for (int k = 0; k < vectors; k++) {
        _mm256_storeu_ps(line + i + SMALL * k, sum[k]);
    }
}

/* rows_n is a constant. */
ALWAYS_INLINE AVX2 void sum_some(float *line, const uint8_t *const *all, const float *w, int rows_n,
                                 size_t n, bool add)
{
    const uint8_t *rows[ROWS_AT_ONCE];
    size_t i = 0;
    memcpy(rows, all, (size_t)rows_n * sizeof *rows);
    for (; i + BLOCK <= n; i += BLOCK) {
        sum_block(line, rows, w, rows_n, i, BLOCK / SMALL, add);
    }
    for (; i + SMALL <= n; i += SMALL) {
        sum_block(line, rows, w, rows_n, i, 1, add);
    }
    for (; i < n; i++) {
        float x = add ? line[i] : 0.0f; /* as in lines_two */
        for (int r = 0; r < rows_n; r++) {
            x += w[r] * (float)rows[r][i];
        }
        line[i] = x;
    }
}

static AVX2 void sum_avx2(float *line, const uint8_t *const *rows, const float *w, size_t rows_n,
                          size_t n, bool add)
{
    while (rows_n > 0) {
        int some = (int)MIN(rows_n, (size_t)ROWS_AT_ONCE);
        switch (some) {
        case 1:
            sum_some(line, rows, w, 1, n, add);
            break;
        case 2:
            sum_some(line, rows, w, 2, n, add);
            break;
        case 3:
            sum_some(line, rows, w, 3, n, add);
            break;
        case 4:
            sum_some(line, rows, w, 4, n, add);
            break;
        case 5:
            sum_some(line, rows, w, 5, n, add);
            break;
        default:
            sum_some(line, rows, w, ROWS_AT_ONCE, n, add);
        }
        rows += some;
        w += some;
        rows_n -= (size_t)some;
        add = true;
    }
}
#endif

/* One output pixel in eight partial sums. A constant `blocks` leaves no loop. */
ALWAYS_INLINE void weighted(const float *p, const float *weights, size_t blocks, v8f *ret)
{
    v8f px;
    v8f w;
    memcpy(&px, p, sizeof px);
    memcpy(&w, weights, sizeof w);
    v8f sum = px * w;
    for (size_t k = 8; k < 8 * blocks; k += 8) {
        memcpy(&px, p + k, sizeof px);
        memcpy(&w, weights + k, sizeof w);
        sum += px * w;
    }
    *ret = sum;
}

/* Add neighbours: of each four lanes two sums of a, then two of b. */
ALWAYS_INLINE void pairs(const v8f *a, const v8f *b, v8f *ret)
{
    *ret = __builtin_shufflevector(*a, *b, 0, 2, 8, 10, 4, 6, 12, 14) +
           __builtin_shufflevector(*a, *b, 1, 3, 9, 11, 5, 7, 13, 15);
}

/* Four output pixels in two partial sums each: four and four lanes. step: from one pixel to the
 * next. */
ALWAYS_INLINE void weighted_four(const float *line, const struct simd_weights *t, const float *w,
                                 int step, size_t blocks, v8f *ret)
{
    const size_t next = (size_t)step * blocks * SIMD_PAD;
    v8f a;
    v8f b;
    v8f first;
    weighted(line + t->start, w, blocks, &a);
    weighted(line + t[step].start, w + next, blocks, &b);
    pairs(&a, &b, &first);
    weighted(line + t[2 * step].start, w + 2 * next, blocks, &a);
    weighted(line + t[3 * step].start, w + 3 * next, blocks, &b);
    pairs(&a, &b, &a);
    pairs(&first, &a, ret);
}

/* Eight output pixels, 0 to 255. */
ALWAYS_INLINE void grey_eight(const float *line, const struct simd_weights *t, const float *w,
                              int step, size_t blocks, float offset, v8i *ret)
{
    v8f a;
    v8f b;
    weighted_four(line, t, w, step, blocks, &a);
    weighted_four(line, t + 4 * step, w + (size_t)(4 * step) * blocks * SIMD_PAD, step, blocks, &b);
    v8f sum = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
              __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15) + offset;
    v8i v = __builtin_convertvector(sum, v8i);
    v8i inside = v;
    for (int i = 0; i < 8; i++) {
        inside[i] = MIN(MAX(v[i], 0), 255);
    }
    *ret = inside;
}

/* Thirty-two output pixels: every fourth one is in the same byte of a lane, so that bytes are in
 * order without being moved. */
ALWAYS_INLINE void grey_many(const float *line, const struct simd_weights *t, const float *w,
                             size_t blocks, float offset, uint8_t *out)
{
    v8i all = {0};
    for (size_t i = 0; i < 4; i++) {
        v8i v;
        grey_eight(line, t + i, w + i * blocks * SIMD_PAD, 4, blocks, offset, &v);
        all |= v << (int)(8 * i);
    }
    memcpy(out, &all, sizeof all);
}

/* In the order of grey_eight. */
ALWAYS_INLINE uint8_t grey_one(const float *line, const struct simd_weights *t, size_t blocks,
                               float offset)
{
    v8f s;
    weighted(line + t->start, t->w, blocks, &s);
    float sum = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])) + offset;
    return (uint8_t)MIN(MAX((int)sum, 0), 255);
}

/* The last eight overlap those before. */
ALWAYS_INLINE void grey_blocks(const float *line, const struct simd_weights *taps, int n,
                               size_t blocks, float offset, uint8_t *out)
{
    int x = 0;
    for (; x + 32 <= n; x += 32) {
        grey_many(line, taps + x, taps[x].w, blocks, offset, out + x);
    }
    for (; x < n && n >= 8; x += 8) {
        v8i v;
        int at = MIN(x, n - 8);
        grey_eight(line, taps + at, taps[at].w, 1, blocks, offset, &v);
        for (int i = 0; i < 8; i++) {
            out[at + i] = (uint8_t)v[i];
        }
    }
    for (; x < n; x++) {
        out[x] = grey_one(line, taps + x, blocks, offset);
    }
}

ALWAYS_INLINE void grey(const float *line, const struct simd_weights *taps, int n, size_t blocks,
                        float offset, uint8_t *out)
{
    offset += 0.5f;
    if (blocks == 1) {
        grey_blocks(line, taps, n, 1, offset, out);
    } else {
        grey_blocks(line, taps, n, blocks, offset, out);
    }
}

/* Three of the four lanes are a pixel; the last is the next pixel's red and is dropped. */
ALWAYS_INLINE void rgb(const float *line, const struct simd_weights *taps, int n, uint8_t *out)
{
    const v4i most = {255, 255, 255, 255};
    for (int x = 0; x < n; x++, out += 3) {
        const struct simd_weights *t = &taps[x];
        const float *p = line + 3 * (size_t)t->start;
        v4f sum = {0.5f, 0.5f, 0.5f, 0.5f};
        for (int k = 0; k < t->n; k++, p += 3) {
            v4f px;
            memcpy(&px, p, sizeof px);
            sum += px * t->w[k];
        }
        v4i v = __builtin_convertvector(sum, v4i);
        v &= ~(v >> 31);
        v4i over = v > most;
        v = (v & ~over) | (most & over);
        out[0] = (uint8_t)v[0];
        out[1] = (uint8_t)v[1];
        out[2] = (uint8_t)v[2];
    }
}

#define LOOPS_FOR(X, suffix, attributes)                                                           \
    attributes static void set_##suffix(float *line, const uint8_t *row, float w, size_t n)        \
    {                                                                                              \
        lines(line, row, w, n, false);                                                             \
    }                                                                                              \
    attributes static void add_##suffix(float *line, const uint8_t *row, float w, size_t n)        \
    {                                                                                              \
        lines(line, row, w, n, true);                                                              \
    }                                                                                              \
    attributes static void grey_##suffix(const float *line, const struct simd_weights *taps,       \
                                         int n, size_t blocks, float offset, uint8_t *out)         \
    {                                                                                              \
        grey(line, taps, n, blocks, offset, out);                                                  \
    }                                                                                              \
    attributes static void rgb_##suffix(const float *line, const struct simd_weights *taps, int n, \
                                        uint8_t *out)                                              \
    {                                                                                              \
        rgb(line, taps, n, out);                                                                   \
    }                                                                                              \
    static const struct simd X = {#suffix,      set_##suffix,  add_##suffix,                       \
                                  sum_##suffix, grey_##suffix, rgb_##suffix};

LOOPS_FOR(any_processor, portable, )
#ifdef __x86_64__
LOOPS_FOR(with_avx2, avx2, AVX2)
#endif

const struct simd *simd_pick(bool portable)
{
#ifdef __x86_64__
    if (!portable && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &with_avx2;
    }
#endif
    (void)portable;
    return &any_processor;
}
