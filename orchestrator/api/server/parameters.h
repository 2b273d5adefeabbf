/* The table of parameters of paths and query strings, and the check of a request against it. */
#pragma once
#include "request.h"

enum parameter_place { PARAMETER_PATH, PARAMETER_QUERY, PARAMETER_NEEDED, PARAMETER_CHOICE };
enum parameter_type {
    PARAMETER_NUMBER,
    PARAMETER_TEXT,
    PARAMETER_FLAG,
    PARAMETER_WORD,
    PARAMETER_ID
};
struct parameter {
    const char *id, *name;
    enum parameter_place place;
    enum parameter_type type;
    int64_t min, max, dflt;
    const char *words, *example, *text;
};
extern const struct parameter parameter_table[];
extern const size_t parameter_table_n;
/* The row of that id; it must exist. */
const struct parameter *parameter_find(struct str id);
/* The next parameter in the path of a pattern, from *at on, which moves behind it; NULL: none. */
const struct parameter *parameter_of_path(const char **at);
/* ERR_NOT_FOUND for a path that cannot be one of the route. */
bool parameters_check_path(const struct api_req *r, struct err *err) MUST_CHECK;
/* True when the route takes a choice of rows, of which an empty one is ERR_INVALID. */
bool parameters_choose(const struct route *t);
/* ERR_NOT_FOUND for a path that cannot be one of the route, ERR_MALFORMED for a query, ERR_INVALID
 * for a choice of rows in it that is empty. */
bool parameters_check(struct api_req *r, struct err *err) MUST_CHECK;
