/* The JSON of a campaign. */
#pragma once
#include "api/server/request.h"
#include "core/spec/spec.h"

/* The campaign's spec as it was stored; lives as long as the request. */
bool campaign_spec_read(struct api_req *r, int64_t id, struct spec **ret,
                        struct err *err) MUST_CHECK;
/* Answer with the campaign as JSON. */
bool campaign_answer(struct api_req *r, int64_t id, int status, struct err *err) MUST_CHECK;
