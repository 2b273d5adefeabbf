/* A filter may match a few of a million parts. A map says which states occur in which ranges of
 * ids, so that a page skips the ranges without a match. */
#pragma once
#include "api/server/request.h"
#include "store/api/parts.h"

/* Completes a page of apidb_parts_ids that is not full although more parts follow. The map of a
 * campaign of 100,000 parts or more may be half a minute old: a part that changed its state since
 * then can be missing from the pages until the next map. */
bool parts_map_fill(struct api_req *r, struct apidb_parts_query *q, struct apidb_ids *ret,
                    struct err *err) MUST_CHECK;
