/* The boxes of a picture to blur, from a column of the row: a list of [x0, y0, x1, y1] in fractions
 * of the picture's sides. A row with unparsable boxes is rejected; otherwise it would be published
 * unblurred. */
#pragma once
#include "common/str.h"

#define BBOX_MAX            1000         /* of a picture */
#define BBOX_TEXT_BYTES_MAX (256u << 10) /* of a row, as JSON */
/* how far a number may lie outside of the picture, in sides */
#define BBOX_BEYOND_MAX 1.0

struct bbox { /* 0 <= x0 <= x1 <= 1, y the same */
    double x0, y0, x1, y1;
};
struct bboxes {
    int n;
    struct bbox at[BBOX_MAX];
};
/* Parse the list's JSON text; null and [] give no box. A number slightly outside of 0 to 1 (faces
 * at the edge) is clamped. Numbers further outside (probably pixels) and boxes that are empty
 * within the picture, inverted, or not four finite numbers are ERR_INVALID with a text for the
 * row. */
bool bbox_parse(struct str json, struct bboxes *ret, struct err *err) MUST_CHECK;
/* True when a column of this SQL type can hold boxes: lists, text, and INTEGER, the type of a
 * column with only nulls. */
bool bbox_type_fits(const char *sql_type);
