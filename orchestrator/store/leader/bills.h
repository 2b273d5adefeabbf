/* Ended jobs that are settled by an estimate, and their bills. Writes happen between leader_begin
 * and leader_commit. Errors: those of query.h. */
#pragma once
#include "leader.h"

/* At most BILLS_MAX of those whose bill is asked for, by attempt. Malloc'd, the caller frees them.
 */
bool view_bills(struct store *s, struct bill_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* Books the difference at every level. *ret_done false: nothing is written, the attempt is not what
 * was_.. say any more, or is archived. */
bool store_bill_correct(struct store *s, const struct bill_correction *c, bool *ret_done,
                        struct err *err) MUST_CHECK;
/* It stays an estimate. */
bool store_bill_give_up(struct store *s, int64_t attempt_id, struct err *err) MUST_CHECK;
