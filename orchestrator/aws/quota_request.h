/* Service Quotas: asking for a higher quota of SageMaker. Its code is found by its name, because
 * codes differ between regions. Source: Service Quotas API reference,
 * RequestServiceQuotaIncrease. */
#pragma once
#include "sagemaker.h"

/* status: "PENDING", "CASE_OPENED" or what AWS says else; both are valid during the call only. NULL
 * with failure NULL: there is no quota of this name. */
typedef void (*quota_request_cb)(void *ctx, const char *id, const char *status,
                                 const struct aws_failure *failure);
/* Ask for a value of the quota of a name, such as "ml.m5.large for training job usage". It is sent
 * once: after an answer that never came AWS refuses another while the first is open. */
void quota_request(struct aws_client *c, const char *name, int64_t value, quota_request_cb cb,
                   void *ctx);
