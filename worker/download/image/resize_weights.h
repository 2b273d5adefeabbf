/* Which input pixels make an output pixel, and with what weights: one axis of a resize filter. */
#pragma once
#include "image.h"
#include "simd.h"

struct resize_weights {
    struct simd_taps *at; /* at[out_n] */
    float *weights;
    int n_max;     /* of one output pixel */
    size_t blocks; /* of SIMD_PAD weights, of each output pixel */
};
/* filter is not FILTER_AUTO. shrinks: neither side of the picture grows, and area is an average;
 * else it is a kind of linear, on both axes. False when memory is short. */
bool resize_weights_make(enum resize_filter filter, bool shrinks, int in_n, int out_n,
                         struct resize_weights *ret) MUST_CHECK;
/* Area windows over one plane of a picture, whose samples may be coarser than pixels. */
struct resize_weights_cells {
    int in_n;         /* pixels of the picture, not samples */
    int sub;          /* pixels behind a sample: 1, or 2 with pixels in between as decoders make
                         them: three quarters of the nearer sample, one of the other */
    double scale;     /* pixels of the picture behind one of the shrunk picture, at least 1 */
    int from, to;     /* of the shrunk picture, in its pixels: what may be looked at */
    int first, group; /* cell i is made of pixels first + group * i and the group - 1 behind it */
    int n;            /* cells; each has a pixel between from and to */
};
/* Weights of samples; they add up to gain. False when memory is short. */
bool resize_weights_make_cells(const struct resize_weights_cells *c, double gain,
                               struct resize_weights *ret) MUST_CHECK;
void resize_weights_done(struct resize_weights *t);
