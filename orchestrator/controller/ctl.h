/* What the files of controller/ share: the view the leader keeps, live attempts, pending records.
 * Everything here belongs to the loop thread; all of it is rebuilt from PostgreSQL at takeover. */
#pragma once
#include "aws/quotas.h"
#include "aws/sagemaker.h"
#include "common/arena.h"
#include "common/rng.h"
#include "common/s3.h"
#include "common/token_bucket.h"
#include "controller.h"
#include "core/failure/cause.h"
#include "core/failure/retry_budget.h"
#include "core/failure/retry_policy.h"
#include "core/leader/leader_state.h"
#include "core/leader/quota_learning.h"
#include "core/leader/sched_view.h"
#include "core/leader/skip_done.h"
#include "core/leader/stage_history.h"
#include "store/leader/scheduler.h"

/* The calls of one attempt that are under way. It names its attempt by id: an answer looks the
 * attempt up. */
struct attempt_io {
    struct controller *c;
    int64_t attempt_id;
    struct sagemaker_call *create, *describe, *stop;
    struct output_check *check;
    struct progress_look *progress;
};
struct pool_io { /* the same for a warm pool */
    struct controller *c;
    int64_t pool_id;
    struct sagemaker_call *describe, *update;
};

struct controller {
    struct controller_config cfg;
    struct loop *loop;
    struct aws_client *aws;       /* gated by the lease */
    struct aws_client *aws_plain; /* for the bridge: works in every droverd */
    struct bridge *bridge;
    struct loop_fd *bridge_watch;
    struct api_status *status;
    struct leader_state state;

    /* leadership (leader.c) */
    struct store *store;
    struct store *listen;
    struct loop_fd *listen_watch;
    bool leading;
    bool lost;            /* leadership, in this pass: at its end all that is known is freed */
    int64_t lease_end_us; /* boot */
    int64_t seen_renewals, seen_renewals_at_us;
    int standby_failures;
    struct loop_timer *standby_timer, *renew_timer, *tick_timer, *observe_timer, *quota_timer,
        *housekeeping_timer;

    /* the tick */
    bool swept;                 /* AWS was matched with our rows: intents may commit */
    struct orphan_sweep *sweep; /* under way */
    int64_t sweep_us;           /* boot: try again then */
    size_t progress_n;          /* looks under way */
    int64_t acted_until_us;     /* boot: earliest wake of any attempt */

    struct token_bucket create_bucket, read_bucket;
    bool create_unlimited;
    struct retry_budget retries; /* of all calls that failed before */
    bool calls_fail;             /* since the last good List */
    struct sagemaker_call *listing;
    int64_t strays_looked_us; /* boot */
    struct quotas_call *quota_reading;
    struct skip_done_call *checks[SKIP_DONE_AT_ONCE]; /* of done_if, under way or answered */
    size_t checks_n;
};

struct aws_gate ctl_gate(struct controller *c);

/* leader.c */
bool leader_start(struct controller *c, struct err *err) MUST_CHECK;
void leader_stop(struct controller *c, bool clean);
/* The lease once more, when its time has come. False: ours no longer, or nobody knows. */
bool leader_renew_if_due(struct controller *c, struct err *err) MUST_CHECK;
/* A failed transaction, a lapsed lease: sign and commit nothing more. What is known stays valid
 * until the pass ends (leader_end_pass), so that no caller holds what was freed. */
void leader_lose(struct controller *c, const char *why, const struct err *err);
void leader_end_pass(struct controller *c);
/* One transaction of the leader: begin, fn, commit. False: leadership is lost already. */
bool leader_tx(struct controller *c, bool (*fn)(struct controller *c, void *arg, struct err *err),
               void *arg);

/* view_cache.c */
bool view_load(struct controller *c, struct err *err) MUST_CHECK;
bool view_refresh(struct controller *c, struct err *err) MUST_CHECK;
void view_free(struct controller *c);
bool view_take_campaign(struct controller *c, int64_t campaign_id, int64_t seen_tasks,
                        struct live_campaign **ret, struct err *err) MUST_CHECK;

/* history.c: what attempts teach, from and to its rows. A failed transaction ends the leadership,
 * so memory is what the rows say even though it moves before the commit. */
bool history_load(struct controller *c, struct live_stage *ls, struct err *err) MUST_CHECK;
/* A person let the stage go on: written and reset. */
bool history_resume(struct controller *c, struct live_stage *ls, struct err *err) MUST_CHECK;
bool history_write(struct controller *c, usec_t now_us, struct err *err) MUST_CHECK;

/* progress.c */
void progress_tick(struct controller *c, int64_t *wake_us);
void progress_cancel(struct live_attempt *a);

/* sweep.c: before the first intent of an epoch AWS is matched with our rows */
void orphan_sweep_tick(struct controller *c);
void orphan_sweep_cancel(struct controller *c);
/* execute.c: asks every due attempt what to do and does it */
void aws_actions_tick(struct controller *c);
/* observe.c */
void observe_start(struct controller *c);
void quota_start(struct controller *c);
struct job_seen observe_seen(const char *status, const char *secondary, usec_t modified);
/* output.c: is an output there and whole? */
bool output_folder(const struct live_attempt *a, struct s3_uri *ret);
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
/* bridge_side.c */
bool bridge_answers_start(struct controller *c, struct err *err) MUST_CHECK;
void bridge_answers_stop(struct controller *c);
