/* Writes of attempts, within a transaction of the leader (lease.h). */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

/* Draw n attempt ids, before the requests are built that contain them. */
bool attempt_ids(struct store *s, size_t n, int64_t *ret, struct err *err) MUST_CHECK;
/* Insert intents. Locks in the order campaign (wanted = run, state running), money by level,
 * task_run by id, slots. Each intent is inserted completely or not at all, see in[i]. */
bool store_intend(struct store *s, int64_t epoch, struct intent *in, size_t n,
                  struct err *err) MUST_CHECK;
/* Record the results of attempts; sets r[i].idle_again. ERR_CONFLICT, roll back and read again: an
 * attempt was not in `from`, or its task was not active although it should move, so memory differs
 * from what was committed. */
bool store_record(struct store *s, struct attempt_record *r, size_t n, struct err *err) MUST_CHECK;
/* Mark every live attempt of the campaign as unwanted, for this and later leaders. */
bool store_attempts_unwant(struct store *s, int64_t campaign_id, struct err *err) MUST_CHECK;
/* Mark one hung attempt as unwanted; its task is retried for `cause`. */
bool store_attempt_hung(struct store *s, int64_t attempt_id, enum cause cause, const char *reason,
                        struct err *err) MUST_CHECK;
