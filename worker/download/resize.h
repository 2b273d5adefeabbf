/* The resize filter: area average for smaller, Lanczos (a = 4) for larger, as OpenCV's INTER_AREA
 * and INTER_LANCZOS4. */
#pragma once
#include "image.h"
/* New picture of w x h; area when both sides shrink or stay, Lanczos else. */
bool resize_to(const struct image *im, int w, int h, struct image *ret) MUST_CHECK;
/* side * size / base rounded with halves to even, at least 1: Python's round(). */
int resize_side(int side, int size, int base);
