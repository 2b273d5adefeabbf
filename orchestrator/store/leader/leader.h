/* What the leading droverd reads and writes, all on one connection. Every write happens between
 * leader_begin and leader_commit; leader_begin locks the lease row FOR SHARE and fails with
 * ERR_NOT_LEADER when the epoch is not ours any more (also on SQLSTATE 40001 under repeatable
 * read). A failed statement leaves the transaction to be rolled back. */
#pragma once
#include "core/money/ledger.h"
#include "core/rows.h"
#include "store/pg/connection.h"
#include "store/rows/view.h"

/* --- leadership (lease.c) --- */
struct lease_info {
    int64_t epoch;
    int64_t renewals;
    int64_t length_us;
    int32_t backend_pid;
    char holder[128];
};
bool lease_read(struct store *s, struct lease_info *ret, struct err *err) MUST_CHECK;
/* Advisory lock of the leader, without waiting. */
bool lease_try_lock(struct store *s, bool *ret_locked, struct err *err) MUST_CHECK;
/* Take over: epoch + 1, our holder name and backend pid. The lock must be ours. */
bool lease_take(struct store *s, const char *holder, int64_t length_us, int64_t *ret_epoch,
                struct err *err) MUST_CHECK;
/* A frozen leader waited out: bump the epoch first (nothing of the old one commits any more), then
 * terminate its backend, then lock. */
bool lease_take_from_frozen(struct store *s, const struct lease_info *seen, const char *holder,
                            int64_t length_us, int64_t *ret_epoch, bool *ret_taken,
                            struct err *err) MUST_CHECK;
bool lease_renew(struct store *s, int64_t epoch, struct err *err) MUST_CHECK; /* ERR_NOT_LEADER */
bool lease_release(struct store *s, int64_t epoch,
                   struct err *err) MUST_CHECK; /* clean stop: unlock */
/* fsync, full_page_writes, synchronous_commit must be on, the server primary: else ERR_PRECONDITION
 * naming the setting. */
bool lease_check_durability(struct store *s, struct err *err) MUST_CHECK;

bool leader_begin(struct store *s, int64_t epoch, struct err *err) MUST_CHECK;
bool leader_commit(struct store *s, struct err *err)
    MUST_CHECK; /* connection lost here: outcome unknown, stop leading and read again */
void leader_rollback(struct store *s);

bool install_id(struct store *s, char ret[static 40], struct err *err) MUST_CHECK;

/* --- writes, inside leader_begin .. leader_commit --- */
/* attempt ids are drawn first, since the request names its attempt. */
bool attempt_ids(struct store *s, size_t n, int64_t *ret, struct err *err) MUST_CHECK;
/* Locks in the order campaign (wanted = run, state running), money by level, task_run by id, slots.
 * Each intent all or nothing (savepoint or conditional CTE). */
bool store_intend(struct store *s, int64_t epoch, struct intent *in, size_t n,
                  struct err *err) MUST_CHECK;

/* ERR_CONFLICT, the transaction to be rolled back: an attempt was not in `from`, or its task not
 * active although it should move; what memory believes is not what was committed, so read again. */
bool store_record(struct store *s, const struct attempt_record *r, size_t n,
                  struct err *err) MUST_CHECK;

/* Every live attempt of the campaign is unwanted from here on, whoever leads. */
bool store_attempts_unwant(struct store *s, int64_t campaign_id, struct err *err) MUST_CHECK;

/* One live attempt is unwanted from here on, since it hangs: its task is tried again for `cause`.
 */
bool store_attempt_hung(struct store *s, int64_t attempt_id, enum cause cause, const char *reason,
                        struct err *err) MUST_CHECK;

/* Bulk move of tasks between states: sorted ids, one UPDATE guarded by `from`, counters and one
 * event with the id range. *ret_moved: how many were in `from`. ret_ids (may be NULL) gets the
 * moved ids, room for n. This is the hot path of the benchmark. */
bool store_tasks_move(struct store *s, int64_t campaign_id, int64_t stage_id, enum task_state from,
                      enum task_state to, enum cause cause, const int64_t *ids, size_t n,
                      size_t *ret_moved, int64_t *ret_ids, struct err *err) MUST_CHECK;
/* New tasks [taken, tasks) enter the counters as waiting. */
bool store_stage_take(struct store *s, int64_t stage_id, int64_t upto, struct err *err) MUST_CHECK;
bool store_campaign_state(struct store *s, int64_t id, enum campaign_state from,
                          enum campaign_state to, const char *reason, int64_t taken_version,
                          struct err *err) MUST_CHECK;
bool store_stage_state(struct store *s, int64_t stage_id, enum stage_state from,
                       enum stage_state to, const char *reason, struct err *err) MUST_CHECK;
bool store_stage_wait_reason(struct store *s, int64_t stage_id, enum wait_reason r,
                             struct err *err) MUST_CHECK;
/* warm: of warm pools, on demand. */
bool store_quota_put(struct store *s, const char *instance_type, enum market market, bool warm,
                     int64_t limit, struct err *err) MUST_CHECK;
bool store_quota_forget(struct store *s, struct err *err) MUST_CHECK; /* unreadable: no rows */
bool store_price_put(struct store *s, const char *instance_type, musd_t musd_per_hour,
                     const char *source, struct err *err) MUST_CHECK;
bool store_alert(struct store *s, int64_t campaign_id, const char *text,
                 struct err *err) MUST_CHECK; /* an event of kind alert */
/* Daily partitions of the events: made two days ahead, dropped after 14. Call at takeover and once
 * an hour, in a transaction of its own. */
bool store_events_maintain(struct store *s, struct err *err) MUST_CHECK;

/* --- operations --- */
bool view_operations(struct store *s, struct operation_row **ret, size_t *ret_n,
                     struct err *err) MUST_CHECK; /* accepted or running, by id */
void operation_rows_free(struct operation_row *rows, size_t n);
/* Next page of task ids (> after_id, by id) the selector names, in state `state`. Selector keys:
 * stage, cause[], parts[], state; all optional. */
bool operation_page(struct store *s, const struct operation_row *op, enum task_state state,
                    int64_t after_id, size_t n_max, struct task_row *ret, size_t *ret_n,
                    struct err *err) MUST_CHECK;
bool store_operation_progress(struct store *s, int64_t id, enum operation_state to, int64_t done,
                              struct err *err) MUST_CHECK;
/* failed -> waiting for these tasks: failure rows deleted, changes written, not_before cleared. */
/* Retries used so far, by cause and in sum, are forgotten. */
bool store_tasks_retry(struct store *s, int64_t campaign_id, int64_t stage_id, const int64_t *ids,
                       size_t n, int volume_gb, size_t *ret_moved, int64_t *ret_ids,
                       struct err *err) MUST_CHECK;
