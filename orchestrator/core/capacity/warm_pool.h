/* Warm pools: which job matches, how long to keep instances, which pools to end. Pure; wall clock.
 *
 * A pool cannot be addressed: SageMaker gives it to the next Create that matches. A Create meant
 * for a pool is therefore intended only when Describe says Available, and the pool's slots are
 * moved, not added. Every pool is counted in the slots of its type (held while its job lives, then
 * warm_idle until it ends), so the sum stays the same when another matching Create of ours gets the
 * pool. */
#pragma once
#include "core/spec/spec.h"
#include "quota_ledger.h"

#define WARM_POOL_KEEP_ALIVE_MAX_S SPEC_KEEP_ALIVE_MAX_S
/* longest wait of a task for an expected pool */
#define WARM_POOL_HAND_OVER_US INT64_C(30000000)
/* a pool that expires within this time takes no job */
#define WARM_POOL_EXPIRY_MARGIN_US INT64_C(10000000)
#define WARM_POOL_COLD_START_S     180 /* until learned */
#define WARM_POOL_WARM_START_S     20
/* from the end of a job to the next Create: observe 10 s, decide, send */
#define WARM_POOL_GAP_S 15

struct warm_pool_match { /* everything SageMaker compares; strings may be NULL (not sent) */
    const char *role, *instance_type, *volume_kms_key;
    int instance_count, volume_gb;
    const char *const *subnets; /* in the order sent: SageMaker compares lists */
    int subnets_n;
    const char *const *security_groups;
    int security_groups_n;
    bool encrypt_traffic, network_isolation, session_chaining;
};
/* Equal for equal fields only (64 bits of SHA-256), never 0: 0 stands for "matches nothing". */
uint64_t warm_pool_fingerprint(const struct warm_pool_match *m);
/* The fingerprint of a stage's attempt on rung instance_type_i with this volume, in subnet_i only
 * (-1: all its subnets are sent). 0 for spot, which neither leaves nor takes a pool. */
uint64_t warm_pool_fingerprint_of(const struct spec_stage *stage, int instance_type_i,
                                  int volume_gb, int subnet_i);
/* The fingerprints of one stage with its own volume, by rung and by subnet + 1, made when needed.
 * A value, all 0 at first. */
struct warm_pool_prints {
    bool known[SPEC_LADDER_MAX];
    uint64_t print[SPEC_LADDER_MAX][1 + ARRAY_LEN(((struct spec_stage *)0)->subnets)];
};
uint64_t warm_pool_print(struct warm_pool_prints *p, const struct spec_stage *stage,
                         int instance_type_i, int subnet_i);

struct warm_pool { /* one pool, from the attempt that left it (or will) */
    int64_t attempt_id, campaign_id, stage_id;
    uint64_t fingerprint;
    int slots_i, instances;
    /* EXPECTED: the attempt lives, or its end was seen before its pool; AVAILABLE; from IN_USE on
     * the pool is gone */
    enum pool_state state;
    int64_t keep_alive_s; /* as sent */
    /* EXPECTED: estimated arrival: the moment the job was seen uploading, stopping or ended; before
     * that its expected end; USEC_NEVER: not known */
    usec_t available_us;
    usec_t expires_us; /* of an available pool */
    musd_t price_musd_per_hour;
    bool ending; /* an UpdateTrainingJob to 0 is in progress */
    bool stays;  /* kill_when_queue_empty is off: kept though nothing waiting matches */
};
struct warm_pool_policy {      /* of a stage */
    int64_t keep_alive_s;      /* -1: break-even decides; 0: never; else seconds */
    musd_t max_idle_cost_musd; /* of the campaign; -1: no cap */
    bool end_when_queue_empty;
};
struct warm_pool_policy warm_pool_policy_of(const struct spec_warm *w);

struct warm_pool_gap {        /* what is known when an attempt is intended */
    int64_t matching_waiting; /* tasks behind it that would match its pool */
    int64_t matching_live;    /* pools and attempts that come before it for those tasks */
    int64_t expected_gap_s;   /* until a match takes the pool: observation and submit latency */
    int64_t start_saved_s;    /* cold start minus warm start */
    musd_t price_musd_per_hour;
    musd_t idle_spent_musd; /* of the campaign, including what its other pools may still cost */
    int64_t warm_free;      /* instances: warm quota - warm_held + those this attempt moves */
    int instances;
    bool spot;
};
/* Seconds of keep-alive to send: 0 for spot, without warm quota, when no later task will match, or
 * when idling costs more than it saves. Break-even: idle instances cost as much as busy ones, so
 * they are kept while that is less than the start they save. With an unknown future this costs at
 * most twice the best choice. */
int64_t warm_pool_keep_alive(const struct warm_pool_policy *p, const struct warm_pool_gap *g);

/* True when a Create with this fingerprint may be intended for this pool now. */
bool warm_pool_takes(const struct warm_pool *p, uint64_t fingerprint, usec_t now_us);
/* True when waiting for this expected pool is better than a cold start now. *ret_until_us: when the
 * wait ends. Also false when the pool should have arrived already. */
bool warm_pool_worth_waiting(const struct warm_pool *p, uint64_t fingerprint, int64_t cold_start_s,
                             int64_t warm_start_s, usec_t now_us, usec_t *ret_until_us);
/* Cost of an available pool from its arrival to now_us, rounded up; saturates. */
musd_t warm_pool_idle_cost(const struct warm_pool *p, usec_t now_us);
/* Worst-case idle cost of an available or expected pool, future time included. */
musd_t warm_pool_idle_worst(const struct warm_pool *p);

enum warm_pool_end {
    WARM_POOL_KEEP,
    WARM_POOL_END_NO_MATCH,
    WARM_POOL_END_BLOCKS_QUOTA,
    WARM_POOL_END_COST,
    WARM_POOL_END_EXPIRED,
    WARM_POOL_END_ASKED /* by a person */
};
const char *warm_pool_end_name(enum warm_pool_end e);
struct warm_pool_use { /* what the plan knows about one available pool after all launches */
    bool matched;      /* a launch takes it */
    bool wanted;       /* a task that could start soon matches it and no better pool is left */
    bool blocks;       /* a task of higher rank that does not match it waits for its slots */
    musd_t left_musd;  /* left of max_idle_cost after this pool's cost so far; INT64_MAX: no cap */
};
enum warm_pool_end warm_pool_ends_now(const struct warm_pool *p, const struct warm_pool_use *u,
                                      usec_t now_us);
