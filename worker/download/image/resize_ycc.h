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
    int to_w, to_h;         /* shrunk; not larger than w, h */
    int x, y;               /* where its corner is in the canvas; negative: cropped */
    int canvas_w, canvas_h; /* what is not covered is white */
};
struct resize_ycc {
    int w, h; /* of the canvas */
    /* One channel each; sides are whole blocks of JPEG: of 16, of colour 8. */
    struct image plane[PLANES];
    /* Private. */
    struct resize_ycc_fit fit;
    struct resizer *resizer[PLANES];
    int row_i[PLANES]; /* of the next row */
    uint8_t *sample;   /* sample[PLANES][w]: rows that are looked at together */
    int sample_i;      /* which row of brightness that is */
    double cut;        /* sum of the squares of what RGB would cut off, in the samples so far */
};
/* NULL when memory is short. */
struct resize_ycc *resize_ycc_new(const struct resize_ycc_fit *fit);
void resize_ycc_free(struct resize_ycc *p);
/* The next row of a plane from the top. False: too much would be clipped; process it by rows. */
bool resize_ycc_row(struct resize_ycc *p, int plane, const uint8_t *px) MUST_CHECK;
/* After the last row of each. */
void resize_ycc_finish(struct resize_ycc *p);
