/* Cost and instance-seconds of a campaign, as JSON. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* Append the total (an object), the stages and the causes (arrays). */
bool apidb_cost(struct store *s, int64_t campaign_id, struct buf *ret_total, struct buf *ret_stages,
                struct buf *ret_causes, struct err *err) MUST_CHECK;
