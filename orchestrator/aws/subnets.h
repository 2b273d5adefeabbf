/* Subnets of the account: their zones and free addresses, of which a job in a VPC needs one for
 * each instance. Source: Amazon EC2 API reference, DescribeSubnets. */
#pragma once
#include "sagemaker.h"

#define SUBNETS_MAX 40

struct subnet { /* a value */
    char id[32];
    char zone[32];
    int64_t free_n; /* addresses */
};
/* list[n]: what EC2 told, in its order. On success failure is NULL; one that does not exist is
 * InvalidSubnetID.NotFound. */
typedef void (*subnets_cb)(void *ctx, const struct subnet *list, size_t n,
                           const struct aws_failure *failure);
/* ids: separated by commas, at most SUBNETS_MAX. cb runs once. */
void subnets_describe(struct aws_client *c, const char *ids, subnets_cb cb, void *ctx);
