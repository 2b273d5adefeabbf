/* What the leading droverd reads and writes, all on one connection. Every write happens between
 * leader_begin and leader_commit; leader_begin locks the lease row FOR SHARE and fails with
 * ERR_NOT_LEADER when the epoch is not ours any more (also on SQLSTATE 40001 under repeatable
 * read). A failed statement leaves the transaction to be rolled back. */
#pragma once
#include "core/model.h"
#include "core/money/ledger.h"
#include "store/pg/connection.h"

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

/* --- the view (view.c): read at takeover, then what changed --- */
#define WARN_AT_MAX 8
struct warn_at {                 /* thresholds of a cap that people are told of */
    int64_t at_ppm[WARN_AT_MAX]; /* rising */
    int n;
    int64_t warned_ppm; /* the highest told so far */
};
struct campaign_row {
    int64_t id, project_id;
    char name[128];
    enum campaign_state state;
    enum wanted wanted;
    int priority;
    int64_t parts_limit; /* -1 none */
    int64_t version, taken_version;
    char *spec_json; /* caller frees */
    musd_t cap_musd; /* -1 none */
    enum at_limit at_limit;
    musd_t reserved_musd, spent_musd;
    int64_t weight;
    musd_t warm_musd; /* of spent_musd: idle pools */
    struct warn_at warn;
};
struct stage_row {
    int64_t id, campaign_id;
    int seq;
    char name[64];
    enum stage_state state;
    int64_t tasks; /* in stage_input */
    bool closed;
    int64_t taken, counts[TASK_STATE_COUNT];
    musd_t cap_musd, per_task_musd, reserved_musd, spent_musd;
    int64_t parts_limit;        /* -1 none */
    int resumes, resumes_taken; /* a person let it go on; so far heeded */
    int64_t breaker_since;      /* attempts up to this id say nothing to its breaker */
    bool breaker_passed;
    struct warn_at warn;
    char reason[512];
};
struct task_row { /* waiting or held task for the ready set */
    int64_t id, stage_id;
    int32_t seq;
    int16_t attempts, names;
    enum task_state state;
    usec_t not_before_us;
    int64_t size;
};
struct attempt_row {
    int64_t id, project_id, campaign_id, stage_id, task_id;
    int32_t seq; /* of the task */
    int n;
    enum attempt_state state;
    int64_t epoch;
    struct job_name name;
    char identity_hash[HASH_HEX_N];
    char instance_type[INSTANCE_TYPE_MAX + 1];
    int instances;
    int volume_gb;
    int64_t max_runtime_s;
    musd_t price_musd_per_hour, reserved_musd;
    bool holds;
    bool unwanted; /* paused or cancelled while it lived: it is being stopped by us */
    usec_t intended_us, started_us, ended_us;
    enum market market;
    int64_t keep_alive_s;
    int instance_type_i, subnet_i;
    int64_t pool_id; /* intended on the instances of this pool; 0 none */
    musd_t open_musd, cost_musd;
    bool settled;          /* its job; a pool of it may still be open */
    enum cause stop_cause; /* unwanted for this, and tried again; NONE: a person's wish */
    usec_t created_us;
    int task_attempts; /* of task_run */
    char *uri;         /* of the task; caller frees */
    int64_t size;
    char *vars_json; /* NULL when none; caller frees */
};
/* Versions of every campaign that is not terminal: cheap, every tick that was asked for. Arrays are
 * malloc'd. */
struct campaign_version {
    int64_t id, version,
        tasks; /* tasks: sum of stage_input.tasks, plus 1 a closed stage, so that new parts show */
};
bool view_versions(struct store *s, struct campaign_version **ret, size_t *ret_n,
                   struct err *err) MUST_CHECK;
bool view_campaign(struct store *s, int64_t id, struct campaign_row *ret,
                   struct err *err) MUST_CHECK;
bool view_stages(struct store *s, int64_t campaign_id, struct stage_row **ret, size_t *ret_n,
                 struct err *err) MUST_CHECK;
/* Tasks of a stage in WAITING or HELD with seq in [from_seq, to_seq), to cb in batches (1 M parts:
 * bounded memory, binary results). */
bool view_tasks(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t from_seq,
                int64_t to_seq, void (*cb)(void *ctx, const struct task_row *rows, size_t n),
                void *ctx, struct err *err) MUST_CHECK;
/* Every attempt that is not terminal. */
bool view_attempts(struct store *s, struct attempt_row **ret, size_t *ret_n,
                   struct err *err) MUST_CHECK;
void attempt_rows_free(struct attempt_row *rows, size_t n);
/* The first of names[n] that is no attempt's, into ret_name; false in *ret_any when there is none.
 */
bool attempt_names_missing(struct store *s, const char *const *names, size_t n, bool *ret_any,
                           struct job_name *ret_name, struct err *err) MUST_CHECK;
/* Stored request bytes of an attempt. */
bool attempt_request(struct store *s, int64_t attempt_id, struct buf *ret,
                     struct err *err) MUST_CHECK;
/* Facts of one task for lowering: uri, size, vars, seq (caller frees the strings). */
struct task_input {
    int64_t id, stage_id;
    int32_t seq;
    int attempts, names;
    int64_t size;
    char *uri;
    char *vars_json;
};
bool task_input_get(struct store *s, int64_t campaign_id, int64_t task_id, struct task_input *ret,
                    struct err *err) MUST_CHECK;
struct task_change_row {
    int64_t task_id, campaign_id;
    int instance_type_i;
    int volume_gb;
    int64_t max_runtime_s;
    int tries[CAUSE_COUNT];
    uint64_t signature_hash; /* of its last counted failure, and how many in a row had it */
    int same;
    musd_t spent_musd; /* read, never written: what its attempts have cost or hold reserved */
};
bool view_task_changes(struct store *s, struct task_change_row **ret, size_t *ret_n,
                       struct err *err) MUST_CHECK; /* of live campaigns */
struct slots_row {
    char instance_type[INSTANCE_TYPE_MAX + 1];
    enum market market;
    int64_t held, warm_idle; /* by attempts; by available pools that nobody took */
    int64_t foreign;         /* as learned at foreign_us */
    usec_t foreign_us;
    int64_t refused_limit, limit, warm_limit; /* -1: none, no quota row, no row of warm pools */
    int64_t operator_limit;                   /* -1 none */
    musd_t price_musd_per_hour;               /* -1: no price row */
};
bool view_slots(struct store *s, struct slots_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;
bool install_id(struct store *s, char ret[static 40], struct err *err) MUST_CHECK;

/* --- writes, inside leader_begin .. leader_commit --- */
struct intent {
    int64_t campaign_id, project_id, stage_id, task_id;
    int32_t seq;
    int n; /* attempt number: task_run.names must be n - 1 */
    struct job_name name;
    struct str request; /* exact bytes */
    char identity_hash[HASH_HEX_N];
    char instance_type[INSTANCE_TYPE_MAX + 1];
    int instances;
    int volume_gb;
    int64_t max_runtime_s;
    musd_t price_musd_per_hour, reserve_musd;
    enum market market;
    int64_t keep_alive_s; /* > 0: it will leave a pool */
    int instance_type_i, subnet_i;
    uint64_t fingerprint; /* of the pool it will leave */
    int64_t pool_id;      /* > 0: runs on this pool's instances; they are moved, not added */
    int64_t slot_limit;   /* of ours, others' use taken off: held + warm_idle + instances <= this */
    int64_t attempt_id;   /* in, by attempt_ids */
    int64_t own_pool_id;  /* out: of the pool it will leave; 0 none */
    bool taken; /* out: false when wanted state, caps, slots or the task's state said no; nothing of
                   it is written */
    char refused[12]; /* out: "" or what said no: campaign, money, task, pool, slots */
};
/* attempt ids are drawn first, since the request names its attempt. */
bool attempt_ids(struct store *s, size_t n, int64_t *ret, struct err *err) MUST_CHECK;
/* Locks in the order campaign (wanted = run, state running), money by level, task_run by id, slots.
 * Each intent all or nothing (savepoint or conditional CTE). */
bool store_intend(struct store *s, int64_t epoch, struct intent *in, size_t n,
                  struct err *err) MUST_CHECK;

struct attempt_record { /* one transition of an attempt and what follows from it */
    int64_t attempt_id, campaign_id, project_id, stage_id, task_id;
    int32_t seq;
    enum attempt_state from, to; /* equal: only the observed fields move */
    enum cause cause;
    const char *reason;                      /* <= 1024; NULL keeps */
    const char *arn;                         /* NULL keeps */
    usec_t created_us, started_us, ended_us; /* 0 keeps */
    bool release; /* slots back, and money by the entries below; each once, however often asked. An
                     attempt that ends is always released, and its money must be settled by then. */
    bool settle;  /* the job existed: what it cost is among the entries */
    int64_t billable_s; /* instance-seconds */
    musd_t cost_musd;
    bool estimated;
    struct ledger_entry entries[2 * LEDGER_ENTRIES_MAX]; /* of ledger.h: the job's, and the pool's
                                                            when that has ended already */
    int entries_n;
    musd_t open_musd; /* what they leave reserved: for a pool */
    /* its warm pool */
    bool pool_moves;
    enum pool_state pool_to;
    usec_t pool_expires_us;     /* AVAILABLE: 0 not known */
    int64_t retained_s, warm_s; /* one instance's, all instances'; of a pool that has ended */
    musd_t warm_musd;
    musd_t reserved_musd; /* of the attempt */
    char instance_type[INSTANCE_TYPE_MAX + 1];
    int instances;
    const char *manifest_json; /* NULL none */
    int64_t rows_in, successes, failed_to_download, failed_to_resize, bytes,
        run_seconds; /* added to stage_run when the task ends done */
    /* the task */
    bool task_moves;
    enum task_state task_to; /* from ACTIVE */
    bool task_counts;        /* attempts + 1 */
    usec_t not_before_us;
    const struct task_change_row *change; /* NULL: none */
    const char *signature; /* of a failure row: written when task_moves and cause != NONE */
};
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
struct operation_row {
    int64_t id, campaign_id;
    char kind[16];
    char *selector_json, *changes_json; /* caller frees */
    enum operation_state state;
    int64_t total, done;
};
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
