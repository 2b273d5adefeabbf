/* One function body per loop, always inlined into a function for each instruction set. Vectors have
 * eight floats; without AVX the compiler splits them. */
#include "simd.h"

#define INLINE static inline __attribute__((always_inline))
#define BLOCK  32

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
    for (; i < n; i++) {
        float x = w * (float)row[i];
        line[i] = add ? line[i] + x : x;
    }
}

/* One output pixel in eight partial sums. A constant `blocks` leaves no loop. */
INLINE void weighted(const float *line, const struct simd_taps *t, size_t blocks, v8f *ret)
{
    const float *p = line + t->start;
    v8f sum = {0};
    for (size_t k = 0; k < 8 * blocks; k += 8) {
        v8f px;
        v8f w;
        memcpy(&px, p + k, sizeof px);
        memcpy(&w, t->w + k, sizeof w);
        sum += px * w;
    }
    *ret = sum;
}

/* Add neighbours within two vectors: a0+a1 b0+b1 a2+a3 b2+b3 ... */
INLINE void pairs(const v8f *a, const v8f *b, v8f *ret)
{
    *ret = __builtin_shufflevector(*a, *b, 0, 8, 2, 10, 4, 12, 6, 14) +
           __builtin_shufflevector(*a, *b, 1, 9, 3, 11, 5, 13, 7, 15);
}

/* Two output pixels in four partial sums each, lanes alternating. */
INLINE void weighted_two(const float *line, const struct simd_taps *t, size_t blocks, v8f *ret)
{
    v8f a;
    v8f b;
    weighted(line, t, blocks, &a);
    weighted(line, t + 1, blocks, &b);
    pairs(&a, &b, ret);
}

/* Four output pixels in two partial sums each: four and four lanes. */
INLINE void weighted_four(const float *line, const struct simd_taps *t, size_t blocks, v8f *ret)
{
    v8f a;
    v8f b;
    weighted_two(line, t, blocks, &a);
    weighted_two(line, t + 2, blocks, &b);
    *ret = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13) +
           __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}

INLINE void grey_eight(const float *line, const struct simd_taps *t, size_t blocks, float offset,
                       uint8_t *out)
{
    const v8i most = {255, 255, 255, 255, 255, 255, 255, 255};
    v8f a;
    v8f b;
    weighted_four(line, t, blocks, &a);
    weighted_four(line, t + 4, blocks, &b);
    v8f sum = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
              __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15) + offset;
    v8i v = __builtin_convertvector(sum, v8i);
    v &= ~(v >> 31);
    v8i over = v > most;
    v = (v & ~over) | (most & over);
    int32_t px[8];
    memcpy(px, &v, sizeof px);
    for (int i = 0; i < 8; i++) {
        out[i] = (uint8_t)px[i];
    }
}

INLINE void grey_blocks(const float *line, const struct simd_taps *taps, int n, size_t blocks,
                        float offset, uint8_t *out)
{
    int x = 0;
    for (; x + 8 <= n; x += 8) {
        grey_eight(line, taps + x, blocks, offset, out + x);
    }
    if (x < n) {
        struct simd_taps last[8];
        uint8_t px[8];
        for (int i = 0; i < 8; i++) {
            last[i] = taps[MIN(x + i, n - 1)];
        }
        grey_eight(line, last, blocks, offset, px);
        memcpy(out + x, px, (size_t)(n - x));
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
    static const struct simd X = {#suffix, set_##suffix, add_##suffix, grey_##suffix, rgb_##suffix};

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
