/* What people asked for, many parts at once. Writes happen within a transaction of the leader
 * (lease.h). Returned arrays are malloc'd; the caller frees them. */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

bool view_operations(struct store *s, struct operation_row **ret, size_t *ret_n,
                     struct err *err) MUST_CHECK; /* accepted or running, by id */
void operation_rows_free(struct operation_row *rows, size_t n);
/* The next page of the task ids (> after_id, ascending) in state `state` that the selector matches.
 * Selector keys: stage, cause[], parts[], state; all optional. */
bool operation_page(struct store *s, const struct operation_row *op, enum task_state state,
                    int64_t after_id, size_t n_max, struct task_row *ret, size_t *ret_n,
                    struct err *err) MUST_CHECK;
/* Store how many tasks of an operation are done, and its state. */
bool store_operation_progress(struct store *s, int64_t id, enum operation_state to, int64_t done,
                              struct err *err) MUST_CHECK;
/* The next parts (ascending) that this retry moved; store_tasks_undo tells those that have started
 * since. */
bool undo_page(struct store *s, const struct operation_row *op, size_t n_max,
               struct retried_row *ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* An operation that people want undone ends where it is; undone: how many parts so far. */
bool store_operation_undo(struct store *s, int64_t id, int64_t undone, bool over,
                          struct err *err) MUST_CHECK;
