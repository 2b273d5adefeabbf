/* Rows of the leader's tables as values: what store/leader reads and writes, and what core/leader
 * decides with. Plain data; a char * is malloc'd and owned by the holder of the row. -1 in a limit
 * or cap means unlimited; times are wall clock in microseconds, 0 means not known. */
#pragma once
#include "common/str.h"
#include "core/model.h"
#include "core/money/ledger.h"

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
    char nonce[33];      /* random, in the names of its jobs; "" of older campaigns */
    bool held_for_money; /* its own, in state held: at_limit stopped it */
};

enum input_known { INPUT_KNOWN, INPUT_LISTED, INPUT_REFUSED }; /* by a listing (input_listing.h) */
struct stage_row {
    int64_t id, campaign_id;
    int seq;
    char name[64];
    enum stage_state state;
    int64_t tasks; /* in stage_input */
    bool closed;
    enum input_known input;  /* LISTED: it goes on */
    char input_problem[512]; /* REFUSED: why, and what to do */
    int64_t taken, counts[TASK_STATE_COUNT];
    musd_t cap_musd, per_task_musd, reserved_musd, spent_musd;
    int64_t parts_limit;        /* -1 none */
    int resumes, resumes_taken; /* a person let it go on; so far heeded */
    bool gate_override;         /* a person let it succeed whatever its gate says */
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
    enum cause failed_as; /* VERIFYING: it failed so, and its log is being read; NONE: it did not */
    usec_t created_us;
    bool part_lost;    /* the row of its task, or of that one's input, is gone */
    int task_attempts; /* of task_run */
    char *uri;         /* of the task; caller frees */
    int64_t size;
    char *vars_json; /* NULL when none; caller frees */
    char *artifacts; /* where SageMaker put its output; NULL: not told; caller frees */
    char *reason;    /* of failed_as; NULL none; caller frees */
};

struct campaign_version {
    int64_t id, version,
        tasks; /* tasks: sum of stage_input.tasks, plus 1 a closed stage, so that new parts show */
};

struct task_input {
    int64_t id, stage_id;
    int32_t seq;
    enum task_state state;
    int attempts, names;
    int64_t size;
    char *uri;
    char *vars_json;
};

struct task_change_row {
    int64_t task_id, campaign_id;
    int instance_type_i;
    int volume_gb;
    int64_t max_runtime_s;
    int tries[CAUSE_COUNT];
    uint64_t signature_hash; /* of its last counted failure, and how many in a row had it */
    int same;
    /* read, never written: what its attempts have cost or hold reserved; 0 when its campaign has no
     * cap for a part */
    musd_t spent_musd;
};

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

/* The request of an attempt for which no Create is sent: one that was adopted or revived (sql:
 * attempt_revive), whose job was seen alive, and one of which no request can be made. */
#define ATTEMPT_NO_REQUEST "{}"

struct intent {
    int64_t campaign_id, project_id, stage_id, task_id;
    int32_t seq;
    int n; /* attempt number: task_run.names must be n - 1 */
    struct job_name name;
    struct str request;     /* exact bytes, or ATTEMPT_NO_REQUEST */
    const char *no_request; /* why none can be made of it, now or later; NULL: one was */
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
    bool collects;        /* its log is read for metrics */
    int64_t attempt_id;   /* in, by attempt_ids */
    int64_t own_pool_id;  /* out: of the pool it will leave; 0 none */
    bool taken; /* out: false when wanted state, caps, slots or the task's state said no; nothing of
                   it is written */
    char refused[12];       /* out: "" or what said no: campaign, money, part_money,
                         task, pool, slots */
    musd_t part_spent_musd; /* out: what its earlier attempts have cost or hold reserved */
};

struct attempt_record { /* one transition of an attempt and what follows from it */
    int64_t attempt_id, campaign_id, project_id, stage_id, task_id;
    int32_t seq;
    enum attempt_state from, to; /* equal: only the observed fields move */
    enum cause cause;
    const char *reason;                      /* <= 1024; NULL keeps */
    const char *arn;                         /* NULL keeps */
    const char *artifacts;                   /* NULL keeps, until it ends */
    usec_t created_us, started_us, ended_us; /* 0 keeps */
    bool release; /* slots back, and money by the entries below; each once, however often asked. An
                     attempt that ends is always released, and its money must be settled by then. */
    bool settle;  /* the job existed: what it cost is among the entries */
    int64_t billable_s; /* instance-seconds */
    musd_t cost_musd;
    bool estimated;
    bool has_phases; /* settle: what is billed, by cost_phase_store */
    int64_t phases[PHASE_FIGURES_N];
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
    int64_t frees_pool_id; /* REUSED by an attempt that was intended on this other pool, which is
                              idle again; 0 none */
    musd_t reserved_musd;  /* of the attempt */
    char instance_type[INSTANCE_TYPE_MAX + 1];
    int instances;
    const char *manifest_json; /* NULL none */
    enum cause failed_as;      /* NONE keeps */
    const char *evidence_json; /* added to what is there; NULL keeps */
    int64_t rows_in, successes, failed_to_download, failed_to_resize, bytes,
        run_seconds; /* added to stage_run when the task ends done */
    /* the task */
    bool task_moves;
    enum task_state task_to; /* from ACTIVE */
    bool task_counts;        /* attempts + 1 */
    usec_t not_before_us;
    const struct task_change_row *change; /* NULL: none */
    const char *signature; /* of a failure row: written when task_moves and cause != NONE */
    int64_t idle_again;    /* out: instances of pools that stand alone again by it */
};

/* What a person's retry changes of its parts. */
struct task_changes {
    int instance_type_i;   /* rung of the stage's ladder; -1: as before */
    int volume_gb;         /* 0: as before */
    int64_t max_runtime_s; /* 0: as before */
    int64_t operation_id;  /* the retry, by which it can be undone */
};
/* A part that a retry moved, and what had been changed for it before. */
struct retried_row {
    int64_t task_id, stage_id;
    int instance_type_i, volume_gb;
    int64_t max_runtime_s;
    enum task_state state; /* now */
};
struct operation_row {
    int64_t id, campaign_id;
    char kind[16];
    char *selector_json, *changes_json; /* caller frees */
    enum operation_state state;
    int64_t total, done;
    bool undo; /* people want it undone */
    int64_t undone;
    int64_t posted; /* parts of its campaign when this was read, each that was there before it */
};

struct project_row { /* id 0: everything together */
    int64_t id, weight;
    int64_t parts_limit; /* -1 none */
    musd_t cap_musd;     /* -1 none */
    musd_t reserved_musd, spent_musd;
    struct warn_at warn;
    char name[128];
};

struct slot_limit_row { /* how much of a quota drover may use */
    char instance_type[INSTANCE_TYPE_MAX + 1];
    enum market market;
    int64_t limit;
};

struct duration_row {
    int64_t size; /* of the part, bytes */
    int64_t run_us;
};

struct breaker_row {
    int64_t attempt_id;
    enum attempt_state state;
    enum cause cause;
    bool ran; /* its job ran and failed, and was not stopped by a wish: it counts */
    char reason[1025];
};

struct promise_row {
    int64_t stage_id, campaign_id, task_id;
    int instances;
    usec_t since_us, promised_us, expected_us, latest_us; /* 0 not known */
};

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

struct pool_end {
    int64_t pool_id;
    enum pool_state to;         /* REUSED or TERMINATED */
    int64_t retained_s, warm_s; /* one instance's, all instances' */
    musd_t warm_musd;
    musd_t open_musd; /* of the account before: it must still be so */
    struct ledger_entry entries[LEDGER_ENTRIES_MAX];
    int entries_n;
};

struct bill_row { /* an ended job that is settled by an estimate: its bill has not come */
    int64_t attempt_id, campaign_id, project_id, stage_id, task_id; /* all 0: of a stray */
    struct job_name job;
    int instances;
    musd_t price_musd_per_hour;
    int64_t billable_s; /* instance-seconds that are booked; of a stray with its idle pool */
    musd_t cost_musd;   /* for them */
    bool has_phases;
    int64_t phases[PHASE_FIGURES_N]; /* as stored */
};
#define BILLS_MAX 1000 /* of attempts, and of strays, asked for at a time; others wait for those */

struct bill_correction { /* the bill has come */
    int64_t attempt_id;  /* 0: of a stray */
    struct job_name job;
    int64_t was_billable_s, billable_s;
    musd_t was_musd, cost_musd;
    struct ledger_entry entry; /* the difference */
    bool has_phases;
    int64_t phases[PHASE_FIGURES_N];
    const char *rules; /* borrowed from the same answer; NULL keeps */
};

struct stray_row { /* a job of this installation at AWS that is no attempt of it */
    char name[64], arn[257];
    int64_t campaign_id, task_id; /* 0: of none that is known */
    int n;                        /* of the task; 0 without one */
    int64_t attempt_id; /* as the job says, with task_id; not given out again; 0: unknown */
    char why[12];       /* lost: of no campaign we know; unplaced: its task has gone another
                                     way; void: its attempt was given up as never created */
    char instance_type[INSTANCE_TYPE_MAX + 1];
    enum market market;
    int instances;
    int64_t keep_alive_s;
    musd_t price_musd_per_hour, reserved_musd;
    char status[32]; /* in SageMaker's words */
    usec_t created_us, started_us;
    bool stop_asked; /* by a person, or by its kind */
};

struct stray_end { /* it has ended, and its pool; its account is closed */
    const char *name, *status;
    usec_t started_us, ended_us;
    int64_t billable_s; /* instance-seconds */
    musd_t cost_musd;
    bool estimated;
    struct ledger_entry entries[2 * LEDGER_ENTRIES_MAX];
    int entries_n;
};

struct resource_stray_row { /* a thing of this installation at AWS that no row stands for */
    char name[64];          /* at AWS; of a file system its id */
    char arn[257];
    enum resource_kind kind; /* of a name of hosting the first that is there */
    char token[64];          /* of a file system: the one it was made with; "" of others */
    char status[32];         /* as AWS spells it; "" of configs and models */
    char instance_type[INSTANCE_TYPE_MAX + 1]; /* of a file system its deployment; "" unknown */
    int64_t instances, size_gib;
    musd_t price_musd_per_hour; /* of an instance; of a file system of a GB and month; 0 unknown */
    usec_t created_us;
    usec_t started_us, ended_us; /* billed from and until; 0 not yet */
    bool estimated;              /* nobody has seen when it ended */
    bool stop_asked;             /* by a person */
};

struct resource_stray_end { /* it is proven absent */
    const char *name, *status;
    usec_t started_us, ended_us;
    int64_t billable_s; /* instance-seconds; 0 of storage */
    musd_t cost_musd;
    bool estimated;
    struct ledger_entry entries[2 * LEDGER_ENTRIES_MAX];
    int entries_n;
};

struct endpoint_row { /* one try of a stage of kind endpoint: its model, config and endpoint */
    int64_t id, project_id, campaign_id, stage_id;
    int n; /* try of the stage, from 1 */
    enum endpoint_state state;
    struct job_name name; /* of all three */
    char instance_type[INSTANCE_TYPE_MAX + 1];
    int instances;
    int64_t ttl_s;         /* from its coming into service */
    int made;              /* how many of the three are known to exist, or to have existed */
    bool passed;           /* its smoke test, or it has none */
    bool delete_asked;     /* by a person */
    usec_t extend_us;      /* a later end that people want; 0: none */
    usec_t extend_seen_us; /* the last of these that was taken or refused */
    int64_t idle_s;        /* deleted after so long without an invocation; 0: never */
    bool failed;           /* why it is deleted */
    enum cause cause;      /* of the failure */
    int64_t p95_us;        /* of the smoke test; 0: none */
    musd_t price_musd_per_hour, reserved_musd;
    usec_t intended_us, created_us, in_service_us;
    usec_t tested_us;   /* its smoke test was passed; 0: not yet */
    int tested_n;       /* invocations of its own for that */
    usec_t invoked_us;  /* end of the last minute in which it was invoked; 0: none known */
    usec_t deleting_us; /* its deletion was decided */
    usec_t served_us;   /* its last sight or taken Delete since then: it was billed; 0: none */
    usec_t off_us;      /* AWS stopped billing; 0: not seen */
    usec_t ended_us;    /* proven absent */
    char reason[512];   /* why it waits, is deleted or has failed */
};

struct endpoint_end {   /* what it cost, with its row's end */
    int64_t billable_s; /* instance-seconds */
    musd_t cost_musd;
    bool estimated;
    struct ledger_entry entries[2 * LEDGER_ENTRIES_MAX];
    int entries_n;
};

struct filesystem_row { /* one try of a stage of kind lustre */
    int64_t id, project_id, campaign_id, stage_id;
    int n; /* try of the stage, from 1 */
    enum filesystem_state state;
    struct job_name token; /* ClientRequestToken and tag: by it one is found again */
    char aws_id[24];       /* "": nobody has seen it */
    char mount[16];
    char link_id[24]; /* of its association with S3; "": none was seen */
    char deployment[16];
    int64_t size_gib;
    int64_t ttl_s;          /* from its creation */
    bool keep;              /* for its whole ttl, used or not */
    bool kept_for_retry;    /* while available: until its ttl, since a retry may need it */
    bool exports;           /* what jobs wrote goes to S3 before it is deleted */
    char import_from[1025]; /* s3://bucket/prefix/; "": it begins empty */
    bool ready;             /* it could be used, and was filled from S3 */
    bool delete_asked;      /* by a person */
    bool failed;            /* why it is deleted */
    enum cause cause;       /* of the failure */
    musd_t price_musd_per_gb_month, reserved_musd;
    usec_t intended_us, created_us;
    usec_t available_us; /* first seen so; 0: never, and it costs nothing */
    usec_t ending_us;    /* its end was decided */
    usec_t off_us;       /* its deletion was taken */
    usec_t ended_us;     /* proven absent */
    char reason[512];    /* why it waits, is deleted or has failed */
};

struct filesystem_end { /* what it cost, with its row's end */
    int64_t hours;
    musd_t cost_musd;
    bool estimated;
    struct ledger_entry entries[2 * LEDGER_ENTRIES_MAX];
    int entries_n;
};

struct unknown_name { /* of a job that is no attempt of ours, or that of a void one */
    char name[64];
    bool is_void;
};

/* Of an attempt that was made of its job before the price of its type was known. */
struct late_price {
    int64_t attempt_id;
    musd_t price_musd_per_hour, more_musd; /* more_musd: is reserved as well */
};
struct adoption {         /* a job of ours at AWS that has no row */
    struct intent intent; /* task_id and project_id are not used; keep_alive_s, market are */
    usec_t created_us;
};

enum account_quota {
    ACCOUNT_INSTANCES,
    ACCOUNT_SPOT_INSTANCES,
    ACCOUNT_PER_JOB,
    ACCOUNT_RUN_S,
    ACCOUNT_VOLUME_GB,
    ACCOUNT_KEEP_ALIVE_S,
    ACCOUNT_QUOTA_COUNT
};

struct parked_row { /* what was set aside; at the API: since, reason, remedy as well */
    enum parked_kind kind;
    int64_t ref_id; /* campaign, task, attempt or operation */
    int64_t campaign_id;
};
