/* Forecast: runs the scheduler forward in virtual time, with durations drawn from what finished
 * parts show. Used for the plan before anything is spent, ETA and cost of a running campaign,
 * what-if, the expected start of one part, and advice on quotas. Pure; the same input and seed give
 * the same answer, unless `expired` ends it early.
 *
 * Each run is one bootstrap sample: duration models, start waits and the probability of a failure
 * are drawn again from what was observed (see duration_resample), so few finished parts give a wide
 * band. Small campaigns are decided by sched_decide itself; large ones by an engine that starts
 * parts in the same order (forecast_fast.c) and is tested against sched_decide. */
#pragma once
#include "core/capacity/quota_ledger.h"
#include "core/duration/duration.h"
#include "core/sched/sched.h"
#include "what_if.h"

#define FORECAST_RUNS_MAX      400
#define FORECAST_TRIES_MAX     8 /* of one part in one run; after that it counts as failed */
#define FORECAST_STAGES_MAX    (SPEC_STAGES_MAX * 64)
#define FORECAST_CAMPAIGNS_MAX 4096
#define FORECAST_PARTS_MAX     4000000 /* entries of all stages, waiting and live */

struct forecast_part { /* a waiting part */
    int64_t task_id;
    usec_t not_before_us; /* wall clock; 0: now */
    uint32_t seq, size_mb;
};
struct forecast_job { /* a live attempt */
    int64_t task_id;
    usec_t intended_us;
    usec_t started_us; /* 0: not running yet */
    uint32_t size_mb;
    int slots_i; /* -1: of a type not in slots */
    int instances;
    musd_t reserve_musd; /* reserved for it; already subtracted from left_musd of its campaign */
};
struct forecast_stage {
    int64_t campaign_id, stage_id;
    int campaign_i; /* into campaigns */
    const struct spec *spec;
    const struct spec_stage *stage;
    int needs[SPEC_STAGES_MAX]; /* indices of the stages that must end before it starts */
    int needs_n;
    /* false: paused or held. Waiting parts are left out; those of the target are forecast as if it
     * resumed at once */
    bool may_start;
    const struct forecast_part *parts; /* waiting, any order */
    size_t parts_n;
    /* [parts_n]: how many parts of this size each stands for, which run one after the other; the
     * parts are then in order of size, id and seq, and those that back off stand last, each for
     * itself. NULL: itself */
    const uint32_t *times;
    const struct forecast_job *jobs;
    size_t jobs_n;
    int64_t held_n;        /* parts that a person holds: without an end until they are released */
    int64_t parts_limit;   /* of the stage; -1 none */
    musd_t committed_musd; /* reserved and spent so far */
    musd_t left_musd;      /* left of its own cap after those; INT64_MAX: no cap */
    musd_t part_cap_musd;  /* of each of its parts; INT64_MAX: no cap */
    /* Ended counted tries so far, and how many of them failed, for the probability of a failure.
     * Failed tries are in no duration model. */
    int64_t tries, failed_tries;
    struct duration duration; /* fitted here when stale */
    /* with size 0: times from intent to running of ended tries, capacity waits included; running
     * jobs are added here. Fewer than DURATION_MIN: those of another stage on the same type, spot
     * or not, and number of instances are used, else cold_start_s */
    struct duration start;
    int64_t cold_start_s;
    int64_t retry_wait_s; /* from a failed try to the next */
};
struct forecast_campaign {
    int64_t campaign_id;
    int project_i; /* into projects */
    int priority;
    int64_t weight;      /* fair share, >= 1 */
    int64_t parts_limit; /* -1 none */
    musd_t left_musd;    /* left of its own cap after reserved and spent; INT64_MAX: no cap */
    musd_t spent_musd;   /* settled so far */
    musd_t reserved_musd;
};
struct forecast_project {
    int64_t project_id, weight;
    int64_t parts_limit; /* -1 none */
    musd_t left_musd;    /* INT64_MAX: no cap */
};
struct forecast_input {
    usec_t now_us;
    uint64_t seed;
    int runs; /* of the bootstrap; 0: as many as the size allows; <= FORECAST_RUNS_MAX */
    double creates_per_s;                /* > 0 */
    const struct forecast_stage *stages; /* by (campaign_id, stage_id) */
    int stages_n;
    const struct forecast_campaign *campaigns;
    int campaigns_n;
    const struct forecast_project *projects; /* at least one */
    int projects_n;
    const struct quota_ledger *slots; /* held: all our attempts, including those of jobs[] */
    int slots_n;
    const struct quota_ledger_account *account;
    int64_t parts_limit; /* over all campaigns; -1: no limit */
    musd_t left_musd;    /* of everything; INT64_MAX: no cap */
    int target_i;        /* the campaign to forecast */
    /* also forecast the start of this waiting task of the target; 0: no task */
    int64_t why_task_id;
    bool fifo;        /* by seq instead of longest first */
    double spot_loss; /* 0..1: additional probability that a try is lost half-way */
    bool too_large;   /* not all of it is here: more than the bounds above */
    bool unread;      /* the target's file cannot be read: its stages are not here */
    /* True when the time for this input and all changes of it is used up: the runs made so far are
     * the answer, if they are enough. NULL: never. */
    bool (*expired)(void *ctx);
    void *expired_ctx;
};
struct forecast_band {
    /* Microseconds from now, or micro-USD. USEC_NEVER: in that share of runs something could never
     * start, for lack of money, quota or price. */
    int64_t p10, p50, p90;
};
enum forecast_binding { /* what caused most of the waiting, in the median run */
                        FORECAST_BINDS_NONE,
                        FORECAST_BINDS_SLOTS,       /* quota of a type: binding_slots_i */
                        FORECAST_BINDS_CONCURRENCY, /* parts_limit of stage, campaign, project or
                                                       all */
                        FORECAST_BINDS_RATE,        /* Creates a second */
                        FORECAST_BINDS_MONEY,       /* a cap */
                        FORECAST_BINDS_COUNT
};
struct forecast_stage_out {
    int stage_i; /* into the input's stages */
    /* false: durations of this stage or of one it needs are not known; the rest is 0 */
    bool known;
    struct forecast_band start_us;
    struct forecast_band end_us, cost_musd; /* cost: future cost only */
    /* parts over its P50 from start to end; 0: nothing left */
    double parts_per_h;
};
struct forecast {
    /* For the whole campaign. False: it needs needs_parts more finished parts of needs_stage, or
     * `expect:`. The figures are then 0; stage[] has those of the known stages. */
    bool known;
    bool too_large;  /* more than fits the bounds or the time: not known for that reason */
    bool unread;     /* as in the input: not known for that reason */
    int needs_parts; /* 5 before the first one has ended */
    char needs_stage[64];
    struct forecast_band end_us;
    struct forecast_band cost_musd; /* whole campaign: spent + to come */
    struct forecast_band start_us;  /* of why_task_id; 0 when it is not waiting */
    /* of why_task_id in its stage's queue, from 1; 0: not waiting. Of a stage by classes of size it
     * is as exact as they are */
    int64_t place, place_of;
    double fits_budget; /* share of runs in which every part could be paid */
    enum forecast_binding binding;
    int binding_slots_i; /* -1 */
    bool price_known;    /* of every type the target uses; else cost is 0 */
    int runs;
    struct forecast_stage_out stage[SPEC_STAGES_MAX]; /* of the target's, in order */
    int stages_n;
};
/* ERR_INVALID for input out of bounds. A target with nothing left is known and ends at 0. */
bool forecast_run(const struct forecast_input *in, struct forecast *ret,
                  struct err *err) MUST_CHECK;

/* forecast_run of a changed input with the same random numbers, so that differences come from the
 * change. `slots` sets the quota and the operator's limit of the type, and raises every parts limit
 * of the target to it. `parts` is then set as PATCH does: the limit of the campaign or of the stage
 * alone. The new type must be in in->slots (price and quota), and the stage be one of the target,
 * else ERR_INVALID; the type is assumed to be as fast. */
bool forecast_run_what_if(const struct forecast_input *in, const struct what_if *what,
                          struct forecast *ret, struct err *err) MUST_CHECK;

/* What an increase would gain, largest gain first: n more instances of a type (a quota), or n more
 * parts at once (slots_i -1), with the time saved and the change of cost. */
struct forecast_advice {
    int slots_i; /* -1: the limit on parts at once */
    int64_t more;
    int64_t sooner_us;  /* P50 */
    musd_t dearer_musd; /* P50, may be negative */
};
/* base: forecast_run of the same input. Only gains of at least 2 % are listed. n_max <= 8. */
bool forecast_advise(const struct forecast_input *in, const struct forecast *base,
                     struct forecast_advice *ret, int n_max, int *ret_n,
                     struct err *err) MUST_CHECK;
