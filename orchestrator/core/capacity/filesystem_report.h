/* What FSx says of a Lustre file system, its associations with S3 and its tasks. Values.
 * Source: Amazon FSx API reference, DescribeFileSystems, DescribeDataRepositoryAssociations,
 * DescribeDataRepositoryTasks. */
#pragma once
#include "common/units.h"

struct filesystem_description {
    char id[24];
    char arn[257];
    char lifecycle[32];        /* as AWS spells it; new values may appear */
    char failure_reason[1025]; /* "" when none */
    char mount_name[16];
    char dns_name[256];
    char subnet[32];
    char deployment_type[32];
    int64_t capacity_gib;
    int64_t throughput_per_unit; /* MB/s per TiB; 0 when absent */
    char owner[129];             /* the tag drover-install; "" when absent */
    char token[129];             /* the tag drover-token; "" when absent */
    usec_t created;
};
struct association_description {
    char id[24];
    char filesystem_id[24];
    char lifecycle[32];
    char failure_reason[1025];
    char path[257];     /* in the file system */
    char s3_path[1025]; /* s3://bucket/prefix */
    usec_t created;
};
struct fsx_task_description {
    char id[32];
    char filesystem_id[24];
    char type[48];
    char lifecycle[32];
    char failure_reason[1025];
    int64_t total, succeeded, failed; /* files; -1 when FSx does not say yet */
    usec_t created, started, ended;   /* 0 when absent */
};
union fsx_row { /* one of them, by the kind of the call */
    struct filesystem_description filesystem;
    struct association_description association;
    struct fsx_task_description task;
};
/* Of a call about them. */
enum fsx_answer {
    FSX_DONE,
    FSX_NOT_FOUND,   /* the thing itself, or the file system that a request names */
    FSX_TOKEN_TAKEN, /* another request was sent under this token before */
    FSX_TASK_RUNS,   /* one task at a time on a file system */
    FSX_TASK_ENDED,  /* too late to cancel it */
    FSX_FAILED
};
