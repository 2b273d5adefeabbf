/* struct controller: the leader's state and what carries it: the loop, the store, AWS, timers and
 * calls under way. It belongs to the loop thread; its state is rebuilt from PostgreSQL at
 * takeover. */
#pragma once
#include "aws/pricing.h"
#include "aws/quotas.h"
#include "aws/sagemaker.h"
#include "common/arena.h"
#include "common/rng.h"
#include "common/s3.h"
#include "controller.h"
#include "core/failure/cause.h"
#include "core/failure/retry_policy.h"
#include "core/leader/call_count.h"
#include "core/leader/call_pace.h"
#include "core/leader/event_watch.h"
#include "core/leader/job_list.h"
#include "core/leader/leader_state.h"
#include "core/leader/lease_watch.h"
#include "core/leader/list_round.h"
#include "core/leader/operations.h"
#include "core/leader/prices_file.h"
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
    int64_t create_sent_us; /* CLOCK_MONOTONIC */
    struct intent
        *recast;     /* of what the job under its name is; waits for the tick; NULL: nothing */
    bool place_told; /* of its output, which is looked at in the tick */
    struct output_check *check;
    struct job_log_call *log;
    struct progress_look *progress; /* the one that is waited for */
};
struct pool_io { /* the same for a warm pool */
    struct controller *c;
    int64_t pool_id;
    struct sagemaker_call *describe, *update;
    bool described; /* the answer below waits for the tick */
    bool job_ended;
    struct warm_pool_report report;
};

#define ARCHIVE_EXPORTS 4 /* archives that are written to S3 at once */

struct controller {
    struct controller_config cfg;
    struct loop *loop;
    struct call_rates *rates;       /* of the clients: */
    struct aws_client *aws;         /* gated by the lease */
    struct aws_client *aws_pricing; /* the same, of the region where AWS Pricing is */
    struct aws_client *aws_plain;   /* for the bridge: works in every droverd */
    struct bridge *bridge;
    struct loop_fd *bridge_watch;
    struct object_listing *listings; /* for the bridge, under way */
    bool listings_stop;
    struct api_status *status;
    struct leader_state state;

    /* leadership */
    struct store *store;
    struct store *listen;
    struct loop_fd *listen_watch;
    bool leading;
    bool lost;                /* leadership, in this pass: at its end all that is known is freed */
    int64_t lease_end_us;     /* boot */
    int64_t lease_longest_us; /* of ours and of those who led before, while theirs may last */
    int64_t lease_alone_us;   /* boot; from then on nobody else's lasts */
    struct lease_watch watch;
    struct loop_timer *standby_timer, *renew_timer, *tick_timer, *plan_timer, *act_timer,
        *observe_timer, *quota_timer, *price_timer, *housekeeping_timer;

    /* the tick */
    bool in_tick; /* or at a takeover, or at the end: only there rows are written */
    bool loading; /* a takeover reads all live attempts and pools at once */
    struct orphan_sweep *sweep;
    size_t progress_n;      /* looks under way */
    int64_t acted_until_us; /* boot: earliest wake of any attempt */
    struct call_count calls;

    struct call_pace pace;
    struct list_round round;
    struct event_watch events;
    struct event_intake *intake; /* of the queue of events; NULL: none is set */
    struct sagemaker_call *listing;
    struct listed_page *listed; /* waits for the tick; NULL: nothing does */
    struct stray_answer *stray; /* of the question that was under way about a stray */
    struct sagemaker_call *stray_call;
    struct bill_answer *bill; /* the same about the bill of an ended job */
    struct sagemaker_call *bill_call;
    struct resource_sweeper *resource_sweep;
    struct resource_io *resource_io; /* the call about a stray that is no job */
    struct model_look *model_looks;  /* of endpoints that wait for their model */
    struct quotas_call *quota_reading;
    struct prices_file prices_file;
    char *prices_named;           /* types of that file, a JSON array; NULL: it cannot be read */
    struct pricing_call *pricing; /* under way */
    char *prices_listed; /* its answer, as store_price_list_put takes it, waits for the tick */
    int price_failures;  /* in a row */
    struct quota_reading *quotas_read;                /* waits to be written; NULL: nothing does */
    int64_t quotas_write_us;                          /* boot: not before */
    struct skip_done_call *checks[SKIP_DONE_AT_ONCE]; /* of done_if, under way or answered */
    size_t checks_n;
    int64_t archive_rows; /* of the next step of an archive; 0: none was made yet */
    struct archive_export *archive_exports[ARCHIVE_EXPORTS]; /* NULL: a free place */
    struct metric_log **metric_logs; /* that are read; see metric_collect.h */
    size_t metric_logs_n;
    struct operation_cursor page; /* of parts of operations */
    int64_t operations_after;     /* the last one of a tick that ran out of time; 0: none did */
    bool metrics_known;           /* of some that were not, so that all are loaded again */
};
