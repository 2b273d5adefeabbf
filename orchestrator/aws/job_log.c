/* See job_log.h. Names of streams are <job>/<host>-<epoch>; a restart opens further ones with a new
 * epoch. Source: CloudWatch Logs API reference. */
#include "job_log.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/secret_shape.h"
#include "json_call.h"
#include "logs.h"
#include <stdio.h>
#include <stdlib.h>

struct job_log_call {
    struct aws_client *client;
    struct aws_gate gate;
    struct aws_req *req;
    job_log_cb cb;
    void *ctx;
    char streams[JOB_LOG_HOSTS_MAX][LOGS_STREAM_SIZE];
    int streams_n, next;
    struct log_line *lines; /* strings owned */
    size_t lines_n;
};

static void call_free(struct job_log_call *call)
{
    for (size_t i = 0; i < call->lines_n; i++) {
        char *text;
        memcpy(&text, &call->lines[i].text.p, sizeof text);
        free(text);
    }
    free(call->lines);
    free(call);
}

void job_log_cancel(struct job_log_call *call)
{
    if (call != NULL) {
        aws_cancel(call->req);
        call_free(call);
    }
}

static void finish(struct job_log_call *call, const struct aws_reply *failed)
{
    struct aws_failure f;
    if (failed != NULL) {
        aws_failure_from(failed, &f);
    }
    call->cb(call->ctx, call->lines, call->lines_n, failed != NULL ? &f : NULL);
    call_free(call);
}

static void send_logs(struct job_log_call *call, enum aws_operation op, const struct buf *body,
                      aws_cb cb)
{
    const struct aws_call aws = aws_operation_call(op, call->gate, buf_str(body));
    call->req = aws_send(call->client, &aws, cb, call);
}

/* "job/algo-1-1795148860": the host. */
static struct str host_of(const char *stream)
{
    const char *slash = strrchr(stream, '/');
    const char *from = slash != NULL ? slash + 1 : stream;
    const char *dash = strrchr(from, '-');
    return (struct str){from, dash != NULL ? (size_t)(dash - from) : strlen(from)};
}

static void keep_lines(struct job_log_call *call, const json_t *events, const char *stream)
{
    size_t i;
    json_t *e;
    bool in_key = false;
    call->lines =
        xrealloc(call->lines, (call->lines_n + json_array_size(events) + 1) * sizeof *call->lines);
    json_array_foreach(events, i, e)
    {
        const char *m = json_string_value(json_object_get(e, "message"));
        AUTO_FREE char *said = xstrdup(m != NULL ? m : "");
        secret_mask_line(said, &in_key);
        struct str text = str_of(said);
        text.n = MIN(text.n, (size_t)JOB_LOG_CHARS_MAX);
        call->lines[call->lines_n++] = (struct log_line){
            .time = json_integer_value(json_object_get(e, "timestamp")) * USEC_PER_MSEC,
            .host = host_of(stream),
            .text = {str_dup(text), text.n}};
    }
}

static void ask_next(struct job_log_call *call);

static void on_events(void *ctx, const struct aws_reply *r)
{
    struct job_log_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    call->req = NULL;
    if (r->outcome != AWS_OK || !json_parse(r->body, r->body.n, &o, NULL)) {
        finish(call, r);
        return;
    }
    keep_lines(call, json_object_get(o, "events"), call->streams[call->next]);
    call->next++;
    ask_next(call);
}

static void ask_next(struct job_log_call *call)
{
    AUTO_BUF struct buf body = BUF_INIT(4096);
    struct json_out w;
    if (call->next == call->streams_n) {
        finish(call, NULL);
        return;
    }
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "logGroupName", LOGS_GROUP);
    json_out_str(&w, "logStreamName", call->streams[call->next]);
    json_out_i64(&w, "limit", JOB_LOG_LINES);
    json_out_bool(&w, "startFromHead", false);
    json_out_end_object(&w);
    send_logs(call, AWS_OP_GetLogEvents, &body, on_events);
}

/* The newest stream of each host: names come in order, so a host's last one replaces the others. */
static void keep_stream(struct job_log_call *call, const char *name)
{
    int at = call->streams_n;
    if (at > 0 && str_eq(host_of(call->streams[at - 1]), host_of(name))) {
        at--;
    }
    if (at < JOB_LOG_HOSTS_MAX && strlen(name) < LOGS_STREAM_SIZE) {
        (void)snprintf(call->streams[at], LOGS_STREAM_SIZE, "%s", name);
        call->streams_n = at + 1;
    }
}

static void on_streams(void *ctx, const struct aws_reply *r)
{
    struct job_log_call *call = ctx;
    AUTO_JSON json_t *o = NULL;
    size_t i;
    json_t *s;
    bool none = r->outcome == AWS_REFUSED && strcmp(r->code, "ResourceNotFoundException") == 0;
    call->req = NULL;
    if (!none && (r->outcome != AWS_OK || !json_parse(r->body, r->body.n, &o, NULL))) {
        finish(call, r);
        return;
    }
    json_array_foreach(json_object_get(o, "logStreams"), i, s)
    {
        const char *name = json_string_value(json_object_get(s, "logStreamName"));
        if (name != NULL) {
            keep_stream(call, name);
        }
    }
    ask_next(call);
}

struct job_log_call *job_log_read(struct aws_client *c, struct aws_gate gate, const char *job_name,
                                  job_log_cb cb, void *ctx)
{
    struct job_log_call *call = xcalloc(1, sizeof *call);
    AUTO_BUF struct buf body = BUF_INIT(1024);
    struct json_out w;
    char prefix[80];
    call->client = c;
    call->gate = gate;
    call->cb = cb;
    call->ctx = ctx;
    (void)snprintf(prefix, sizeof prefix, "%s/", job_name);
    json_out_init(&w, &body);
    json_out_object(&w, NULL);
    json_out_str(&w, "logGroupName", LOGS_GROUP);
    json_out_str(&w, "logStreamNamePrefix", prefix);
    json_out_end_object(&w);
    send_logs(call, AWS_OP_DescribeLogStreams, &body, on_streams);
    return call;
}
