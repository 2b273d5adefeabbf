/* What SageMaker says of a training job. Values.
 * Source: Amazon SageMaker API reference, DescribeTrainingJob, ListTrainingJobs. */
#pragma once
#include "common/units.h"
#include "pool_report.h"

#define JOB_TRANSITIONS_MAX 64 /* of a spot job that is interrupted again and again */
struct job_transition {
    char status[24];   /* secondary, as AWS spells it */
    bool no_capacity;  /* its message says that instances are waited for */
    usec_t start, end; /* end 0: not over */
};
#define JOB_RULES_BYTES        8192 /* of the JSON below */
#define JOB_RULE_DETAILS_BYTES 300  /* of one rule's details */
struct job_description {
    char name[64];
    char status[32]; /* as AWS spells it; new values may appear */
    char secondary[32];
    char arn[257];
    char request_hash[65]; /* Environment.DROVER_REQUEST; "" when absent */
    bool untold;           /* it came without an Environment: whose it is, it does not say */
    char failure_reason[1025];
    char artifacts[1025];                     /* s3 URI, "" when none */
    usec_t created, started, ended, modified; /* 0 when absent */
    int64_t billable_s;                       /* per instance; 0 when absent */
    int64_t training_s;                       /* per instance, including spot waits; 0: absent */
    int64_t instances;
    char instance_type[33];
    int64_t volume_gb, max_runtime_s;
    int64_t attempt_id; /* Environment.DROVER_ATTEMPT; 0: absent */
    bool spot;
    int64_t keep_alive_s; /* requested; 0: none */
    struct warm_pool_report pool;
    /* What its debugger's and profiler's rules have found: [{"of", "name", "status", "details"}];
     * "": it has none. When not all fit, those that found nothing go first, and one of "of" ""
     * and "name" "3 more" says how many of a status there were. */
    char rules[JOB_RULES_BYTES];
    int transitions_n; /* 0: none told, or more than fit */
    struct job_transition transitions[JOB_TRANSITIONS_MAX];
};
#define JOB_METRICS_MAX 40 /* AWS takes no more definitions */
struct job_metric {
    char name[256];
    double value;
};
struct job_summary {
    char name[64];
    char arn[257];
    char status[32];
    char secondary[32];
    usec_t created, modified;
    /* Compare this, not `modified`, to notice a change of the pool. */
    struct warm_pool_report pool;
};
#define JOB_LIST_PAGE      100 /* what SageMaker gives at most */
#define JOB_LIST_TOKEN_MAX 8193
struct job_list_query { /* one page of a List, newest first */
    char contains[64];
    const char *status;             /* "" any */
    const char *pool;               /* status of the warm pool, "" any */
    usec_t created_after;           /* 0: from the beginning */
    usec_t created_before;          /* 0: to the newest; both are sent in whole seconds */
    char token[JOB_LIST_TOKEN_MAX]; /* of the page; "": the first */
};
