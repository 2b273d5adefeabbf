/* Service Quotas: the applied limits of SageMaker training, by instance type.
 * Source: Service Quotas API reference, ListServiceQuotas. */
#pragma once
#include "sagemaker.h"

struct quota_value {
    char instance_type[33]; /* "" for "Number of instances across all training jobs" */
    int64_t limit;
};
struct quota_reading {
    struct quota_value *training; /* [training_n] "<type> for training job usage" */
    size_t training_n;
    int64_t total;      /* across all training jobs; -1 not listed */
    double create_rate; /* "Rate of CreateTrainingJob requests"; < 0 not listed */
};
typedef void (*quotas_cb)(void *ctx, const struct quota_reading *reading,
                          const struct aws_failure *failure);
struct quotas_call;
struct quotas_call *quotas_read(struct aws_client *c, struct aws_gate gate, quotas_cb cb,
                                void *ctx);
void quotas_cancel(struct quotas_call *call);
