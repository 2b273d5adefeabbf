/* The rows of the simulated store, and the journal for undoing a transaction or the last
 * commits. Rows are numbered from 0; the id that core sees is one more (id_of, row_of_id). */
#pragma once
#include "core/money/budget.h"
#include "core/rows.h"

struct db_campaign {
    int project, priority, stage0, stages_n;
    enum campaign_state state;
    enum wanted wanted;
    int64_t weight, parts_limit, version;
    struct budget money;
    int64_t taken_version;          /* that its state was last moved by */
    musd_t idle_musd;               /* spent on warm pools */
    int64_t submitted_us, ended_us; /* instants of the world; 0: not ended */
    enum at_limit at_limit;
    bool own_cap_held; /* for the budget of a stage, which has no at_limit */
    bool money_held;   /* for its own */
};
struct db_stage {
    int campaign, task0, tasks_n;
    enum stage_state state;
    enum wait_reason reason;
    struct budget money;
    int64_t parts_limit;
    int64_t counts[TASK_STATE_COUNT];
    int resumes, resumes_taken;
    int breaker_since; /* attempt id its breaker was reset at */
    bool breaker_passed;
    struct promise_row promise; /* task_id 0: none */
    usec_t reset_us;
};
struct db_task {
    int stage, attempts, names;
    enum task_state state;
    usec_t not_before_us;
    struct budget money; /* per_task */
    bool changed;
    int type_i, volume_gb;
    int64_t max_runtime_s;
    uint8_t tries[CAUSE_COUNT];
    uint8_t judged[CAUSE_COUNT]; /* the judge's own count of retries */
    uint8_t same;                /* counted failures with the last signature */
    uint64_t signature;          /* of the last counted failure */
    int newest;                  /* attempt, -1 */
};
struct db_attempt {
    int task, n, type, rung, subnet_i, instances, volume_gb;
    enum attempt_state state;
    enum cause cause;
    enum cause stop_cause; /* stopped by us for this, to be tried again */
    enum cause failed_as;  /* its log is being read */
    int64_t epoch, max_runtime_s, keep_alive_s;
    musd_t price_musd, reserved_musd;
    musd_t open_musd, cost_musd, warm_musd; /* still reserved; spent on the run and on its pool */
    uint64_t request, name_hash;
    struct job_name name;
    bool holds, unwanted, settled;
    bool ran, counted; /* its job ran and failed; its end counts in the breaker */
    usec_t created_us, intended_us, started_us, ended_us;
    int64_t billable_s; /* instance-seconds settled */
    const char *reason; /* of its end; lives as long as the world */
    int pool_of;        /* attempt whose pool it was meant to take, -1 */
    /* the pool it leaves */
    bool has_pool; /* and it is not known to be over */
    enum pool_state pool;
    int taken_by; /* attempt that was intended on it, -1 */
    const char *end_reason;
    usec_t pool_since_us, pool_expires_us;
    uint64_t fingerprint;
};
struct db_slots {
    int64_t held, warm_idle, quota, warm_quota; /* quota: as last written by a leader; -1 */
    int64_t foreign, refused_limit;             /* as learned; -1 none */
    usec_t foreign_us;
};
struct db_op {
    int campaign;
    bool skip; /* else retry */
    enum operation_state state;
};
static inline int64_t id_of(int row)
{
    return row + 1;
}
static inline int row_of_id(int64_t id) /* -1: of no row */
{
    return (int)(id - 1);
}
struct db_lease {
    int64_t epoch, renewals, timeline;
    int holder;
};
enum table {
    T_CAMPAIGN,
    T_STAGE,
    T_TASK,
    T_ATTEMPT,
    T_LEDGER,
    T_SLOTS,
    T_PROJECT,
    T_GLOBAL,
    T_OP,
    T_LEASE,
    TABLES
};
struct db_table {
    char *rows;
    size_t row, n, cap;
};
struct db_undo {
    uint8_t table;
    bool grew; /* the row was not there */
    uint32_t index;
    size_t at; /* its old bytes */
};
struct db {
    struct db_table t[TABLES];
    struct db_undo *undo;
    size_t undo_n, undo_cap;
    char *bytes;
    size_t bytes_n, bytes_cap;
    size_t *commits; /* undo_n before each commit kept */
    size_t commits_n, commits_cap;
    size_t floor;      /* commits before this are on every replica */
    size_t began;      /* undo_n at begin */
    int64_t timeline;  /* grows at a failover */
    int64_t instance;  /* sessions of an older one are dead */
    int lock_by;       /* advisory lock: controller, -1 */
    int64_t committed; /* transactions ever */
    bool in_tx, keeps_history;
};
