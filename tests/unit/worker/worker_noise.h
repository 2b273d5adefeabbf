/* Pictures of noise: no two pixels alike, the same for a seed. */
#pragma once
#include "common/rng.h"
#include "download/image/image.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static inline struct image noise(int w, int h, int channels, uint64_t seed)
{
    struct image im;
    struct rng r;
    rng_seed(&r, seed);
    assert_true(image_alloc(w, h, channels, &im));
    for (int i = 0; i < w * h * channels; i++) {
        im.px[i] = (uint8_t)rng_u64(&r);
    }
    return im;
}
