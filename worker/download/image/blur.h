/* Blurs boxes of a picture as img2dataset blurs faces: each box is enlarged by a tenth of its
 * longer side and blurred by a Gaussian whose sigma is a tenth of the longest side of all boxes;
 * the same Gaussian softens the edge. */
#pragma once
#include "bbox.h"
#include "image.h"

/* Blur in place. False when memory is short; the picture is then unchanged. A large area with a
 * large kernel is computed on a smaller picture to bound the cost; that differs by one or two
 * levels of 255. */
bool blur_boxes(struct image *im, const struct bboxes *boxes) MUST_CHECK;
/* The kernel for a longest side of `side` pixels: its half without the middle, 0: nothing is
 * blurred. kernel[BLUR_REACH_MAX + 1] takes the middle and one half. */
#define BLUR_REACH_MAX (IMAGE_SIDE_MAX / 10 + 1)
int blur_kernel(int side, float *kernel);
