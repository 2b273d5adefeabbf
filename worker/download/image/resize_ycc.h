/* A shrunk picture in JPEG's own colours: brightness at full size, the two colour differences at
 * half of it. Who decodes such planes and encodes such planes need not go by RGB: nothing is
 * converted, and colour is neither blown up nor shrunk twice. As everything on the way is a
 * weighted sum, the result is the same, but where RGB would have been cut off at 0 or 255; a
 * picture with much of that (red letters on white) is to be made by rows. */
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
/* The next row of a plane from the top. False: too much would be cut off; make it by rows. */
bool resize_ycc_row(struct resize_ycc *p, int plane, const uint8_t *px) MUST_CHECK;
/* After the last row of each. */
void resize_ycc_finish(struct resize_ycc *p);
