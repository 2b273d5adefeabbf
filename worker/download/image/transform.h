/* From a picture's rows to the picture that is written: filters, resize mode, orientation, blurred
 * boxes. Takes the rows while they are decoded; the large picture is never held as a whole. */
#pragma once
#include "bbox.h"
#include "image.h"

struct resizer;
struct transform {
    struct image_rows rows; /* first member; pass it to a decoder */
    const struct image_options *o;
    int turned; /* EXIF orientation: 1 to 8; 1: as it is */
    int w, h;   /* of the input; set by the code that reads the header */
    /* Boxes to blur after resizing and rotation, before border and crop; set after transform_init.
     * NULL or empty: none. */
    const struct bboxes *boxes;
    enum image_result result;
    struct image out; /* has no pixels when the result is in planes */
    /* Private. */
    struct resizer *resizer;
    struct resize_ycc *planes; /* NULL: rows */
    struct image small;        /* resized, not yet rotated */
    int x, y;                  /* where it goes in out */
    struct transform_frame {   /* with boxes out is made without border and crop, which come last */
        int w, h, x, y;
    } frame;
};
/* o is borrowed. turned: the EXIF orientation, 1 when it is ignored. */
void transform_init(struct transform *t, const struct image_options *o, int turned);
void transform_done(struct transform *t);
/* Call after the last row: t->out is the picture unless t->result says that memory was short. */
void transform_finish(struct transform *t);
/* Append the finished result in the format of the options. */
enum image_result transform_encode(const struct transform *t, struct buf *out);
/* Replace *im by its transformed picture; filters are not applied. */
enum image_result image_resize(struct image *im, const struct image_options *o);
