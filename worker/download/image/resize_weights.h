/* Which input pixels contribute to an output pixel, and with what weights: one axis of a resize
 * filter. */
#pragma once
#include "image.h"
#include "simd.h"

struct resize_weights {
    struct simd_weights *at; /* at[out_n] */
    float *weights;
    int n_max;     /* of one output pixel */
    size_t blocks; /* of SIMD_PAD weights, of each output pixel */
};
/* filter is not FILTER_AUTO. shrinks: neither side of the picture grows, and area averages;
 * otherwise area is a linear filter on both axes. False when out of memory. */
bool resize_weights_make(enum resize_filter filter, bool shrinks, int in_n, int out_n,
                         struct resize_weights *ret) MUST_CHECK;
/* Area windows over one plane of a picture, whose samples may be coarser than pixels. */
struct resize_weights_cells {
    int in_n; /* pixels of the picture, not samples */
    /* pixels per sample: 1, or 2 with intermediate pixels as decoders make them: three quarters of
     * the nearer sample, one of the other */
    int sub;
    double scale;     /* pixels of the picture per pixel of the shrunk picture, at least 1 */
    int from, to;     /* range of the shrunk picture that may be used, in its pixels */
    int first, group; /* cell i consists of pixels first + group * i and the group - 1 after it */
    int n;            /* cells; each has a pixel between from and to */
};
/* Weights of samples; they add up to gain. False when out of memory. */
bool resize_weights_make_cells(const struct resize_weights_cells *c, double gain,
                               struct resize_weights *ret) MUST_CHECK;
void resize_weights_done(struct resize_weights *t);
