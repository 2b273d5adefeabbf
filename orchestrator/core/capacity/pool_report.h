/* What SageMaker says of the warm pool that a job left or runs on. A value.
 * Source: DescribeTrainingJob, WarmPoolStatus. */
#pragma once
#include <stdint.h>

/* WarmPoolStatus.Status of a job: what happened to the instances it left. */
enum warm_pool_status {
    WARM_POOL_NONE,       /* not reported: no keep-alive, or the job has not ended */
    WARM_POOL_AVAILABLE,  /* kept for a matching job */
    WARM_POOL_IN_USE,     /* this job runs on a pool it took */
    WARM_POOL_REUSED,     /* moved to another job */
    WARM_POOL_TERMINATED, /* expired, ended, patched, or never kept */
    WARM_POOL_UNKNOWN,    /* an unknown value: neither rely on it nor settle it */
    WARM_POOL_STATUS_COUNT
};
struct warm_pool_report {
    enum warm_pool_status status;
    int64_t retained_s; /* per instance; -1: not reported. Final at REUSED and TERMINATED only */
    char reused_by[64]; /* job that took it; "" when there is none */
};
