/* Lists every SageMaker quota, page by page, and keeps those that bound training jobs. */
#include "quotas.h"
#include "common/json.h"
#include <math.h>
#include <stdio.h>

#define QUOTA_PAGES_MAX 60

struct quotas_call {
    struct aws_client *client;
    struct aws_gate gate;
    struct aws_req *req;
    quotas_cb cb;
    void *ctx;
    char token[4097];
    int pages;
    struct quota_reading reading;
};

static void on_page(void *ctx, const struct aws_reply *r);

static void call_free(struct quotas_call *call)
{
    free(call->reading.training);
    free(call);
}

void quotas_cancel(struct quotas_call *call)
{
    if (call != NULL) {
        aws_cancel(call->req);
        call_free(call);
    }
}

static void send_page(struct quotas_call *call)
{
    AUTO_BUF struct buf body = BUF_INIT(8192);
    struct json_out w;
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "ServiceCode", "sagemaker");
    json_out_i64(&w, "MaxResults", 100);
    if (call->token[0] != '\0') {
        json_out_str(&w, "NextToken", call->token);
    }
    json_out_end_object(&w);
    const struct aws_call aws = {
        .service = "servicequotas",
        .target = "ServiceQuotasV20190624.ListServiceQuotas",
        .content_type = "application/x-amz-json-1.1",
        .body = buf_str(&body),
        .may_send = call->gate.may_send,
        .may_send_ctx = call->gate.ctx,
    };
    call->req = aws_send(call->client, &aws, on_page, call);
}

static void keep(struct quota_reading *r, const char *name, double value)
{
    static const char suffix[] = " for training job usage";
    if (!(value >= 0 && value < 1e9)) {
        return;
    }
    struct str s = str_of(name);
    if (strcmp(name, "Number of instances across all training jobs") == 0) {
        r->total = (int64_t)floor(value);
    } else if (strcmp(name, "Rate of CreateTrainingJob requests") == 0) {
        r->create_rate = value;
    } else if (str_starts(s, "ml.") && str_ends(s, suffix)) {
        size_t n = s.n - (sizeof suffix - 1);
        struct quota_value *q;
        if (n >= sizeof q->instance_type || memchr(name, ' ', n) != NULL) {
            return; /* "<type> for spot training job usage" and the like */
        }
        r->training = xrealloc(r->training, (r->training_n + 1) * sizeof *r->training);
        q = &r->training[r->training_n++];
        (void)snprintf(q->instance_type, sizeof q->instance_type, "%.*s", (int)n, name);
        q->limit = (int64_t)floor(value);
    }
}

static void on_page(void *ctx, const struct aws_reply *r)
{
    struct quotas_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    size_t i;
    json_t *row;
    call->req = NULL;
    if (r->outcome != AWS_OK || !json_parse(r->body, r->body.n, &o, NULL)) {
        struct aws_failure f;
        aws_failure_from(r, &f);
        call->cb(call->ctx, NULL, &f);
        call_free(call);
        return;
    }
    json_array_foreach(json_object_get(o, "Quotas"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "QuotaName"));
        if (name != NULL) {
            keep(&call->reading, name, json_number_value(json_object_get(row, "Value")));
        }
    }
    const char *token = json_string_value(json_object_get(o, "NextToken"));
    bool more = token != NULL && token[0] != '\0' && strlen(token) < sizeof call->token &&
                strcmp(token, call->token) != 0 && ++call->pages < QUOTA_PAGES_MAX;
    if (more) {
        (void)snprintf(call->token, sizeof call->token, "%s", token);
        send_page(call);
        return;
    }
    call->cb(call->ctx, &call->reading, NULL);
    call_free(call);
}

struct quotas_call *quotas_read(struct aws_client *c, struct aws_gate gate, quotas_cb cb, void *ctx)
{
    struct quotas_call *call = xcalloc(1, sizeof *call);
    call->client = c;
    call->gate = gate;
    call->cb = cb;
    call->ctx = ctx;
    call->reading.total = -1;
    call->reading.create_rate = -1;
    send_page(call);
    return call;
}
