/* Warm pools, for handlers. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* Append n pools, open ones first, and the totals over all pools of the campaign (0: all campaigns)
 * in these projects (by commas, "": every project). */
bool apidb_pools(struct store *s, int64_t campaign_id, const char *projects, int64_t n,
                 struct buf *ret_rows, struct buf *ret_sum, struct err *err) MUST_CHECK;
/* A person wants the end of the idle pool that this job left. ERR_NOT_FOUND: it has none that is
 * open; ERR_CONFLICT: its job runs still, or another one takes it. */
bool apidb_pool_end(struct store *s, const char *job, struct err *err) MUST_CHECK;
