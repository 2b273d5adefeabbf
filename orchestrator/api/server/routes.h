/* A prototype for every handler of routes.def. */
#pragma once
#include "common/err.h"

struct api_req;
#define X(method, pattern, role, flags, handler, query, body, answers, errors, summary)            \
    bool handler(struct api_req *r, struct err *err) MUST_CHECK;
#include "routes.def"
#undef X
