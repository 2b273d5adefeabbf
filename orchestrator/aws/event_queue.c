/* See event_queue.h. */
#include "event_queue.h"
#include "common/json.h"
#include <stdio.h>

#define WAIT_S       20
#define VISIBILITY_S 60
#define BODY_MAX     ((size_t)1 << 20)

struct event_queue_call {
    struct json_call *json;
    void *ctx;
    event_queue_receive_cb on_messages;
    event_queue_delete_cb on_deleted;
    event_queue_look_cb on_look;
};

/* A whole text of a name's characters. */
static bool take_word(const json_t *o, const char *key, char *out, size_t out_n)
{
    const char *s = json_string_value(json_object_get(o, key));
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    if (s == NULL || s[0] == '\0' || strlen(s) >= out_n || s[strspn(s, allowed)] != '\0') {
        return false;
    }
    (void)snprintf(out, out_n, "%s", s);
    return true;
}

/* Milliseconds since the epoch, as a text or a number; 0: none. */
static usec_t milliseconds(const json_t *v)
{
    int64_t ms = json_is_number(v) ? (int64_t)MAX(0.0, MIN(json_number_value(v), 1e15)) : 0;
    const char *s = json_string_value(v);
    if (s != NULL && !parse_i64(str_of(s), 0, INT64_C(1000000000000000), &ms, NULL)) {
        ms = 0;
    }
    return ms * USEC_PER_MSEC;
}

bool training_event_read(struct str body, struct training_event *ret)
{
    AUTO_JSON json_t *o = NULL;
    char source[32];
    *ret = (struct training_event){.modified = 0};
    if (!json_parse(body, BODY_MAX, &o, NULL) || !json_is_object(o)) {
        return false;
    }
    const char *type = json_string_value(json_object_get(o, "detail-type"));
    const json_t *detail = json_object_get(o, "detail");
    json_call_text(o, "source", source, sizeof source);
    if (strcmp(source, "aws.sagemaker") != 0 || type == NULL ||
        strcmp(type, "SageMaker Training Job State Change") != 0 || !json_is_object(detail)) {
        return false;
    }
    ret->modified = milliseconds(json_object_get(detail, "LastModifiedTime"));
    if (!take_word(detail, "SecondaryStatus", ret->secondary, sizeof ret->secondary)) {
        ret->secondary[0] = '\0';
    }
    return take_word(detail, "TrainingJobName", ret->name, sizeof ret->name) &&
           take_word(detail, "TrainingJobStatus", ret->status, sizeof ret->status);
}

/* The text of a member; the answer owns it. */
static const char *text_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static size_t read_messages(const json_t *o, struct queue_message ret[static EVENT_QUEUE_BATCH])
{
    size_t n = 0, i;
    const json_t *m;
    json_array_foreach(json_object_get(o, "Messages"), i, m)
    {
        const char *receipt = text_of(m, "ReceiptHandle");
        const char *body = text_of(m, "Body");
        if (receipt == NULL || strlen(receipt) > EVENT_QUEUE_RECEIPT_MAX ||
            n == EVENT_QUEUE_BATCH) {
            continue;
        }
        ret[n].receipt = receipt;
        ret[n].is_event = body != NULL && training_event_read(str_of(body), &ret[n].event);
        n++;
    }
    return n;
}

static void on_receive(void *ctx, const json_t *o, const struct aws_failure *f)
{
    struct event_queue_call *call = ctx;
    struct queue_message messages[EVENT_QUEUE_BATCH];
    size_t n = f == NULL ? read_messages(o, messages) : 0;
    call->on_messages(call->ctx, messages, n, f);
    free(call);
}

/* One that was not deleted comes again, and is deleted then. */
static void on_delete(void *ctx, const json_t *o, const struct aws_failure *f)
{
    struct event_queue_call *call = ctx;
    (void)o;
    call->on_deleted(call->ctx, f);
    free(call);
}

static void on_look(void *ctx, const json_t *o, const struct aws_failure *f)
{
    struct event_queue_call *call = ctx;
    const json_t *all = json_object_get(o, "Attributes");
    const char *text = text_of(all, "ApproximateNumberOfMessages");
    int64_t waiting = 0;
    if (text == NULL || !parse_i64(str_of(text), 0, INT64_MAX, &waiting, NULL)) {
        waiting = 0;
    }
    call->on_look(call->ctx, waiting, f);
    free(call);
}

/* Ends the body and sends it. */
static struct event_queue_call *send(struct aws_client *c, struct aws_gate gate,
                                     enum aws_operation op, struct json_out *w, struct buf *body,
                                     json_call_cb cb, const struct event_queue_call *as)
{
    struct event_queue_call *call = xmalloc(sizeof *call);
    *call = *as;
    json_out_end_object(w);
    ASSERT(!body->overflow);
    call->json = json_call_send(c, gate, op, buf_str(body), cb, call);
    return call;
}

static void begin(struct json_out *w, struct buf *body, const char *url)
{
    json_out_init(w, body);
    json_out_object(w, NULL);
    json_out_str(w, "QueueUrl", url);
}

struct event_queue_call *event_queue_receive(struct aws_client *c, struct aws_gate gate,
                                             const char *url, int most, event_queue_receive_cb cb,
                                             void *ctx)
{
    const struct event_queue_call as = {.ctx = ctx, .on_messages = cb};
    AUTO_BUF struct buf body = BUF_INIT(AWS_REQUEST_BYTES_MAX);
    struct json_out w;
    begin(&w, &body, url);
    json_out_i64(&w, "MaxNumberOfMessages", most);
    json_out_i64(&w, "WaitTimeSeconds", WAIT_S);
    json_out_i64(&w, "VisibilityTimeout", VISIBILITY_S);
    return send(c, gate, AWS_OP_ReceiveMessage, &w, &body, on_receive, &as);
}

struct event_queue_call *event_queue_delete(struct aws_client *c, struct aws_gate gate,
                                            const char *url, char *const *receipts, size_t n,
                                            event_queue_delete_cb cb, void *ctx)
{
    const struct event_queue_call as = {.ctx = ctx, .on_deleted = cb};
    AUTO_BUF struct buf body =
        BUF_INIT(EVENT_QUEUE_BATCH * EVENT_QUEUE_RECEIPT_MAX + AWS_REQUEST_BYTES_MAX);
    struct json_out w;
    char id[24];
    ASSERT(n > 0 && n <= EVENT_QUEUE_BATCH);
    begin(&w, &body, url);
    json_out_array(&w, "Entries");
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(id, sizeof id, "%zu", i);
        json_out_object(&w, NULL);
        json_out_str(&w, "Id", id);
        json_out_str(&w, "ReceiptHandle", receipts[i]);
        json_out_end_object(&w);
    }
    json_out_end_array(&w);
    return send(c, gate, AWS_OP_DeleteMessageBatch, &w, &body, on_delete, &as);
}

struct event_queue_call *event_queue_look(struct aws_client *c, struct aws_gate gate,
                                          const char *url, event_queue_look_cb cb, void *ctx)
{
    const struct event_queue_call as = {.ctx = ctx, .on_look = cb};
    AUTO_BUF struct buf body = BUF_INIT(AWS_REQUEST_BYTES_MAX);
    struct json_out w;
    begin(&w, &body, url);
    json_out_array(&w, "AttributeNames");
    json_out_str(&w, NULL, "ApproximateNumberOfMessages");
    json_out_end_array(&w);
    return send(c, gate, AWS_OP_GetQueueAttributes, &w, &body, on_look, &as);
}

void event_queue_cancel(struct event_queue_call *call)
{
    if (call != NULL) {
        json_call_cancel(call->json);
        free(call);
    }
}
