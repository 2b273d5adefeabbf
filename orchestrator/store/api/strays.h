/* Jobs without an attempt, for handlers. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* Append n strays, running ones first, and what all that have ended have cost. */
bool apidb_strays(struct store *s, int64_t n, struct buf *ret_rows, struct buf *ret_sum,
                  struct err *err) MUST_CHECK;
/* Ask for the stop of one that runs. ERR_NOT_FOUND. */
bool apidb_stray_stop(struct store *s, const char *name, struct err *err) MUST_CHECK;
