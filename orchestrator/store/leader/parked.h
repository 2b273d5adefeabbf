/* What is set aside until people look at it. Writes happen within a transaction of the leader
 * (lease.h). Returned arrays are malloc'd; the caller frees them. */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

bool view_parked(struct store *s, struct parked_row **ret, size_t *ret_n,
                 struct err *err) MUST_CHECK;
/* Inserts or counts once more; alert is written as an event the first time. */
bool store_park(struct store *s, const struct parked_row *row, const char *reason,
                const char *alert, struct err *err) MUST_CHECK;
bool store_unpark(struct store *s, enum parked_kind kind, int64_t ref_id,
                  struct err *err) MUST_CHECK;
