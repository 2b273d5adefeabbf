/* One call of a JSON service by its row in operation.def: the answer parsed, or why there is none.
 * Asynchronous on the loop, one callback a call, no retries. */
#pragma once
#include "common/aws.h"
#include <jansson.h>

#define JSON_CALL_PAGES_MAX   60    /* of one list that are read */
#define AWS_REQUEST_BYTES_MAX 32768 /* of a short request, lists of names and receipts in it */

/* Called right before a request is signed and again before it is sent; false drops it. */
struct aws_gate {
    bool (*may_send)(void *ctx);
    void *ctx;
};
void aws_failure_from(const struct aws_reply *r, struct aws_failure *ret);

enum aws_repeat { REPEAT_SAFE, REPEAT_NAMED, REPEAT_TOKEN, REPEAT_ONCE };
enum aws_operation {
#define X(OPERATION, SERVICE, TARGET, RATE, REPEAT) AWS_OP_##OPERATION,
#include "operation.def"
#undef X
    AWS_OPERATION_COUNT
};
struct aws_operation_info {
    const char *name; /* "CreateModel" */
    const char *service;
    const char *target; /* X-Amz-Target, whole; NULL: it has none */
    int64_t rate_per_minute;
    enum aws_repeat repeat;
};
const struct aws_operation_info *aws_operation_info(enum aws_operation op);
/* The call as its row says; body is borrowed. */
struct aws_call aws_operation_call(enum aws_operation op, struct aws_gate gate, struct str body);

/* o: the answer, borrowed for the call; NULL with failure. A 2xx that cannot be read is
 * AWS_UNKNOWN: it may have taken effect. */
typedef void (*json_call_cb)(void *ctx, const json_t *o, const struct aws_failure *failure);
struct json_call;
/* body: the exact bytes, copied. The handle is valid until cb runs or json_call_cancel. */
struct json_call *json_call_send(struct aws_client *c, struct aws_gate gate, enum aws_operation op,
                                 struct str body, json_call_cb cb, void *ctx);
void json_call_cancel(struct json_call *call);

/* Members of an answer, leniently: absent or of another type is "" or 0. */
void json_call_text(const json_t *o, const char *key, char *out, size_t out_n);
usec_t json_call_epoch(const json_t *o, const char *key);
