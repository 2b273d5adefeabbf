/* See log_pages.h. */
#include "log_pages.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "json_call.h"
#include "logs.h"
#include <stdio.h>

struct log_pages_call {
    struct aws_req *req;
    log_stream_cb on_stream;
    log_page_cb on_page;
    void *ctx;
    char after[LOGS_STREAM_SIZE];
};

void log_pages_cancel(struct log_pages_call *call)
{
    if (call != NULL) {
        aws_cancel(call->req);
        free(call);
    }
}

static void send_logs(struct log_pages_call *call, struct aws_client *c, struct aws_gate gate,
                      enum aws_operation op, const struct buf *body, aws_cb cb)
{
    const struct aws_call aws = aws_operation_call(op, gate, buf_str(body));
    call->req = aws_send(c, &aws, cb, call);
}

static void on_streams(void *ctx, const struct aws_reply *r)
{
    struct log_pages_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    struct aws_failure f;
    const char *next = "";
    size_t i;
    json_t *s;
    bool none = r->outcome == AWS_REFUSED && strcmp(r->code, "ResourceNotFoundException") == 0;
    bool read = r->outcome == AWS_OK && json_parse(r->body, r->body.n, &o, NULL);
    if (!none && !read) {
        aws_failure_from(r, &f);
    }
    json_array_foreach(json_object_get(o, "logStreams"), i, s)
    {
        const char *name = json_string_value(json_object_get(s, "logStreamName"));
        if (name != NULL && strlen(name) < LOGS_STREAM_SIZE && strcmp(name, call->after) > 0 &&
            (next[0] == '\0' || strcmp(name, next) < 0)) {
            next = name;
        }
    }
    call->on_stream(call->ctx, next, none || read ? NULL : &f);
    free(call);
}

struct log_pages_call *log_stream_after(struct aws_client *c, struct aws_gate gate,
                                        const char *job_name, const char *after, log_stream_cb cb,
                                        void *ctx)
{
    struct log_pages_call *call = xcalloc(1, sizeof *call);
    AUTO_BUF struct buf body = BUF_INIT(1024);
    struct json_out w;
    char prefix[80];
    *call = (struct log_pages_call){.on_stream = cb, .ctx = ctx};
    (void)snprintf(call->after, sizeof call->after, "%s", after);
    (void)snprintf(prefix, sizeof prefix, "%s/algo-1-", job_name);
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "logGroupName", LOGS_GROUP);
    json_out_str(&w, "logStreamNamePrefix", prefix);
    json_out_end_object(&w);
    send_logs(call, c, gate, AWS_OP_DescribeLogStreams, &body, on_streams);
    return call;
}

static void on_events(void *ctx, const struct aws_reply *r)
{
    struct log_pages_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    struct aws_failure f;
    size_t i;
    json_t *e;
    if (r->outcome != AWS_OK || !json_parse(r->body, r->body.n, &o, NULL)) {
        aws_failure_from(r, &f);
        call->on_page(call->ctx, NULL, 0, "", &f);
        free(call);
        return;
    }
    const json_t *events = json_object_get(o, "events");
    const char *next = json_string_value(json_object_get(o, "nextForwardToken"));
    AUTO_FREE struct log_line *lines = xcalloc(json_array_size(events) + 1, sizeof *lines);
    json_array_foreach((json_t *)(uintptr_t)events, i, e)
    {
        const char *text = json_string_value(json_object_get(e, "message"));
        lines[i] = (struct log_line){.time = json_integer_value(json_object_get(e, "timestamp")) *
                                             USEC_PER_MSEC,
                                     .host = STR("algo-1"),
                                     .text = str_of(text != NULL ? text : "")};
    }
    call->on_page(call->ctx, lines, json_array_size(events), next != NULL ? next : "", NULL);
    free(call);
}

struct log_pages_call *log_page_get(struct aws_client *c, struct aws_gate gate, const char *stream,
                                    const char *token, log_page_cb cb, void *ctx)
{
    struct log_pages_call *call = xcalloc(1, sizeof *call);
    AUTO_BUF struct buf body = BUF_INIT(8192);
    struct json_out w;
    *call = (struct log_pages_call){.on_page = cb, .ctx = ctx};
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "logGroupName", LOGS_GROUP);
    json_out_str(&w, "logStreamName", stream);
    json_out_i64(&w, "limit", LOG_PAGE_LINES);
    json_out_bool(&w, "startFromHead", true);
    if (token[0] != '\0') {
        json_out_str(&w, "nextToken", token);
    }
    json_out_end_object(&w);
    send_logs(call, c, gate, AWS_OP_GetLogEvents, &body, on_events);
    return call;
}
