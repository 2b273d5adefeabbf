/* CloudWatch Logs: the last lines of each host of a training job, the newest stream of each. */
#pragma once
#include "core/failure/log_line.h"
#include "sagemaker.h"

#define JOB_LOG_HOSTS_MAX 32
#define JOB_LOG_LINES     100  /* of each host */
#define JOB_LOG_CHARS_MAX 1000 /* of each line */

struct job_log_call;
/* lines are borrowed and sorted by host; none when the job has no log. f: it cannot be read. */
typedef void (*job_log_cb)(void *ctx, const struct log_line *lines, size_t n,
                           const struct aws_failure *f);
/* Asks for one host after the other. The gate is asked before each request. */
struct job_log_call *job_log_read(struct aws_client *c, struct aws_gate gate, const char *job_name,
                                  job_log_cb cb, void *ctx);
void job_log_cancel(struct job_log_call *call); /* no answer comes any more; NULL ignored */
