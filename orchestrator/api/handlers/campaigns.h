/* The JSON of a campaign. */
#pragma once
#include "api/server/request.h"

/* Answer with the campaign as JSON. */
bool campaign_answer(struct api_req *r, int64_t id, int status, struct err *err) MUST_CHECK;
