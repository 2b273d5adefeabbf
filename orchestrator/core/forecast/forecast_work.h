/* What the files of the forecast share: the input prepared once, and one run of the bootstrap. Not
 * for others: they see forecast.h. */
#pragma once
#include "forecast.h"

enum fc_engine {
    FC_ENGINE_BY_SIZE, /* sched_decide where that is quick enough, else the kernel */
    FC_ENGINE_SCHED,
    FC_ENGINE_KERNEL
};

/* --- prepared once ---------------------------------------------------------------------------- */

struct fc_stage {
    const struct forecast_stage *in;
    bool target;
    /* Parts that may start, in order; then those backing off; then those of live jobs, which wait
     * only when their try fails. */
    struct forecast_part *parts;
    size_t due_n, late_n, parts_n;
    int slots_i[SPEC_LADDER_MAX];      /* beside the ladder; -1 none */
    int limit_i[SPEC_LADDER_MAX];      /* of spec->instances; -1 none */
    struct duration *duration, *start; /* fitted; start NULL: cold_start_s */
    struct duration_running *running;  /* running_n that run, then starting_n that do not yet */
    size_t running_n, starting_n;
    double passed;     /* running tries, each by the share of its run that it has come through */
    bool counts_money; /* some cap above it is finite */
};
struct fc_setup {
    struct forecast_input in; /* stages' durations are in stage[] */
    struct fc_stage *stage;   /* [in.stages_n] */
    size_t parts_n;           /* all that is left, live ones included */
    enum fc_engine engine;
    int runs;
    double loss; /* spot */
};
/* ERR_INVALID. Release with fc_release whatever it returns. */
bool fc_prepare(struct fc_setup *f, const struct forecast_input *in, enum fc_engine engine,
                struct err *err) MUST_CHECK;
void fc_release(struct fc_setup *f);
/* The order of a part in its queue: the larger the key the sooner, then the smaller task_id. */
static inline uint32_t fc_key(const struct fc_setup *f, const struct forecast_part *p)
{
    return f->in.fifo ? UINT32_MAX - p->seq : p->size_mb;
}

/* --- one run ---------------------------------------------------------------------------------- */

struct fc_live { /* an attempt in the run */
    int64_t task_id;
    usec_t end_us;      /* wall clock */
    usec_t run_from_us; /* when it runs or ran */
    musd_t reserve_musd;
    uint32_t part; /* into the stage's parts */
    uint32_t next_free;
    int stage_i, slots_i, rung, limit_i, instances; /* slots_i, limit_i -1: none */
    bool ok, used;                                  /* it ends well; the entry is in use */
};
struct fc_event { /* of the heap of ends */
    usec_t at_us;
    uint32_t live;
    uint32_t nth; /* order of starting: no tie is left open */
};
struct fc_stage_run {
    struct duration world, start;
    double fail;
    size_t cursor;       /* into the due parts */
    struct ready *ready; /* the rest: backing off, tried again; with sched_decide all */
    uint8_t *tries;      /* [parts_n] */
    int64_t left, live;  /* parts not ended; running ones among them */
    musd_t left_musd;
    bool open, ended;
    int needs;                        /* stages it still waits for */
    usec_t start_us, end_us;          /* wall clock; USEC_NEVER: not yet */
    int64_t seconds[SPEC_LADDER_MAX]; /* instance-seconds to pay by rung, settled ones left out */
    enum wait_reason reason;          /* of its first waiting part, by the last decision */
};
struct fc_run {
    const struct fc_setup *f;
    uint64_t seed;
    struct rng rng;
    usec_t now_us;
    double create_us, next_create_us; /* spacing; when the next Create may be sent */
    int64_t live;
    musd_t left_musd;
    struct slots *slots;
    struct slots_account account;
    struct sched_campaign *campaigns;
    struct sched_project *projects;
    struct fc_stage_run *stage;
    struct fc_live *lives;
    uint32_t lives_n, lives_cap, free_head;
    struct fc_event *events;
    uint32_t events_n, events_cap, nth;
    usec_t why_start_us;  /* of why_task_id */
    double waited[5];     /* of the target's stages, by enum forecast_binding, microseconds */
    double *waited_slots; /* [slots_n] */
    struct fc_sched *sched;
};
/* Buffers for all runs of a setup; then each run by its number. */
void fc_run_init(struct fc_run *r, const struct fc_setup *f);
void fc_run_free(struct fc_run *r);
/* forecast_world.c: models of this run. */
void fc_world_draw(struct fc_run *r, int run_i);
/* A number in [0, 1) that only depends on run, stage, task, try and what it is for: the same in
 * both engines and under every what-if. */
double fc_unit(const struct fc_run *r, int stage_i, int64_t task_id, uint32_t try_n, uint32_t what);
enum fc_what { FC_DURATION, FC_START, FC_FAIL, FC_FAIL_AT, FC_LOSS };
/* forecast_run.c: from now to the end of everything the target waits for. */
void fc_run(struct fc_run *r, int run_i);

/* For the engines: the first part that may start now, with its order key in size_mb and its index
 * in seq; false: none may. */
bool fc_peek(struct fc_run *r, int stage_i, struct ready_task *ret);
size_t fc_waiting_n(const struct fc_run *r, int stage_i);
/* Creates the rate allows now, and when it allows the next one. */
int64_t fc_tokens(const struct fc_run *r);
usec_t fc_rate_wake(const struct fc_run *r);
struct fc_start {
    int stage_i, slots_i, rung, limit_i;
    int64_t max_runtime_s;
    musd_t reserve_musd;
};
/* Start this part (already out of its queue). */
void fc_start(struct fc_run *r, const struct fc_start *s, const struct ready_task *t);
void fc_pop(struct fc_run *r, int stage_i);

/* The two engines: start what may start now, set every open stage's reason, say when to decide
 * again if nothing ends before. */
usec_t fc_decide_kernel(struct fc_run *r);
usec_t fc_decide_sched(struct fc_run *r);
void fc_sched_init(struct fc_run *r);
void fc_sched_free(struct fc_run *r);

/* --- results ---------------------------------------------------------------------------------- */

/* The band of n values (sorted here); USEC_NEVER sorts last. */
struct forecast_band fc_band(int64_t *v, size_t n);
/* forecast_run with an engine of the caller's choice: for tests and the adviser. */
bool fc_forecast(const struct forecast_input *in, enum fc_engine engine, struct forecast *ret,
                 struct err *err) MUST_CHECK;
