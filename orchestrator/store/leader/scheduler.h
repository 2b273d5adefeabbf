/* What the scheduler keeps in the database: projects, durations, what a breaker has seen, promises,
 * pools, quotas over all types. Read and written by the leader; writes between leader_begin and
 * leader_commit. Arrays are malloc'd, the caller frees them. */
#pragma once
#include "leader.h"

/* --- limits above a campaign --- */
struct project_row { /* id 0: everything together */
    int64_t id, weight;
    int64_t parts_limit; /* -1 none */
    musd_t cap_musd;     /* -1 none */
    musd_t reserved_musd, spent_musd;
    struct warn_at warn;
    char name[128];
};
bool view_projects(struct store *s, struct project_row **ret, size_t *ret_n,
                   struct err *err) MUST_CHECK;

struct slot_limit_row { /* how much of a quota drover may use */
    char instance_type[INSTANCE_TYPE_MAX + 1];
    enum market market;
    int64_t limit;
};
bool view_slot_limits(struct store *s, struct slot_limit_row **ret, size_t *ret_n,
                      struct err *err) MUST_CHECK;

/* --- what finished attempts of a stage tell --- */
struct duration_row {
    int64_t size; /* of the part, bytes */
    int64_t run_us;
};
/* The newest that succeeded, oldest first. */
bool view_durations(struct store *s, int64_t campaign_id, int64_t stage_id, size_t n_max,
                    struct duration_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;
struct breaker_row {
    int64_t attempt_id;
    enum attempt_state state;
    enum cause cause;
    char reason[1025];
};
/* Ended attempts of a stage with ids above since: the first n_max and the last n_max, oldest first.
 */
bool view_breaker(struct store *s, int64_t stage_id, int64_t since, size_t n_max,
                  struct breaker_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* What the row keeps of a breaker. resumes: of the stage, heeded now. */
bool store_stage_breaker(struct store *s, int64_t stage_id, int64_t since, bool passed, int resumes,
                         struct err *err) MUST_CHECK;
/* Id of the newest attempt of a stage; 0 none. */
bool stage_last_attempt(struct store *s, int64_t stage_id, int64_t *ret,
                        struct err *err) MUST_CHECK;

/* --- promises to tasks of several instances --- */
struct promise_row {
    int64_t stage_id, campaign_id, task_id;
    int instances;
    usec_t since_us, promised_us, expected_us, latest_us; /* 0 not known */
};
bool view_promises(struct store *s, int64_t campaign_id, struct promise_row **ret, size_t *ret_n,
                   struct err *err) MUST_CHECK;
bool store_promise_put(struct store *s, const struct promise_row *p, struct err *err) MUST_CHECK;
bool store_promise_drop(struct store *s, int64_t stage_id, struct err *err) MUST_CHECK;

/* --- warm pools --- */
struct pool_row {
    int64_t id, attempt_id, campaign_id, stage_id, task_id;
    enum pool_state state;
    uint64_t fingerprint;
    char instance_type[INSTANCE_TYPE_MAX + 1];
    int instances;
    int64_t keep_alive_s;
    int64_t taken_by;    /* attempt intended on it; 0 none */
    char end_reason[64]; /* why we asked for its end; "" when we did not */
    usec_t available_us, expires_us;
    struct job_name job; /* that left it */
    musd_t price_musd_per_hour;
    musd_t open_musd, cost_musd; /* of the attempt's account */
    usec_t intended_us;          /* the attempt */
};
/* Pools whose end is not known, by id. */
bool view_pools(struct store *s, struct pool_row **ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* expires_us 0, end_reason NULL: as before. */
bool store_pool_note(struct store *s, int64_t pool_id, usec_t expires_us, const char *end_reason,
                     struct err *err) MUST_CHECK;
struct pool_end {
    int64_t pool_id;
    enum pool_state to;         /* REUSED or TERMINATED */
    int64_t retained_s, warm_s; /* one instance's, all instances' */
    musd_t warm_musd;
    musd_t open_musd; /* of the account before: it must still be so */
    struct ledger_entry entries[LEDGER_ENTRIES_MAX];
    int entries_n;
};
/* Two available pools change takers (none is one too), their attempts with them. ERR_CONFLICT when
 * one is not available any more. */
bool store_pool_swap(struct store *s, int64_t pool_id, int64_t other_id,
                     struct err *err) MUST_CHECK;
/* ERR_CONFLICT when it is not available any more, or its account not as said. */
bool store_pool_end(struct store *s, const struct pool_end *e, struct err *err) MUST_CHECK;

/* --- slots, quotas, money --- */
bool store_slots_learned(struct store *s, const char *instance_type, enum market market,
                         int64_t foreign, usec_t foreign_us, int64_t refused_limit,
                         struct err *err) MUST_CHECK;
enum account_quota {
    ACCOUNT_INSTANCES,
    ACCOUNT_SPOT_INSTANCES,
    ACCOUNT_PER_JOB,
    ACCOUNT_RUN_S,
    ACCOUNT_VOLUME_GB,
    ACCOUNT_KEEP_ALIVE_S,
    ACCOUNT_QUOTA_COUNT
};
/* -1: not listed. */
bool view_account_quotas(struct store *s, int64_t ret[static ACCOUNT_QUOTA_COUNT],
                         struct err *err) MUST_CHECK;
bool store_account_quota_put(struct store *s, enum account_quota kind, int64_t limit,
                             struct err *err) MUST_CHECK;
/* level: "global", "project", "campaign" or "stage". */
bool store_money_warned(struct store *s, const char *level, int64_t ref_id, int64_t ppm,
                        struct err *err) MUST_CHECK;

/* --- the sweep --- */
/* Task of a part number; 0: there is none. */
bool task_by_seq(struct store *s, int64_t campaign_id, int64_t stage_id, int64_t seq, int64_t *ret,
                 struct err *err) MUST_CHECK;
/* When the newest intent was committed; 0: there is none. */
bool newest_intent(struct store *s, usec_t *ret, struct err *err) MUST_CHECK;
struct adoption {         /* a job of ours at AWS that has no row */
    struct intent intent; /* task_id and project_id are not used; keep_alive_s, market are */
    usec_t created_us;
};
/* As an attempt of unknown outcome, slots and money held. *ret_task: 0 when its task is not there,
 * not waiting, or knows a later number: a person decides. */
bool store_adopt(struct store *s, int64_t epoch, const struct adoption *a, int64_t *ret_task,
                 struct err *err) MUST_CHECK;
