/* Service Quotas: the applied limits of SageMaker training, by instance type and for the account.
 * Found by name, because quota codes differ between regions. When quotas that every account has are
 * missing, what is missing is read from the defaults. Source: Service Quotas API reference,
 * ListServiceQuotas, ListAWSDefaultServiceQuotas. */
#pragma once
#include "core/capacity/quota_reading.h"
#include "sagemaker.h"

/* reading is valid during the call only; failure NULL: it was read. */
typedef void (*quotas_cb)(void *ctx, const struct quota_reading *reading,
                          const struct aws_failure *failure);
struct quotas_call;
/* Reads all of them; the call is freed after the callback. quotas_cancel: no callback comes. */
struct quotas_call *quotas_read(struct aws_client *c, struct aws_gate gate, quotas_cb cb,
                                void *ctx);
void quotas_cancel(struct quotas_call *call);
/* The body that asks for a page of SageMaker's quotas; token "": the first. Appended to ret. */
void quotas_page_ask(const char *token, struct buf *ret);
