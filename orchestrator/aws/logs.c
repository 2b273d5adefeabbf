/* Finds the newest stream of a job and reads its last events. */
#include "logs.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/secret_shape.h"
#include "json_call.h"
#include <stdio.h>

struct logs_call {
    struct aws_client *client;
    logs_cb cb;
    void *ctx;
    int limit;
    char stream[513];
    char token[1024];
};

static void finish(struct logs_call *call, struct str json, const struct aws_failure *f)
{
    call->cb(call->ctx, json, f);
    free(call);
}

static void send_logs(struct logs_call *call, enum aws_operation op, struct str body, aws_cb cb)
{
    const struct aws_call aws = aws_operation_call(op, (struct aws_gate){NULL, NULL}, body);
    (void)aws_send(call->client, &aws, cb, call);
}

/* "job/algo-1-1795148860" to "algo-1". */
static void host_of(const char *stream, char *out, size_t out_n)
{
    const char *slash = strrchr(stream, '/');
    const char *from = slash != NULL ? slash + 1 : stream;
    const char *dash = strrchr(from, '-');
    size_t n = dash != NULL ? (size_t)(dash - from) : strlen(from);
    (void)snprintf(out, out_n, "%.*s", (int)n, from);
}

static void write_lines(const json_t *page, const char *stream, struct buf *out)
{
    struct json_out w;
    size_t i;
    json_t *e;
    char host[64];
    bool in_key = false;
    host_of(stream, host, sizeof host);
    json_out_init(&w, out);
    json_out_object(&w, NULL);
    json_out_array(&w, "lines");
    json_array_foreach(json_object_get(page, "events"), i, e)
    {
        const char *m = json_string_value(json_object_get(e, "message"));
        AUTO_FREE char *text = xstrdup(m != NULL ? m : "");
        secret_mask_line(text, &in_key);
        json_out_object(&w, NULL);
        json_out_time(&w, "time",
                      json_integer_value(json_object_get(e, "timestamp")) * USEC_PER_MSEC);
        json_out_str(&w, "host", host);
        json_out_str(&w, "text", text);
        json_out_end_object(&w);
    }
    json_out_end_array(&w);
    json_out_str(&w, "next", json_string_value(json_object_get(page, "nextForwardToken")));
    json_out_end_object(&w);
}

static void on_events(void *ctx, const struct aws_reply *r)
{
    struct logs_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    AUTO_BUF struct buf out = BUF_INIT(4 * 1024 * 1024);
    struct aws_failure f;
    if (r->outcome == AWS_OK && json_parse(r->body, r->body.n, &o, NULL)) {
        write_lines(o, call->stream, &out);
        finish(call, buf_str(&out), NULL);
        return;
    }
    aws_failure_from(r, &f);
    finish(call, STR(""), &f);
}

static void on_streams(void *ctx, const struct aws_reply *r)
{
    struct logs_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    AUTO_BUF struct buf body = BUF_INIT(8192);
    struct json_out w;
    struct aws_failure f;
    bool none_yet = r->outcome == AWS_REFUSED && strcmp(r->code, "ResourceNotFoundException") == 0;
    if (!none_yet && (r->outcome != AWS_OK || !json_parse(r->body, r->body.n, &o, NULL))) {
        aws_failure_from(r, &f);
        finish(call, STR(""), &f);
        return;
    }
    const json_t *streams = json_object_get(o, "logStreams");
    const json_t *newest = json_array_get(streams, json_array_size(streams) - 1);
    const char *name = json_string_value(json_object_get(newest, "logStreamName"));
    if (name == NULL) {
        finish(call, STR("{\"lines\":[],\"next\":null}"), NULL);
        return;
    }
    (void)snprintf(call->stream, sizeof call->stream, "%s", name);
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "logGroupName", LOGS_GROUP);
    json_out_str(&w, "logStreamName", call->stream);
    json_out_i64(&w, "limit", call->limit);
    json_out_bool(&w, "startFromHead", call->token[0] != '\0');
    if (call->token[0] != '\0') {
        json_out_str(&w, "nextToken", call->token);
    }
    json_out_end_object(&w);
    send_logs(call, AWS_OP_GetLogEvents, buf_str(&body), on_events);
}

void logs_tail(struct aws_client *c, const char *job_name, int limit, const char *token, logs_cb cb,
               void *ctx)
{
    struct logs_call *call = xcalloc(1, sizeof *call);
    AUTO_BUF struct buf body = BUF_INIT(4096);
    struct json_out w;
    char prefix[80];
    call->client = c;
    call->cb = cb;
    call->ctx = ctx;
    call->limit = limit;
    (void)snprintf(call->token, sizeof call->token, "%s", token);
    (void)snprintf(prefix, sizeof prefix, "%s/", job_name);
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "logGroupName", LOGS_GROUP);
    json_out_str(&w, "logStreamNamePrefix", prefix);
    json_out_end_object(&w);
    send_logs(call, AWS_OP_DescribeLogStreams, buf_str(&body), on_streams);
}
