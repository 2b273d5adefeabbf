/* Warm pools, for handlers. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* Append n pools, open ones first, and the totals over all pools of the campaign (0: all
 * campaigns). */
bool apidb_pools(struct store *s, int64_t campaign_id, int64_t n, struct buf *ret_rows,
                 struct buf *ret_sum, struct err *err) MUST_CHECK;
