/* A campaign as an answer. */
#pragma once
#include "api/server/request.h"

/* The campaign as JSON into r's answer. */
bool campaign_answer(struct api_req *r, int64_t id, int status, struct err *err) MUST_CHECK;
