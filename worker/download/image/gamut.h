/* Colours that planes can hold and RGB cannot. A decoder that makes RGB clips them before the
 * picture shrinks; planes that shrink without it would mix what RGB never has (red letters on white
 * become too dark). Here such pixels are clipped in the planes: only the difference is added, to
 * brightness for each pixel, to colour for each sample. 32 by 2 pixels are left as they are when
 * none, with its sample's own colour, is outside by more than GAMUT_TOLERATED levels. */
#pragma once
#include "image.h"

#define GAMUT_TOLERATED 12
#define COLOUR_NONE     128 /* a sample of a colour plane where the picture is grey */

/* A row of colour samples and the rows of brightness that it belongs to. */
struct gamut_rows {
    int w; /* pixels */
    struct plane_form form;
    int y_n; /* rows of brightness: 1 to form.sub_y */
    const uint8_t *y[2];
    const uint8_t *c[2][3]; /* Cb and Cr: the rows above, here and below; equal at an edge */
};
struct gamut {
    const char *name;
    /* Whether RGB would clip a pixel by more than GAMUT_TOLERATED levels. */
    bool (*exceeds)(const struct gamut_rows *g);
    /* Write the rows with such pixels clipped; false: there are none and nothing was written. y may
     * be those of g (with one row twice the same); c may not, as the next rows need them. */
    bool (*clip)(const struct gamut_rows *g, uint8_t *const y[2], uint8_t *const c[2]);
};
/* The best version for this processor; portable: the other one, for tests. */
const struct gamut *gamut_pick(bool portable);
