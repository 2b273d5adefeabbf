/* Parts of a stage from the objects of a listing. */
#pragma once
#include "bridge.h"
#include "store/pg/connection.h"

/* One part per per_part objects, named by the first; several objects also become the var "uris".
 * Inside the caller's transaction, after apidb_bulk and before apidb_load_publish; the stage takes
 * no more parts then. Errors are those of part_load.h; ERR_LIMIT when the names of one part are too
 * long in all. */
bool listed_parts_load(struct store *s, int64_t campaign_id, int64_t stage_id,
                       const struct bridge_listing *listing, int per_part,
                       struct err *err) MUST_CHECK;
