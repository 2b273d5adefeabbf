/* The part a request names. */
#pragma once
#include "api/server/request.h"

/* The part that path parameters 0 (c-<number>) and 1 (its number) and `stage` name. Opens the
 * database. */
bool part_find(struct api_req *r, int64_t *ret_campaign, int64_t *ret_task,
               struct err *err) MUST_CHECK;
