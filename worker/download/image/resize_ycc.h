/* A shrunk picture in JPEG's own colour space: luma at full size, the two chroma planes at half
 * size. When decoder and encoder both use such planes, RGB is not needed: nothing is converted and
 * chroma is not scaled up and down again. Every step is a weighted sum, so the result is the same
 * except where RGB would have been clipped at 0 or 255. A picture with much clipping (red letters
 * on white) is processed by rows instead. */
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
    int row_i[PLANES]; /* of the next row */
    uint8_t *sample;   /* sample[PLANES][w]: rows that are examined together */
    int sample_i;      /* row of brightness in the samples */
    double cut;        /* sum of the squares of the values RGB would clip, in the samples so far */
};
/* NULL when memory is short. */
struct resize_ycc *resize_ycc_new(const struct resize_ycc_fit *fit);
void resize_ycc_free(struct resize_ycc *p);
/* The next row of a plane from the top. False: too much would be clipped; process it by rows. */
bool resize_ycc_row(struct resize_ycc *p, int plane, const uint8_t *px) MUST_CHECK;
/* Call after the last row of each plane. */
void resize_ycc_finish(struct resize_ycc *p);
