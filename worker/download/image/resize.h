/* The resize filter. Rows go in as a decoder makes them, finished rows come out into a picture, so
 * that the large picture need not exist as a whole. Pixels are those of OpenCV's cv2.resize with
 * the interpolation of the same name. */
#pragma once
#include "image.h"
#include "resize_weights.h"

struct resizer;
/* Rows of in_w x in_h of out's channels become a picture of w x h whose corner is at (x, y) of out;
 * what falls outside is dropped. FILTER_AUTO: area when both sides shrink or stay, Lanczos else.
 * NULL when memory is short or the size is beyond the limits. out is borrowed. */
struct resizer *resizer_new(int in_w, int in_h, int w, int h, enum resize_filter filter,
                            struct image *out, int x, int y);
/* An area filter with one channel: cell i of a row goes to x + i of out. Each value is the weighted
 * sum of the cell plus offset. */
struct resizer *resizer_new_cells(const struct resize_weights_cells *across,
                                  const struct resize_weights_cells *down, double gain,
                                  double offset, struct image *out, int x, int y);
/* The same for another plane of the same picture; first keeps the weights and is freed later. NULL:
 * memory is short. */
struct resizer *resizer_new_beside(const struct resizer *first, struct image *out);
void resizer_free(struct resizer *r);
/* Pass the next row from the top; call in_h times. */
void resizer_row(struct resizer *r, const uint8_t *row);
/* The same as passing n rows one after the other, in less time. */
void resizer_rows(struct resizer *r, const uint8_t *const *rows, int n);

/* New picture of w x h. */
bool resize_to(const struct image *im, int w, int h, enum resize_filter filter,
               struct image *ret) MUST_CHECK;
/* side * size / base rounded with halves to even, at least 1: Python's round(). */
int resize_side(int side, int size, int base);
