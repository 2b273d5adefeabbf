/* Looking ahead: the scheduler itself (sched_decide) run forward in virtual time, with durations
 * drawn from what finished parts show. Plan before a cent is spent, ETA and cost of a running
 * campaign, what-if, expected start of one part, advice on quotas. Pure; same input and seed, same
 * answer. */
#pragma once
#include "duration.h"
#include "sched.h"
#include "slots.h"

#define FORECAST_RUNS_MAX 400

struct forecast_part { /* a waiting part: order as in the ready queue */
    int64_t task_id;
    usec_t not_before_us;
    uint32_t seq, size_mb;
};
struct forecast_job { /* a live attempt */
    int64_t task_id;
    usec_t started_us; /* 0: not running yet */
    uint32_t size_mb;
    int slots_i, instances;
};
struct forecast_stage {
    int64_t campaign_id, stage_id;
    int campaign_i;
    const struct spec *spec;
    const struct spec_stage *stage;
    int needs[SPEC_STAGES_MAX]; /* indices into stages: it starts when they have ended */
    int needs_n;
    const struct forecast_part *parts;
    size_t parts_n;
    const struct forecast_job *jobs;
    size_t jobs_n;
    int64_t done, tried,
        failed_tries;         /* so far: chance that a try fails = failed / tried, smoothed */
    struct duration duration; /* fitted */
    int64_t cold_start_s;
};
struct forecast_campaign {
    int64_t campaign_id;
    int priority;
    int64_t weight, parts_limit;
    musd_t left_musd, spent_musd; /* left: least of its caps */
};
struct forecast_input {
    usec_t now_us;
    uint64_t seed;
    int runs; /* of the bootstrap; 0: as many as the size allows */
    double creates_per_s;
    const struct forecast_stage *stages;
    int stages_n;
    const struct forecast_campaign *campaigns;
    int campaigns_n;
    const struct slots *slots;
    int slots_n;
    const struct slots_account *account;
    int target_i;        /* campaign asked about */
    int64_t why_task_id; /* expected start of this task too; 0: none */
    bool fifo;           /* --what-if order=fifo */
    double spot_loss;    /* chance a try is lost to spot; 0 */
};
struct forecast_band {
    int64_t p10, p50, p90; /* microseconds from now, or micro-USD */
};
struct forecast {
    bool known; /* false: needs_parts more finished parts (or `expect:`) */
    int needs_parts;
    char needs_stage[64];
    struct forecast_band end_us;
    struct forecast_band cost_musd; /* whole campaign: spent + to come */
    struct forecast_band start_us;  /* of why_task_id */
    int64_t place;                  /* of why_task_id in its queue, 1 first; 0 not waiting */
    double fits_budget;             /* share of runs in which every part could be paid */
    int binding_slots_i;            /* type whose limit held most of the waiting; -1 none */
    int runs;
    struct {
        struct forecast_band end_us, cost_musd;
    } stage[SPEC_STAGES_MAX]; /* of the target's, in order */
};
/* ERR_USAGE for input out of bounds; ERR_MEMORY never (aborts). */
bool forecast_run(const struct forecast_input *in, struct forecast *ret,
                  struct err *err) MUST_CHECK;

/* What more quota would bring: for each type that binds, n more instances, hours sooner and money.
 */
struct forecast_advice {
    int slots_i;
    int64_t more;
    int64_t sooner_us;  /* P50 */
    musd_t dearer_musd; /* P50, may be negative */
};
bool forecast_advise(const struct forecast_input *in, const struct forecast *base,
                     struct forecast_advice *ret, int n_max, int *ret_n,
                     struct err *err) MUST_CHECK;
