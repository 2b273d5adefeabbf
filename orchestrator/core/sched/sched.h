/* The scheduler's decision: a pure function from a view to a plan. O(live + stages x launches),
 * never O(parts).
 *
 * Order: strict priority, then weighted fair share between projects, then between campaigns (held
 * instances over weight, fewest first; among equals the longest wait since the last start), then
 * within a stage longest expected first with look-ahead over the tail (tail_packing.h); ties by id.
 * Every stage with waiting tasks gets a reason.
 *
 * Guarantees:
 * 1. No slot, limit, cap or token is used twice.
 * 2. A task that fits never waits behind a start of lower rank.
 * 3. A multi-instance task has a reservation with a promised start (reservation.h); smaller tasks
 *    of lower rank run in the meantime only when they do not delay it.
 * 4. No slot that a task may use stays free while that task waits, however many others of its stage
 *    wait for something else: the first task of each kind (ready_queue.h) is tried in every plan.
 * 5. Equal views give equal plans. */
#pragma once
#include "core/capacity/capacity_ladder.h"
#include "core/capacity/quota_ledger.h"
#include "core/capacity/reservation.h"
#include "core/capacity/warm_pool.h"
#include "core/duration/duration.h"
#include "core/failure/breaker.h"
#include "core/spec/spec.h"
#include "ready_queue.h"

#define SCHED_LAUNCHES_MAX  256
#define SCHED_POOL_ENDS_MAX 256
#define SCHED_TAILS_MAX     16 /* stages laid out to their end in one plan (tail_packing.h) */

struct sched_stage {
    int64_t campaign_id, stage_id;
    const struct spec *spec;
    const struct spec_stage *stage;
    struct ready_queue *ready;
    bool may_start;           /* campaign and stage run */
    enum wait_reason why_not; /* when !may_start */
    int priority;
    int campaign_i;                       /* into view->campaigns */
    int64_t live;                         /* active tasks of this stage */
    int64_t parts_limit;                  /* of the stage; -1: no limit */
    musd_t stage_left_musd;               /* INT64_MAX: no cap */
    musd_t part_cap_musd;                 /* of each of its parts; INT64_MAX: no cap */
    const struct duration *duration;      /* fitted; NULL: not known, ordered by size alone */
    const struct capacity_ladder *ladder; /* memory of its rungs; NULL: all open */
    const struct breaker *breaker;        /* NULL: no canary, no breaker */
    struct breaker_rules breaker_rules;
    struct warm_pool_policy warm;
    struct warm_pool_prints *prints;    /* kept between plans; NULL: made for this plan only */
    int64_t cold_start_s, warm_start_s; /* learned; 0: defaults */
    struct reservation
        /* reservation of its first waiting task when instance_count > 1. The caller keeps it
         * between plans, sched_decide writes it; NULL: valid for this plan only */
        *reservation;
};
struct sched_campaign {
    int64_t campaign_id;
    int project_i;          /* into view->projects */
    int64_t weight;         /* fair share, >= 1; default 100 */
    int64_t live;           /* active tasks, all stages */
    int64_t held;           /* instances held, all types */
    int64_t parts_limit;    /* limits.parts; -1: no limit */
    musd_t left_musd;       /* of the campaign's own cap */
    int64_t type_held[16];  /* parallel to spec->instances[] */
    musd_t idle_spent_musd; /* on warm pools so far */
    usec_t last_start_us;   /* last start of one of its jobs; 0: not known */
};
struct sched_project {
    int64_t project_id;
    int64_t weight; /* >= 1; default 100 */
    int64_t live, held;
    int64_t parts_limit; /* -1: no limit */
    musd_t left_musd;    /* INT64_MAX: no cap */
    usec_t last_start_us;
};
struct sched_job { /* a live attempt that holds slots */
    int64_t attempt_id, task_id, stage_id;
    int campaign_i;
    int slots_i, instances;
    usec_t end_p50_us, end_p90_us; /* expected release of its slots; USEC_NEVER: not known */
    /* Input for the promise to a multi-instance task (reservation.h): */
    const struct duration *duration; /* of its stage, fitted; NULL: the two quantiles above */
    uint32_t size_mb;
    usec_t run_from_us; /* running since then, or expected to run from then on */
    usec_t last_us;     /* stopped then at the latest; 0: not known */
};
struct sched_view {
    usec_t now_us;              /* wall */
    int64_t tokens;             /* Creates the rate allows within the next 2 s */
    int64_t parts_limit, live;  /* over all campaigns; limit -1: no limit */
    musd_t left_musd;           /* over all campaigns */
    struct sched_stage *stages; /* [stages_n], by (campaign_id, stage_id) */
    int stages_n;
    const struct sched_campaign *campaigns;
    int campaigns_n;
    const struct sched_project *projects; /* at least one */
    int projects_n;
    const struct quota_ledger *slots;
    int slots_n;
    const struct quota_ledger_account *account;
    const struct sched_job *jobs;
    int jobs_n;
    const struct warm_pool *pools; /* not yet terminated */
    int pools_n;
    /* Returns the changes made by an earlier attempt of a task; false: no change. */
    bool (*change_of)(void *ctx, int64_t task_id, int *instance_type_i, int *volume_gb,
                      int64_t *max_runtime_s);
    /* Returns the money a task has spent or reserved so far, for per_task; NULL: always 0. */
    musd_t (*spent_of)(void *ctx, int64_t task_id);
    void *ctx;
};
struct sched_launch {
    int stage_i; /* into view->stages */
    struct ready_queue_task
        /* popped from its stage's ready queue; push it back when the intent does not commit */
        task;
    int slots_i;         /* into view->slots */
    int instance_type_i; /* rung of the stage's ladder */
    int subnet_i;        /* -1: all subnets of the stage */
    /* into view->pools: Available and matching, its slots are moved; -1: no pool */
    int pool_i;
    int volume_gb;
    int64_t max_runtime_s; /* shortened to what the caps leave, never below min_runtime */
    int64_t keep_alive_s;
    musd_t reserve_musd;
};
struct sched_pool_end { /* end this pool now: UpdateTrainingJob with keep-alive 0 */
    int pool_i;
    enum warm_pool_end why;
};
struct sched_plan {
    struct sched_launch launches[SCHED_LAUNCHES_MAX];
    int launches_n;
    struct sched_pool_end pool_ends[SCHED_POOL_ENDS_MAX];
    int pool_ends_n;
    enum wait_reason *reason; /* [stages_n]: why the first waiting task of the stage waits; NONE
                                 when none waits */
    enum wait_reason *rest;   /* [stages_n]: why its unchanged tasks wait */
    int stages_cap;
    usec_t wake_us; /* decide again then: a back-off ends, a rung opens or a hand-over times out */
};
/* What is left of the caps that an attempt counts against; INT64_MAX: no cap. */
struct sched_money {
    musd_t shared; /* the least of its campaign's, its project's and that of everything */
    musd_t stage, part;
};
/* Which of them leaves less than n instances cost in least_s: BUDGET a shared one, STAGE_BUDGET,
 * PART_BUDGET; NONE: none. */
enum wait_reason sched_money_short(const struct sched_money *left, musd_t musd_per_hour, int64_t n,
                                   int64_t least_s);
/* Make the plan. ret: all zero, or of an earlier call; sched_plan_done frees what it holds, not ret
 * itself. Launches of the plan count against slots, limits and caps. The view is not changed
 * except the reservations in stages[].reservation. */
void sched_decide(const struct sched_view *view, struct sched_plan *ret);
void sched_plan_done(struct sched_plan *p);
