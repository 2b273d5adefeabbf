/* What costs money at this moment, for handlers. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* Append an object: the sum by the hour, and the n dearest rows. */
bool apidb_billable(struct store *s, int64_t n, struct buf *ret, struct err *err) MUST_CHECK;
