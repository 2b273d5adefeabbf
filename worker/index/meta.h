/* What the index wants of a sample's .json: the picture's size. The text is read once, as a whole
 * document: a "width" inside of a caption or of a nested object is not taken for the picture's. */
#pragma once
#include "common/str.h"

enum meta_result {
    META_OK,
    META_NO_SIZE, /* an object without width and height as whole numbers from 1 on */
    META_BAD,     /* not one JSON object */
};
/* *ret_width and *ret_height are written with META_OK only. */
enum meta_result meta_size(struct str json, int64_t *ret_width, int64_t *ret_height);
