/* CloudWatch: how often an endpoint was invoked, by the minute. Figures come some minutes late.
 * Asynchronous on the loop, one callback a call, no retries.
 * Source: Amazon CloudWatch API reference, GetMetricStatistics. */
#pragma once
#include "core/capacity/invocation_report.h"
#include "sagemaker.h"

struct invocations_call;
/* report: borrowed for the call; failure NULL: it is whole. An answer of which anything cannot be
 * read is a failure. */
typedef void (*invocations_cb)(void *ctx, const struct invocation_report *report,
                               const struct aws_failure *failure);
/* Of one variant of an endpoint. The call is freed after the callback, or by invocations_cancel,
 * after which none comes. */
struct invocations_call *invocations_read(struct aws_client *c, struct aws_gate gate,
                                          const char *endpoint, const char *variant,
                                          const struct invocation_question *q, invocations_cb cb,
                                          void *ctx);
void invocations_cancel(struct invocations_call *call); /* NULL ignored */
