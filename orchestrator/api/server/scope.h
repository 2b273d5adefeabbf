/* Tokens that count in some projects only. */
#pragma once
#include "request.h"

/* May the principal of r use its route for what the path names? Of a campaign or operation of
 * another project it learns nothing: ERR_NOT_FOUND. Routes about everything are ERR_FORBIDDEN
 * unless they say ROUTE_SCOPED, which means that their handler asks scope_has itself. */
bool scope_check(struct api_req *r, struct err *err) MUST_CHECK;
bool scope_allows(const struct api_principal *who, const char *project);
bool scope_has(const struct api_req *r, const char *project);
