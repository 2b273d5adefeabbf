/* Sources of training scripts that were sent before the campaign file which names them. */
#pragma once
#include "api/server/request.h"
#include "core/spec/spec.h"

/* Checks that every source which the stages name by digest was brought to its bucket. ERR_INVALID
 * with r->faults. */
bool sources_check(struct api_req *r, const struct spec *s, struct err *err) MUST_CHECK;
