/* The scheduler's decision: a pure function from a view to a plan. O(stages x launches), never
 * O(parts). Order (rank.h): strict priority, then the campaign with the fewest live jobs (weighted
 * fair, weight 1), then the stage's ready order; ties by id. Every stage that has waiting tasks
 * gets a reason.
 *
 * What it keeps to: 1. no slot, limit, cap or token is used twice. 2. A task that fits never waits
 * behind a start of lower rank. 3. A task of several instances that could run as soon as slots of
 * ours come back keeps its type for itself: smaller tasks of lower rank do not starve it (ORDER).
 * 4. Inside a stage a task that an earlier attempt moved to another rung does not hold up those
 * behind it (SCHED_LOOK_AHEAD tasks are looked at). 5. Equal views give equal plans. */
#pragma once
#include "ready.h"
#include "spec.h"

#define SCHED_LAUNCHES_MAX 256
#define SCHED_LOOK_AHEAD   16

struct sched_slots { /* one instance type; market on demand */
    char instance_type[INSTANCE_TYPE_MAX + 1];
    int64_t held;    /* from intent to release, unknown ones included */
    int64_t foreign; /* others' use, learned */
    int64_t limit;   /* min of every quota that applies and the operator's; < 0 unreadable */
    musd_t price_musd_per_hour; /* < 0 unknown */
};
struct sched_cap { /* money of one level; INT64_MAX left: no cap */
    musd_t left_musd;
};
struct sched_stage {
    int64_t campaign_id, stage_id;
    const struct spec *spec;
    const struct spec_stage *stage;
    struct ready *ready;
    bool may_start;           /* campaign and stage run */
    enum wait_reason why_not; /* when !may_start */
    int priority;
    int64_t campaign_live;  /* active tasks of the campaign, all stages */
    int64_t campaign_limit; /* limits.parts; -1 none */
    int campaign_i;         /* into campaigns' caps: stages of one campaign share it */
    musd_t stage_left_musd; /* INT64_MAX: none */
};
struct sched_campaign {
    int64_t campaign_id;
    int64_t live;
    musd_t left_musd;      /* min over campaign, project, global */
    int64_t type_held[16]; /* beside spec->instances[] */
};
struct sched_view {
    usec_t now_us;              /* wall */
    int64_t tokens;             /* Creates the rate allows within the next 2 s */
    struct sched_stage *stages; /* [stages_n], by (campaign_id, stage_id) */
    int stages_n;
    struct sched_campaign *campaigns;
    int campaigns_n;
    struct sched_slots *slots;
    int slots_n;
    /* What an earlier attempt of a task changed; false: nothing. */
    bool (*change_of)(void *ctx, int64_t task_id, int *instance_type_i, int *volume_gb,
                      int64_t *max_runtime_s);
    /* Money a task has spent or reserved so far, for per_task; NULL: nothing. */
    musd_t (*spent_of)(void *ctx, int64_t task_id);
    void *ctx;
};
struct sched_launch {
    int stage_i;            /* into view->stages */
    struct ready_task task; /* popped from its stage's ready queue: give it back when the intent
                               does not commit */
    int slots_i;            /* into view->slots */
    int instance_type_i;    /* rung of the stage's ladder */
    int volume_gb;
    int64_t max_runtime_s; /* shortened to what the caps leave, never below min_runtime */
    musd_t reserve_musd;
};
struct sched_plan {
    struct sched_launch launches[SCHED_LAUNCHES_MAX];
    int launches_n;
    enum wait_reason reason[SPEC_STAGES_MAX * 64]; /* reason[stages_n]: why the first waiting task
                                                      of the stage waits; NONE when none waits */
    usec_t wake_us; /* when a back-off ends: decide again then; USEC_NEVER */
};
#define SCHED_STAGES_MAX (SPEC_STAGES_MAX * 64)
/* Counts its own launches against slots, limits and caps while it plans (the view's numbers are not
 * changed). */
void sched_decide(const struct sched_view *view, struct sched_plan *ret);
