/* Rows for the leader and handlers: campaigns, stages, tasks, attempts, slots, projects, quotas.
 * Read only. Arrays are malloc'd, the caller frees them. Errors: those of query.h; ERR_NOT_FOUND:
 * no such row. */
#pragma once
#include "core/rows.h"
#include "store/pg/connection.h"

#define TRIES_BYTES_MAX 4096 /* of a task's counted tries by cause, as JSON */

/* Versions of all campaigns that have not ended. Cheap enough for every tick. */
bool view_versions(struct store *s, struct campaign_version **ret, size_t *ret_n,
                   struct err *err) MUST_CHECK;
bool view_campaign(struct store *s, int64_t id, struct campaign_row *ret,
                   struct err *err) MUST_CHECK;
bool view_stages(struct store *s, int64_t campaign_id, struct stage_row **ret, size_t *ret_n,
                 struct err *err) MUST_CHECK;
/* Pass the tasks of a stage in WAITING or HELD with seq in [from_seq, to_seq) to cb in batches
 * (bounded memory for 1 M parts). inputs: a second connection that reads what never changes of a
 * task, which halves the time of a large stage; NULL: s reads that too. */
bool view_tasks(struct store *s, struct store *inputs, int64_t campaign_id, int64_t stage_id,
                int64_t from_seq, int64_t to_seq,
                void (*cb)(void *ctx, const struct task_row *rows, size_t n), void *ctx,
                struct err *err) MUST_CHECK;
/* Every attempt that is not terminal; campaign_id, attempt_id: of these alone, 0 any. */
bool view_attempts(struct store *s, int64_t campaign_id, int64_t attempt_id,
                   struct attempt_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;
void attempt_rows_free(struct attempt_row *rows, size_t n);
/* Append the stored request bytes of an attempt. */
bool attempt_request(struct store *s, int64_t attempt_id, struct buf *ret,
                     struct err *err) MUST_CHECK;
/* The input of one task: uri, size, vars, seq. The caller frees the strings. */
bool task_input_get(struct store *s, int64_t campaign_id, int64_t task_id, struct task_input *ret,
                    struct err *err) MUST_CHECK;
/* What retries changed for tasks of live campaigns: the page after *after is appended to *rows
 * (malloc'd, *n long, by task). *after moves on; INT64_MAX: that was the last. */
bool view_task_changes(struct store *s, int64_t *after, struct task_change_row **rows, size_t *n,
                       struct err *err) MUST_CHECK;
/* The same of one campaign, all of them, which may have ended. */
bool view_task_changes_of(struct store *s, int64_t campaign_id, struct task_change_row **ret,
                          size_t *ret_n, struct err *err) MUST_CHECK;
bool view_slots(struct store *s, struct slots_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;

/* Row 0 is the whole installation. */
bool view_projects(struct store *s, struct project_row **ret, size_t *ret_n,
                   struct err *err) MUST_CHECK;
/* Quotas over all types; -1: unknown. */
bool view_account_quotas(struct store *s, int64_t ret[static ACCOUNT_QUOTA_COUNT],
                         struct err *err) MUST_CHECK;
