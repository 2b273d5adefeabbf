/* How a call of AWS went, as values: no I/O. */
#pragma once
#include <stdint.h>

enum aws_outcome {
    AWS_OK,          /* 2xx with a readable body */
    AWS_THROTTLED,   /* refused as too fast; nothing was done */
    AWS_REFUSED,     /* any other clean 4xx; this call did nothing */
    AWS_CREDENTIALS, /* expired or unknown credentials, or clock skew; nothing was done */
    AWS_UNKNOWN,     /* 5xx, timeout, reset or unreadable answer: the call may have taken effect */
    /* no byte left this machine (connection refused, cancelled): nothing happened */
    AWS_UNSENT
};
/* The outcome of a call that failed. */
struct aws_failure {
    enum aws_outcome outcome;
    int status;
    char code[64];
    char message[1025];
    int64_t retry_after_us;
};
