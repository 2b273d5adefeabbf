/* Finds the part a request names. */
#pragma once
#include "api/server/request.h"

/* Find the part of path parameters 0 (c-<number>) and 1 (its number) and of `stage`. Opens the
 * database. ERR_NOT_FOUND. */
bool part_find(struct api_req *r, int64_t *ret_campaign, int64_t *ret_task,
               struct err *err) MUST_CHECK;
