/* Tokens that count in some projects only. */
#pragma once
#include "request.h"

/* What decides whether a token that counts in some projects only may use a route. */
enum scope {
    SCOPE_HANDLER,  /* ROUTE_SCOPED: its handler asks scope_has itself */
    SCOPE_CAMPAIGN, /* its path names a campaign, or what belongs to one */
    SCOPE_QUERY,    /* its query may: ?campaign=c-7 */
    SCOPE_ALL,      /* it is about every project */
};
enum scope scope_of(const struct route *t);

/* True when the principal of r may use its route for what path and query name. Of what belongs
 * to another project it learns nothing: ERR_NOT_FOUND. What is about every project is
 * ERR_FORBIDDEN. */
bool scope_check(struct api_req *r, struct err *err) MUST_CHECK;
bool scope_allows(const struct api_principal *who, const char *project);
bool scope_has(const struct api_req *r, const char *project);
