/* Typed SageMaker training-job calls over common/aws.h. Asynchronous on the loop, one callback per
 * call, no retries. Source: Amazon SageMaker API reference, CreateTrainingJob, DescribeTrainingJob,
 * ListTrainingJobs, StopTrainingJob, UpdateTrainingJob. */
#pragma once
#include "core/capacity/job_report.h"
#include "json_call.h"

/* Text for logs, AWS' own spelling; "" for WARM_POOL_NONE. */
const char *warm_pool_status_name(enum warm_pool_status s);

/* Each cb runs once. On success failure is NULL. */
typedef void (*sagemaker_create_cb)(void *ctx, const char *arn, const struct aws_failure *failure);
typedef void (*sagemaker_describe_cb)(void *ctx, const struct job_description *job, bool not_found,
                                      const struct aws_failure *failure);
/* next: the token of the page after it, "" when it is the last. */
typedef void (*sagemaker_list_cb)(void *ctx, const struct job_summary *jobs, size_t n,
                                  const char *next, const struct aws_failure *failure);
typedef void (*sagemaker_stop_cb)(void *ctx, bool ended_already, bool not_found,
                                  const struct aws_failure *failure);
/* no_pool: the job has no pool in status Available, so nothing was changed. */
typedef void (*sagemaker_update_cb)(void *ctx, bool no_pool, bool not_found,
                                    const struct aws_failure *failure);

/* The returned handle is for sagemaker_cancel, after which there is no callback. request: the exact
 * bytes, copied. */
struct sagemaker_call;
struct sagemaker_call *sagemaker_create(struct aws_client *c, struct aws_gate gate,
                                        struct str request, sagemaker_create_cb cb, void *ctx);
struct sagemaker_call *sagemaker_describe(struct aws_client *c, struct aws_gate gate,
                                          const char *name, sagemaker_describe_cb cb, void *ctx);
/* One page. AWS applies the filters after it has cut the page, so that a page may be short, even
 * empty, and not be the last: core/leader/list_round.h. */
struct sagemaker_call *sagemaker_list(struct aws_client *c, struct aws_gate gate,
                                      const struct job_list_query *q, sagemaker_list_cb cb,
                                      void *ctx);
struct sagemaker_call *sagemaker_stop(struct aws_client *c, struct aws_gate gate, const char *name,
                                      sagemaker_stop_cb cb, void *ctx);
/* Set how long the pool of an ended job is kept, counted from the end of the job; 0 ends it now.
 * Safe to repeat. seconds >= 0. */
struct sagemaker_call *sagemaker_update_keep_alive(struct aws_client *c, struct aws_gate gate,
                                                   const char *name, int64_t seconds,
                                                   sagemaker_update_cb cb, void *ctx);
/* The value of one tag of a job, "" when it has none. */
typedef void (*sagemaker_tag_cb)(void *ctx, const char *value, const struct aws_failure *failure);
struct sagemaker_call *sagemaker_tag(struct aws_client *c, struct aws_gate gate, const char *arn,
                                     const char *key, sagemaker_tag_cb cb, void *ctx);
/* FinalMetricDataList of a job: the last value of each metric as SageMaker saw it. None when there
 * is no such job. */
typedef void (*sagemaker_metrics_cb)(void *ctx, const struct job_metric *metrics, size_t n,
                                     const struct aws_failure *failure);
struct sagemaker_call *sagemaker_final_metrics(struct aws_client *c, struct aws_gate gate,
                                               const char *name, sagemaker_metrics_cb cb,
                                               void *ctx);
void sagemaker_cancel(struct sagemaker_call *call);
