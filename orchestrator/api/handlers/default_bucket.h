/* The bucket of what names none: droverd's setting, else the one that the SageMaker SDKs use,
 * sagemaker-REGION-ACCOUNT. */
#pragma once
#include "api/server/request.h"

/* *ret lives as long as the request. The account is asked of AWS once. ERR_AWS, ERR_UNAVAILABLE,
 * ERR_TIMEOUT: it is not known and cannot be asked now. */
bool default_bucket(struct api_req *r, const char **ret, struct err *err) MUST_CHECK;
