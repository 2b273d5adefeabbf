/* Pixels in memory: their bounds, and four channels over white. */
#include "image.h"

void image_done(struct image *im)
{
    free(im->px);
    im->px = NULL;
}

bool image_fits(int64_t w, int64_t h)
{
    return w >= 1 && h >= 1 && w <= IMAGE_SIDE_MAX && h <= IMAGE_SIDE_MAX &&
           w * h <= IMAGE_PIXELS_MAX;
}

void *image_bytes(size_t n)
{
    return malloc(n);
}

void *image_zeros(size_t n)
{
    return calloc(n, 1);
}

bool image_alloc(int w, int h, int channels, struct image *ret)
{
    if (!image_fits(w, h)) {
        return false;
    }
    ASSERT(channels == 1 || channels == 3 || channels == 4);
    *ret = (struct image){w, h, channels, malloc((size_t)w * (size_t)h * (size_t)channels)};
    return ret->px != NULL;
}

void image_matte(const uint8_t *in, uint8_t *out, int w)
{
    for (int x = 0; x < w; x++, in += 4, out += 3) {
        unsigned a = in[3];
        if (a == 255) { /* most pixels of most pictures */
            out[0] = in[0];
            out[1] = in[1];
            out[2] = in[2];
            continue;
        }
        for (int c = 0; c < 3; c++) {
            /* a * c / 255 is never halfway between two integers, so this equals rint. */
            out[c] = (uint8_t)((2 * a * in[c] + 255) / 510 + 255 - a);
        }
    }
}
