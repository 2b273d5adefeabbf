/* AWS credentials, region and endpoints, found in the environment and the profile files as the AWS
 * SDKs do. */
#pragma once
#include "sigv4.h"

/* The first provider that has credentials wins. ERR_UNAUTHENTICATED names every place searched. */
bool creds_load(struct aws_creds *ret, struct err *err) MUST_CHECK;
/* Region from AWS_REGION, AWS_DEFAULT_REGION or the profile; ERR_INVALID when there is none. */
bool creds_region(char *out, size_t out_n, struct err *err) MUST_CHECK;
/* Base URL of a service ("sagemaker", "s3", "servicequotas", "logs", "sts"):
 * AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, else https:// and the host in the region's
 * partition. *ret_custom is true when a variable was used (S3 then uses path style). The caller
 * frees the result. */
char *creds_endpoint(const char *service, const char *region, bool *ret_custom);
/* The service name used in signatures. "sagemaker-runtime" signs as "sagemaker", most others as
 * themselves. */
const char *creds_signing_name(const char *service);
