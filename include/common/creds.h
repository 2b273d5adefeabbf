/* Credentials: environment, then profile files. Written so that the remaining providers (web
 * identity, container, instance metadata) join as rows of the chain. */
#pragma once
#include "sigv4.h"

/* First provider that has credentials wins. ERR_UNAUTHENTICATED names every place looked at. */
bool creds_load(struct aws_creds *ret, struct err *err) MUST_CHECK;
/* Region by AWS_REGION, AWS_DEFAULT_REGION, the profile; ERR_INVALID when none. */
bool creds_region(char *out, size_t out_n, struct err *err) MUST_CHECK;
/* Base URL of a service ("sagemaker", "s3", "servicequotas", "logs", "sts"):
 * AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, else https://<host of the region's partition>.
 * *ret_custom: an endpoint variable was used (S3 then goes path style). Caller frees. */
char *creds_endpoint(const char *service, const char *region, bool *ret_custom);
/* The name a service's requests are signed with: "sagemaker-runtime" signs as "sagemaker", most as
 * themselves. */
const char *creds_signing_name(const char *service);
