/* AWS Pricing: list prices of SageMaker's instances for training and hosting, and of storage of FSx
 * for Lustre, in one region. Source: Price List Query API reference, GetProducts. */
#pragma once
#include "core/money/price_reading.h"
#include "sagemaker.h"

/* Pricing answers in three regions only, for all regions. */
const char *pricing_region(const char *region);

/* False for China, GovCloud and the like: their prices are not in the list, or not in USD. */
bool pricing_covers(const char *region);

/* reading is valid during the call only; failure NULL: it was read, and has a price. */
typedef void (*pricing_cb)(void *ctx, const struct price_reading *reading,
                           const struct aws_failure *failure);
struct pricing_call;
/* Read the prices of a region. c: a client of pricing_region(region). The call is freed after the
 * callback. pricing_cancel: no callback comes. */
struct pricing_call *pricing_read(struct aws_client *c, struct aws_gate gate, const char *region,
                                  pricing_cb cb, void *ctx);
void pricing_cancel(struct pricing_call *call);
