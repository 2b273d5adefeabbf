/* Whose credentials the calls are signed with: STS GetCallerIdentity, which needs no permission.
 * Source: AWS Security Token Service API reference. */
#pragma once
#include "sagemaker.h"

#define IDENTITY_ACCOUNT_DIGITS 12

struct aws_identity { /* a value */
    char account[16]; /* IDENTITY_ACCOUNT_DIGITS of them */
    char arn[256];
};
/* cb runs once. On success failure is NULL. */
typedef void (*identity_cb)(void *ctx, const struct aws_identity *who,
                            const struct aws_failure *failure);
void identity_get(struct aws_client *c, identity_cb cb, void *ctx);
