/* PNG's filters of rows, undone: what libspng of Debian does byte by byte. */
#pragma once
#include "common/base.h"

/* The row of n bytes in place, of bpp bytes a pixel (1, 3 or 4); up: the row above it, zeros above
 * the first. The byte behind a row may be read. False: no such filter. */
bool png_unfilter(int filter, uint8_t *row, const uint8_t *up, size_t n, int bpp) MUST_CHECK;
