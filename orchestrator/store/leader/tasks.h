/* Writes of tasks, many at once, within a transaction of the leader (lease.h). */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

/* Move tasks between states: one UPDATE guarded by `from`, the counters, and one event with the id
 * range. ids need not be sorted. *ret_moved: the number that were in `from`. ret_ids (may be NULL)
 * gets the moved ids and has room for n. `to` is not failed, see below. The hot path of the
 * benchmark. */
bool store_tasks_move(struct store *s, int64_t campaign_id, int64_t stage_id, enum task_state from,
                      enum task_state to, enum cause cause, const int64_t *ids, size_t n,
                      size_t *ret_moved, int64_t *ret_ids, struct err *err) MUST_CHECK;
/* Tasks that wait fail without another attempt, each with its final failure: retry and skip reach
 * a task by that alone. The message is their signature, too, so it names nothing of one task. */
bool store_tasks_fail(struct store *s, int64_t campaign_id, int64_t stage_id, enum cause cause,
                      const char *message, const int64_t *ids, size_t n, size_t *ret_moved,
                      struct err *err) MUST_CHECK;
/* Count the new tasks [taken, upto) of the stage as waiting. */
bool store_stage_take(struct store *s, int64_t stage_id, int64_t upto, struct err *err) MUST_CHECK;
/* Move those of these tasks that have not started since the retry from waiting or held to failed,
 * as they had failed before it; from another state none. undo_page gives none of them again.
 * ret_ids has room for n and gets the moved ids in ascending order. */
bool store_tasks_undo(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t operation_id,
                      enum task_state from, const int64_t *ids, size_t n, size_t *ret_moved,
                      int64_t *ret_ids, struct err *err) MUST_CHECK;
/* Move these tasks from failed to waiting: keep how they failed for an undo, delete their failure
 * rows, write the changes, clear not_before and the counts of retries. */
bool store_tasks_retry(struct store *s, int64_t campaign_id, int64_t stage_id, const int64_t *ids,
                       size_t n, const struct task_changes *changes, size_t *ret_moved,
                       int64_t *ret_ids, struct err *err) MUST_CHECK;
