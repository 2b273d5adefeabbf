/* What the files of controller/ share: the view the leader keeps, live attempts, pending records.
 * Everything here belongs to the loop thread; all of it is rebuilt from PostgreSQL at takeover. */
#pragma once
#include "aws/quotas.h"
#include "aws/sagemaker.h"
#include "common/arena.h"
#include "common/bucket.h"
#include "common/rng.h"
#include "controller.h"
#include "core/cause.h"
#include "core/protocol.h"
#include "core/retry_policy.h"
#include "core/sched.h"
#include "store/leader.h"

struct live_stage {
    struct stage_row row;
    const struct spec_stage *spec; /* NULL for kinds this version does not run */
    struct ready *ready;
    enum wait_reason reason; /* as last written */
};
struct live_campaign {
    struct campaign_row row;
    int64_t seen_tasks; /* as view_versions gave it */
    struct arena arena;
    struct spec *spec;
    struct live_stage *stages;
    int stages_n;
    int64_t live;         /* active tasks */
    usec_t last_start_us; /* 0: not since this leader began */
    bool budget_held;     /* nothing runs and money is what is missing */
};
struct live_attempt {
    struct controller *c;
    struct attempt_row row;
    struct protocol_attempt p;
    struct live_campaign *campaign;
    struct live_stage *stage;
    struct buf request; /* exact bytes; loaded when first needed */
    struct sagemaker_call *create, *describe, *stop;
    struct output_check *check;
    int64_t wake_us;          /* boot: when protocol_next wants to be asked */
    int64_t describe_sent_us; /* boot */
    bool recording;           /* a record of it waits for its transaction */
    bool stopped_by_us;
    /* what is known of the job */
    char arn[257];
    char reason[1025];
    char artifacts[1025];
    usec_t created_us;
    int64_t billable_s; /* per instance, as reported */
    bool settled;
    char *manifest; /* accepted, malloc'd */
    int64_t rows_in, successes, failed_to_download, failed_to_resize, bytes;
};
/* One transition waiting for the record transaction; strings owned. */
struct pending_record {
    struct attempt_record r;
    struct live_attempt *attempt;
    char arn[257], reason[1025], signature[SIGNATURE_MAX + 1];
    char *manifest;
    struct task_change_row change;
    bool alert; /* a person must look: written as an event beside the record */
};
struct live_slots {
    struct slots_row row;
    int64_t quota;         /* of the type; -1 unreadable */
    int64_t foreign_until; /* boot: forget others' use then */
};

struct controller {
    struct controller_config cfg;
    struct loop *loop;
    struct aws_client *aws;       /* gated by the lease */
    struct aws_client *aws_plain; /* for the bridge: works in every droverd */
    struct bridge *bridge;
    struct loop_fd *bridge_watch;
    struct api_status *status;
    struct rng rng;
    char install_id[40];

    /* leadership (leader.c) */
    struct store *store;
    struct store *listen;
    struct loop_fd *listen_watch;
    bool leading;
    int64_t epoch;
    int64_t lease_end_us; /* boot */
    int64_t seen_renewals, seen_renewals_at_us;
    int standby_failures;
    struct loop_timer *standby_timer, *renew_timer, *tick_timer, *observe_timer, *quota_timer,
        *housekeeping_timer;

    /* the view */
    struct live_campaign **campaigns;
    size_t campaigns_n;
    struct live_attempt **attempts;
    size_t attempts_n, attempts_cap;
    struct live_slots *slots;
    size_t slots_n;
    int64_t total_quota;             /* -1: not listed */
    struct task_change_row *changes; /* by task id */
    size_t changes_n;
    struct pending_record *records;
    size_t records_n, records_cap;
    bool look_at_db, decide, act;
    int64_t acted_until_us; /* boot: earliest wake of any attempt */

    struct bucket create_bucket, read_bucket;
    bool create_unlimited;
    struct sagemaker_call *listing;
    int64_t strays_looked_us; /* boot */
    struct quotas_call *quota_reading;
    struct precheck *checks; /* done_if: waiting, under way, answered; in order of arrival */
    size_t checks_n, checks_cap;
};

struct aws_gate ctl_gate(struct controller *c);

/* leader.c */
bool leader_start(struct controller *c, struct err *err) MUST_CHECK;
void leader_stop(struct controller *c, bool clean);
/* The lease once more, when its time has come. False: ours no longer, or nobody knows. */
bool leader_renew_if_due(struct controller *c, struct err *err) MUST_CHECK;
/* A failed transaction, a lapsed lease: let go of everything and stand by. */
void leader_lose(struct controller *c, const char *why, const struct err *err);
/* One transaction of the leader: begin, fn, commit. False: leadership is lost already. */
bool leader_tx(struct controller *c, bool (*fn)(struct controller *c, void *arg, struct err *err),
               void *arg);

/* view_cache.c */
bool view_load(struct controller *c, struct err *err) MUST_CHECK;
bool view_refresh(struct controller *c, struct err *err) MUST_CHECK;
void view_free(struct controller *c);
struct live_campaign *view_find(struct controller *c, int64_t campaign_id);
bool view_take_campaign(struct controller *c, int64_t campaign_id, int64_t seen_tasks,
                        struct live_campaign **ret, struct err *err) MUST_CHECK;
void view_drop_campaign(struct controller *c, struct live_campaign *lc);
struct live_stage *view_stage(struct live_campaign *lc, int64_t stage_id);
struct live_slots *view_slots_of(struct controller *c, const char *instance_type);
struct task_change_row *view_change(struct controller *c, int64_t task_id, bool create);

/* attempt.c: live attempts */
struct live_attempt *attempt_add(struct controller *c, const struct attempt_row *row,
                                 struct live_campaign *lc);
void attempt_remove(struct controller *c, struct live_attempt *a); /* cancels its calls */
struct live_attempt *attempt_by_name(struct controller *c, const char *name);
void attempt_unwant(struct live_attempt *a);
void attempt_protocol_config(const struct controller *c, struct protocol_config *ret);
/* Feed a fact; what follows is queued for the record transaction. */
void attempt_fact(struct live_attempt *a, const struct fact *f);

/* intend.c */
void intend_tick(struct controller *c);
/* execute.c: asks every due attempt what to do and does it */
void execute_tick(struct controller *c);
/* record.c */
void record_push(struct live_attempt *a, const struct protocol_effect *e);
bool record_flush(struct controller *c); /* false: leadership lost */
/* observe.c */
void observe_start(struct controller *c);
void quota_start(struct controller *c);
struct job_seen observe_seen(const char *status, const char *secondary, usec_t modified);
/* campaign_life.c: wanted to state, ends of stages and campaigns */
bool campaign_life_tick(struct controller *c); /* false: leadership lost */
/* operations.c */
bool operations_tick(struct controller *c);
/* output.c: is an output there and whole? */
struct output_verdict {
    bool checked; /* false: could not be looked at; try again */
    bool good;
    enum cause cause;
    char text[256];
    int64_t rows_in, successes, failed_to_download, failed_to_resize, bytes;
    char *manifest; /* malloc'd; the receiver's */
};
typedef void (*output_cb)(void *ctx, struct output_verdict *v);
struct output_check *output_verify(struct live_attempt *a, output_cb cb, void *ctx);
void output_cancel(struct output_check *k);
/* Is what done_if names there? VERIFYING's check, for any task's output. */
struct output_check *output_check_done(struct controller *c, const struct live_campaign *lc,
                                       const struct live_stage *ls, const struct task_input *t,
                                       output_cb cb, void *ctx);
/* precheck.c: tasks of a stage with done_if pass here before they become ready */
void precheck_add(struct controller *c, struct live_campaign *lc, struct live_stage *ls,
                  const struct task_row *t);
bool precheck_tick(struct controller *c); /* false: leadership lost */
void precheck_cancel_all(struct controller *c);
/* bridge_side.c */
bool bridge_side_start(struct controller *c, struct err *err) MUST_CHECK;
void bridge_side_stop(struct controller *c);
