/* A PNG's image data, inflated at once by libdeflate, in less than half of the time that zlib takes
 * for it row by row. As it is, or in a PNG that stores it uncompressed: libspng copies it instead
 * of inflating it, and does everything else. */
#pragma once
#include "image.h"

#define PNG_STORED_RAW_MAX (16u << 20) /* pixels and filters; larger pictures are read by rows */

/* raw_n: bytes of all rows with their filters, which must not be interlaced. False: read the body
 * as it is, because it is large, cut, broken, or memory is short. The caller frees *ret. */
bool png_stored(struct str body, size_t raw_n, uint8_t **ret, size_t *ret_n) MUST_CHECK;
/* The rows themselves; a byte behind them may be read. */
bool png_raw(struct str body, size_t raw_n, uint8_t **ret) MUST_CHECK;
