/* Warm pools: what matches, how long to keep instances, which pools to end. Pure; wall clock.
 * A pool is addressed by nobody: SageMaker hands it to the next Create that matches, so a reusing
 * Create is intended only when Describe says Available, and its slots are moved, not added. */
#pragma once
#include "slots.h"
#include "spec.h"

#define WARM_KEEP_ALIVE_MAX_S 3600
#define WARM_HAND_OVER_US     INT64_C(30000000) /* how long a task waits for an expected pool */

struct warm_match { /* everything SageMaker compares; strings may be NULL */
    const char *role, *instance_type, *volume_kms_key;
    int instance_count, volume_gb;
    const char *const *subnets;
    int subnets_n;
    const char *const *security_groups;
    int security_groups_n;
    bool encrypt_traffic, network_isolation;
};
uint64_t warm_fingerprint(const struct warm_match *m);
/* Of a stage's attempt on rung instance_type_i with this volume. */
uint64_t warm_fingerprint_of(const struct spec_stage *stage, int instance_type_i, int volume_gb,
                             int subnet_i);

struct warm_pool { /* one pool, from the attempt that left it (or will) */
    int64_t attempt_id, campaign_id, stage_id;
    uint64_t fingerprint;
    int slots_i, instances;
    enum pool_state
        state; /* EXPECTED: the attempt runs with keep-alive; AVAILABLE; IN_USE..: gone */
    usec_t available_us, expires_us;
    musd_t price_musd_per_hour;
    bool ending; /* an UpdateTrainingJob to 0 is under way */
};
struct warm_policy {           /* of a stage */
    int64_t keep_alive_s;      /* -1: break-even decides; 0: never; else at most this */
    musd_t max_idle_cost_musd; /* of the campaign; -1 none */
    bool end_when_queue_empty;
};
struct warm_gap {             /* what is known when an attempt is intended */
    int64_t matching_waiting; /* tasks behind it that would match its pool */
    int64_t matching_live;    /* attempts and pools that would compete for them */
    int64_t expected_gap_s;   /* till a match takes the pool; observation and submit latency */
    int64_t start_saved_s;    /* cold start minus warm start, learned; default 180 */
    musd_t price_musd_per_hour, idle_spent_musd;
    int64_t warm_free; /* warm quota - warm_held, instances */
    int instances;
    bool spot;
};
/* Seconds of keep-alive to send: 0 for spot, without warm quota, when nothing behind it will match,
 * or when idle is worth more than what is saved. */
int64_t warm_keep_alive(const struct warm_policy *p, const struct warm_gap *g);
enum warm_end {
    WARM_KEEP,
    WARM_END_NO_MATCH,
    WARM_END_BLOCKS_QUOTA,
    WARM_END_COST,
    WARM_END_EXPIRED
};
