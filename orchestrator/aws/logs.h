/* CloudWatch Logs: the tail of a training job's log. Source: CloudWatch Logs API reference. */
#pragma once
#include "sagemaker.h"

#define LOGS_GROUP       "/aws/sagemaker/TrainingJobs"
#define LOGS_STREAM_SIZE 513 /* a stream's name with its NUL */

/* cb receives {"lines":[{"time","host","text"}],"next":"token"} as text, or a failure. A job
 * without a log yet has no lines. token: the page to read, "" = the newest page. */
typedef void (*logs_cb)(void *ctx, struct str json, const struct aws_failure *failure);
void logs_tail(struct aws_client *c, const char *job_name, int limit, const char *token, logs_cb cb,
               void *ctx);
