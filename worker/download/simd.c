/* One body a loop, always inlined into a function for each instruction set. The vectors are of
 * eight floats; a compiler for less than AVX splits them. */
#include "simd.h"

#define INLINE static inline __attribute__((always_inline))
#define BLOCK  32

typedef float v8f __attribute__((vector_size(32)));
typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));

/* Blocks of a fixed length and pointers that do not meet: what a compiler turns into vectors, bytes
 * being widened sixteen at a time, which no vector type of the language says as well. */
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

INLINE uint8_t to_byte(float v)
{
    v += 0.5f;
    return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
}

INLINE void grey(const float *line, const struct simd_taps *taps, int from, int to, uint8_t *out)
{
    for (int x = from; x < to; x++) {
        const struct simd_taps *t = &taps[x];
        const float *p = line + t->start;
        v8f sum = {0};
        for (int k = 0; k < t->n; k += 8) {
            v8f px;
            v8f w;
            memcpy(&px, p + k, sizeof px);
            memcpy(&w, t->w + k, sizeof w);
            sum += px * w;
        }
        out[x - from] =
            to_byte(sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7]);
    }
}

/* Three of the four lanes are a pixel, the last is the next pixel's red and is thrown away. */
INLINE void rgb(const float *line, const struct simd_taps *taps, int from, int to, uint8_t *out)
{
    const v4i most = {255, 255, 255, 255};
    for (int x = from; x < to; x++, out += 3) {
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
    attributes static void grey_##suffix(const float *line, const struct simd_taps *taps,          \
                                         int from, int to, uint8_t *out)                           \
    {                                                                                              \
        grey(line, taps, from, to, out);                                                           \
    }                                                                                              \
    attributes static void rgb_##suffix(const float *line, const struct simd_taps *taps, int from, \
                                        int to, uint8_t *out)                                      \
    {                                                                                              \
        rgb(line, taps, from, to, out);                                                            \
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
