/* Everything the leading droverd reads and writes, on one connection. Every write happens between
 * leader_begin and leader_commit. leader_begin locks the lease row FOR SHARE and fails with
 * ERR_NOT_LEADER when the epoch is no longer ours (also on SQLSTATE 40001 under repeatable read).
 * After a failed statement the transaction must be rolled back. Other errors: those of query.h.
 * Returned arrays are malloc'd; the caller frees them. */
#pragma once
#include "core/money/ledger.h"
#include "core/rows.h"
#include "store/pg/connection.h"
#include "store/rows/view.h"

/* Characters of a reason that are stored; more is cut off. */
#define REASON_CHARS_MAX          1024
#define RESOURCE_REASON_CHARS_MAX 500 /* of an endpoint or a file system */

struct lease_info {
    int64_t epoch;
    int64_t renewals;
    int64_t length_us;
    int32_t backend_pid;
    char holder[128];
};
/* The lease row. */
bool lease_read(struct store *s, struct lease_info *ret, struct err *err) MUST_CHECK;
/* Try to take the leader's advisory lock, without waiting. */
bool lease_try_lock(struct store *s, bool *ret_locked, struct err *err) MUST_CHECK;
/* What a takeover gives. longest_us: a lease of an earlier leader lasts no longer than this from
 * now, whatever length that leader was told; at least our own length. */
struct lease_taken {
    int64_t epoch;
    int64_t longest_us;
};
/* Take over: epoch + 1, our holder name and backend pid. Requires the lock. */
bool lease_take(struct store *s, const char *holder, int64_t length_us, struct lease_taken *ret,
                struct err *err) MUST_CHECK;
/* Take over from a leader that no longer renews: increase the epoch first, so that the old leader
 * can commit nothing, then terminate its backend, then lock. *ret_taken false: it renewed the lease
 * after `seen`. */
bool lease_take_from_frozen(struct store *s, const struct lease_info *seen, const char *holder,
                            int64_t length_us, struct lease_taken *ret, bool *ret_taken,
                            struct err *err) MUST_CHECK;
/* length_us: longest_us of the takeover until that is over, then our own. ERR_NOT_LEADER: the epoch
 * is over */
bool lease_renew(struct store *s, int64_t epoch, int64_t length_us, struct err *err) MUST_CHECK;
bool lease_release(struct store *s, int64_t epoch,
                   struct err *err) MUST_CHECK; /* clean stop: end the lease and unlock */
/* Check that fsync, full_page_writes and synchronous_commit are on and the server is a primary.
 * ERR_PRECONDITION names the setting. */
bool lease_check_durability(struct store *s, struct err *err) MUST_CHECK;

/* Begin a transaction and lock the lease row. ERR_NOT_LEADER. */
bool leader_begin(struct store *s, int64_t epoch, struct err *err) MUST_CHECK;
bool leader_commit(struct store *s, struct err *err)
    MUST_CHECK; /* connection lost: the outcome is unknown, stop leading and read again */
void leader_rollback(struct store *s);

/* The id of this installation. */
bool install_id(struct store *s, char ret[static 40], struct err *err) MUST_CHECK;

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
/* Move a campaign from a state to another. ERR_CONFLICT when it was not in `from`. */
bool store_campaign_state(struct store *s, int64_t id, enum campaign_state from,
                          enum campaign_state to, const char *reason, int64_t taken_version,
                          struct err *err) MUST_CHECK;
/* The same for a stage. */
bool store_stage_state(struct store *s, int64_t stage_id, enum stage_state from,
                       enum stage_state to, const char *reason, struct err *err) MUST_CHECK;
/* Set the reason shown for the stage's waiting parts. */
bool store_stage_wait_reason(struct store *s, int64_t stage_id, enum wait_reason r,
                             struct err *err) MUST_CHECK;
/* The same, with what came instead of an answer about done_if ("" not known) and when it is asked
 * again (0: it is not). */
bool store_stage_unchecked(struct store *s, int64_t stage_id, enum wait_reason r,
                           const char *detail, usec_t again_us, struct err *err) MUST_CHECK;
/* Store a quota. warm: of warm pools, otherwise of on-demand jobs. */
bool store_quota_put(struct store *s, const char *instance_type, enum market market, bool warm,
                     int64_t limit, struct err *err) MUST_CHECK;
/* Store at which rate this leader sends Creates, for forecasts of those that do not lead. */
bool store_create_rate_put(struct store *s, int64_t per_s_u, struct err *err) MUST_CHECK;
bool store_price_put(struct store *s, const char *instance_type, musd_t musd_per_hour,
                     const char *source, struct err *err) MUST_CHECK;
/* Store what AWS Pricing lists: {"ml.m5.large": 115000}, micro-USD. */
bool store_price_list_put(struct store *s, const char *prices_json, struct err *err) MUST_CHECK;
/* What it lists becomes the price, paid_ppm of a million of it, of all types but those of the
 * operator's file: named_json is an array of them, NULL when the file cannot be read. */
bool store_price_list_use(struct store *s, int64_t paid_ppm, const char *file,
                          const char *named_json, struct err *err) MUST_CHECK;
/* How long ago it was read; -1: never. */
bool store_price_list_age(struct store *s, int64_t *ret_us, struct err *err) MUST_CHECK;
bool store_alert(struct store *s, int64_t campaign_id, const char *text,
                 struct err *err) MUST_CHECK; /* an event of kind alert */
/* Daily partitions of the events: made two days ahead, dropped after 14. Once an hour, on a
 * connection of its own (STORE_MAINTENANCE): it needs locks that a reader of the events denies it,
 * and while it waits for them everybody else waits for it. Reads all of the default partition: call
 * store_events_expire first. */
bool store_events_maintain(struct store *s, struct err *err) MUST_CHECK;

bool view_parked(struct store *s, struct parked_row **ret, size_t *ret_n,
                 struct err *err) MUST_CHECK;
/* Inserts or counts once more; alert is written as an event the first time. */
bool store_park(struct store *s, const struct parked_row *row, const char *reason,
                const char *alert, struct err *err) MUST_CHECK;
bool store_unpark(struct store *s, enum parked_kind kind, int64_t ref_id,
                  struct err *err) MUST_CHECK;

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
