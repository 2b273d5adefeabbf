/* The boxes of a picture that are to be blurred, as a row's column says them: a list of
 * [x0, y0, x1, y1] in fractions of the picture's sides. Whose boxes cannot be understood must fail:
 * what was to be hidden would be shown. */
#pragma once
#include "common/str.h"

#define BBOX_MAX            1000         /* of a picture */
#define BBOX_TEXT_BYTES_MAX (256u << 10) /* of a row, as JSON */
#define BBOX_BEYOND_MAX     1.0          /* sides that a number may lie beyond the picture */

struct bbox { /* 0 <= x0 <= x1 <= 1, y the same */
    double x0, y0, x1, y1;
};
struct bboxes {
    int n;
    struct bbox at[BBOX_MAX];
};
/* JSON text of the list; null and [] give none. A number a little out of 0 to 1 (faces at the edge)
 * is moved there; what is further out are no fractions (pixels?), and a box with nothing inside the
 * picture, upside down, or of other than four finite numbers is none: all ERR_INVALID with a text
 * for the row. */
bool bbox_parse(struct str json, struct bboxes *ret, struct err *err) MUST_CHECK;
/* Can a column of this SQL type hold boxes? Lists, text, and INTEGER, which is what a column of
 * nothing but nulls is written as. */
bool bbox_type_fits(const char *sql_type);
