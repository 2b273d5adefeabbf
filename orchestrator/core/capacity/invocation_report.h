/* What CloudWatch says of the invocations of an endpoint. Values.
 * Source: Amazon CloudWatch API reference, GetMetricStatistics; Amazon SageMaker developer guide,
 * "Monitor Amazon SageMaker with Amazon CloudWatch". */
#pragma once
#include "common/units.h"
#include <stddef.h>

#define INVOCATION_COUNTS_MAX 1440 /* of one answer */

struct invocation_question {
    usec_t from, to;  /* of AWS' clock; from at a full minute, to may be any instant after it */
    int64_t period_s; /* 60 times n */
};
/* At least one in the period that begins then. A period without any has none of these. */
struct invocation_count {
    usec_t from;
    int64_t n;
};
struct invocation_report { /* in no order */
    struct invocation_count counts[INVOCATION_COUNTS_MAX];
    size_t n;
};
