/* A request in flight: for deep_calls.c and deep_requests.c. Nothing is freed (world_alloc). */
#pragma once
#include "deep.h"

enum call_kind {
    CREATE,
    DESCRIBE,
    LIST,
    STOP,
    UPDATE,
    QUOTAS,
    S3_GET,
    S3_HEAD,
    S3_LIST,
    S3_PAGE,
    LOGS,
    JOB_LOG,
    TAG,
    OTHER
};

struct aws_client {
    struct proc *p;
    struct loop *l;
    bool (*may_send)(void *ctx);
    void *ctx;
    struct sagemaker_call *open;
    int64_t skew_us; /* as learned */
    uint64_t answers;
};
struct sagemaker_call {
    enum call_kind kind;
    struct aws_client *client;
    struct proc *p;
    uint32_t life;
    struct aws_gate gate;
    bool done, answered;
    struct sagemaker_call *next;
    union {
        sagemaker_create_cb create;
        sagemaker_describe_cb describe;
        sagemaker_list_cb list;
        sagemaker_stop_cb stop;
        sagemaker_update_cb update;
        quotas_cb quotas;
        s3_cb s3;
        logs_cb logs;
        job_log_cb job_log;
        sagemaker_tag_cb tag;
    } cb;
    void *ctx;
    const struct call_kind_of *other;
    char name[64];
    struct str body;
    usec_t signed_us, dated; /* by the world's clock, by the sender's */
    bool again;              /* its date was refused once */
    usec_t date;             /* of the answer; 0: it has none */
    struct list_asked list;
    int64_t seconds, range_from, range_to;
    char *page_after, *page_token;
    /* the answer */
    bool failed, flag, not_found;
    struct job_summary *jobs;
    size_t jobs_n;
    struct quota_reading reading;
    /* large, and last: most calls touch few of these pages */
    struct aws_failure failure;
    struct s3_uri uri;
    char arn[257];
    struct s3_result s3;
    struct job_description job;
};

struct sagemaker_call *call_new(struct aws_client *c, enum call_kind kind, void *ctx);
struct sagemaker_call *call_named(struct aws_client *c, struct aws_gate gate, enum call_kind kind,
                                  const char *name, void *ctx);
