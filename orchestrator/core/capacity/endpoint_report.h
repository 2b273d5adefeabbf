/* What SageMaker says of an endpoint and of what it is made of. Values.
 * Source: Amazon SageMaker API reference, DescribeEndpoint, ListEndpoints. */
#pragma once
#include "common/units.h"

/* What an endpoint consists of, in the order in which it is made. */
enum hosting_kind { HOSTING_MODEL, HOSTING_CONFIG, HOSTING_ENDPOINT, HOSTING_KIND_COUNT };

struct endpoint_description {
    char name[64];
    char arn[257];
    char config[64];           /* its endpoint config now */
    char status[32];           /* as AWS spells it; new values may appear */
    char failure_reason[1025]; /* also of an update that was rolled back */
    usec_t created, modified;  /* 0 when absent */
    int64_t instances;         /* of all variants together, now */
    int64_t instances_wanted;
    char instance_type[33]; /* of configs: of their first variant */
};
/* One of a listing: a model, an endpoint config or an endpoint. */
struct hosting_summary {
    char name[64];
    char arn[257];
    char status[32]; /* of endpoints; "" of the others */
    usec_t created, modified;
};
