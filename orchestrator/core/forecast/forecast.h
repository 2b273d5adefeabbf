/* Looking ahead: the scheduler run forward in virtual time, with durations drawn from what finished
 * parts show. Plan before a cent is spent, ETA and cost of a running campaign, what-if, expected
 * start of one part, advice on quotas. Pure; same input and seed, same answer.
 *
 * Each run of the bootstrap is a world of its own: duration models, start waits and the chance of a
 * failure are drawn anew from what was seen (see duration_resample), so few finished parts give a
 * wide band. Small campaigns are decided by sched_decide itself; big ones by a kernel that lists
 * parts in the same order (forecast_kernel.c), which tests hold against sched_decide. */
#pragma once
#include "core/capacity/quota_ledger.h"
#include "core/duration/duration.h"
#include "core/sched/sched.h"
#include "what_if.h"

#define FORECAST_RUNS_MAX      400
#define FORECAST_TRIES_MAX     8 /* of one part in one run; then it counts as failed */
#define FORECAST_STAGES_MAX    SCHED_STAGES_MAX
#define FORECAST_CAMPAIGNS_MAX 4096
#define FORECAST_PARTS_MAX     4000000 /* of all stages; waiting and live together */

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
    musd_t reserve_musd; /* held for it; left_musd of its campaign is after it */
};
struct forecast_stage {
    int64_t campaign_id, stage_id;
    int campaign_i; /* into campaigns */
    const struct spec *spec;
    const struct spec_stage *stage;
    int needs[SPEC_STAGES_MAX]; /* indices into stages: it starts when they have ended */
    int needs_n;
    bool may_start; /* false: paused or held; its waiting parts are left out of the picture, of the
                       target they count as going on at once */
    const struct forecast_part *parts; /* waiting, any order */
    size_t parts_n;
    const struct forecast_job *jobs;
    size_t jobs_n;
    int64_t parts_limit;   /* of the stage; -1 none */
    musd_t committed_musd; /* spent and reserved of the stage's own budget */
    /* Counted tries so far, ended, and how many of them failed: the chance of a failure. Their run
     * time is in no duration model. */
    int64_t tries, failed_tries;
    struct duration duration; /* fitted here when stale */
    struct duration start;    /* size 0: waits from intent to running of ended tries, capacity
                                 waits included; those of running jobs are added here. Fewer than
                                 DURATION_MIN: cold_start_s is taken */
    int64_t cold_start_s;
    int64_t retry_wait_s; /* from a failed try to the next */
};
struct forecast_campaign {
    int64_t campaign_id;
    int project_i; /* into projects */
    int priority;
    int64_t weight;      /* fair share, >= 1 */
    int64_t parts_limit; /* -1 none */
    musd_t left_musd;    /* of its own cap, after what is reserved and spent; INT64_MAX none */
    musd_t spent_musd;   /* settled so far */
};
struct forecast_project {
    int64_t project_id, weight;
    int64_t parts_limit; /* -1 none */
    musd_t left_musd;    /* INT64_MAX none */
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
    const struct quota_ledger *slots; /* held: all our attempts, those of jobs[] among them */
    int slots_n;
    const struct quota_ledger_account *account;
    int64_t parts_limit; /* of everything; -1 none */
    musd_t left_musd;    /* of everything; INT64_MAX none */
    int target_i;        /* campaign asked about */
    int64_t why_task_id; /* expected start of this waiting task of the target too; 0: none */
    bool fifo;           /* by seq instead of longest first */
    double spot_loss;    /* 0..1: chance besides that a try is lost half way */
};
struct forecast_band {
    /* Microseconds from now, or micro-USD. USEC_NEVER: in so many worlds something that is left
     * could never start, for want of money, quota or price. */
    int64_t p10, p50, p90;
};
enum forecast_binding { /* what held most of the waiting, in the middle of the runs */
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
    bool known;  /* false: its own parts, or those of a stage it needs, take nobody knows how long;
                    the rest is 0 */
    struct forecast_band start_us;
    struct forecast_band end_us, cost_musd; /* cost: of what is to come */
    double parts_per_h;                     /* over its P50 from start to end; 0: nothing left */
};
struct forecast {
    /* Of the whole campaign. False: needs_parts more finished parts of needs_stage, or `expect:`;
     * its figures are 0, those of the stages known so far are told in stage[]. */
    bool known;
    int needs_parts; /* 5 before the first one has ended */
    char needs_stage[64];
    struct forecast_band end_us;
    struct forecast_band cost_musd; /* whole campaign: spent + to come */
    struct forecast_band start_us;  /* of why_task_id; 0 when it is not there */
    int64_t place, place_of;        /* of why_task_id in its stage's queue, 1 first; 0 not there */
    double fits_budget;             /* share of runs in which every part could be paid */
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

/* forecast_run of a changed input; the same random numbers, so that differences are the change's.
 * `slots` is the quota and the operator's limit of the type, and every parts limit of the target is
 * lifted to it unless `parts` says otherwise. The new type must be among in->slots (its price and
 * quota), else ERR_INVALID; it is taken to be as fast. */
bool forecast_run_what_if(const struct forecast_input *in, const struct what_if *what,
                          struct forecast *ret, struct err *err) MUST_CHECK;

/* What more would bring, most gain first: n more instances of a type (a quota), or of what
 * parts_limit allows (slots_i -1), hours sooner and money. */
struct forecast_advice {
    int slots_i; /* -1: the limits on parts at once */
    int64_t more;
    int64_t sooner_us;  /* P50 */
    musd_t dearer_musd; /* P50, may be negative */
};
/* base: forecast_run of the same input. Nothing is advised that gains under 2 %. n_max <= 8. */
bool forecast_advise(const struct forecast_input *in, const struct forecast *base,
                     struct forecast_advice *ret, int n_max, int *ret_n,
                     struct err *err) MUST_CHECK;
