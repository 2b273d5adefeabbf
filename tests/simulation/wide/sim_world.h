/* A world around the production objects of orchestrator/core: virtual time, controllers that
 * carry out what core decides, a store, a SageMaker with its own invoice and wire log,
 * operators, and faults drawn from the seed. One world is one seed; nothing here uses the real
 * time.
 *
 * A controller sees its own memory, the rows of the store (through db_) and answers to its calls
 * (through call_). The judge (sim_check.c) sees everything, and prefers SageMaker's log. */
#pragma once
#include "core/failure/retry_policy.h"
#include "core/leader/call_pace.h"
#include "core/leader/leader_state.h"
#include "core/leader/sched_view.h"
#include "core/money/cost.h"
#include "sim_db.h"

#define SIM_EPOCH_US INT64_C(1800000000000000) /* wall clock at the world's instant 0 */
#define SEC          USEC_PER_SEC
#define MINUTE       (60 * SEC)
#define HOUR         (3600 * SEC)
#define SIM_PREFIX   "drover"

enum {
    CTLS_MAX = 3,
    PROJECTS_MAX = 3,
    CAMPAIGNS_MAX = 8,
    STAGES_MAX = 24,
    TYPES_MAX = 4,
    KINDS_MAX = 2 * TYPES_MAX, /* a type on demand, then the same types as spot */
    STAGES_PER_CAMPAIGN = 3,
    OPS_MAX = 512,
    FIRES_KEPT = 4096, /* of one fault: as many can be removed one by one */
    STORY_LINES = 4096,
    HIST = 4,
    TASKS_MAX = 4096,
    WIRE_KEPT = 1024
};

enum fault_kind { CHANCE, RATE, WINDOW };
enum harm {
#define X(f, kind, most, text) FAULT_##f,
#include "sim_faults.def"
#undef X
    FAULT_N
};
enum site {
#define X(s, text) SITE_##s,
#include "sim_sites.def"
#undef X
    SITE_N
};

struct world;

struct sim_config {
    uint64_t seed;
    double strength[FAULT_N]; /* 0: does not exist */
    int ctls, projects, campaigns, types, parts;
    int64_t fault_us; /* no fault after this instant */
    int64_t tick_us, observe_us, lease_us, renew_us, poll_us, quota_us, window_us;
    double create_rate, create_burst;
    int64_t list_page_us;
    uint8_t *deny[FAULT_N]; /* bit k: occurrence k does not happen; NULL: all do */
    bool tell;              /* keep the story */
    int story_lines;
    int64_t until_us; /* end there without a verdict; 0: at the end */
    /* of a scenario (scenarios.c): when the world is made, after each event, before it is gone */
    void (*made)(struct world *w);
    void (*watch)(struct world *w);
    void (*ended)(struct world *w);
    void *scenario;
};
void swarm_draw(uint64_t seed, struct sim_config *ret);

enum event_kind {
    EV_ARRIVE,  /* a: call; reaches the service */
    EV_REPLY,   /* a: call; reaches the controller, or its time-out does */
    EV_TIMER,   /* who: controller, a: enum timer, gen */
    EV_START,   /* who: controller comes up */
    EV_THAW,    /* who */
    EV_JOB,     /* a: job, gen: its next step */
    EV_POOL,    /* a: job, gen: its pool expires */
    EV_FAULT,   /* a: fault, RATE or WINDOW: it strikes */
    EV_CLOSE,   /* a: fault, b: what the window chose */
    EV_SUBMIT,  /* a: campaign */
    EV_OPERATE, /* a: op kind, b: campaign */
    EV_CALM,    /* faults off */
    EV_KINDS
};
struct event {
    int64_t at_us;
    uint32_t seq, gen;
    int32_t a, b;
    uint8_t kind, who;
};
struct heap_of_events {
    struct event *at;
    size_t n, cap;
    uint32_t seq;
};

struct job_view { /* what a Describe says */
    enum job_status status;
    enum job_phase phase;
    usec_t modified, started, ended;
    int64_t billable_s, retained_s;
    const char *reason;
    enum pool_state pool;
    bool has_pool;
    uint64_t reused_by; /* name of the job that took its pool */
};
struct job_snap {
    usec_t at_us;
    struct job_view v;
};
struct job {
    struct job_name name;
    uint64_t name_hash, request;
    int intent; /* of the judge; -1: not ours */
    int type, count, volume_gb;
    uint64_t match; /* all SageMaker compares for a pool */
    int64_t max_runtime_s, keep_alive_s;
    musd_t price_musd;
    usec_t created_us;
    struct job_view v;
    struct job_snap hist[HIST]; /* [0] newest before v */
    uint32_t gen;
    bool over, stop_asked, by_human, deleted, short_output, hung, holds, had_interruption;
    int64_t start_us, run_us, upload_us, ran_us; /* plan; ran: before an interruption */
    const char *fails;                           /* FailureReason, NULL: completes */
    struct hang_detector_seen progress;          /* the object of its last run */
    int64_t hangs_at_us;                         /* of its run; NEVER */
    usec_t pool_since_us, pool_until_us;
    int pool_from; /* job whose pool it took, -1 */
    uint32_t pool_gen;
};
struct aws {
    struct job *jobs;
    size_t jobs_n, jobs_cap;
    int32_t *by_name; /* open addressing over name_hash; -1 */
    size_t by_name_cap;
    int64_t quota[KINDS_MAX], warm_quota[KINDS_MAX], foreign[KINDS_MAX];
    int64_t used[KINDS_MAX];  /* ours and ghosts', pools included */
    int64_t pools[KINDS_MAX]; /* of them idle in pools */
    int64_t total_quota[MARKET_COUNT];
    int64_t per_job, longest_run_s, volume_gb; /* -1: no such quota */
    musd_t price[KINDS_MAX];
    bool price_known[KINDS_MAX], no_capacity[KINDS_MAX];
    int64_t creates, accepted;
};
enum call_kind {
    CALL_CREATE,
    CALL_DESCRIBE,
    CALL_STOP,
    CALL_LIST,
    CALL_VERIFY,
    CALL_QUOTA,
    CALL_UPDATE,
    CALL_POOL, /* a Describe of a job that has left a pool */
    CALL_PROGRESS,
    CALL_KINDS
};
enum answer {
    ANSWER_NONE,
    ANSWER_OK,
    ANSWER_IN_USE,
    ANSWER_REFUSED,
    ANSWER_THROTTLED,
    ANSWER_CREDENTIALS,
    ANSWER_LOST, /* time-out, reset, 5xx, unreadable */
    ANSWER_UNSENT,
    ANSWER_NOT_FOUND
};
struct listed {
    int job;
    enum job_status status;
    enum job_phase phase;
    usec_t modified;
};
struct call {
    uint8_t kind, ctl, refs;
    bool lost;     /* its controller hears nothing but a time-out */
    uint32_t lead; /* leadership it belongs to */
    int attempt;
    int64_t sent_us, boot_us, signed_us;
    uint64_t name_hash, request;
    enum answer answer;
    int http;
    const char *code;
    char text[320];
    struct job_view seen;
    bool ours, good;
    int job;
    usec_t since_us;
    struct listed *list;
    size_t list_n, list_cap;
    int64_t quota[KINDS_MAX], warm_quota[KINDS_MAX], total_quota[MARKET_COUNT];
    int64_t per_job, longest_run_s, volume_gb;
};

enum timer {
    TIMER_TICK,
    TIMER_ACT,
    TIMER_OBSERVE,
    TIMER_QUOTA,
    TIMER_STANDBY,
    TIMER_RENEW,
    TIMERS
};
struct ctl {
    int id;
    bool up, frozen, leading, hold, cut_store, cut_aws;
    int64_t boot_ahead_us, drift_ppm, wall_ahead_us;
    int64_t frozen_until_us;
    int64_t session; /* instance of the store it talks to */
    uint32_t lead;   /* counts leaderships and starts: what belongs to an older one is dropped */
    uint32_t timer_gen[TIMERS];
    int64_t epoch, lease_end_us, seen_renewals, seen_at_us;
    int64_t led_at_us, hold_until_us;
    struct rng rng;
    struct call_pace pace;
    struct { /* the judge's: calls since it leads */
        int64_t since_us, firsts, retries, refills;
    } tally;
    struct leader_state state;
    bool lost; /* leadership: what is known is freed at the end of the event */
    bool listing, quota_reading, progress_reading;
    int64_t acted_until_us, decided_us, progress_at_us;
    int64_t decide_at_us; /* boot */
    int64_t aws_told_us;  /* AWS's clock is ahead of its wall clock, as it has learned */
    bool rate_waits;      /* the last plan had no token left */
    int clean_lists;      /* of the hold */
};

struct intent_seen {
    uint64_t name_hash, request;
    int id, task, n, campaign;
    int64_t committed_us, first_sent_us, sends;
    int job;   /* accepted as, -1 */
    bool lost; /* the store lost the row in a failover and nobody adopted it yet */
    bool conflict;
    struct db_attempt row; /* as committed */
};
struct taught { /* by a quota refusal, to one leader */
    uint32_t lead;
    int ctl;
    int64_t at_us, free_n, ours, wall_ahead_us;
};
struct judge {
    struct intent_seen *intents;
    size_t intents_n, intents_cap;
    int32_t *by_name;
    size_t by_name_cap;
    int *billable;           /* by task: jobs of it that are billed or may be, now */
    int *jobs_ended;         /* by task: jobs that reached an end, and requests refused for good */
    int *conflicts;          /* by task: attempts that ended in conflict */
    int64_t *not_before_us;  /* by task: it is not tried again before; 0: at once */
    int64_t *failed_us;      /* by task: since then it waits for that */
    int64_t wire[WIRE_KEPT]; /* ring of the instants of Creates */
    size_t wire_n;
    int64_t told_per_job, told_run_s, told_volume_gb; /* by the last reading of the quotas */
    int64_t told_total[MARKET_COUNT];
    int64_t led_us;    /* leadership changed last */
    int about;         /* the task judged last; -1: all */
    int64_t lost_jobs; /* jobs whose rows the store lost */
    int64_t moved_n;   /* attempts that ended */
    int64_t cancel_acked_us[CAMPAIGNS_MAX];
    bool stop_wished[CAMPAIGNS_MAX]; /* somebody has paused or cancelled it once */
    bool passed[STAGES_MAX];         /* a part of it has passed once */
    int64_t waited_us;               /* a part waited, last */
    struct taught taught[KINDS_MAX];
    int64_t events, lives, recounts;
    bool broken;
    char what[400];
    char invariant[24];
};
struct traffic { /* calls to SageMaker, and how many of them were made again */
    int64_t calls, retries;
};
struct told {
    int64_t at_us;
    int task;
    char text[150];
};
struct world {
    struct sim_config cfg;
    int64_t now_us;
    int64_t fault_until_us;
    bool calm, done;
    struct heap_of_events heap;
    struct rng rng_world, rng_aws, rng_net, rng_op, rng_store, rng_fault[FAULT_N];
    uint32_t fires[FAULT_N];
    int open[FAULT_N];
    struct db db;
    struct aws aws;
    struct ctl ctl[CTLS_MAX];
    struct call *calls;
    int32_t *calls_free;
    size_t calls_n, calls_cap, calls_free_n, calls_free_cap;
    struct judge judge;
    struct breaker_rules rules;
    int64_t project_limit[PROJECTS_MAX], global_limit; /* settings; -1 none */
    struct spec spec[CAMPAIGNS_MAX];
    struct spec_stage stage[STAGES_MAX];
    struct stage_nature {
        int64_t base_s, per_mb_ms; /* how long its parts run */
        const char *all_fail;
        bool known;
    } nature[STAGES_MAX];
    uint32_t *size_mb; /* by task */
    bool *poison, *refused;
    size_t tasks_n, tasks_cap;
    int64_t type_limit[KINDS_MAX]; /* operator's; -1: none */
    int kinds, stages_n, campaigns_n, tended[CAMPAIGNS_MAX];
    const char *types[KINDS_MAX];
    /* attempts of each stage, when they were read last (sim_load.c); -1: no more */
    int32_t *next_of_stage, *before_of_stage, first_of_stage[STAGES_MAX], last_of_stage[STAGES_MAX];
    size_t of_stage_cap;
    uint64_t hash; /* of everything that happened */
    struct sched_plan *plan;
    struct batch *batch;
    char **texts; /* reasons that rows point to */
    size_t texts_n;
    struct told *story;
    size_t story_n;
    uint64_t sites;
    struct coverage *cover;
    struct traffic traffic;
};
struct coverage { /* summed over all seeds; shared by the processes of a run */
    uint32_t sites[SITE_N], faults[FAULT_N];
    uint32_t attempt[ATTEMPT_STATE_COUNT][ATTEMPT_STATE_COUNT];
    uint32_t task[TASK_STATE_COUNT][TASK_STATE_COUNT];
    uint32_t stage[STAGE_STATE_COUNT][STAGE_STATE_COUNT];
    uint32_t campaign[CAMPAIGN_STATE_COUNT][CAMPAIGN_STATE_COUNT];
    uint32_t pool[POOL_STATE_COUNT][POOL_STATE_COUNT];
    uint32_t causes[CAUSE_COUNT], reasons[WAIT_REASON_COUNT];
};
static inline int64_t task_size(const struct world *w, int task)
{
    return (int64_t)w->size_mb[task] * 1024 * 1024;
}
#define SOMETIMES(w, site) ((w)->cover->sites[SITE_##site]++)

/* sim_clock.c */
void ev_push(struct world *w, int64_t at_us, enum event_kind kind, int who, uint32_t gen, int a,
             int b);
bool ev_pop(struct world *w, struct event *ret);
void trace(struct world *w, uint64_t a, uint64_t b);
uint64_t mix(uint64_t a, uint64_t b);
int64_t between(struct rng *r, int64_t from, int64_t to);

/* sim_fault.c: draws whether the fault happens now */
bool fault(struct world *w, enum harm f);
bool fault_open(const struct world *w, enum harm f);
void fault_start(struct world *w);
void fault_strike(struct world *w, enum harm f);
void fault_close(struct world *w, enum harm f, int what);
const char *fault_text(enum harm f);
const char *fault_word(enum harm f);
enum fault_kind fault_kind_of(enum harm f);

/* sim_story.c */
void tell(struct world *w, int task, const char *fmt, ...) PRINTF(3, 4);
void story_print(const struct world *w, int max);
const char *task_name(const struct world *w, int task, char out[static 48]);

/* sim_store.c: transactions */
void db_init(struct world *w);
void db_done(struct world *w);
static inline void *db_row(struct world *w, enum table t, size_t i) /* to read */
{
    struct db_table *tab = &w->db.t[t];
    ASSERT(i < tab->n);
    return tab->rows + i * tab->row;
}
void *db_touch(struct world *w, enum table t, size_t i); /* to write, in a transaction */
size_t db_add(struct world *w, enum table t);            /* a new row, zeroed */
bool db_begin(struct world *w, struct ctl *c);           /* false: not ours any more */
bool db_commit(struct world *w, struct ctl *c);          /* false: failed or unknown */
void db_abort(struct world *w);
void db_begin_api(struct world *w);              /* an operator's transaction: no lease */
void db_commit_api(struct world *w, bool acked); /* acked: never lost */
bool db_reachable(const struct world *w, const struct ctl *c);
void db_failover(struct world *w);
#define CAMPAIGN(w, i)   ((struct db_campaign *)db_row((w), T_CAMPAIGN, (size_t)(i)))
#define STAGE(w, i)      ((struct db_stage *)db_row((w), T_STAGE, (size_t)(i)))
#define TASK(w, i)       ((struct db_task *)db_row((w), T_TASK, (size_t)(i)))
#define TASK_STAGE(w, i) (((const struct db_task *)(const void *)(w)->db.t[T_TASK].rows)[(i)].stage)
#define ATTEMPT(w, i)    ((struct db_attempt *)db_row((w), T_ATTEMPT, (size_t)(i)))
#define SLOTS(w, i)      ((struct db_slots *)db_row((w), T_SLOTS, (size_t)(i)))

/* sim_rows.c: what the store's statements do; inside a transaction */
const char *rows_text(struct world *w, const char *text);
uint64_t rows_request(const struct intent *in);
void rows_hash_text(uint64_t request, char ret[static HASH_HEX_N]);
uint64_t rows_hash_of(const char *text);
int rows_kind(const struct world *w, const char *instance_type, enum market market);
bool rows_intend(struct world *w, int64_t epoch, struct intent *in);
bool rows_record(struct world *w, const struct attempt_record *r);
bool rows_pool_end(struct world *w, const struct pool_end *e);
bool rows_pool_swap(struct world *w, int64_t pool_id, int64_t other_id);
bool rows_adopt(struct world *w, int64_t epoch, const struct adoption *ad);
void rows_task_state(struct world *w, int task, enum task_state to);
bool rows_stage_state(struct world *w, int stage, enum stage_state to);
bool rows_campaign_state(struct world *w, int campaign, enum campaign_state to);
uint64_t name_hash_of(const char *name);
void rows_budgets(struct world *w, int task, bool touch, struct budget *ret[BUDGET_LEVELS]);
/* What the attempts of a part that have ended cost or hold reserved. */
musd_t rows_part_spent(struct world *w, int task);

/* sim_net.c: calls */
int call_new(struct world *w, struct ctl *c, enum call_kind kind, int attempt);
void call_send(struct world *w, int call);
void call_arrive(struct world *w, int call);
void call_reply(struct world *w, int call);
/* sim_sagemaker.c */
void aws_init(struct world *w);
void aws_done(struct world *w);
void aws_create(struct world *w, struct call *k);
void aws_read(struct world *w, struct call *k); /* all others */
int aws_find(const struct world *w, uint64_t name_hash);
int aws_ghost(struct world *w, const char *name, int type);
void aws_index(struct world *w, int job);
/* sim_jobs.c */
void job_plan(struct world *w, int job);
void job_step(struct world *w, int job, uint32_t gen);
void job_stop(struct world *w, int job);
void job_delete(struct world *w, int job);
void job_update(struct world *w, int job); /* keep-alive to 0 */
void pool_expire(struct world *w, int job, uint32_t gen);
void pool_take(struct world *w, int from, int by);
enum market market_of(const struct world *w, int kind);
bool job_is_over(const struct job *j);
int64_t job_billed_s(const struct world *w, const struct job *j); /* instance-seconds of the run */
int64_t job_idle_s(const struct world *w, const struct job *j);   /* of its pool */

/* sim_controller.c */
void ctl_init(struct world *w, int id);
void ctl_done(struct world *w, int id);
void ctl_start(struct world *w, struct ctl *c);
void ctl_crash(struct world *w, struct ctl *c);
void ctl_freeze(struct world *w, struct ctl *c, int64_t for_us);
void ctl_event(struct world *w, struct ctl *c, const struct event *e);
void ctl_pass(struct world *w, struct ctl *c);
void ctl_lose(struct world *w, struct ctl *c, const char *why);
int64_t ctl_boot(const struct world *w, const struct ctl *c);
void ctl_learns(struct ctl *c); /* from the Date of an answer, as common/aws.c */
usec_t ctl_wall(const struct world *w, struct ctl *c); /* its leader follows the steps */
int64_t ctl_real(const struct world *w, const struct ctl *c, int64_t boot_us);
void ctl_timer(struct world *w, struct ctl *c, enum timer t, int64_t after_us);
bool ctl_may_send(const struct world *w, const struct ctl *c);
void ctl_protocol(const struct world *w, struct protocol_config *ret);
/* sim_lead.c: leadership */
void lead_take(struct world *w, struct ctl *c);
void lead_standby(struct world *w, struct ctl *c);
void lead_renew(struct world *w, struct ctl *c);
/* sim_load.c: loads the leader's state from the store's views */
bool load_all(struct world *w, struct ctl *c);
bool load_changes(struct world *w, struct ctl *c);
struct live_campaign *load_campaign(struct world *w, struct ctl *c, int campaign);
/* What the next look would read: tasks of stages that were reopened. */
void load_reopened(struct world *w, struct ctl *c, struct live_campaign *lc);
struct live_stage *load_stage_of(struct ctl *c, int64_t campaign_id, int64_t stage_id);
void load_clear(struct ctl *c);
/* sim_carry.c: facts, records, intents; sim_carry_life.c; sim_carry_pools.c */
void carry_fact(struct world *w, struct ctl *c, int64_t attempt_id, const struct fact *f);
void carry_record(struct world *w, struct ctl *c, struct live_attempt *a,
                  const struct protocol_effect *e);
bool carry_records(struct world *w, struct ctl *c);
void carry_intents(struct world *w, struct ctl *c);
struct batch *carry_batch_new(void);
bool carry_life(struct world *w, struct ctl *c);
void carry_pools(struct world *w, struct ctl *c);
void carry_pool_reply(struct world *w, struct ctl *c, const struct call *k);
void pool_report_of(const struct world *w, const struct job_view *v, struct warm_pool_report *ret);
/* sim_execute.c */
void execute_tick(struct world *w, struct ctl *c);
void execute_reply(struct world *w, struct ctl *c, struct call *k);
void execute_observe(struct world *w, struct ctl *c);
void execute_quota(struct world *w, struct ctl *c);
/* sim_adopt.c, sim_hang.c */
void adopt_listed(struct world *w, struct ctl *c, struct call *k);
void hang_ask(struct world *w, struct ctl *c);
void hang_answer(struct world *w, struct ctl *c, const struct call *k);
bool job_progress(const struct world *w, const struct job *j, struct hang_detector_seen *ret);

/* sim_operator.c */
void op_plan(struct world *w);
void op_guard(struct world *w, const struct breaker_rules *r);
void op_submit(struct world *w, int campaign, int parts);
void op_do(struct world *w, int kind, int campaign);
void op_strike(struct world *w, enum harm f);
void op_calm(struct world *w);

/* sim_check.c, sim_recount.c */
void judge_init(struct world *w);
void judge_done(struct world *w);
void wrong(struct world *w, const char *invariant, const char *fmt, ...) PRINTF(3, 4);
void judge_committed(struct world *w, int attempt); /* an intent is about to be committed */
void judge_wire(struct world *w, const struct call *k);
void judge_accepted(struct world *w, int job, const struct call *k);
void judge_job_over(struct world *w, int job);
void judge_attempt_moved(struct world *w, int attempt, enum attempt_state from,
                         enum attempt_state to);
void judge_task_moved(struct world *w, int task, const struct attempt_record *r);
void judge_held(struct world *w, int stage);
void judge_plan(struct world *w, struct ctl *c, const struct sched_view *v,
                const struct sched_plan *p);
void judge_event(struct world *w);
void judge_recount(struct world *w);
void judge_end(struct world *w);
bool judge_over(const struct world *w); /* all work has ended */
struct intent_seen *judge_intent(struct world *w, uint64_t name_hash);
void judge_retry_traffic(struct world *w, const struct ctl *c);
void judge_cancel(struct world *w, int campaign);
void judge_lost(struct world *w, int attempt);
void judge_adopted(struct world *w, int attempt);
/* sim_check_plan.c */
void judge_plan_limits(struct world *w, const struct ctl *c, const struct sched_view *v,
                       const struct sched_plan *p);
void judge_pool_expired(struct world *w, int job);
void judge_taught(struct world *w, const struct ctl *c, int type, int instances, int64_t limit,
                  int64_t used);
void judge_untaught(struct world *w);
void judge_canary(struct world *w, int attempt);
void judge_tripped(struct world *w, int stage);
bool judge_proves(const struct world *w, int stage, const struct job *j);
void judge_retry(struct world *w, int attempt);

/* sim_check_life.c, sim_check_memory.c */
void judge_stage_moves(struct world *w, int stage, enum stage_state to);
void judge_resumes(struct world *w, int stage);
void judge_skipped(struct world *w, int stage);
void judge_campaign_moves(struct world *w, const struct live_campaign *lc, enum campaign_state to,
                          bool budget);
void judge_own_budget(struct world *w, const struct live_campaign *lc, bool held);
void judge_unwanted(struct world *w, const struct live_campaign *lc);
void judge_stop(struct world *w, const struct call *k);
void judge_part_moved(struct world *w, int task, const struct attempt_record *r);
void judge_person_retries(struct world *w, int task);
void judge_back_off(struct world *w, int attempt);
void judge_unsent(struct world *w, const struct ctl *c, int launches);
void judge_memory(struct world *w, struct ctl *c);

/* sim_run.c: runs one seed */
struct outcome {
    bool broken;
    char invariant[24], what[400];
    uint64_t hash;
    int64_t lives, events, virtual_us, at_us, leaders;
    uint32_t fires[FAULT_N];
};
void sim_run(const struct sim_config *cfg, struct coverage *cover, struct outcome *ret);
/* sim_shrink.c */
void shrink(const struct sim_config *cfg, const struct outcome *first, int seconds);
void config_cut(struct sim_config *cfg, const char *off, const char *denied);
void config_free(struct sim_config *cfg);
/* sim_cover.c: checks that everything on its list has happened; prints TAP */
bool cover_check(const struct coverage *c);
