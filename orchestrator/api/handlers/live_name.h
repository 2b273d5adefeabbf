/* Submitting a name twice: refused for who asks so by ?live_name=refuse. */
#pragma once
#include "api/server/request.h"
#include "core/spec/spec.h"

/* Without that query parameter true. With it ERR_LIVE_NAME when a campaign of this project and name
 * has not ended: r->other_campaign has its id, r->faults the keys in which the files differ. Inside
 * a transaction nobody else submits to the project until its end, so that of two requests at once
 * one is refused. ERR_MALFORMED: another value. */
bool live_name_check(struct api_req *r, const struct spec *spec, struct err *err) MUST_CHECK;
