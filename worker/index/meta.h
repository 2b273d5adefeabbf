/* Reads the picture's size from a sample's .json. The text is read as a whole document, so a
 * "width" inside a caption or a nested object is not mistaken for the picture's. */
#pragma once
#include "common/str.h"

enum meta_result {
    META_OK,
    META_NO_SIZE, /* an object without width and height as whole numbers from 1 on */
    META_BAD,     /* not one JSON object */
};
/* *ret_width and *ret_height are written with META_OK only. */
enum meta_result meta_size(struct str json, int64_t *ret_width, int64_t *ret_height);
