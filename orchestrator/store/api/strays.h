/* Jobs, endpoints and file systems that no row stands for, for handlers. */
#pragma once
#include "common/buf.h"
#include "store/pg/connection.h"

/* Append n strays, running ones first, and what all that have ended have cost. */
bool apidb_strays(struct store *s, int64_t n, struct buf *ret_rows, struct buf *ret_sum,
                  struct err *err) MUST_CHECK;
/* Ask for the end of one that is there. ERR_NOT_FOUND. */
bool apidb_stray_stop(struct store *s, const char *name, struct err *err) MUST_CHECK;
