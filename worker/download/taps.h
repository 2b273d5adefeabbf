/* Which input pixels make an output pixel, and with what weights: one axis of a resize filter. */
#pragma once
#include "image.h"
#include "simd.h"

struct taps {
    struct simd_taps *at; /* at[out_n] */
    float *weights;
    int n_max; /* of one output pixel */
};
/* filter is not FILTER_AUTO. shrinks: neither side of the picture grows, and area is an average;
 * else it is a kind of linear, on both axes. False when memory is short. */
bool taps_make(enum resize_filter filter, bool shrinks, int in_n, int out_n,
               struct taps *ret) MUST_CHECK;
void taps_done(struct taps *t);
