/* What the leader knows: campaigns with their ready queues, live attempts, warm pools, slots, money
 * and changes by retries. Rebuilt from PostgreSQL at takeover. One struct leader_state owns it all;
 * it belongs to the loop thread. Pure: no clock, no I/O.
 *
 * States and counters move only by the setters below, each of which asserts that the move is an
 * edge of its table. What points into the state is valid until the object is removed; whatever
 * outlives a pass keeps an id and looks it up again. */
#pragma once
#include "common/arena.h"
#include "common/buf.h"
#include "common/rng.h"
#include "core/capacity/pool_report.h"
#include "core/failure/cause.h"
#include "core/failure/hang_detector.h"
#include "core/money/budget.h"
#include "core/money/cost_phase.h"
#include "core/protocol/protocol.h"
#include "core/rows.h"
#include "core/sched/sched.h"

#define ATTEMPT_FACTS_MAX (FACT_HINT + 1) /* one of each kind */

struct live_stage {
    struct stage_row row;
    const struct spec_stage *spec; /* NULL for kinds this version does not run */
    struct ready_queue *ready;
    struct ready_queue *unchecked;       /* tasks that done_if was not asked about (skip_done.c) */
    struct ready_queue *held;            /* tasks that a person holds */
    int checks_under_way, checks_failed; /* questions; answers in a row that did not come */
    usec_t check_again_us;               /* wall: what was asked about last is asked about again */
    char check_said[200];                /* why its answer did not come; "" not known */
    bool check_told;                     /* its row says of this leader's questions: */
    usec_t check_told_us;                /* the check_again_us of that */
    int64_t loaded;                      /* parts [0, loaded) are in the queues, if they wait */
    enum wait_reason reason;             /* as last written */
    enum wait_reason cap_short;          /* NONE, or STAGE_BUDGET or PART_BUDGET: waits for that */
    bool left_out; /* of the last plan: none of its parts may start, and why is written */
    /* what its attempts have taught (stage_history.c) */
    struct capacity_ladder ladder;
    struct breaker breaker;
    struct breaker_rules rules;
    char *trip_words[BREAKER_OF_MAX]; /* signatures besides breaker.signature; malloc'd */
    bool passed_kept;                 /* breaker.passed is in its row */
    struct start_time {               /* from creation to start, averaged */
        int64_t us;
        int n;
    } cold, warm;
    struct warm_pool_prints prints;
    struct reservation reservation;
    struct promise_row promise; /* as written; task_id 0: none */
    enum stage_gate_verdict { GATE_NOT_JUDGED, GATE_PASSED, GATE_HOLDS } gate; /* stage_gate.h */
    int64_t gate_skipped; /* of its runs were skipped when it was judged */
    char gate_why[300];   /* HOLDS: why, for people */
    /* Of kind endpoint (endpoint_intent.h): what its endpoint has come to, and why it gave up. Of
     * kind lustre (filesystem_intent.h) the same of its file system. */
    enum endpoint_verdict { ENDPOINT_NOT_YET, ENDPOINT_SERVES, ENDPOINT_GAVE_UP } endpoint;
    char endpoint_why[300];
    int64_t endpoint_next_us; /* boot: no intent before this */
    bool endpoint_there;      /* one of its tries is not proven absent */
    bool filesystem_kept;     /* for a retry, and its row says so */
    bool endpoint_no_model;   /* no job of the stage it serves has ended well */
    bool endpoint_unmade;     /* no request can be made of it, as endpoint_why says */
    /* Wall; the transaction refuses its intents, with none taken between: since then, proposed
     * again then, and no part of it before that. */
    usec_t refused_since_us, refused_until_us, no_start_until_us;
    struct duration duration; /* the last: its arrays are not cleared at first */
};
struct live_campaign;
/* Campaigns that plans look at (awake.h). */
struct leader_awake {
    struct live_campaign **campaigns; /* [n], by id */
    size_t n, cap;
};
struct live_campaign {
    struct campaign_row row;
    int64_t generation;    /* which taking over of it this is: of no other campaign ever */
    int64_t seen_tasks;    /* as view_versions gave it; -1: to be read again */
    int64_t tried_version; /* of what people want: the newest that was looked at */
    struct arena arena;
    struct spec *spec;
    struct live_stage *stages;
    int stages_n;
    int64_t live;         /* active tasks */
    int pools_n;          /* of leader_state.pools, its own */
    usec_t last_start_us; /* 0: not since this leader began */
    bool budget_short;    /* a task that could start waits for money of its caps */
    bool budget_spent;    /* and would if nothing else ran: what is spent leaves too little */
    bool budget_stuck;    /* short of its own cap, and no stage of it waits for anything else */
    bool budget_goes_on;  /* a stage of it starts without more money, or waits for something else */
    bool spec_unreadable; /* by this binary: no spec; jobs are looked after, nothing starts */
    bool locked;          /* or was a moment ago: its wait reason stays */
    enum wait_reason set_aside; /* NONE, or PARKED or LOCKED: no part of it may start */
    bool waits_for_person;      /* at_limit stopped or held it: until edited or resumed */
    struct leader_awake *awake; /* the leader's; NULL: not added yet */
    bool rests;                 /* it is not among those: plans do not look at it */
    int view_i;                 /* into the view's campaigns, while it is made */
};
struct live_attempt;
struct live_pool { /* a warm pool, from the intent of the attempt that leaves it (pool_life.c) */
    struct pool_row row;
    struct live_campaign *campaign;
    struct live_attempt *attempt;             /* that will leave it; NULL: it has */
    struct ledger_account_of_attempt account; /* once its attempt has let go of it */
    struct pool_io *io;                       /* the shell's calls; never looked into here */
    bool seen;                                /* SageMaker has shown it as Available */
    bool timed;    /* its times are by our clock; until then they are AWS's, as in its row */
    bool look_now; /* something says that it has changed */
    bool wants_end, end_taken;
    bool look_first; /* its end was refused: AWS may have ended it, or know it no more */
    int failures;
    int64_t next_us;       /* boot: no call before this */
    int64_t described_us;  /* boot */
    int64_t first_look_us; /* boot: this leader's first Describe of it was answered; 0 not yet */
    int64_t listed_round;  /* the last round of Lists that showed it as Available; 0: none */
    int64_t unfound_us;    /* boot: AWS has not known its job since then (absence.h); 0: it does */
    int64_t over_us;       /* boot: first shown as over without its retained seconds; 0: not so */
    int64_t untold_s;      /* then: what it was kept for at most */
};
struct live_attempt {
    struct attempt_row row;
    struct ledger_account_of_attempt account;
    struct live_pool *pool;  /* that it will leave */
    struct live_pool *taken; /* on whose instances it was intended, while that is not known to have
                                ended */
    struct warm_pool_report pool_seen;
    struct live_attempt *next_named; /* in its bucket of leader_state.by_name */
    int job_i;                       /* into the view's jobs, while it is made */
    usec_t ending_us;                /* wall: first seen uploading or stopping; 0 not yet */
    bool accepted;                   /* AWS was seen to have it, and room for it */
    bool passed;                     /* its stage's breaker knows that it works */
    usec_t running_us; /* wall: since it runs, the latest time; 0: not seen running yet */
    int64_t alive_us;  /* boot: this leader has seen it running since then; 0: it does not run */
    struct hang_detector_state hang;
    int64_t progress_us; /* boot: look again then */
    int64_t fresh_us;    /* boot: its newest progress object was found; 0: no look yet */
    int64_t suspect_us;  /* boot: since then it looks hung; 0: it does not */
    enum hang_detector_verdict hung; /* it hangs so and is to be stopped; NONE: it does not */
    struct protocol_attempt p;
    struct live_campaign *campaign;
    struct live_stage *stage;
    struct buf request;       /* exact bytes; loaded when first needed */
    struct attempt_io *io;    /* the shell's calls; never looked into here */
    int64_t wake_us;          /* boot: when protocol_next wants to be asked */
    int64_t describe_sent_us; /* boot */
    int64_t unfound_us;       /* boot: AWS has not known it since then (absence.h); 0: it does */
    int untold;               /* so often in a row a Describe did not say whose its job is */
    int64_t listed_round;     /* the last round of Lists that showed it (list_round.h); 0: none */
    int64_t listed_us;        /* boot: then */
    int64_t moved_us;         /* boot: it has been in its state since then, as far as known */
    int64_t event_us;         /* boot: an event came that no Describe has shown (event_watch.h) */
    usec_t event_modified;    /* LastModifiedTime of the newest event (AWS' wall clock) */
    int64_t event_due_us;     /* boot: described then for that event; 0: not */
    int event_looks;          /* Describes for it */
    bool end_told;            /* an event has told its end */
    int absent;               /* so often in a row a Describe was asked for as no List showed it */
    int64_t absent_due_us;    /* boot: and again not before */
    bool recording;           /* a record of it waits for its transaction */
    int facts_n;
    bool reread; /* memory is ahead of its row, which is read first */
    bool stopped_by_us;
    bool placed; /* a Describe of its end, or its row, has told where its output is */
    /* what is known of the job */
    usec_t created_us;
    int64_t billable_s; /* per instance, as reported */
    struct cost_phase_times phases;
    bool settled;
    char *manifest; /* accepted, malloc'd */
    char *evidence; /* what its log said, JSON, malloc'd; NULL: nothing */
    char *rules;    /* what its rules have found, as job_description's, malloc'd; NULL: nothing */
    int64_t rows_in, successes, failed_to_download, failed_to_resize, bytes;
    /* Not cleared at first: [facts_n] that came while it waits, oldest first; texts. */
    struct fact facts[ATTEMPT_FACTS_MAX];
    char arn[257];
    char reason[1025];
    char artifacts[1025]; /* when placed */
};
struct live_slots {                   /* one instance type and market (quota_learning.c) */
    struct quota_ledger s;            /* held, warm_idle and what was learned; not warm_held */
    int64_t kept_foreign, kept_limit; /* what was learned, as in its row */
    usec_t kept_us;
    int refusals;    /* for quota, in a row */
    usec_t probe_us; /* wall: one more than others' use allows may be tried then */
};
/* One transition waiting for the record transaction; strings owned. */
struct pending_record {
    struct attempt_record r; /* names its attempt by id */
    char arn[257], reason[1025], artifacts[1025], signature[SIGNATURE_MAX + 1];
    bool placed;
    char *manifest, *evidence;
    struct task_change_row change;
    struct ledger_account_of_attempt account; /* when it is written */
    bool ran;   /* the task ends with it: its job ran and failed, so it counts whatever it says */
    bool alert; /* a person must look: written as an event with the record */
    bool over;  /* committed or refused: it leaves the queue */
    /* Instances that stand alone again by it, of pools whose campaign is not in memory. */
    int64_t absent_idle;
};

/* A job of this installation that is no attempt (strays.h). */
struct live_stray {
    struct stray_row row;
    struct ledger_account_of_attempt account;
    bool look_now, stop_taken, end_pool; /* its pool is asked to end */
    bool look_first;                     /* what it was asked was refused: AWS may have ended it */
    int failures, refused; /* looks that failed, and what was asked in vain, in a row */
    int64_t runs_s;        /* at most, as a Describe has told; 0: none yet */
    int64_t listed_round;  /* list_round's that showed it running last */
    int64_t unfound_us;    /* boot: AWS has not known it since then (absence.h); 0: it does */
    int64_t next_us, described_us, ended_us; /* boot; 0 not yet */
};

/* A thing of this installation that is no job and no row stands for (resource_strays.h). */
struct live_resource_stray {
    struct resource_stray_row row;
    bool there, delete_taken; /* a Describe has shown it; its deletion has begun */
    char config[64];          /* to be asked for its instance type; "" none */
    int failures;             /* in a row */
    int64_t next_us;          /* boot: no call before this */
};

/* An ended job that is settled by an estimate (bills.h). */
struct live_bill {
    struct bill_row row;
    int64_t since_us; /* boot: this leader knows it since then */
    int64_t next_us;  /* boot: described then */
    int failures;     /* in a row */
};

/* Looks at a thing that were refused or not answered, in a row (resource_sight.h). */
struct resource_sight {
    int lost, tried; /* all; before its deletion was sent without one */
};

/* A model, config and endpoint that stand for one try of a stage (endpoint_life.h). */
struct live_endpoint {
    struct endpoint_row row;
    struct ledger_account_of_attempt account;
    struct endpoint_io *io;   /* the shell's calls; never looked into here */
    bool unsure;              /* what came of the last Create is not known: Describe tells */
    int64_t signed_us;        /* boot: a Create may take effect from then on; 0: none may */
    int gone;                 /* DELETING: how many of the three are proven absent */
    bool there, delete_taken; /* DELETING, of the next: seen; its deletion has begun */
    bool found;               /* DELETING: the endpoint was there, or its Delete may be taken */
    struct resource_sight sight;
    int failures;          /* in a row */
    int64_t next_us;       /* boot: no call before this */
    int64_t write_us;      /* boot: its end is not written before this */
    int64_t described_us;  /* boot: of the endpoint, while it lives; 0: not yet */
    int payloads_n, asked; /* of the smoke test; -1: not read yet */
    int unanswered;        /* questions of it that were sent in vain, in a row */
    int64_t idle_due_us;   /* boot: its invocations are asked for then */
    int64_t took_us[SPEC_PAYLOADS_MAX];
};

/* A file system of one try of a stage (filesystem_life.h). */
struct live_filesystem {
    struct filesystem_row row;
    struct ledger_account_of_attempt account;
    struct filesystem_io *io; /* the shell's call; never looked into here */
    bool unsure;              /* what came of the last create is not known: a listing tells */
    int64_t signed_us;        /* boot: a create may take effect from then on; 0: none may */
    bool link_absent;         /* a listing shows no association, and none was asked for since */
    int64_t link_us;          /* CREATING, boot: its association was seen AVAILABLE; 0: not yet */
    bool task_due;            /* EXPORTING: no task runs, and ours has not succeeded */
    char task_id[32];         /* EXPORTING: of our last export; "": not known */
    int tasks_failed;         /* EXPORTING: how many of ours before it have failed */
    int tasks_refused;        /* EXPORTING: how often its create was refused for good, in a row */
    bool in_vain;             /* EXPORTING: so was the last of ours, and no task runs */
    usec_t tasks_us;          /* EXPORTING: its tasks were listed then */
    bool vain_told;           /* EXPORTING: people were alerted of that */
    bool there, delete_taken; /* DELETING: seen; its deletion has begun */
    bool gone;                /* DELETING: absent; a create that is late may make another one */
    struct resource_sight sight;
    int failures;         /* in a row */
    int64_t next_us;      /* boot: no call before this */
    int64_t write_us;     /* boot: its end is not written before this */
    int64_t described_us; /* boot: it was looked at in this state; 0: not yet */
};

/* A subject that has to wait for the database's sake (parking.h). */
struct parked {
    struct parked_row row;
    bool locked; /* by somebody else, so it is no row of the table; else a value is refused */
    bool kept;   /* its row is in the table */
    bool mended; /* its transaction was taken: it waits no longer, only its row has still to go */
    int times;   /* it failed, in a row */
    int64_t pause_us, next_us; /* the last pause; boot: tried again then, 0: at once; mended:
                                  its row is */
};

/* How the wall clock stands to others (wall_clock.h). */
struct leader_clock {
    bool known;
    int64_t ahead_us;     /* of CLOCK_BOOTTIME, when it was last looked at */
    int64_t aws_ahead_us; /* AWS's clock of this one */
    int64_t told_us;      /* as AWS told it last */
    uint64_t answers;     /* of AWS, when it was last looked at */
    bool unsure;          /* none came since this leader began or the clock stepped */
};

struct leader_state {
    char install_id[40];
    struct leader_clock clock;
    int64_t epoch;
    struct rng rng; /* jitter of retries */

    struct live_campaign **campaigns; /* by id */
    size_t campaigns_n;
    struct leader_awake *awake;     /* never NULL; stays where it is when the state is moved */
    int64_t generations;            /* campaigns added so far */
    struct live_attempt **attempts; /* by id */
    size_t attempts_n, attempts_cap;
    struct live_attempt **by_name; /* [names_cap], a power of two: buckets by the job name's hash */
    size_t names_cap;
    struct live_slots *slots;
    size_t slots_n;
    struct quota_ledger_account account; /* quotas over all types */
    int64_t keep_alive_max_s;            /* -1: not listed */
    struct project_row *projects;        /* [0]: everything together, then by id */
    size_t projects_n;
    struct live_pool **pools;
    size_t pools_n;
    struct task_change_row *changes; /* by task id */
    size_t changes_n;
    struct parked *parked;
    size_t parked_n;
    struct live_stray *strays; /* by name */
    size_t strays_n;
    struct live_resource_stray *resource_strays; /* by name */
    size_t resource_strays_n;
    struct live_bill *bills;
    size_t bills_n;
    bool bills_unread, bills_more; /* rows are new; or there may be more than were read */
    int64_t bill_pace_us;          /* boot: none is asked for before */
    struct live_endpoint **endpoints;
    size_t endpoints_n;
    struct live_filesystem **filesystems;
    size_t filesystems_n;
    bool
        tries_unread; /* a campaign or a stage came (back) into view: its earlier endpoints and file
                          systems, ended ones too, are read before the next one is intended */
    usec_t watch_from_us; /* jobs created from here on are listed although nobody waits for them */
    int64_t watch_until_us; /* boot: until then */
    struct pending_record *records;
    size_t records_n, records_cap;

    bool look_at_db, decide, act; /* what the next tick has to do */
};

void leader_state_init(struct leader_state *s);
/* Frees all that is known. The shell has dropped its calls (io) before. */
void leader_state_clear(struct leader_state *s);
void leader_state_done(struct leader_state *s);

/* Lookups: NULL when there is none. By name of its job in constant time. */
struct live_campaign *leader_state_campaign(const struct leader_state *s, int64_t campaign_id);
/* Its tasks that are to be asked about, or wait for the answer (done_if). */
size_t live_stage_unchecked_n(const struct live_stage *ls);
struct live_stage *leader_state_stage(struct live_campaign *lc, int64_t stage_id);
struct live_attempt *leader_state_attempt(const struct leader_state *s, int64_t attempt_id);
struct live_attempt *leader_state_attempt_named(const struct leader_state *s, const char *name);
struct live_pool *leader_state_pool(const struct leader_state *s, int64_t pool_id);
/* The slots of a type and market, added without limits and price when seen first. The pointer is
 * valid until the next call. */
struct live_slots *leader_state_slots(struct leader_state *s, const char *instance_type,
                                      enum market market);
/* Every campaign's project is known before the campaign: never NULL. */
struct project_row *leader_state_project(struct leader_state *s, int64_t project_id);
/* The change of a task by retries; create: an empty one is added. Valid until the next call. */
struct task_change_row *leader_state_change(struct leader_state *s, int64_t task_id, bool create);

/* Those of one campaign, by task, in place of what is known of it; forgotten when it is dropped. */
void leader_state_take_changes(struct leader_state *s, const struct task_change_row *rows,
                               size_t n);

/* Room for n stages: all zero, but for arrays of `duration` that duration_init need not clear. */
struct live_stage *leader_state_new_stages(size_t n);
/* A campaign with its stages, taken over; kept in order of id. */
void leader_state_add_campaign(struct leader_state *s, struct live_campaign *lc);
void leader_state_drop_campaign(struct leader_state *s, struct live_campaign *lc);
void live_campaign_free(struct live_campaign *lc);
/* Adds an empty attempt of `row` (whose strings it takes) to its campaign and stage. */
struct live_attempt *leader_state_add_attempt(struct leader_state *s, const struct attempt_row *row,
                                              struct live_campaign *lc);
/* Frees it; its io must be NULL by then. */
void leader_state_remove_attempt(struct leader_state *s, struct live_attempt *a);
struct live_pool *leader_state_add_pool(struct leader_state *s, const struct pool_row *row,
                                        struct live_campaign *lc);
void leader_state_remove_pool(struct leader_state *s, struct live_pool *p);

/* The setters. Those of campaigns, stages and tasks wake the campaign. */
void campaign_set_state(struct live_campaign *lc, enum campaign_state to);
void stage_set_state(struct live_campaign *lc, struct live_stage *ls, enum stage_state to);
void attempt_set_state(struct live_attempt *a, enum attempt_state to);
void pool_set_state(struct live_pool *p, enum pool_state to);
void endpoint_set_state(struct live_endpoint *e, enum endpoint_state to);
void filesystem_set_state(struct live_filesystem *f, enum filesystem_state to);
/* n tasks of a stage move; counts never fall below zero. from == to is no move. */
void task_counts_move(struct live_campaign *lc, struct live_stage *ls, enum task_state from,
                      enum task_state to, int64_t n);
/* n new tasks are waiting. */
void task_counts_add(struct live_stage *ls, int64_t n);
/* Instances of an attempt: held from intent to release; idle while an available pool keeps them
 * and nobody was intended on it. */
void slots_hold(struct live_slots *s, int64_t instances);
void slots_release(struct live_slots *s, int64_t instances);
void slots_idle(struct live_slots *s, int64_t instances);     /* one more pool is idle */
void slots_idle_end(struct live_slots *s, int64_t instances); /* taken, or ended */
