/* The table of routes, and the route of a request. */
#pragma once
#include "request.h"

typedef bool (*api_handler)(struct api_req *r, struct err *err);
enum {
    ROUTE_INLINE = 1, /* answered on the I/O thread: touches nothing that can wait */
    ROUTE_BULK = 2,   /* body up to API_BULK_MAX, spooled; the token is checked before it is read */
    ROUTE_STREAM = 4,
};
struct route {
    const char *method;
    const char *pattern;
    enum api_role role;
    unsigned flags;
    api_handler handler;
    const char *query; /* names of parameters it takes, by blanks */
    const char *summary;
};
extern const struct route route_table[];
extern const size_t route_table_n;
/* The route for method and path; *ret_allow names what the path takes when only the method is
 * wrong. */
const struct route *route_find(const char *method, const char *path,
                               struct str params[API_PARAMS_MAX], const char **ret_allow);
