/* A shrunk picture in JPEG's own colour space: luma at full size, the two chroma planes at half
 * size. When decoder and encoder both use such planes, RGB is not needed: nothing is converted and
 * chroma is not scaled up and down again. Every step is a weighted sum, so the result is the same
 * except where RGB would have been clipped at 0 or 255; gamut.h does that in the planes. */
#pragma once
#include "image.h"

#define PLANES 3 /* Y, Cb, Cr */

struct resize_ycc_fit {
    int w, h;               /* of the input, in pixels */
    struct plane_form form; /* of the input */
    int to_w, to_h;         /* reduced size; not larger than w, h */
    int x, y;               /* position in the canvas; negative: cropped */
    int canvas_w, canvas_h; /* uncovered parts are white */
};
struct resize_ycc {
    int w, h; /* of the canvas */
    /* One channel each; sides are whole JPEG blocks: 16, for colour 8. */
    struct image plane[PLANES];
    /* Private. */
    struct resize_ycc_fit fit;
    struct resizer *resizer[PLANES];
    const struct gamut *gamut;
    uint8_t *clipped;    /* clipped[COLOURS][w]: rows of colour after clipping */
    int strip_i;         /* of the next strip */
    bool strip_exceeded; /* the last one had pixels to clip */
};
/* NULL when memory is short. */
struct resize_ycc *resize_ycc_new(const struct resize_ycc_fit *fit);
void resize_ycc_free(struct resize_ycc *p);
/* The next strip from the top; its brightness is clipped in place. */
void resize_ycc_strip(struct resize_ycc *p, const struct plane_strip *s);
/* Call after the last strip. */
void resize_ycc_finish(struct resize_ycc *p);
