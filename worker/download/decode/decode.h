/* The work of a decoding process: one image from body to encoded picture. No state, no I/O. */
#pragma once
#include "download/image/bbox.h"
#include "download/image/image.h"

struct decoded { /* a value except the two buffers */
    enum image_result result;
    int width, height, original_width, original_height;
    char hash[IMAGE_HASH_HEX_N];
    struct buf image;
    struct buf exif;
};
/* Hex of the hash; "" for HASH_NONE. */
void decode_hash(struct str body, enum image_hash kind, char out[static IMAGE_HASH_HEX_N]);
/* boxes: areas to blur; NULL or empty: no area. With boxes the body itself is never the result.
 * ret->image and ret->exif must be initialised; they are reset first. */
void decode_one(struct str body, const struct bboxes *boxes, const struct image_options *o,
                struct decoded *ret);
