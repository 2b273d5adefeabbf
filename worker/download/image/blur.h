/* Blurs boxes of a picture, as img2dataset does with the faces of people: each box a tenth of its
 * longer side larger, a Gaussian whose sigma is a tenth of the longest side of all, the edge of the
 * blurred area soft by the same Gaussian. */
#pragma once
#include "bbox.h"
#include "image.h"

/* In place. False when memory is short, the picture is then as it was. A large area with a large
 * kernel is made from a smaller picture, so that the cost is bounded; that differs by a level or
 * two of 255. */
bool blur_boxes(struct image *im, const struct bboxes *boxes) MUST_CHECK;
/* The kernel for a longest side of `side` pixels: its half without the middle, 0: nothing is
 * blurred. kernel[BLUR_REACH_MAX + 1] takes the middle and one half. */
#define BLUR_REACH_MAX (IMAGE_SIDE_MAX / 10 + 1)
int blur_kernel(int side, float *kernel);
