/* What a retry would bring: a new end, what it adds, and the warm pools that would not be used. */
#pragma once
#include "api/server/request.h"
#include "common/json.h"
#include "core/leader/operations.h"
#include "store/api/operations.h"

/* Writes the members "forecast" and "pools_lost" of an open object. */
bool retry_preview_out(struct api_req *r, const struct apidb_selector *sel,
                       const struct operation_order *order, struct json_out *w,
                       struct err *err) MUST_CHECK;
