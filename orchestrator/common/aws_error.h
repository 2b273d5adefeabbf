/* The parts of an AWS answer other than its payload: error code and text in every protocol's form,
 * request id, Retry-After. Private to common/aws.c and s3*.c. */
#pragma once
#include "common/aws.h"

#define AWS_RETRY_AFTER_MAX_US (INT64_C(3600) * USEC_PER_SEC)

struct aws_error { /* value; texts are cut to fit */
    char code[64]; /* cleaned; "" when the answer has none */
    char message[1024];
    char request_id[64];
};

/* Read code, message and request id out of an answer (JSON, XML, headers). An answer to HEAD has no
 * body: its code is made from the status. A body in no known form leaves the code empty. */
void aws_error_decode(const struct http_reply *r, bool head, struct aws_error *ret);
/* Reads only the request id; for answers that are not errors. */
void aws_error_request_id(const struct http_reply *r, struct aws_error *ret);
/* x-amz-retry-after (milliseconds) or Retry-After (seconds); 0 when absent or unreadable. */
int64_t aws_error_retry_after_us(const struct http_reply *r);
/* When AWS answered, by its clock. False: the answer does not say. */
bool aws_error_date(const struct http_reply *r, usec_t *ret);
/* True when the refusal means that our clock differs from AWS'. */
bool aws_error_is_skew(const char *code, const char *message);
/* True when the text is one well-formed XML document. */
bool aws_error_is_xml(struct str body);
