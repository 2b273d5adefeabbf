/* Region and endpoints of AWS services, found in the environment and the profile files as the AWS
 * SDKs do. */
#pragma once
#include "common/str.h"

struct endpoint {
    char *service;
    char *url;         /* "https://host:port/base", no slash at the end */
    struct str scheme; /* views into url */
    struct str host;   /* with the port unless it is the scheme's default */
    struct str base;   /* prefix of every path, usually empty */
    bool custom;
};

/* Region from AWS_REGION, AWS_DEFAULT_REGION or the profile; ERR_INVALID when there is none. */
bool endpoint_region(char *out, size_t out_n, struct err *err) MUST_CHECK;
/* Base URL of a service ("sagemaker", "s3", "servicequotas", "logs", "sts"): from
 * AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, the profile's services section or endpoint_url,
 * else https:// and the host in the region's partition. AWS_USE_FIPS_ENDPOINT and
 * AWS_USE_DUALSTACK_ENDPOINT, or the profile's use_... keys, choose among the hosts. *ret_custom is
 * true when it was given as a URL (S3 then uses path style). The caller frees the result. */
char *endpoint_url(const char *service, const char *region, bool *ret_custom);
/* Path of the certificates that vouch for AWS: AWS_CA_BUNDLE or the profile's ca_bundle; NULL: the
 * system's. The caller frees it. */
char *endpoint_ca_bundle(void);
/* False when AWS_REQUEST_CHECKSUM_CALCULATION or the profile's request_checksum_calculation is
 * when_required. */
bool endpoint_wants_checksums(void);
/* The same of AWS_RESPONSE_CHECKSUM_VALIDATION and response_checksum_validation. */
bool endpoint_wants_compared(void);
/* The host, perhaps with a port, belongs to a domain of AWS. */
bool endpoint_is_aws_host(struct str host);
/* Split e->url into its views. ERR_INVALID when it is no plain http or https address. */
bool endpoint_parse(struct endpoint *e, struct err *err) MUST_CHECK;
/* The service name used in signatures. "sagemaker-runtime" signs as "sagemaker", most others as
 * themselves. */
const char *endpoint_signing_name(const char *service);
