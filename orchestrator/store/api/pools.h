/* Warm pools as the API shows them. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* Open pools first; sum over all of the campaign's (0: all campaigns'). */
bool apidb_pools(struct store *s, int64_t campaign_id, int64_t n, struct buf *ret_rows,
                 struct buf *ret_sum, struct err *err) MUST_CHECK;
