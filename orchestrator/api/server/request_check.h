/* Checks a request against the row of its route, before its handler runs. */
#pragma once
#include "request.h"
#include "router.h"

/* Path, query, media type, and the body against its schema; it is then in r->json.
 * ERR_NOT_FOUND, ERR_MALFORMED, ERR_PRECONDITION, ERR_MEDIA_TYPE, ERR_INVALID with r->faults. */
bool request_check(struct api_req *r, struct err *err) MUST_CHECK;
/* The media types of the route's body, separated by blanks; the first one is the usual one. */
const char *request_media_types(const struct route *t);
/* True when the body is read by a parser of its own, and not here. */
bool request_is_text(const struct route *t);
