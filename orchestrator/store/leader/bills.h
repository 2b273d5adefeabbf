/* Ended jobs that are settled by an estimate, and their bills. Writes happen between leader_begin
 * and leader_commit. Errors: those of query.h. */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

/* At most BILLS_MAX attempts whose bill is asked for, by id, then as many strays, by name.
 * Malloc'd, the caller frees them. */
bool view_bills(struct store *s, struct bill_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* Books the difference at every level, of a stray at that of everything. *ret_done false: nothing
 * is written, the row is not what was_.. say any more, or the attempt is archived. */
bool store_bill_correct(struct store *s, const struct bill_correction *c, bool *ret_done,
                        struct err *err) MUST_CHECK;
/* It stays an estimate. */
bool store_bill_give_up(struct store *s, const struct bill_row *row, struct err *err) MUST_CHECK;
