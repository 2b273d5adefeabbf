/* The address of a container image in ECR, taken apart:
 * ACCOUNT.dkr.ecr.REGION.SUFFIX/REPOSITORY[:TAG][@sha256:DIGEST]. */
#pragma once
#include "common/base.h"

#define ACCOUNT_DIGITS 12 /* of the number of an AWS account */

struct image_ref { /* a value */
    char account[13];
    char region[32];
    char repository[257];
    char tag[129]; /* "latest" when none is written */
    bool pinned;   /* it has a digest */
};
/* False: the address is not one of ECR. */
bool image_ref_parse(const char *uri, struct image_ref *ret) MUST_CHECK;
/* Bytes of the uri up to its tag or digest. */
size_t image_ref_name_n(const char *uri);
