/* Pages of few parts of a large campaign: a map of which states occur where lets a page go on where
 * one may be instead of at the next of a million others. */
#pragma once
#include "api/server/request.h"
#include "store/api/parts.h"

/* Fills up a page of apidb_parts_ids that has parts to come and is not full. Of campaigns of
 * 100,000 parts or more the map is a few seconds old, and what has come into this state since, in a
 * range that had none, is on no page yet. */
bool parts_map_fill(struct api_req *r, struct apidb_parts_query *q, struct apidb_ids *ret,
                    struct err *err) MUST_CHECK;
