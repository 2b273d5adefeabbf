/* One parser: lists of the part come as JSON text, too. */
#include "bbox.h"
#include "common/json.h"
#include <math.h>

static bool box_of(const json_t *v, struct bbox *ret, struct err *err)
{
    double n[4];
    if (!json_is_array(v) || json_array_size(v) != ARRAY_LEN(n)) {
        return err_set(err, ERR_INVALID, "bounding boxes: a box is no [x0, y0, x1, y1]");
    }
    for (size_t i = 0; i < ARRAY_LEN(n); i++) {
        const json_t *number = json_array_get(v, i);
        if (!json_is_number(number)) {
            return err_set(err, ERR_INVALID, "bounding boxes: a box is not of four numbers");
        }
        n[i] = json_number_value(number);
        if (!(n[i] >= -BBOX_BEYOND_MAX && n[i] <= 1 + BBOX_BEYOND_MAX)) {
            return err_set(err, ERR_INVALID,
                           "bounding boxes: a number is no fraction of the picture's side");
        }
    }
    if (n[0] > n[2] || n[1] > n[3]) {
        return err_set(err, ERR_INVALID, "bounding boxes: a box is upside down");
    }
    if (n[0] > 1 || n[1] > 1 || n[2] < 0 || n[3] < 0) {
        return err_set(err, ERR_INVALID, "bounding boxes: a box is outside the picture");
    }
    *ret = (struct bbox){MAX(n[0], 0.0), MAX(n[1], 0.0), MIN(n[2], 1.0), MIN(n[3], 1.0)};
    return true;
}

bool bbox_parse(struct str json, struct bboxes *ret, struct err *err)
{
    AUTO_JSON json_t *list = NULL;
    struct err why = ERR_INIT;
    json = str_trim(json);
    if (str_eq_cstr(json, "null")) {
        ret->n = 0;
        return true;
    }
    if (json.n > BBOX_TEXT_BYTES_MAX) {
        return err_set(err, ERR_INVALID, "bounding boxes: more than %u bytes of text",
                       BBOX_TEXT_BYTES_MAX);
    }
    if (!json_parse(json, BBOX_TEXT_BYTES_MAX, &list, &why) || !json_is_array(list)) {
        return err_set(err, ERR_INVALID, "bounding boxes: no list of [x0, y0, x1, y1]");
    }
    if (json_array_size(list) > BBOX_MAX) {
        return err_set(err, ERR_INVALID, "bounding boxes: more than %d", BBOX_MAX);
    }
    int n = (int)json_array_size(list);
    for (int i = 0; i < n; i++) {
        if (!box_of(json_array_get(list, (size_t)i), &ret->at[i], err)) {
            return false;
        }
    }
    ret->n = n;
    return true;
}

bool bbox_type_fits(const char *sql_type)
{
    struct str t = str_of(sql_type);
    return (t.n > 0 && t.p[t.n - 1] == ']') || str_eq_cstr(t, "VARCHAR") ||
           str_eq_cstr(t, "JSON") || str_eq_cstr(t, "INTEGER");
}
