/* One function body per loop, always inlined into a function for each instruction set. Vectors have
 * eight floats; without AVX the compiler splits them. */
#include "simd.h"

#define INLINE static inline __attribute__((always_inline))
#define BLOCK  32
#define SMALL  8

typedef float v8f __attribute__((vector_size(32)));
typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef int32_t v4i __attribute__((vector_size(16)));

/* Blocks of fixed length and pointers that do not alias: the compiler vectorises these loops and
 * widens sixteen bytes at a time, which the vector types of the language cannot express as well. */
INLINE void lines(float *restrict line, const uint8_t *restrict row, float w, size_t n, bool add)
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
INLINE void lines_two(float *restrict line, const uint8_t *restrict row,
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

/* One output pixel in eight partial sums. A constant `blocks` leaves no loop. */
INLINE void weighted(const float *line, const struct simd_taps *t, size_t blocks, v8f *ret)
{
    const float *p = line + t->start;
    v8f px;
    v8f w;
    memcpy(&px, p, sizeof px);
    memcpy(&w, t->w, sizeof w);
    v8f sum = px * w;
    for (size_t k = 8; k < 8 * blocks; k += 8) {
        memcpy(&px, p + k, sizeof px);
        memcpy(&w, t->w + k, sizeof w);
        sum += px * w;
    }
    *ret = sum;
}

/* Add neighbours: of each four lanes two sums of a, then two of b. */
INLINE void pairs(const v8f *a, const v8f *b, v8f *ret)
{
    *ret = __builtin_shufflevector(*a, *b, 0, 2, 8, 10, 4, 6, 12, 14) +
           __builtin_shufflevector(*a, *b, 1, 3, 9, 11, 5, 7, 13, 15);
}

/* Four output pixels in two partial sums each: four and four lanes. step: from one pixel to the
 * next. */
INLINE void weighted_four(const float *line, const struct simd_taps *t, int step, size_t blocks,
                          v8f *ret)
{
    v8f a;
    v8f b;
    v8f first;
    weighted(line, t, blocks, &a);
    weighted(line, t + step, blocks, &b);
    pairs(&a, &b, &first);
    weighted(line, t + 2 * step, blocks, &a);
    weighted(line, t + 3 * step, blocks, &b);
    pairs(&a, &b, &a);
    pairs(&first, &a, ret);
}

/* Eight output pixels, 0 to 255. */
INLINE void grey_eight(const float *line, const struct simd_taps *t, int step, size_t blocks,
                       float offset, v8i *ret)
{
    v8f a;
    v8f b;
    weighted_four(line, t, step, blocks, &a);
    weighted_four(line, t + 4 * step, step, blocks, &b);
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
INLINE void grey_many(const float *line, const struct simd_taps *t, size_t blocks, float offset,
                      uint8_t *out)
{
    v8i all = {0};
    for (int i = 0; i < 4; i++) {
        v8i v;
        grey_eight(line, t + i, 4, blocks, offset, &v);
        all |= v << (8 * i);
    }
    memcpy(out, &all, sizeof all);
}

INLINE void grey_blocks(const float *line, const struct simd_taps *taps, int n, size_t blocks,
                        float offset, uint8_t *out)
{
    int x = 0;
    for (; x + 32 <= n; x += 32) {
        grey_many(line, taps + x, blocks, offset, out + x);
    }
    for (; x < n; x += 8) {
        struct simd_taps some[8];
        v8i v;
        for (int i = 0; i < 8; i++) {
            some[i] = taps[MIN(x + i, n - 1)];
        }
        grey_eight(line, some, 1, blocks, offset, &v);
        for (int i = 0; i < MIN(8, n - x); i++) {
            out[x + i] = (uint8_t)v[i];
        }
    }
}

INLINE void grey(const float *line, const struct simd_taps *taps, int n, size_t blocks,
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
INLINE void rgb(const float *line, const struct simd_taps *taps, int n, uint8_t *out)
{
    const v4i most = {255, 255, 255, 255};
    for (int x = 0; x < n; x++, out += 3) {
        const struct simd_taps *t = &taps[x];
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
    attributes static void set_two_##suffix(float *line, const uint8_t *row, const uint8_t *next,  \
                                            const float *w, size_t n)                              \
    {                                                                                              \
        lines_two(line, row, next, w, n, false);                                                   \
    }                                                                                              \
    attributes static void add_two_##suffix(float *line, const uint8_t *row, const uint8_t *next,  \
                                            const float *w, size_t n)                              \
    {                                                                                              \
        lines_two(line, row, next, w, n, true);                                                    \
    }                                                                                              \
    attributes static void grey_##suffix(const float *line, const struct simd_taps *taps, int n,   \
                                         size_t blocks, float offset, uint8_t *out)                \
    {                                                                                              \
        grey(line, taps, n, blocks, offset, out);                                                  \
    }                                                                                              \
    attributes static void rgb_##suffix(const float *line, const struct simd_taps *taps, int n,    \
                                        uint8_t *out)                                              \
    {                                                                                              \
        rgb(line, taps, n, out);                                                                   \
    }                                                                                              \
    static const struct simd X = {#suffix,          set_##suffix,  add_##suffix, set_two_##suffix, \
                                  add_two_##suffix, grey_##suffix, rgb_##suffix};

LOOPS_FOR(any_processor, portable, )
#ifdef __x86_64__
LOOPS_FOR(with_avx2, avx2, __attribute__((target("avx2,fma"))))
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
