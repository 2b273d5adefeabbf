/* Shared by the forecast's files: the input, prepared once, and one bootstrap run. Other modules
 * use forecast.h. */
#pragma once
#include "forecast.h"

enum forecast_engine {
    FORECAST_ENGINE_BY_SIZE, /* sched_decide where it is fast enough, else the fast engine */
    FORECAST_ENGINE_SCHED,
    FORECAST_ENGINE_FAST,
    FORECAST_ENGINE_COARSE /* the fast engine, FORECAST_COARSE parts as one bucket */
};
#define FORECAST_COARSE 4

struct forecast_stage_setup {
    const struct forecast_stage *in;
    bool target;
    /* Parts that may start, in order; then those backing off; then those of live jobs, which wait
     * again only when their try fails. */
    struct forecast_part *parts;
    size_t due_n, late_n, parts_n;
    size_t whole_n; /* parts_n before neighbours became one */
    /* [due_n]: how many neighbours of the queue a part stands for; NULL: itself. They run one after
     * the other on one slot, each as often as it fails. */
    uint32_t *bucket;
    int slots_i[SPEC_LADDER_MAX];      /* per rung of the ladder; -1: none */
    int limit_i[SPEC_LADDER_MAX];      /* of spec->instances; -1: none */
    struct duration *duration, *start; /* fitted; start NULL: cold_start_s */
    /* running_n running ones, then starting_n that do not run yet */
    struct duration_running *running;
    size_t running_n, starting_n;
    double passed;     /* running tries, each weighted by the share of its run that has passed */
    bool counts_money; /* at least one cap applies to it */
    /* whether the durations of the stage and of all stages it needs are known */
    enum forecast_known {
        FORECAST_UNASKED,
        FORECAST_ASKING,
        FORECAST_UNKNOWN,
        FORECAST_KNOWN
    } known;
};
struct forecast_setup {
    struct forecast_input in;           /* stages' durations are in stage[] */
    struct forecast_stage_setup *stage; /* [in.stages_n] */
    size_t parts_n;                     /* parts or buckets left, including live parts */
    enum forecast_engine engine;
    bool coarse; /* some stage has buckets */
    int runs;
    double loss; /* spot */
};
/* ERR_INVALID for bad input. Always release with forecast_release, also after a failure. */
bool forecast_prepare(struct forecast_setup *f, const struct forecast_input *in,
                      enum forecast_engine engine, struct err *err) MUST_CHECK;
void forecast_release(struct forecast_setup *f);
/* The order of a part in its queue: larger keys first, then smaller task ids. */
static inline uint32_t forecast_key(const struct forecast_setup *f, const struct forecast_part *p)
{
    return f->in.fifo ? UINT32_MAX - p->seq : p->size_mb;
}

struct forecast_live { /* an attempt in the run */
    int64_t task_id;
    usec_t end_us;      /* wall clock */
    usec_t run_from_us; /* start of its run */
    int64_t unpaid_us;  /* of a bucket: of the time since then, what its parts waited to start */
    musd_t reserve_musd;
    uint32_t part; /* into the stage's parts */
    uint32_t next_free;
    int stage_i, slots_i, rung, limit_i, instances; /* slots_i, limit_i -1: none */
    /* ok: it ends well; used: the entry is in use */
    bool ok, used;
};
struct forecast_event { /* an entry of the heap of ends */
    usec_t at_us;
    uint32_t live;
    uint32_t nth; /* order of starting: breaks all ties */
};
struct forecast_stage_pass {
    struct duration world, start;
    double fail;
    size_t cursor; /* into the due parts */
    /* the other parts: backing off or retried; with sched_decide all parts */
    struct ready_queue *ready;
    uint8_t *tries;     /* [parts_n] */
    int64_t left, live; /* left: parts not ended; live: those of them that run */
    musd_t left_musd;
    bool open, ended;
    int needs;                        /* number of stages it still waits for */
    usec_t start_us, end_us;          /* wall clock; USEC_NEVER: not yet */
    int64_t seconds[SPEC_LADDER_MAX]; /* instance-seconds to pay, per rung, without settled ones */
    enum wait_reason reason;          /* of its first waiting part, from the last decision */
};
struct forecast_pass {
    const struct forecast_setup *f;
    uint64_t seed;
    struct rng rng;
    usec_t now_us;
    double create_us, next_create_us; /* spacing; when the next Create may be sent */
    int64_t live;
    musd_t left_musd;
    struct quota_ledger *slots;
    struct quota_ledger_account account;
    struct sched_campaign *campaigns;
    struct sched_project *projects;
    struct forecast_stage_pass *stage;
    struct forecast_live *lives;
    uint32_t lives_n, free_head;
    size_t lives_cap;
    struct forecast_event *events;
    uint32_t events_n, nth;
    size_t events_cap;
    usec_t why_start_us;  /* of why_task_id */
    double waited[5];     /* of the target's stages, by enum forecast_binding, microseconds */
    double *waited_slots; /* [slots_n] */
    struct forecast_view *sched;
};
/* Allocate the buffers for all runs of a setup; runs are identified by number. */
void forecast_pass_init(struct forecast_pass *r, const struct forecast_setup *f);
void forecast_pass_free(struct forecast_pass *r);
/* bootstrap.c: draw the models of this run. */
void forecast_world_draw(struct forecast_pass *r, int run_i);
/* A random number in [0, 1) that depends only on run, stage, task, try and purpose: the same in
 * both engines and under every what-if. */
double forecast_unit(const struct forecast_pass *r, int stage_i, int64_t task_id, uint32_t try_n,
                     uint32_t what);
enum forecast_what {
    FORECAST_DURATION,
    FORECAST_START,
    FORECAST_FAIL,
    FORECAST_FAIL_AT,
    FORECAST_LOSS
};
/* forecast_run.c: simulate from now to the end of everything the target waits for. False: the time
 * is used up, and the run says nothing. */
bool forecast_pass(struct forecast_pass *r, int run_i);

/* forecast_live.c. Take the end that comes first out of the heap, which is not empty. */
struct forecast_event forecast_event_pop(struct forecast_pass *r);
/* Add n tries like this one (-1: it ends) to all counts of parts and instances at once. */
void forecast_count_live(struct forecast_pass *r, const struct forecast_live *l, int64_t n);
void forecast_hold_slots(struct forecast_pass *r, const struct forecast_live *l, int64_t n);
/* Add to what every cap of the try's stage has left; unlimited stays unlimited. */
void forecast_give_money(struct forecast_pass *r, const struct forecast_live *l, musd_t musd);
/* A job of the input: its slots and money are already held. */
void forecast_start_job(struct forecast_pass *r, int stage_i, size_t job_i);
/* The queue entry of a part, by its index in the stage. */
struct ready_queue_task forecast_task_of(const struct forecast_pass *r, int stage_i, size_t part);
/* For the engines: the first part that may start now, with its order key in size_mb and its index
 * in seq; false: no part may start. */
bool forecast_peek(struct forecast_pass *r, int stage_i, struct ready_queue_task *ret);
size_t forecast_waiting_n(const struct forecast_pass *r, int stage_i);
/* Creates that the rate allows now. */
int64_t forecast_tokens(const struct forecast_pass *r);
usec_t forecast_rate_wake(const struct forecast_pass *r);
struct forecast_start {
    int stage_i, slots_i, rung, limit_i;
    int64_t max_runtime_s;
    musd_t reserve_musd;
};
/* Start this part (already out of its queue). */
void forecast_start(struct forecast_pass *r, const struct forecast_start *s,
                    const struct ready_queue_task *t);
void forecast_pop(struct forecast_pass *r, int stage_i);

/* The two engines: start what may start now and set every open stage's reason. Returns when to
 * decide again if nothing ends earlier. */
usec_t forecast_decide_kernel(struct forecast_pass *r);
usec_t forecast_decide_sched(struct forecast_pass *r);
void forecast_sched_init(struct forecast_pass *r);
void forecast_sched_free(struct forecast_pass *r);

/* The band of n values (sorted here); USEC_NEVER sorts last. */
struct forecast_band forecast_band_of(int64_t *v, size_t n);
/* forecast_run with a given engine, for tests and the advice. */
bool forecast_forecast(const struct forecast_input *in, enum forecast_engine engine,
                       struct forecast *ret, struct err *err) MUST_CHECK;
