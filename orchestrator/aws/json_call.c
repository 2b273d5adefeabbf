/* See json_call.h. */
#include "json_call.h"
#include "common/json.h"
#include <stdio.h>

static const struct aws_operation_info operations[AWS_OPERATION_COUNT] = {
#define X(OPERATION, SERVICE, TARGET, RATE, REPEAT)                                                \
    [AWS_OP_##OPERATION] = {#OPERATION, SERVICE, sizeof TARGET > 1 ? TARGET #OPERATION : NULL,     \
                            RATE, REPEAT_##REPEAT},
#include "operation.def"
#undef X
};

struct json_call {
    struct aws_req *req;
    json_call_cb cb;
    void *ctx;
    const char *operation;
};

const struct aws_operation_info *aws_operation_info(enum aws_operation op)
{
    return &operations[op];
}

void aws_failure_from(const struct aws_reply *r, struct aws_failure *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->outcome = r->outcome;
    ret->status = r->status;
    ret->retry_after_us = r->retry_after_us;
    (void)snprintf(ret->code, sizeof ret->code, "%s", r->code);
    (void)snprintf(ret->message, sizeof ret->message, "%s", r->message);
}

static void on_answer(void *ctx, const struct aws_reply *r)
{
    struct json_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    struct aws_failure f;
    bool ok = r->outcome == AWS_OK;
    if (ok && r->body.n == 0) { /* Delete answers nothing */
        o = json_object();
    }
    if (ok && (o != NULL || json_parse(r->body, r->body.n, &o, NULL)) && json_is_object(o)) {
        call->cb(call->ctx, o, NULL);
        free(call);
        return;
    }
    aws_failure_from(r, &f);
    if (ok) {
        f.outcome = AWS_UNKNOWN;
        (void)snprintf(f.message, sizeof f.message, "unreadable answer to %s", call->operation);
    }
    call->cb(call->ctx, NULL, &f);
    free(call);
}

/* CloudWatch and SQS speak 1.0. */
static const char *type_of(const struct aws_operation_info *info)
{
    if (info->target == NULL) {
        return "application/x-www-form-urlencoded; charset=utf-8";
    }
    bool old = strcmp(info->service, "monitoring") == 0 || strcmp(info->service, "sqs") == 0;
    return old ? "application/x-amz-json-1.0" : "application/x-amz-json-1.1";
}

struct aws_call aws_operation_call(enum aws_operation op, struct aws_gate gate, struct str body)
{
    const struct aws_operation_info *info = &operations[op];
    return (struct aws_call){
        .service = info->service,
        .target = info->target,
        .operation = info->name,
        .content_type = type_of(info),
        .body = body,
        .may_send = gate.may_send,
        .may_send_ctx = gate.ctx,
        /* With a dead kept-alive connection curl would send the request a second time by itself. */
        .fresh_connection = info->repeat != REPEAT_SAFE,
    };
}

struct json_call *json_call_send(struct aws_client *c, struct aws_gate gate, enum aws_operation op,
                                 struct str body, json_call_cb cb, void *ctx)
{
    struct json_call *call = xcalloc(1, sizeof *call);
    call->cb = cb;
    call->ctx = ctx;
    call->operation = operations[op].name;
    const struct aws_call aws = aws_operation_call(op, gate, body);
    call->req = aws_send(c, &aws, on_answer, call);
    return call;
}

void json_call_cancel(struct json_call *call)
{
    if (call != NULL) {
        aws_cancel(call->req);
        free(call);
    }
}

void json_call_text(const json_t *o, const char *key, char *out, size_t out_n)
{
    const char *s = json_string_value(json_object_get(o, key));
    (void)snprintf(out, out_n, "%s", s != NULL ? s : "");
}

usec_t json_call_epoch(const json_t *o, const char *key)
{
    usec_t t = 0;
    return json_get_epoch(o, key, 0, &t, NULL) ? t : 0;
}
