/* The exact bytes of CreateModel, CreateEndpointConfig and CreateEndpoint for one try of a stage of
 * kind endpoint. Pure and deterministic. The three share one name, made as that of a job: none of
 * their Describes tells tags, so the hash in the name alone proves that they are ours. */
#pragma once
#include "common/buf.h"
#include "common/err.h"
#include "core/spec/spec.h"

#define ENDPOINT_VARIANT "AllTraffic" /* as the SageMaker Python SDK names it */

struct endpoint_request_input {
    const struct spec *spec;
    const struct spec_stage *stage; /* of kind endpoint */
    int64_t campaign_id;
    const struct job_name *name;
    int64_t attempt_id;
    const char *model_data; /* s3://.../model.tar.gz of the stage it serves; NULL: the file's own */
    const char *install_id;
    const char *region;
};
struct endpoint_requests { /* JSON texts */
    struct buf model, config, endpoint;
};
void endpoint_requests_init(struct endpoint_requests *r);
void endpoint_requests_done(struct endpoint_requests *r); /* cleanup function */
/* ERR_INVALID when a value breaks a limit of the API. */
bool endpoint_request_make(const struct endpoint_request_input *in, struct endpoint_requests *ret,
                           struct err *err) MUST_CHECK;
