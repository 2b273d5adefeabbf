/* Images of a campaign pinned to what their tags mean when it is submitted, so that no part of it
 * runs another image than the rest. */
#pragma once
#include "api/server/request.h"
#include "core/spec/spec.h"

/* Asks ECR for the digest of each image of its region that has none and writes it into the stages.
 * What ECR may not tell, or a
 * registry in the VPC has, keeps its tag. ERR_INVALID with r->faults: there is no such image.
 * ERR_UNAVAILABLE, ERR_TIMEOUT. Strings live in `a`. */
bool images_pin(struct api_req *r, struct spec *s, struct arena *a, struct err *err) MUST_CHECK;
