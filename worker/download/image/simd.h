/* The inner loops of resizing in portable vector code, compiled once for any processor and once for
 * AVX2 with FMA; chosen when a picture begins. Both give the same result except the last bit of a
 * float. */
#pragma once
#include "common/base.h"

#define SIMD_PAD 8 /* floats of a vector */

struct simd_weights { /* of one output pixel */
    int start;
    int n;
    /* w[n], zeros up to a multiple of SIMD_PAD that is the same for all of a line; those of the
     * next pixel follow */
    const float *w;
};
struct simd {
    const char *name;
    /* line[i] = w * row[i] */
    void (*set)(float *line, const uint8_t *row, float w, size_t n);
    /* line[i] += w * row[i] */
    void (*add)(float *line, const uint8_t *row, float w, size_t n);
    /* Set or add the weighted sum of rows_n rows, at least one: to the last bit the same as one
     * after the other. */
    void (*sum)(float *line, const uint8_t *const *rows, const float *w, size_t rows_n, size_t n,
                bool add);
    /* n output pixels of a line, rounded and clamped. blocks: vectors of SIMD_PAD weights that each
     * may have, all of which are read, and as many floats of the line from its start on. offset:
     * added to each. */
    void (*across_grey)(const float *line, const struct simd_weights *taps, int n, size_t blocks,
                        float offset, uint8_t *out);
    void (*across_rgb)(const float *line, const struct simd_weights *taps, int n, uint8_t *out);
};

/* The best version for this processor; portable: the other one, for tests. */
const struct simd *simd_pick(bool portable);
