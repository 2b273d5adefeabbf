/* Subnets that campaigns use, for handlers. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* Append those of campaigns that have not ended, by commas, 40 at most; nothing when there is none.
 */
bool apidb_subnets(struct store *s, struct buf *ret, struct err *err) MUST_CHECK;
