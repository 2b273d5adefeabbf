/* Region and endpoints of AWS services, found in the environment and the profile files as the AWS
 * SDKs do. */
#pragma once
#include "common/err.h"

/* Region from AWS_REGION, AWS_DEFAULT_REGION or the profile; ERR_INVALID when there is none. */
bool endpoint_region(char *out, size_t out_n, struct err *err) MUST_CHECK;
/* Base URL of a service ("sagemaker", "s3", "servicequotas", "logs", "sts"): from
 * AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, the profile's services section or endpoint_url,
 * else https:// and the host in the region's partition. AWS_USE_FIPS_ENDPOINT and
 * AWS_USE_DUALSTACK_ENDPOINT, or the profile's use_... keys, choose among the hosts. *ret_custom is
 * true when it was given as a URL (S3 then uses path style). The caller frees the result. */
char *endpoint_url(const char *service, const char *region, bool *ret_custom);
/* The service name used in signatures. "sagemaker-runtime" signs as "sagemaker", most others as
 * themselves. */
const char *endpoint_signing_name(const char *service);
