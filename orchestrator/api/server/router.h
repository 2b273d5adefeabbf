/* The table of routes, and the route of a request. */
#pragma once
#include "request.h"

typedef bool (*api_handler)(struct api_req *r, struct err *err);
enum {
    ROUTE_INLINE = 1, /* answered on the I/O thread: must not wait for anything */
    /* body up to API_BULK_MAX, spooled to a file; the token is checked before it is read */
    ROUTE_BULK = 2,
    ROUTE_STREAM = 4,
    ROUTE_SCOPED = 16,  /* its handler minds the projects of the token */
    ROUTE_DRY_RUN = 32, /* with ?dry_run=true it changes nothing: a viewer may */
    ROUTE_DEAR = 64,    /* may take seconds: at most half of the threads run such at once */
    ROUTE_PROBE = 8,    /* served from the reserve too: health and counters */
    ROUTE_KEY = 128,    /* takes an Idempotency-Key */
    ROUTE_KEY_NEEDED = 256,
    /* a browser is sent there: not in /openapi.json; unknown query parameters are ignored, since
     * the provider of logins adds some */
    ROUTE_PAGE = 1024,
    ROUTE_SOURCE = 512, /* with ROUTE_BULK: body up to API_SOURCE_MAX */
};
struct route {
    const char *method;
    const char *pattern;
    enum api_role role;
    unsigned flags;
    const char *operation; /* the handler's name */
    api_handler handler;
    const char *query;   /* ids of parameters.def, separated by blanks */
    const char *body;    /* a schema; "": none is taken */
    const char *answers; /* "200 Campaign, 202 Operation", or a media type */
    const char *errors;  /* names of errors of the handler's own, separated by blanks */
    const char *summary;
};
extern const struct route route_table[];
extern const size_t route_table_n;
/* The route of method and path; NULL when there is none. */
const struct route *route_find(const char *method, const char *path,
                               struct str params[API_PARAMS_MAX]);
/* "GET, HEAD, POST": every method that the path takes; "" when it is no route's. */
#define ROUTE_METHODS_MAX 64
void route_methods(const char *path, char ret[static ROUTE_METHODS_MAX]);
