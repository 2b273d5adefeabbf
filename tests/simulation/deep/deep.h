/* The deep simulation: the object files of controller/, store/ and core/ over a real PostgreSQL, in
 * virtual time, with a simulated AWS below the headers of aws/ and common/s3.h. One world is one
 * seed and one process; everything in it is drawn from the seed.
 *
 * Modules: deep_time (events, virtual clock, droverd processes as coroutines), deep_loop (their
 * loop), deep_store (faults of the database's connections), deep_sql (what the world asks it),
 * deep_calls and deep_requests (requests on their way to AWS and back), deep_aws and deep_jobs
 * (SageMaker and its invoice), deep_s3, deep_people (their campaigns and verbs, through store/api),
 * deep_campaign (their files), deep_wishes (those of file systems and endpoints), deep_poison (rows
 * that cannot be read), deep_figures (figures that nobody wrote), deep_locks (sessions of others),
 * deep_verbs (people who ask anything), deep_outputs (what was there before), deep_secrets (what
 * nobody may see), deep_listing (inputs that are listed), deep_lies (refusals that lie),
 * deep_clocks (clocks that are apart), deep_sent (rates, what AWS has shown), deep_restore (commits
 * that are lost), deep_pipeline (campaigns of copies, matrices, gates and models), deep_judge (what
 * must hold), deep_lease (what must hold of leadership), deep_fsx, deep_hosting, deep_logs (other
 * services), deep_things (what must hold of file systems and endpoints), deep_gates (what must hold
 * of needs and gates), deep_process (what the kernel tells of processes), deep_days (a month of
 * operation), deep (options, workers, seeds). */
#pragma once
#include "aws/fsx.h"
#include "aws/hosting.h"
#include "aws/job_log.h"
#include "aws/log_pages.h"
#include "aws/logs.h"
#include "aws/quotas.h"
#include "common/loop.h"
#include "common/rng.h"
#include "common/s3.h"
#include "controller/controller.h"
#include "store/leader/lease.h"
#include "store/pg/query.h"
#include <jansson.h>
#include <libpq-fe.h>
#include <ucontext.h>

#define DEEP_EPOCH_US INT64_C(1800000000000000) /* wall clock at the world's instant 0 */
#define DEEP_BOOT_US  INT64_C(5000000000)       /* boot clock at that instant */
#define DEEP_NEVER    (INT64_MAX / 4)
#define SEC           USEC_PER_SEC
#define MINUTE        (60 * SEC)
#define HOUR          (3600 * SEC)
#define DEEP_ROLE     "arn:aws:iam::111122223333:role/worker"
#define DEEP_IMAGE                                                                                 \
    "111122223333.dkr.ecr.us-east-1.amazonaws.com/w@sha256:"                                       \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DEEP_PREFIX    "drover"
#define DEEP_LISTEN_FD 100000 /* stands for the LISTEN socket */

enum {
    PROCS_MAX = 3,
    TYPES = 3,
    CAMPAIGNS_MAX = 128,
    STAGES_MAX = 8,
    STORES_MAX = 4,
    JOBS_MAX = 16384,
    LUSTRES_MAX = 128,
    HOSTED_MAX = 512,
    EXPORTS_MAX = 16,
    POISONS_MAX = 8,
    FIGURES_MAX = 12,
    FIGURES_LATE_MAX = 4, /* behind them, of archives */
    LOCKS_MOST = 12,      /* before the calm, and in it */
    CLOCK_STEPS_MAX = 16, /* of AWS's clock */
    TESTS_MAX = 16        /* requests of an endpoint's smoke tests */
};

/* What may go wrong (deep_faults.def): CHANCE at each opportunity, RATE per virtual hour. */
enum fault_kind { CHANCE, RATE };
enum harm {
#define X(f, kind, most, text) FAULT_##f,
#include "deep_faults.def"
#undef X
    FAULT_N
};

struct event {
    int64_t at_us;
    uint64_t seq;
    void (*fn)(void *ctx, int64_t arg);
    void *ctx;
    int64_t arg;
};

/* A droverd: its loop thread as a coroutine. */
struct proc {
    int id;
    bool up, waiting, stop, dying;
    uint32_t life; /* counts starts; events of an older start are dropped */
    uint32_t gen;  /* of its next wake */
    int64_t frozen_until_us;
    int64_t boot_ahead_us, wall_ahead_us;
    ucontext_t ctx;
    void *stack;
    struct loop *loop;
    struct controller *controller;
    struct bridge *bridge;
    struct api_status status;
    struct rng rng;
    struct listings *listings; /* of this life of it */
    uint32_t listings_life;
    struct store *stores[STORES_MAX]; /* its open connections */
    struct store *listen;             /* stands for the LISTEN connection */
    bool notified;
    PGresult *try_lock_said, *lease_said; /* as a standby was answered last */
    bool takes, loaded;     /* takes over: the live attempts are read, its first pass follows */
    int64_t lease_us;       /* its setting */
    int64_t epoch;          /* the newest it took */
    int64_t lease_asked_us; /* before its last take or renewal was sent */
    int64_t lease_until_us; /* its lease by that */
    int64_t pass_us;        /* its pass began */
    int step_crash;         /* die at this step point from now; 0: not planned */
};

enum job_life {
    LIFE_PENDING,
    LIFE_STARTING,
    LIFE_RUNNING,
    LIFE_INTERRUPTED,
    LIFE_UPLOADING,
    LIFE_STOPPING,
    LIFE_ENDED
};
struct job {
    char name[64], request_hash[65], fingerprint[65];
    char stage[64], install[40];
    char volume[24]; /* the file system it mounts; "": none */
    int64_t attempt_id, task_id, campaign_id, part;
    int type, count;
    int64_t volume_gb, max_runtime_s, keep_alive_s;
    bool spot, worker;
    enum job_life life;
    const char *status, *secondary;
    const char *old_status, *old_secondary; /* what a stale answer shows */
    usec_t old_modified;
    usec_t created, started, ended, modified;
    int64_t start_us, run_us, upload_us, ran_us, hangs_at_us;
    const char *fails; /* FailureReason; NULL: completes */
    bool short_output, stop_asked, interrupted_once, holds, over, foreign, max_runtime_hit;
    int64_t billable_s;
    usec_t billed_at; /* in worlds with late bills: Describe says it from then on */
    enum warm_pool_status pool;
    usec_t pool_since;
    int64_t retained_s;
    char reused_by[64];
    uint32_t gen, pool_gen;
    bool written;    /* its output is in S3 */
    bool late;       /* it is only some time after the end */
    bool our_stop;   /* a stop of ours has ended it */
    bool lost;       /* its campaign is lost */
    bool let_end;    /* people have stopped it as a stray */
    bool lied;       /* its Create was answered with a refusal */
    int64_t twin_us; /* another job of its task lives since then */
    /* what its log shows, when its stage has metrics */
    bool prints, mute, no_final;
    usec_t denied_at; /* its log may not be read from then on; 0: it may */
    int cents;        /* its last loss, in hundredths */
    int64_t log_late_us;
    usec_t cut_at, again_at; /* interrupted, and running again in another stream */
};

/* A file system of FSx, its association with S3 and its exports. */
struct lustre {
    char id[24], token[64], owner[129], stage[64];
    uint8_t request_hash[32];
    int64_t campaign_id, size_gib;
    const char *lifecycle, *link, *import; /* NULL: no association; no task that fills it */
    const char *fails, *link_fails;
    usec_t created, available, off, filling; /* 0: not yet; off: its deletion was taken */
    bool gone;
    struct {
        char token[64];
        const char *lifecycle;
        usec_t created;
    } exports[EXPORTS_MAX];
    int exports_n;
};
/* A model, an endpoint config or an endpoint of SageMaker hosting. */
struct hosted {
    enum hosting_kind kind;
    char name[64], of[64];                /* of: the model or config that it names */
    char type[64], stage[64], owner[129]; /* owner: its tag drover-install */
    int64_t campaign_id, instances;
    const char *status, *fails; /* of endpoints */
    usec_t created, modified, in_service, off;
    bool gone;
    char data[160]; /* of models: where it lies */
    /* its invocations: each minute from then until then, and the smoke tests */
    usec_t used_from, used_until, tested[TESTS_MAX];
    int tested_n;
    int64_t count_late_us; /* until CloudWatch counts one */
};

/* A limit that people set on our own use of a type. */
struct use_limit {
    int64_t now, before; /* DEEP_NEVER: none. before: the most since use was last within `now` */
    int64_t set_us;
};

/* What people wrote of a stage. */
struct told_stage {
    char name[64], model_of[64];
    int64_t parts;  /* 0: not known, or it has no jobs */
    uint32_t needs; /* a bit for each stage */
    bool all_good;  /* it succeeds when every part does */
    bool gated, overridden;
    bool asks_before;         /* by done_if, for what deep_outputs has of its parts */
    int64_t held_us, over_us; /* seen held by its gate so, since then; 0: not so */
};
struct campaign {
    int64_t id; /* 0: not submitted yet */
    int64_t submit_us;
    char project[16];
    bool open_stage;
    int prods;
    bool stopped, cancelled; /* paused, drained or cancelled by people */
    int64_t attempts_n;      /* when that was committed */
    int64_t last_job_us;     /* its newest job was accepted */
    int lost_n;              /* so often its commit was lost */
    int64_t over_musd;       /* use above its budget when that was set last */
    char *yaml;
    int parts, stages;
    char open_name[16];
    bool pipeline, skips; /* skips: people have skipped parts of it */
    struct told_stage told[STAGES_MAX];
    int told_n;
};

/* A row that cannot be read or added to (deep_poison). */
struct poison {
    size_t what;
    int64_t campaign_id, ref;
    char *kept; /* its value before */
    bool stays, mended;
    int64_t mended_us;
};

/* A figure, time or word that no droverd writes (deep_figures). */
struct figure {
    size_t what;
    int64_t campaign_id; /* 0: all share it */
    char *ref, *kept;    /* kept NULL: it was null */
    const char *bad;
    bool stays, mended;
    int64_t mended_us;
};

/* What others hold locked (deep_locks). */
struct lock {
    bool held;
    size_t what;
    int64_t campaign_id, since_us, serial; /* campaign 0: of all */
    int64_t kept_us, led_us, epoch; /* something else kept all from leading until; led since, so */
    int64_t refused, intents;       /* statements that met it; of them intents */
    int64_t looks, said; /* soon after an intent met it; those at which its campaign said so */
};

/* What becomes of the next COMMIT of the thread that lists inputs. */
enum listing_breaks { LISTING_GOOD, LISTING_COMMIT_FAILS, LISTING_ANSWER_LOST };

/* From `from` on, by the world's wall clock. */
struct clock_step {
    usec_t from;
    int64_t ahead_us;
};

struct world {
    uint64_t seed;
    bool tell, calm, large; /* large: campaigns of 20 to 40 parts */
    struct rng rng_time, rng_aws, rng_people, rng_poisons, rng_listings, rng_holds, rng_late_bills,
        rng_figures, rng_locks, rng_secrets, rng_lies, rng_clocks, rng_restores, rng_outputs,
        rng_operators, rng_crowds, rng_lost, rng_silent, rng_imports, rng_stored, rng_rates,
        rng_db_steps, rng_doomed, rng_fault[FAULT_N];
    double strength[FAULT_N];
    int days; /* of operation, one after the other; 0: a seed as usual */
    /* drawn settings */
    int procs_n, campaigns_n;
    usec_t led_from; /* the newest epoch began */
    int64_t calm_us, lease_us, tick_us, observe_us, quota_us, window_us;
    /* time */
    int64_t now_us;
    struct event *heap;
    size_t heap_n, heap_cap;
    uint64_t seq;
    uint64_t hash, steps;
    struct proc procs[PROCS_MAX];
    struct proc *cur; /* whose code runs; NULL: the world's own */
    ucontext_t main;
    /* database */
    char conninfo[256];
    struct store *api; /* people's and the judge's connection */
    int64_t db_down_until_us;
    /* AWS */
    struct job *jobs;
    size_t jobs_n;
    int64_t quota[TYPES][2], warm_quota[TYPES], foreign[TYPES], total_quota;
    bool no_capacity[TYPES];
    int64_t price[TYPES];
    int64_t creates, accepted, outage_until_us;
    struct lustre *lustres;
    struct hosted *hosted;
    size_t lustres_n, hosted_n;
    /* people */
    struct campaign campaigns[CAMPAIGNS_MAX];
    int64_t verbs, verbs_refused;
    struct use_limit limits[TYPES];
    struct poison poison[POISONS_MAX];
    bool poisons, listings, holds, late_bills, lies, clocks, restores, outputs, operators, crowds,
        lost, silent, imports, stored, rates;
    double create_rate, create_burst; /* of a droverd; a second */
    double silence;                   /* of Describes, so many leave out whose the job is */
    double output_strength;
    int64_t restores_n, restored_us, kept_us;
    int64_t epoch_ahead_us; /* of the world's wall clock */
    bool db_steps, doomed;
    struct clock_step aws_steps[CLOCK_STEPS_MAX];
    int aws_steps_n;
    double lie_strength;
    int64_t lies_n;
    int64_t disturbed_us; /* a fault has struck, or a leader has begun to lead */
    int poisons_n, poisons_most;
    int64_t poison_us; /* between two of them */
    struct figure figure[FIGURES_MAX + FIGURES_LATE_MAX];
    bool figures;
    int figures_n, figures_most;
    int64_t figures_us;
    bool locks, secrets;
    struct lock lock;
    int locks_n;
    int64_t locks_us; /* between two of them */
    double listing_strength;
    int listings_n;
    bool listing_looks; /* an event is there for the next look */
    enum listing_breaks listing_breaks;
    /* judge */
    int64_t epoch;    /* the newest that was taken */
    int64_t quiet_us; /* no campaign is left and nothing of ours is at AWS since; 0: not so */
    bool wrong;
    char verdict[512];
    uint32_t runs[1024]; /* of each query, by its name's hash */
    int64_t takeovers, crashes, cuts, statements;
    char (*story)[200];
    size_t story_n;
};
struct spec;
struct listings;
extern struct world *deep; /* the one world of this process */
extern const char *const deep_types[TYPES];

void event_at(int64_t at_us, void (*fn)(void *ctx, int64_t arg), void *ctx, int64_t arg);
bool event_next(void); /* run the earliest; false: none is left */
/* Mix into the trace hash, with a line of the story when it is told. */
PRINTF(1, 2) void trace(const char *fmt, ...);
int64_t between(struct rng *r, int64_t from, int64_t to);
void proc_start(struct proc *p);
void procs_free(void);          /* their stacks, at the end of the world */
void proc_kill(struct proc *p); /* from the world: SIGKILL */
void proc_freeze(struct proc *p, int64_t us);
void proc_stop(struct proc *p);   /* in order */
void proc_notify(struct proc *p); /* its listening connection has something to read */
/* Called inside a process: time passes; the process may freeze or die here. */
void proc_step(const char *where);
void proc_freeze_here(const char *where);
_Noreturn void proc_die_here(const char *where);
void proc_sleep(int64_t us);
void proc_wake(struct proc *p); /* its next pass begins now, if it waits for it */

/* Runs one pass. Returns when the next is due, by the world's clock. */
int64_t loop_pass(struct loop *l);
/* fn(ctx) runs in the loop's next pass, as if an fd of it became ready. */
void loop_post(struct loop *l, void (*fn)(void *ctx), void *ctx);
void loop_ready(struct loop *l, int fd); /* a watched fd became readable */
usec_t wall_now(void);                   /* the world's clock */
_Noreturn void deep_die(const char *fmt, ...) PRINTF(1, 2);
double process_cpu(int pid); /* seconds, with those of its ended children */
/* Until a server process of this number, which was told to end, is gone; 0: none. In real time. */
void process_wait_gone(int pid);
/* Told by deep_die, before the process ends. NULL: nobody asks. */
extern void (*deep_last_words)(const char *text);

/* How this run of a query may fail: one of the first eight of a world far more often, since a query
 * that is run seldom would hardly ever meet a fault that each statement meets alike. */
enum harm query_harm(const char *name);
void swarm_draw(struct world *w, uint64_t seed);
bool swarm_has(uint64_t seed, const char *with); /* all moves of "a,b"; NULL: any world */
bool fault(enum harm f);
void faults_start(void);
const char *fault_word(enum harm f);

/* Lets a server process run on the core of this one. */
void cpu_share(int pid);
void store_world_open(const char *conninfo);
void store_world_reset(void);
void store_world_close(void);         /* the connections of its processes */
void store_proc_gone(struct proc *p); /* its connections end, and the server has noticed */
void store_notify_all(void);          /* tells the listeners of a commit */
void store_frozen(struct proc *p);    /* its open transaction will time out */
/* First column of the first row; def without a row. */
PRINTF(2, 3) int64_t sql_i64(int64_t def, const char *fmt, ...);
PRINTF(1, 2) PGresult *sql_rows(const char *fmt, ...); /* text results */
PRINTF(1, 2) void sql_do(const char *fmt, ...);
/* A frequent query, prepared under its name, with binary results. p may be NULL. */
PGresult *sql_asked(const char *name, const char *sql, struct params *p);
int64_t sql_asked_i64(const char *name, const char *sql, struct params *p);

void calls_proc_gone(struct proc *p);

/* A request of another service: what it does there, and who hears of it. x is its own. */
struct call_kind_of {
    const char *word;
    bool makes;                                                       /* something that costs */
    void (*effect)(void *x, usec_t signed_us, struct aws_failure *f); /* fills *f when it fails */
    void (*give)(void *x, const struct aws_failure *f);               /* NULL: x has the answer */
};
struct sagemaker_call *call_other(struct aws_client *c, struct aws_gate gate,
                                  const struct call_kind_of *kind, const char *name, void *x);
void call_cancel(void *call); /* NULL ignored */

/* The text, number and tag of a request's JSON; "" and 0 when it has none. */
const char *json_text_of(const json_t *o, const char *key);
int64_t json_number_of(const json_t *o, const char *key);
const char *json_tag_of(const json_t *o, const char *key);

struct sim_request { /* a CreateTrainingJob as it came */
    struct job job;
};
void aws_world_init(void);
void crowds_start(void);   /* jobs of others, by the thousand */
void aws_makes_room(void); /* for at least one job of every kind */
struct job *job_find(const char *name);
/* Fills *f when refused, else the job exists. */
bool aws_create(struct str body, usec_t signed_us, char ret_arn[static 257], struct aws_failure *f);
void aws_describe(const struct job *j, bool stale, struct job_description *ret);
struct list_asked {
    usec_t created_after, created_before; /* 0: from the beginning, to the newest */
    const char *status, *pool;            /* "" any */
    size_t from;                          /* so many are passed over */
};
/* A page of a List into jobs[JOB_LIST_PAGE], and the token of the next. Every other world cuts it
 * before it is filtered, as AWS documents. */
size_t aws_list(const struct list_asked *q, const char *contains, struct job_summary *jobs,
                char next[257]);
void aws_quotas(struct quota_reading *ret);
PRINTF(4, 5)
void aws_refuse(struct aws_failure *f, enum aws_outcome o, const char *code, const char *fmt, ...);
int64_t aws_used(int type, bool spot);
void aws_strike(enum harm f, struct rng *r);
bool job_plan(struct job *j);
void job_stop(struct job *j);
bool job_end_pool(struct job *j); /* false: there is none */
void job_take_pool(struct job *from, struct job *by);
void job_begin(struct job *j, const struct job *pool);

void fsx_vanish(struct rng *r); /* somebody deletes one by hand */
void hosting_vanish(struct rng *r);
const char *hosting_owner(const char *name); /* its tag drover-install; NULL: it is not there */
struct lustre *lustre_find(const char *id);  /* NULL: there is none (any more) */

void s3_answer(const struct s3_uri *u, bool get, struct s3_result *ret);
void s3_answer_list(const struct s3_uri *u, struct s3_result *ret);

void people_start(void);
char *campaign_write(struct campaign *c, int i); /* the i-th file of this world */
void people_verb(void);                          /* somebody does something */
void people_pause_resume(void); /* somebody pauses a campaign and resumes it soon */
/* The campaign that people pause: as a rule the one whose job began last. */
struct campaign *wish_to_pause(struct rng *r);
/* Pauses and resumes, or resumes all that is paused, between two transactions of p's pass. */
void people_between(struct proc *p);
/* Copies, an index, rows of a matrix with a gate, a training and an endpoint of its model. */
void pipeline_write(struct buf *b, struct rng *r, const char *image, const char *role);
void pipeline_tell(struct campaign *c, const struct spec *s); /* how it was understood */
/* People override a gate that holds c. False: none does, or err. */
bool pipeline_override(struct campaign *c, struct err *err);
void listing_draw(void);
/* Appends the pattern of an input that is listed in the background. False: not this one. */
bool listing_pattern(struct buf *b);
int64_t listing_parts(const char *uri);
void listing_begin(void); /* a submit has left one */
bool listing_happens(double most);
void listing_page(const struct s3_uri *u, const char *after, const char *token,
                  struct s3_result *ret);
void judge_listed(const struct job *j); /* it is created */
void judge_listings(void);
void people_cancel(struct campaign *c);
void restores_start(void);
bool restores_forgot(const struct job *j); /* a commit that was lost had its intent */
bool restores_lost(struct job *j);         /* it is made, of a campaign that is lost */
void judge_paid_twice(const struct job *j, const struct job *o); /* j is made, o was before */
int64_t quiet_since(void); /* nothing has kept a leader from its work */
void people_submit_again(struct campaign *c);
void store_sessions_end(void); /* of all droverds, as at a failover */
void clocks_start(void);
void clocks_database_start(void);
usec_t aws_time(usec_t t); /* of an instant of the world, as AWS's clock shows it; 0 stays */
bool clocks_date_refused(usec_t dated); /* AWS does not take a request of that date */
void clocks_learn(int64_t *skew_us, usec_t date, bool refused); /* a client, from an answer */
void silence_draw(void);
void silence_take(struct job_description *job); /* what is left out of it */
int64_t silence_us(void);                       /* a leader may ask so long again about a job */
void lies_draw(void);
void outputs_draw(void);
bool outputs_done_if(struct buf *b, bool manifest); /* of a stage, in its file. False: not this */
bool outputs_asked(const char *key);                /* a key of what was there before */
bool outputs_refuse(const char *key);               /* S3 does not say */
bool outputs_there(int64_t campaign_id, const char *stage, int64_t part);
void outputs_judge_job(const struct campaign *c, const struct job *j); /* it is made */
void outputs_judge_again(const struct job *j, const struct job *o);    /* j is made, o was before */
void outputs_end(void);
/* aws_create, whose answer may be a refusal although the job was made. */
bool lies_create(struct str body, usec_t signed_us, char ret_arn[static 257],
                 struct aws_failure *f);
void lies_disturbed(void);           /* a leader is kept from its work just now */
bool lies_allow_twin(struct job *o); /* o lives, another job of its task is made: is that right? */
void lies_stopped(const struct job *j); /* a Stop of ours has its effect */
/* Instances that run, and by our rows nothing runs on them. */
int64_t lies_unknown(int type, bool spot);
int64_t lies_use(int type); /* on demand: instances that no plan has counted on */
void poison_start(void);
void poison_calm(void); /* mends what does not stay until all others have ended */
void poison_end(void);
bool poison_keeps(const struct campaign *c); /* rows of it cannot be read */
bool poison_kept(const struct campaign *c);  /* or were until lately, and are still parked */
bool poison_spoils(int64_t campaign_id);     /* nor its sums be judged; 0: of anyone */
void locks_start(void);
void locks_calm(void); /* nothing is locked, and for a while nothing will be */
void locks_end(void);
bool locks_keep(int64_t campaign_id); /* it waits for others */
/* A statement of that name has failed: for a lock, perhaps. */
void locks_refused(const char *query, const struct err *err);
bool holds_verb(void); /* in worlds that have such: maybe parts are held or released */
void holds_care(struct campaign *c); /* what is held is released */
void people_care(void);              /* from now on: removes what keeps a campaign from ending */
void people_free_limits(void);       /* and what they limit */

void wish_volume(struct buf *b, struct rng *r); /* a stage `vol` of kind lustre */
void wish_mount(struct buf *b);                 /* a stage of jobs reads from it */
void wish_endpoint(struct buf *b, struct rng *r, const char *image, int last); /* after s<last> */
void wish_test(struct buf *b, struct rng *r);      /* an endpoint is tested */
void wish_regret(const char *name, bool endpoint); /* of what was just made */
bool wish_act(int what, struct err *err); /* 0: a later end, 1: end an endpoint, 2: a file system */

PRINTF(2, 3) void wrong(const char *what, const char *fmt, ...);
void judge_job_created(struct job *j);
void judge_create_sent(const struct job *j); /* a Create is on the wire */
void judge_now(void);
void judge_budget_set(struct campaign *c); /* people have changed it just now */
void judge_stopped(struct campaign *c);    /* from this commit on no intent of it may commit */
void judge_wanted(struct campaign *c);     /* until now */
bool judge_others_first(const struct campaign *c); /* they have jobs and it has long had none */
void judge_gives_up(const struct campaign *c);     /* care has not brought it to its end */
struct campaign *campaign_find(int64_t id);        /* NULL: no such */
void judge_limit_set(int type, int64_t n); /* people have limited our use of it; -1: no more */
void judge_stop_sent(const struct job *j); /* a Stop of ours has its effect */
void judge_lustre_made(const struct lustre *l);
void judge_lustre_ends(const struct lustre *l); /* its deletion is taken */
void judge_hosted_made(const struct hosted *h);
void judge_things_time(void);                             /* none outlives its time */
void judge_volume(const struct job *j, usec_t signed_us); /* what it mounts is there */
void judge_hosted_ends(const struct hosted *h);           /* its deletion is taken */
bool job_is_good(const struct job *j);                    /* by the gates that people write */
/* What the stage of that name needs has ended well, and gates let it start. */
void judge_needs(const struct campaign *c, const char *stage, const char *what);
void judge_model(const struct hosted *h); /* it is what its stage has made */
void judge_gates(void);
bool judge_things_quiet(void); /* no file system and nothing of hosting is at AWS */
int64_t judge_things(void);    /* checks their lines of the ledger; what the invoice has */
bool judge_over(void);
void judge_end(void);

void lease_asked(struct proc *p); /* a take or a renewal is about to be sent */
void lease_taken(struct proc *p, int64_t epoch, bool locked); /* a take has its effect */
void lease_renewed(struct proc *p);
void lease_begins(const struct proc *p);    /* a transaction or renewal of a leader begins */
void lease_committed(const struct proc *p); /* a transaction of a leader is committed */
void lease_sends(const struct proc *p, const char *what, const char *name); /* to AWS */

/* What is linked in place of functions of common/s3.h and aws/client.h: --wrap. */
bool __wrap_aws_client_new(struct loop *l, const struct aws_config *cfg, struct aws_client **ret,
                           struct err *err);
void __wrap_aws_client_free(struct aws_client *c);
void __wrap_aws_client_set_gate(struct aws_client *c, bool (*may_send)(void *ctx), void *ctx);
int64_t __wrap_aws_client_skew_us(const struct aws_client *c);
uint64_t __wrap_aws_client_answers(const struct aws_client *c);
const char *__wrap_aws_client_region(const struct aws_client *c);
void __wrap_s3_get(struct aws_client *c, const struct s3_uri *u, int64_t range_from,
                   int64_t range_to_incl, size_t max_bytes, s3_cb cb, void *ctx);
void __wrap_s3_head(struct aws_client *c, const struct s3_uri *u, s3_cb cb, void *ctx);
void __wrap_s3_list(struct aws_client *c, const struct s3_uri *u, size_t max_keys, s3_cb cb,
                    void *ctx);
void __wrap_s3_list_page(struct aws_client *c, const struct s3_uri *u, const char *after,
                         const char *token, s3_cb cb, void *ctx);
/* Zeroed; outside of malloc's sums. Freed is only what is hours old in a month of operation. */
void *world_alloc(size_t n);
#include "deep_days.h"
#include "deep_moves.h"
