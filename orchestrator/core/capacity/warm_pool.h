/* Warm pools: what matches, how long to keep instances, which pools to end. Pure; wall clock.
 *
 * A pool cannot be addressed: SageMaker hands it to the next Create that matches, so a Create meant
 * for one is intended only when Describe says Available, and its slots are moved, not added. Every
 * pool is in the slots of its type (held while its job lives, then warm_idle until it is gone), so
 * when SageMaker gives it to another matching Create of ours the sum stays the same. */
#pragma once
#include "core/spec/spec.h"
#include "quota_ledger.h"

#define WARM_POOL_KEEP_ALIVE_MAX_S SPEC_KEEP_ALIVE_MAX_S
/* how long a task waits for an expected pool */
#define WARM_POOL_HAND_OVER_US     INT64_C(30000000)
#define WARM_POOL_EXPIRY_MARGIN_US INT64_C(10000000) /* a pool that goes within this takes no job */
#define WARM_POOL_COLD_START_S     180               /* until learned */
#define WARM_POOL_WARM_START_S     20
/* end of a job to the next Create: observe 10 s, decide, send */
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
/* Of a stage's attempt on rung instance_type_i with this volume, in its subnet_i alone (-1: all it
 * names are sent). 0 for spot, which neither leaves nor takes a pool. */
uint64_t warm_pool_fingerprint_of(const struct spec_stage *stage, int instance_type_i,
                                  int volume_gb, int subnet_i);

struct warm_pool { /* one pool, from the attempt that left it (or will) */
    int64_t attempt_id, campaign_id, stage_id;
    uint64_t fingerprint;
    int slots_i, instances;
    enum pool_state state; /* EXPECTED: the attempt lives, or its end has been seen and its pool not
                              yet; AVAILABLE; IN_USE..: gone */
    int64_t keep_alive_s;  /* as sent */
    usec_t available_us;   /* EXPECTED: when it is thought to come: as soon as the job was seen
                              uploading, stopping or ended that moment, before it the job's expected
                              end; USEC_NEVER not known */
    usec_t expires_us;     /* of an available one */
    musd_t price_musd_per_hour;
    bool ending; /* an UpdateTrainingJob to 0 is under way */
    bool stays;  /* kill_when_queue_empty is off: kept though nothing waiting matches */
};
struct warm_pool_policy {      /* of a stage */
    int64_t keep_alive_s;      /* -1: break-even decides; 0: never; else this long */
    musd_t max_idle_cost_musd; /* of the campaign; -1 none */
    bool end_when_queue_empty;
};
struct warm_pool_policy warm_pool_policy_of(const struct spec_warm *w);

struct warm_pool_gap {        /* what is known when an attempt is intended */
    int64_t matching_waiting; /* tasks behind it that would match its pool */
    int64_t matching_live;    /* pools and attempts that will be there before it, for those tasks */
    int64_t expected_gap_s;   /* till a match takes the pool: observation and submit latency */
    int64_t start_saved_s;    /* cold start minus warm start */
    musd_t price_musd_per_hour;
    musd_t idle_spent_musd; /* of the campaign, what its other pools may still cost included */
    int64_t warm_free;      /* instances: warm quota - warm_held, what this attempt moves added */
    int instances;
    bool spot;
};
/* Seconds of keep-alive to send: 0 for spot, without warm quota, when nothing behind it will match,
 * or when idle is worth more than what is saved. Break-even: idle instances are paid at the price
 * of busy ones, so they are kept while that costs less than the start they save, which for an
 * unknown future is never more than twice the best choice. */
int64_t warm_pool_keep_alive(const struct warm_pool_policy *p, const struct warm_pool_gap *g);

/* May a Create with this fingerprint be intended for this pool now? */
bool warm_pool_takes(const struct warm_pool *p, uint64_t fingerprint, usec_t now_us);
/* Is waiting for this expected pool cheaper than a cold start now? *ret_until_us: when the wait is
 * given up. False too when it should have come by then. */
bool warm_pool_worth_waiting(const struct warm_pool *p, uint64_t fingerprint, int64_t cold_start_s,
                             int64_t warm_start_s, usec_t now_us, usec_t *ret_until_us);
/* What an available pool has cost since it came, at now_us, rounded up; saturates. */
musd_t warm_pool_idle_cost(const struct warm_pool *p, usec_t now_us);
/* What it may still cost at worst, the time to come included, expected ones too. */
musd_t warm_pool_idle_worst(const struct warm_pool *p);

enum warm_pool_end {
    WARM_POOL_KEEP,
    WARM_POOL_END_NO_MATCH,
    WARM_POOL_END_BLOCKS_QUOTA,
    WARM_POOL_END_COST,
    WARM_POOL_END_EXPIRED
};
const char *warm_pool_end_name(enum warm_pool_end e);
struct warm_pool_use { /* what the plan knows of one available pool when all launches are made */
    bool matched;      /* a launch takes it */
    bool wanted;       /* a task that could start soon matches it, and no better pool is left */
    bool blocks;       /* a task of higher rank that it does not match waits for its slots */
    musd_t left_musd;  /* of max_idle_cost, this pool's own cost until now taken off; INT64_MAX */
};
enum warm_pool_end warm_pool_ends_now(const struct warm_pool *p, const struct warm_pool_use *u,
                                      usec_t now_us);
